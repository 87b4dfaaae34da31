#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. All functions are pure.
 */

/* Bytes of the character at `s` and its code point, or 0 when it is not valid or not whole. */
size_t ink_utf8_decode(const char *s, size_t len, uint32_t *cp);

/* Writes `cp` to `out` (room for 4) and returns its length; 0 for what is not a scalar value. */
size_t ink_utf8_encode(uint32_t cp, char *out);

/* Offset of the first byte that is not part of a valid character; `len` when all is valid. */
size_t ink_utf8_valid_prefix(const char *s, size_t len);
bool ink_utf8_is_valid(const char *s, size_t len);

/* Whether `s` is the beginning of a valid character whose end is missing. */
bool ink_utf8_is_cut(const char *s, size_t len);

/*
 * Length of the longest prefix that consists of valid characters and does not
 * end in a cut one. At most 3 bytes are held back from valid text.
 */
size_t ink_utf8_complete_prefix(const char *s, size_t len);

/* Number of characters in valid UTF-8. */
size_t ink_utf8_count(const char *s, size_t len);

#endif
