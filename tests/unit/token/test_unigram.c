#include "unit.h"
#include "small_vocab.h"
#include "token/unigram.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define SP "\xe2\x96\x81"

static void check(const struct small_vocab *v, const char *text, const char *want)
{
    struct ink_tokenizer *t = small_vocab_tokenizer(v);
    char got[1024];

    small_pieces(t, ink_slice_of(text), (struct ink_encode_options){ 0 }, got, sizeof(got));
    assert_string_equal(got, want);
    ink_tokenizer_free(t);
}

static void the_greatest_sum_of_scores_wins(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(&v, "a", -2, INK_PIECE_NORMAL);
    small_vocab_add(&v, "b", -2, INK_PIECE_NORMAL);
    small_vocab_add(&v, "ab", -5, INK_PIECE_NORMAL);   /* worse than a + b */
    small_vocab_add(&v, "ba", -3, INK_PIECE_NORMAL);   /* better than b + a */
    small_vocab_add(&v, SP "a", -4, INK_PIECE_NORMAL); /* better than ▁ + a */
    check(&v, "ab", SP "a b");
    check(&v, "ba", SP " ba");
    check(&v, "aba", SP "a ba");
}

/* Equal sums: the piece that starts first stays, because a later one must be better. */
static void of_equal_ways_the_earliest_start_wins(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    v.vocab.add_dummy_prefix = false;
    small_vocab_add(&v, "a", -1, INK_PIECE_NORMAL);
    small_vocab_add(&v, "aa", -2, INK_PIECE_NORMAL);
    check(&v, "aa", "aa");    /* from 0, not from 1 */
    check(&v, "aaa", "a aa"); /* the last piece starts at 1, not at 2 */
}

static void unknown_characters_join_to_one_token(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(&v, "a", -2, INK_PIECE_NORMAL);
    check(&v, "xyz", SP " <unk>");
    check(&v, "xay 好z", SP " <unk> a <unk> " SP " <unk>");
}

static void unknown_characters_become_bytes_where_there_are_some(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(&v, "a", -2, INK_PIECE_NORMAL);
    small_vocab_add_bytes(&v);
    check(&v, "xa好", SP " <0x78> a <0xE5> <0xA5> <0xBD>");
    check(&v, "好\xf0\x9f\x98\x80", SP " <0xE5> <0xA5> <0xBD> <0xF0> <0x9F> <0x98> <0x80>");
}

static void byte_fallback_needs_no_unknown_piece(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    v.pieces[SMALL_UNK].type = INK_PIECE_NORMAL;
    v.vocab.unk = -1;
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add_bytes(&v);
    check(&v, "xx", SP " <0x78> <0x78>");
}

static void user_defined_pieces_win_the_longest_first(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(&v, "abcd", -0.1F, INK_PIECE_NORMAL);
    small_vocab_add(&v, "a", -2, INK_PIECE_NORMAL);
    small_vocab_add(&v, "d", -2, INK_PIECE_NORMAL);
    small_vocab_add(&v, "bc", -9, INK_PIECE_USER_DEFINED); /* its own score does not count */
    small_vocab_add(&v, "bcd", -9, INK_PIECE_USER_DEFINED);
    check(&v, "bcd", SP " bcd");
    check(&v, "bcbc", SP " bc bc");
    check(&v, "abcd",
          SP " abcd"); /* but a normal piece across it may still be better: 0.2 - 2 < -0.1 */
}

static void unused_and_control_pieces_never_come_out(void **state)
{
    struct small_vocab v;
    (void)state;

    small_vocab_init(&v);
    small_vocab_add(&v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(&v, "a", -5, INK_PIECE_NORMAL);
    small_vocab_add(&v, "aa", -1, INK_PIECE_UNUSED);
    small_vocab_add(&v, "</s", -5, INK_PIECE_NORMAL);
    small_vocab_add(&v, ">", -5, INK_PIECE_NORMAL);
    check(&v, "aa</s>", SP " a a </s >");
}

/* A sum beyond 100,000 is set back to 0; the ways under way keep their order. */
static void very_long_texts_keep_their_cut(void **state)
{
    enum { N = 300000 };
    struct small_vocab v;
    char *text = ink_alloc(N + 1);
    struct ink_tokens tokens = { 0 };
    const struct ink_encode_options options = { 0 };
    struct ink_err err;
    (void)state;

    small_vocab_init(&v);
    v.vocab.add_dummy_prefix = false;
    int32_t ab = small_vocab_add(&v, "ab", -5, INK_PIECE_NORMAL);
    int32_t a = small_vocab_add(&v, "a", -3, INK_PIECE_NORMAL);
    int32_t b = small_vocab_add(&v, "b", -3, INK_PIECE_NORMAL);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    for (size_t i = 0; i < N; i++)
        text[i] = i % 3 == 1 ? 'b' : 'a'; /* abaabaaba... */
    assert_int_equal(
        ink_tokenizer_encode(t, (struct ink_slice){ text, N }, &options, &tokens, &err), INK_OK);
    assert_int_equal(tokens.n, N / 3 * 2);
    for (size_t i = 0; i < tokens.n; i++)
        assert_int_equal(tokens.ids[i], i % 2 == 0 ? ab : a);
    assert_true(b != a);
    free(tokens.ids);
    free(text);
    ink_tokenizer_free(t);
}

static void bytes_are_read_from_their_spelling(void **state)
{
    static const struct {
        const char *piece;
        int byte;
    } rows[] = { { "<0x00>", 0 },  { "<0xE4>", 0xe4 }, { "<0xFF>", 255 }, { "<0xe4>", -1 },
                 { "<0xE>", -1 },  { "<0xE4", -1 },    { "0xE4>>", -1 },  { "<0xE44>", -1 },
                 { "<0xG0>", -1 }, { "", -1 } };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(unigram_byte_of(ink_slice_of(rows[i].piece)), rows[i].byte);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_sum_of_scores_wins),
        cmocka_unit_test(of_equal_ways_the_earliest_start_wins),
        cmocka_unit_test(unknown_characters_join_to_one_token),
        cmocka_unit_test(unknown_characters_become_bytes_where_there_are_some),
        cmocka_unit_test(byte_fallback_needs_no_unknown_piece),
        cmocka_unit_test(user_defined_pieces_win_the_longest_first),
        cmocka_unit_test(unused_and_control_pieces_never_come_out),
        cmocka_unit_test(very_long_texts_keep_their_cut),
        cmocka_unit_test(bytes_are_read_from_their_spelling),
    };
    return cmocka_run_group_tests_name("unigram", tests, NULL, NULL);
}
