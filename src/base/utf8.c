/* UTF-8 by the table of RFC 3629, section 4: the second byte's range depends on the first. */
#include "base/utf8.h"

/* Length of a character by its first byte and the allowed range of the second; 0: no such first byte. */
static size_t expect(unsigned char b, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (b < 0x80)
        return 1;
    if (b >= 0xc2 && b <= 0xdf)
        return 2;
    if (b >= 0xe0 && b <= 0xef) {
        if (b == 0xe0)
            *lo = 0xa0;
        if (b == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (b >= 0xf0 && b <= 0xf4) {
        if (b == 0xf0)
            *lo = 0x90;
        if (b == 0xf4)
            *hi = 0x8f;
        return 4;
    }
    return 0;
}

/* How many bytes at `s` agree with one character, and how many it should have. */
static size_t match(const char *s, size_t len, size_t *want)
{
    unsigned char lo, hi;
    size_t n = 1;

    *want = len > 0 ? expect((unsigned char)s[0], &lo, &hi) : 0;
    if (*want == 0)
        return 0;
    while (n < *want && n < len) {
        unsigned char b = (unsigned char)s[n];

        if (b < lo || b > hi)
            break;
        lo = 0x80;
        hi = 0xbf;
        n++;
    }
    return n;
}

size_t ink_utf8_decode(const char *s, size_t len, uint32_t *cp)
{
    static const unsigned char lead_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t want;

    if (match(s, len, &want) != want || want == 0)
        return 0;
    uint32_t c = (unsigned char)s[0] & lead_mask[want];
    for (size_t i = 1; i < want; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3fU);
    *cp = c;
    return want;
}

size_t ink_utf8_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        if (cp >= 0xd800 && cp <= 0xdfff)
            return 0;
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    if (cp > 0x10ffff)
        return 0;
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t ink_utf8_valid_prefix(const char *s, size_t len)
{
    size_t i = 0;

    while (i < len) {
        size_t want;

        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        if (match(s + i, len - i, &want) != want || want == 0)
            return i;
        i += want;
    }
    return len;
}

bool ink_utf8_is_valid(const char *s, size_t len)
{
    return ink_utf8_valid_prefix(s, len) == len;
}

bool ink_utf8_is_cut(const char *s, size_t len)
{
    size_t want;
    size_t n = match(s, len, &want);

    return want > 0 && n == len && n < want;
}

size_t ink_utf8_complete_prefix(const char *s, size_t len)
{
    return ink_utf8_valid_prefix(s, len);
}

size_t ink_utf8_count(const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}
