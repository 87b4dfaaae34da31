#include "unit.h"
#include "base/status.h"
#include "base/utf8.h"

#include <string.h>

static void an_error_carries_code_field_reason_and_text(void **state)
{
    struct ink_err err;
    (void)state;

    memset(&err, 'x', sizeof(err));
    assert_int_equal(ink_err_set(&err, INK_NOT_FOUND, "%s: no %d", "file", 7), INK_NOT_FOUND);
    assert_int_equal(err.code, INK_NOT_FOUND);
    assert_string_equal(err.text, "file: no 7");
    assert_string_equal(err.param, "");
    assert_string_equal(err.reason, "");

    assert_int_equal(ink_err_param(&err, INK_INVALID, "n", "invalid_value", "n: %d", 99),
                     INK_INVALID);
    assert_string_equal(err.param, "n");
    assert_string_equal(err.reason, "invalid_value");
    assert_string_equal(err.text, "n: 99");
}

static void nobody_needs_to_want_the_text(void **state)
{
    (void)state;

    assert_int_equal(ink_err_set(NULL, INK_IO, "x"), INK_IO);
    assert_int_equal(ink_err_param(NULL, INK_BUSY, "n", "r", "x"), INK_BUSY);
    assert_int_equal(ink_err_prefix(NULL, INK_BUSY, "x"), INK_BUSY);
}

static void text_is_one_line_of_valid_utf8(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "a\nb\tc\x7f", "a?b?c?" },
        { "x\xff\xfe", "x??" },
        { "你\xe4", "你" }, /* cut at the end */
        { "好\x80好", "好?好" },
    };
    struct ink_err err;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ink_err_set(&err, INK_INVALID, "%s", rows[i].text);
        assert_string_equal(err.text, rows[i].want);
    }
}

static void long_text_is_cut_at_a_whole_character(void **state)
{
    struct ink_err err;
    char text[1000];
    (void)state;

    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'a', shift);
        for (size_t i = shift; i + 3 < sizeof(text); i += 3)
            memcpy(text + i, "你", 4);
        ink_err_set(&err, INK_INVALID, "%s", text);
        size_t len = strlen(err.text);
        assert_true(len < sizeof(err.text) && len + 4 > sizeof(err.text) - 1);
        assert_true(ink_utf8_is_valid(err.text, len));
    }
}

static void a_prefix_goes_in_front_and_never_pushes_the_news_out(void **state)
{
    struct ink_err err;
    char path[1000];
    (void)state;

    ink_err_set(&err, INK_CORRUPT, "tensor x: wrong shape");
    assert_int_equal(ink_err_prefix(&err, INK_CORRUPT, "model.gguf"), INK_CORRUPT);
    assert_string_equal(err.text, "model.gguf: tensor x: wrong shape");

    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ink_err_set(&err, INK_CORRUPT, "tensor x: wrong shape");
    ink_err_prefix(&err, INK_INVALID, path);
    assert_int_equal(err.code, INK_INVALID);
    assert_non_null(strstr(err.text, ": tensor x: wrong shape"));
}

static void every_code_has_a_name(void **state)
{
    (void)state;

    for (int code = INK_OK; code <= INK_DEVICE; code++)
        assert_string_not_equal(ink_status_name((enum ink_status)code), "unknown");
    assert_string_equal(ink_status_name((enum ink_status)(INK_DEVICE + 1)), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_code_field_reason_and_text),
        cmocka_unit_test(nobody_needs_to_want_the_text),
        cmocka_unit_test(text_is_one_line_of_valid_utf8),
        cmocka_unit_test(long_text_is_cut_at_a_whole_character),
        cmocka_unit_test(a_prefix_goes_in_front_and_never_pushes_the_news_out),
        cmocka_unit_test(every_code_has_a_name),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
