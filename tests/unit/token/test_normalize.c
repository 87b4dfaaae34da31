#include "unit.h"
#include "small_vocab.h"
#include "spiece_reader.h"
#include "token/normalize.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define SP "\xe2\x96\x81" /* U+2581 */

static const struct normalizer_options mt5_rules = {
    .add_dummy_prefix = true,
    .remove_extra_whitespaces = true,
    .escape_whitespaces = true,
};

/* The normal form of `text` with `o`, in growing memory. */
static char *run(const struct normalizer_options *o, struct ink_slice text)
{
    struct normalizer z;
    struct ink_buf out;
    struct ink_err err;

    if (normalizer_init(&z, o, &err) != INK_OK)
        fail_msg("%s", err.text);
    ink_buf_init(&out, normalizer_max_output(&z, text.len));
    assert_int_equal(normalizer_run(&z, text, &out), INK_OK);
    normalizer_release(&z);
    return ink_buf_take(&out);
}

static void check(const struct normalizer_options *o, const char *text, const char *want)
{
    char *got = run(o, ink_slice_of(text));

    assert_string_equal(got, want);
    free(got);
}

static void spaces_are_trimmed_joined_and_escaped(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "", "" },
        { " ", "" },
        { "   ", "" },
        { "a", SP "a" },
        { "  a  b  ", SP "a" SP "b" },
        { "a b", SP "a" SP "b" },
        { SP, "" },            /* one written in the text counts as a space at the end */
        { SP "a", SP SP "a" }, /* and as itself elsewhere */
        { "a" SP SP " ", SP "a" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&mt5_rules, rows[i].text, rows[i].want);
}

static void spaces_stay_where_the_vocabulary_keeps_them(void **state)
{
    const struct normalizer_options umt5 = { .add_dummy_prefix = true, .escape_whitespaces = true };
    const struct normalizer_options bare = { .escape_whitespaces = false };
    (void)state;

    check(&umt5, "  a  b ", SP SP SP "a" SP SP "b" SP);
    check(&umt5, " ", SP SP);
    check(&bare, "  a  b ", "  a  b ");
}

static void the_table_replaces_and_removes(void **state)
{
    static const struct small_entry entries[] = {
        { 'A', "a" }, { 'x', "" }, { '\t', " " }, { '+', " and " }
    };
    struct ink_slice map = small_charsmap(entries, 4);
    struct normalizer_options o = mt5_rules;
    (void)state;

    o.charsmap = map;
    check(&o, "AbA", SP "aba");
    check(&o, "xAxBx", SP "aB");
    check(&o, "x", SP + 3); /* all removed: the prefix is trimmed too */
    check(&o, "\t\ta\t b\t", SP "a" SP "b");
    check(&o, "a+b", SP "a" SP "and" SP "b");
    check(&o, "a +  b", SP "a" SP "and" SP "b");
    check(&o, "x a",
          SP "a"); /* a removed character ends the leading spaces, and the next ones are dropped */
    check(&o,
          "\xe4\xbd\xa0"
          "A\xe5\xa5\xbd",
          SP "\xe4\xbd\xa0"
             "a\xe5\xa5\xbd");
    free((char *)map.ptr);
}

static void verbatim_pieces_pass_untouched(void **state)
{
    static const struct small_entry entries[] = { { 'A', "a" } };
    const struct trie_key verbatim[] = { { ink_slice_of("[A]"), 0 }, { ink_slice_of("[A]B"), 1 } };
    struct ink_slice map = small_charsmap(entries, 1);
    struct normalizer_options o = mt5_rules;
    (void)state;

    o.charsmap = map;
    o.verbatim = verbatim;
    o.n_verbatim = 2;
    check(&o, "A[A]A", SP "a[A]a");
    check(&o, "[A]BA [AA", SP "[A]Ba" SP "[aa");
    free((char *)map.ptr);
}

static void bytes_of_zero_are_text(void **state)
{
    char *got = run(&mt5_rules, (struct ink_slice){ "a\0b", 3 });
    (void)state;

    assert_memory_equal(got, SP "a\0b", 7);
    free(got);
}

static void real_tables_follow_nfkc(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "ＡＢＣ１２３！", SP "ABC123!" },
        { "ﾊﾟﾋﾟ", SP "パピ" },
        { "①㎏ﬁ", SP "1kgfi" },
        { "e\xcc\x81", SP "\xc3\xa9" },
        { "\xe3\x80\x80你\xe3\x80\x80好\xe3\x80\x80", SP "你" SP "好" },
        { "a\xe2\x80\x8b"
          "b",
          SP "a" SP "b" }, /* U+200B is a space to nmt_nfkc */
        { "\x01\x02", "" },
        { "早餐很丰盛，价格稍微高了点。", SP "早餐很丰盛,价格稍微高了点。" },
    };
    struct spiece s;
    struct normalizer_options o = mt5_rules;
    (void)state;

    spiece_read("mt5", 0, &s);
    o.charsmap = s.vocab.charsmap;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&o, rows[i].text, rows[i].want);
    spiece_release(&s);
}

static void refuse(struct ink_slice map, const char *why)
{
    struct normalizer_options o = mt5_rules;
    struct normalizer z;
    struct ink_err err;

    o.charsmap = map;
    assert_int_equal(normalizer_init(&z, &o, &err), INK_CORRUPT);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void broken_tables_are_refused(void **state)
{
    static const struct small_entry entries[] = { { 'A', "a" } };
    static const struct small_entry not_text[] = { { 'A', "\xff" } };
    char long_text[1100];
    struct ink_slice map = small_charsmap(entries, 1);
    char *blob = (char *)map.ptr;
    (void)state;

    refuse((struct ink_slice){ blob, 3 }, "too short");
    refuse((struct ink_slice){ blob, 1000 }, "does not fit");
    blob[map.len - 1] = 'x';
    refuse(map, "NUL");
    blob[map.len - 1] = '\0';
    blob[0] = 1;
    refuse(map, "does not fit");
    free(blob);

    map = small_charsmap(not_text, 1);
    refuse(map, "UTF-8");
    free((char *)map.ptr);

    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    map = small_charsmap(&(struct small_entry){ 'A', long_text }, 1);
    refuse(map, "1099 bytes");
    free((char *)map.ptr);
}

/* An offset or a value that leads outside is no match, and nothing is read there. */
static void pointers_out_of_the_table_match_nothing(void **state)
{
    static const struct small_entry entries[] = { { 'A', "a" }, { 'B', "b" } };
    struct ink_slice map = small_charsmap(entries, 2);
    unsigned char *units = (unsigned char *)map.ptr + 4;
    struct normalizer_options o = mt5_rules;
    (void)state;

    o.charsmap = map;
    memcpy(units + 4 * (512 + 'A'), "\xff\xff\xff\xff", 4); /* value */
    memcpy(units + 4 * (256 + 'B'), "B\xff\xff\x7f", 4);    /* offset */
    check(&o, "ABC", SP "ABC");
    memcpy(units, "\0\xff\xff\x7f", 4); /* the root's offset */
    check(&o, "ABC", SP "ABC");
    free((char *)map.ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces_are_trimmed_joined_and_escaped),
        cmocka_unit_test(spaces_stay_where_the_vocabulary_keeps_them),
        cmocka_unit_test(the_table_replaces_and_removes),
        cmocka_unit_test(verbatim_pieces_pass_untouched),
        cmocka_unit_test(bytes_of_zero_are_text),
        cmocka_unit_test(real_tables_follow_nfkc),
        cmocka_unit_test(broken_tables_are_refused),
        cmocka_unit_test(pointers_out_of_the_table_match_nothing),
    };
    return cmocka_run_group_tests_name("normalize", tests, NULL, NULL);
}
