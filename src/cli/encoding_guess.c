/* Tells a file of another encoding from one with a bad row, so that it is refused before a night is spent on it. */
#include "cli/encoding_guess.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Characters beyond ASCII that are valid UTF-8, and bytes that belong to none. A character cut by the end is neither. */
static void count_utf8(const char *bytes, size_t len, size_t *n_good, size_t *n_bad)
{
    *n_good = *n_bad = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n;

        if ((unsigned char)bytes[i] < 0x80) {
            i++;
            continue;
        }
        n = ink_utf8_decode(bytes + i, len - i, &cp);
        if (n == 0 && ink_utf8_is_cut(bytes + i, len - i))
            return;
        *(n > 0 ? n_good : n_bad) += 1;
        i += n > 0 ? n : 1;
    }
}

/* Whether everything beyond ASCII is in two-byte characters of GBK, or four-byte ones of GB 18030. */
static bool is_gb18030(const char *bytes, size_t len)
{
    size_t n_pairs = 0;

    for (size_t i = 0; i < len;) {
        unsigned char lead = (unsigned char)bytes[i], trail;

        if (lead < 0x80) {
            i++;
            continue;
        }
        if (lead == 0x80 || lead == 0xff)
            return false;
        if (i + 1 == len)
            break; /* cut by the end */
        trail = (unsigned char)bytes[i + 1];
        if (trail >= 0x30 && trail <= 0x39) {
            i += 4;
            continue;
        }
        if (trail < 0x40 || trail == 0x7f || trail == 0xff)
            return false;
        n_pairs++;
        i += 2;
    }
    return n_pairs > 0;
}

const char *encoding_guess(const char *bytes, size_t len)
{
    size_t n_good, n_bad;

    if (len >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return "UTF-16";
    count_utf8(bytes, len, &n_good, &n_bad);
    /* Two-byte characters of GBK are now and then valid UTF-8 by accident, seldom half of them. */
    if (n_bad > 3 && n_bad > n_good && is_gb18030(bytes, len))
        return "GB18030";
    return NULL;
}
