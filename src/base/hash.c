/* Hashes: SHA-256 by nettle for what must not collide, FNV-1a for in-memory tables. */
#include "base/hash.h"

#include "base/alloc.h"

#include <nettle/sha2.h>
#include <stdlib.h>

struct ink_digest {
    struct sha256_ctx ctx;
};

uint64_t ink_hash64(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t h = 0xcbf29ce484222325U;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3U;
    return h;
}

void ink_sha256(const void *bytes, size_t len, uint8_t out[INK_SHA256_LEN])
{
    struct sha256_ctx ctx;

    sha256_init(&ctx);
    sha256_update(&ctx, len, bytes);
    sha256_digest(&ctx, INK_SHA256_LEN, out);
}

void ink_sha256_hex(const uint8_t digest[INK_SHA256_LEN], char out[INK_SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < INK_SHA256_LEN; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[INK_SHA256_HEX - 1] = '\0';
}

struct ink_digest *ink_digest_new(void)
{
    struct ink_digest *d = ink_alloc(sizeof(*d));

    sha256_init(&d->ctx);
    return d;
}

void ink_digest_field(struct ink_digest *d, const void *bytes, size_t len)
{
    uint8_t head[8];

    for (size_t i = 0; i < sizeof(head); i++)
        head[i] = (uint8_t)((uint64_t)len >> (8 * i) & 0xff);
    sha256_update(&d->ctx, sizeof(head), head);
    sha256_update(&d->ctx, len, bytes);
}

void ink_digest_finish(struct ink_digest *d, uint8_t out[INK_SHA256_LEN])
{
    sha256_digest(&d->ctx, INK_SHA256_LEN, out);
    free(d);
}
