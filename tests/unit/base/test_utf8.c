#include "unit.h"
#include "base/utf8.h"

#include <string.h>

static void every_scalar_value_survives_both_ways(void **state)
{
    (void)state;

    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char utf8[4];
        uint32_t back = 0;
        size_t n = ink_utf8_encode(cp, utf8);

        if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n, cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4);
        assert_int_equal(ink_utf8_decode(utf8, n, &back), n);
        assert_int_equal(back, cp);
        assert_int_equal(ink_utf8_decode(utf8, n - 1, &back), 0);
    }
}

/* Every string of two bytes is valid exactly when it is what encoding gives. */
static void two_bytes_are_valid_only_as_encoded(void **state)
{
    int n_valid = 0;
    (void)state;

    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char s[2] = { (char)a, (char)b };

            n_valid += ink_utf8_is_valid(s, 2);
        }
    }
    assert_int_equal(n_valid, 128 * 128 + (0x800 - 0x80));
}

static void three_bytes_are_valid_only_as_encoded(void **state)
{
    int n_valid = 0;
    (void)state;

    for (unsigned a = 0xe0; a < 0xf0; a++) {
        for (unsigned b = 0; b < 256; b++) {
            for (unsigned c = 0; c < 256; c++) {
                char s[3] = { (char)a, (char)b, (char)c };

                n_valid += ink_utf8_is_valid(s, 3);
            }
        }
    }
    assert_int_equal(n_valid, 0x10000 - 0x800 - 2048); /* without surrogates */
}

static void bad_text_is_located(void **state)
{
    static const struct {
        const char *text;
        size_t len, valid, complete;
    } rows[] = {
        { "", 0, 0, 0 },
        { "abc", 3, 3, 3 },
        { "你好", 6, 6, 6 },
        { "ab\xff", 3, 2, 2 },
        { "\x80", 1, 0, 0 },
        { "a\xc0\x80", 3, 1, 1 },         /* overlong */
        { "a\xe0\x9f\xbf", 4, 1, 1 },     /* overlong */
        { "a\xf0\x8f\xbf\xbf", 5, 1, 1 }, /* overlong */
        { "a\xed\xa0\x80", 4, 1, 1 },     /* surrogate */
        { "a\xf4\x90\x80\x80", 5, 1, 1 }, /* above U+10FFFF */
        { "a\xf5\x80\x80\x80", 5, 1, 1 },
        { "a\xe4\xbd", 3, 1, 1 },
        { "a\0b", 3, 3, 3 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ink_utf8_valid_prefix(rows[i].text, rows[i].len), rows[i].valid);
        assert_int_equal(ink_utf8_complete_prefix(rows[i].text, rows[i].len), rows[i].complete);
        assert_int_equal(ink_utf8_is_valid(rows[i].text, rows[i].len),
                         rows[i].valid == rows[i].len);
    }
}

static void a_cut_character_is_told_from_a_bad_one(void **state)
{
    static const struct {
        const char *text;
        bool cut;
    } rows[] = {
        { "", false },
        { "a", false },
        { "\xe4", true },
        { "\xe4\xbd", true },
        { "\xe4\xbd\xa0", false },
        { "\xf0\x9f\x98", true },
        { "\xc3", true },
        { "\x80", false },
        { "\xff", false },
        { "\xe0\x80", false },
        { "\xed\xa0", false },
        { "\xf4\x90", false },
        { "\xe4"
          "a",
          false },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(ink_utf8_is_cut(rows[i].text, strlen(rows[i].text)), rows[i].cut);
}

static void characters_are_counted(void **state)
{
    (void)state;

    assert_int_equal(ink_utf8_count("", 0), 0);
    assert_int_equal(ink_utf8_count("a你\xf0\x9f\x98\x80é", 10), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scalar_value_survives_both_ways),
        cmocka_unit_test(two_bytes_are_valid_only_as_encoded),
        cmocka_unit_test(three_bytes_are_valid_only_as_encoded),
        cmocka_unit_test(bad_text_is_located),
        cmocka_unit_test(a_cut_character_is_told_from_a_bad_one),
        cmocka_unit_test(characters_are_counted),
    };
    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
