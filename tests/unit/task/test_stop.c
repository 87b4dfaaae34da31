#include "unit.h"

#include "task/stop.h"

#include <string.h>

static const struct ink_slice stops[] = { { "own fox", 7 }, { "\n\n", 2 }, { "丙丁", 6 } };

static void a_stop_string_ends_the_text_before_it(void **state)
{
    static const struct {
        const char *text;
        size_t safe;
        bool hit;
    } rows[] = {
        { "", 0, false },          { "brown", 2, false }, /* "own" may go on */
        { "brown f", 2, false },   { "brown fox", 2, true },  { "brown fur", 9, false },
        { "a\n", 1, false },       { "a\nb", 3, false },      { "a\n\nb own fox", 1, true },
        { "甲乙丙", 6, false },    { "甲乙丙戊", 12, false }, { "甲乙丙丁戊", 6, true },
        { "ownown fox", 3, true },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool hit;
        size_t safe = stop_scan(ink_slice_of(rows[i].text), 0, stops, 3, &hit);

        if (safe != rows[i].safe)
            fail_msg("\"%s\": %zu instead of %zu", rows[i].text, safe, rows[i].safe);
        assert_int_equal(hit, rows[i].hit);
    }
}

/* However the text is cut into tokens, what was shown never has to be taken back, and the result is the same. */
static void cutting_the_text_differently_changes_nothing(void **state)
{
    static const char text[] = "brown fo own fox jumps\n\n";
    const size_t len = sizeof(text) - 1;
    (void)state;

    for (size_t step = 1; step <= len; step++) {
        size_t safe = 0, last = 0;
        bool hit = false;

        for (size_t n = step; !hit; n += step) {
            if (n > len)
                n = len;
            safe = stop_scan((struct ink_slice){ text, n }, last, stops, 3, &hit);
            assert_true(safe >= last);
            last = safe;
            assert_true(hit || n < len);
        }
        assert_int_equal(safe, strstr(text, "own fox") - text);
    }
}

static void without_stop_strings_all_is_shown(void **state)
{
    bool hit;
    (void)state;
    assert_int_equal(stop_scan(ink_slice_of("abc"), 1, NULL, 0, &hit), 3);
    assert_false(hit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_string_ends_the_text_before_it),
        cmocka_unit_test(cutting_the_text_differently_changes_nothing),
        cmocka_unit_test(without_stop_strings_all_is_shown),
    };
    return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
