#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { INK_SHA256_LEN = 32, INK_SHA256_HEX = 65 };

/* FNV-1a, 64 bits: for tables inside one process, never for anything stored or hostile. */
uint64_t ink_hash64(const void *bytes, size_t len);

/* SHA-256 of one piece, and as 64 lower-case hexadecimal digits with a final NUL. */
void ink_sha256(const void *bytes, size_t len, uint8_t out[INK_SHA256_LEN]);
void ink_sha256_hex(const uint8_t digest[INK_SHA256_LEN], char out[INK_SHA256_HEX]);

/* SHA-256 over many fields, each with its length before it, so that ("ab","c") differs from ("a","bc"). */
struct ink_digest;

struct ink_digest *ink_digest_new(void);
void ink_digest_field(struct ink_digest *d, const void *bytes, size_t len);
void ink_digest_finish(struct ink_digest *d, uint8_t out[INK_SHA256_LEN]); /* frees `d` */

#endif
