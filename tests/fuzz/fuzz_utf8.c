/* UTF-8 on any bytes: all functions agree with each other, and nothing outside is read. */
#include "base/utf8.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *s = (const char *)data;
    size_t valid = ink_utf8_valid_prefix(s, size);
    size_t n_chars = 0;

    assert(valid <= size);
    assert(ink_utf8_is_valid(s, size) == (valid == size));
    assert(ink_utf8_complete_prefix(s, size) == valid);
    for (size_t i = 0; i < valid; n_chars++) {
        uint32_t cp;
        char back[4];
        size_t n = ink_utf8_decode(s + i, size - i, &cp);

        assert(n > 0 && n <= valid - i);
        assert(ink_utf8_encode(cp, back) == n && memcmp(back, s + i, n) == 0);
        for (size_t cut = 1; cut < n; cut++)
            assert(ink_utf8_is_cut(s + i, cut) && !ink_utf8_is_valid(s + i, cut));
        i += n;
    }
    assert(n_chars == ink_utf8_count(s, valid));
    if (valid < size) {
        uint32_t cp;

        assert(ink_utf8_decode(s + valid, size - valid, &cp) == 0);
        assert(!ink_utf8_is_cut(s + valid, size - valid) || size - valid < 4);
    }
    return 0;
}
