#include "unit.h"

#include "task/text_limits.h"

#include <string.h>

static void cuts_fall_where_a_reader_would_make_them(void **state)
{
    static const struct {
        const char *text, *sentence, *clause;
    } rows[] = {
        { "今天好。明天", "今天好。", "今天好。" },
        { "今天，明天", "", "今天，" },
        { "他说：“好。”我走", "他说：“好。”", "他说：“好。”" },
        { "真的吗？！是", "真的吗？！", "真的吗？！" },
        { "等等……后来", "等等……", "等等……" },
        { "It works. Next", "It works.", "It works." },
        { "version 3.5 is", "", "" },
        { "价格1,000元", "", "" },
        { "12:30开始", "", "" },
        { "first, second", "", "first," },
        { "一行\n二行", "一行\n", "一行\n" },
        { "(Yes!) no", "(Yes!)", "(Yes!)" },
        { "没有", "", "" },
        { "", "", "" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_slice t = ink_slice_of(rows[i].text);
        size_t sentence = text_last_cut(t, t.len, TEXT_CUT_SENTENCE);
        size_t clause = text_last_cut(t, t.len, TEXT_CUT_CLAUSE);

        if (sentence != strlen(rows[i].sentence) || clause != strlen(rows[i].clause))
            fail_msg("\"%s\": cut at %zu and %zu", rows[i].text, sentence, clause);
    }
}

static void a_cut_stays_below_the_bound_and_between_characters(void **state)
{
    static const char text[] = "一。二，三。四";
    struct ink_slice t = ink_slice_of(text);
    (void)state;

    for (size_t max = 0; max <= t.len; max++) {
        size_t s = text_last_cut(t, max, TEXT_CUT_SENTENCE),
               c = text_last_cut(t, max, TEXT_CUT_CLAUSE),
               k = text_last_cut(t, max, TEXT_CUT_CHARACTER);

        assert_int_equal(s, max < 6 ? 0 : max < 18 ? 6 : 18);
        assert_int_equal(c, max < 6 ? 0 : max < 12 ? 6 : max < 18 ? 12 : 18);
        assert_int_equal(k, max / 3 * 3);
    }
}

static void white_space_is_found_at_both_ends(void **state)
{
    (void)state;
    assert_int_equal(text_blank_prefix(ink_slice_of(" \t\xe3\x80\x80\xc2\xa0好 ")), 7);
    assert_int_equal(text_without_blank_end(ink_slice_of(" 好\xe3\x80\x80 \n")), 4);
    assert_int_equal(text_without_blank_end(ink_slice_of(" \xe3\x80\x80")), 0);
    assert_int_equal(text_blank_prefix(ink_slice_of("")), 0);
    assert_int_equal(text_without_blank_end(ink_slice_of("")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_fall_where_a_reader_would_make_them),
        cmocka_unit_test(a_cut_stays_below_the_bound_and_between_characters),
        cmocka_unit_test(white_space_is_found_at_both_ends),
    };
    return cmocka_run_group_tests_name("text_limits", tests, NULL, NULL);
}
