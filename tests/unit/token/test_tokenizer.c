#include "unit.h"
#include "small_vocab.h"
#include "spiece_reader.h"
#include "token/tokenizer.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SP "\xe2\x96\x81"

/* ▁ a b [x] and the three of small_vocab_init(), with two extra ids. */
static void init_vocab(struct small_vocab *v)
{
    small_vocab_init(v);
    small_vocab_add(v, SP, -3, INK_PIECE_NORMAL);
    small_vocab_add(v, "a", -2, INK_PIECE_NORMAL);
    small_vocab_add(v, "b", -2, INK_PIECE_NORMAL);
    small_vocab_add(v, "[x]", 0, INK_PIECE_USER_DEFINED);
    small_vocab_add(v, SP "<extra_id_7>", 0, INK_PIECE_USER_DEFINED);
    small_vocab_add(v, "", 0, INK_PIECE_UNUSED);
    v->vocab.n_extra_ids = 2;
}

static void special_tokens_cut_the_text(void **state)
{
    static const struct {
        const char *text, *plain, *special;
    } rows[] = {
        { "a", SP " a", SP " a" },
        { "", "", "" },
        { "</s>", SP " <unk>", "</s>" },
        { "a</s>b", SP " a <unk> b", SP " a </s> " SP " b" },
        { "a </s> b", SP " a " SP " <unk> " SP " b", SP " a </s> " SP " b" },
        { " </s>  </s>", SP " <unk> " SP " <unk>", "</s> </s>" },
        { "<pad><unk>", SP " <unk> a <unk>", "<pad> <unk>" },
        { "<extra_id_0>z<extra_id_1>", SP " <unk> a <unk> a <unk>",
          "<extra_id_0> " SP " <unk> <extra_id_1>" },
        { "<extra_id_2>", SP " <unk> a <unk>", SP " <unk> a <unk>" },
        { "</s", SP " <unk>", SP " <unk>" },
        { "<</s>>", SP " <unk>", SP " <unk> </s> " SP " <unk>" },
        { "a[x]b", SP " a [x] b", SP " a [x] b" }, /* user-defined: part of the text */
        { "a <extra_id_7>", SP " a " SP "<extra_id_7>", SP " a " SP "<extra_id_7>" },
    };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[512];

        small_pieces(t, ink_slice_of(rows[i].text), (struct ink_encode_options){ 0 }, got,
                     sizeof(got));
        assert_string_equal(got, rows[i].plain);
        small_pieces(t, ink_slice_of(rows[i].text), (struct ink_encode_options){ .specials = true },
                     got, sizeof(got));
        assert_string_equal(got, rows[i].special);
    }
    ink_tokenizer_free(t);
}

static void the_end_token_is_added_on_request(void **state)
{
    const struct ink_encode_options options = { .specials = true, .add_special = true };
    struct small_vocab v;
    char got[64];
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    small_pieces(t, ink_slice_of("a"), options, got, sizeof(got));
    assert_string_equal(got, SP " a </s>");
    small_pieces(t, ink_slice_of("a</s>"), options, got, sizeof(got));
    assert_string_equal(got, SP " a </s> </s>");
    small_pieces(t, ink_slice_of(""), options, got, sizeof(got));
    assert_string_equal(got, "</s>");
    ink_tokenizer_free(t);
}

static void what_does_not_fit_is_refused_with_both_numbers(void **state)
{
    struct ink_encode_options options = { .add_special = true, .max_tokens = 4 };
    struct ink_tokens tokens = { 0 };
    struct small_vocab v;
    struct ink_err err;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    assert_int_equal(ink_tokenizer_encode(t, ink_slice_of("ab"), &options, &tokens, &err), INK_OK);
    assert_int_equal(tokens.n, 4);
    assert_int_equal(ink_tokenizer_encode(t, ink_slice_of("aba"), &options, &tokens, &err),
                     INK_INVALID);
    assert_string_equal(err.reason, "input_too_long");
    assert_string_equal(err.text, "the text has 5 tokens; at most 4 are accepted");
    assert_int_equal(tokens.n, 4); /* as before the call */
    free(tokens.ids);
    ink_tokenizer_free(t);
}

static void encoding_appends(void **state)
{
    const struct ink_encode_options options = { 0 };
    struct ink_tokens tokens = { 0 };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    assert_int_equal(ink_tokenizer_encode(t, ink_slice_of("a"), &options, &tokens, NULL), INK_OK);
    assert_int_equal(ink_tokenizer_encode(t, ink_slice_of("b"), &options, &tokens, NULL), INK_OK);
    assert_int_equal(tokens.n, 4);
    assert_int_equal(tokens.ids[1], SMALL_FIRST + 1);
    assert_int_equal(tokens.ids[3], SMALL_FIRST + 2);
    free(tokens.ids);
    ink_tokenizer_free(t);
}

static void invalid_utf8_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *at;
    } rows[] = { { "ab\xff", 3, "byte 2" },
                 { "\xe4\xbd", 2, "byte 0" },
                 { "a\xed\xa0\x80", 4, "byte 1" } };
    const struct ink_encode_options options = { 0 };
    struct ink_tokens tokens = { 0 };
    struct small_vocab v;
    struct ink_err err;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_slice text = { rows[i].text, rows[i].len };

        assert_int_equal(ink_tokenizer_encode(t, text, &options, &tokens, &err), INK_INVALID);
        assert_non_null(strstr(err.text, rows[i].at));
    }
    assert_null(tokens.ids);
    ink_tokenizer_free(t);
}

static void pieces_are_found_by_spelling_and_by_id(void **state)
{
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    int32_t n = ink_tokenizer_n_pieces(t);
    assert_int_equal(n, v.vocab.n_pieces + 2);
    for (int32_t id = 0; id < n; id++) {
        struct ink_slice piece = ink_tokenizer_piece(t, id);

        if (piece.len > 0)
            assert_int_equal(ink_tokenizer_find(t, piece), id);
    }
    assert_true(ink_slice_eq(ink_tokenizer_piece(t, n - 1), ink_slice_of("<extra_id_0>")));
    assert_int_equal(ink_tokenizer_find(t, ink_slice_of("zz")), -1);
    assert_int_equal(ink_tokenizer_find(t, ink_slice_of("")), -1);
    assert_int_equal(ink_tokenizer_piece(t, -1).len, 0);
    assert_int_equal(ink_tokenizer_piece(t, n).len, 0);
    assert_int_equal(ink_tokenizer_piece_type(t, n), 0);
    assert_int_equal(ink_tokenizer_piece_type(t, SMALL_FIRST + 3), INK_PIECE_USER_DEFINED);
    assert_int_equal(ink_tokenizer_eos(t), SMALL_EOS);
    assert_int_equal(ink_tokenizer_pad(t), SMALL_PAD);
    assert_int_equal(ink_tokenizer_unk(t), SMALL_UNK);
    ink_tokenizer_free(t);
}

static void what_must_not_be_drawn_is_special(void **state)
{
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    const struct {
        int32_t id;
        bool special;
    } rows[] = {
        { SMALL_UNK, true },
        { SMALL_PAD, true },
        { SMALL_EOS, false },
        { SMALL_FIRST, false },
        { SMALL_FIRST + 3, false }, /* [x] */
        { SMALL_FIRST + 4, true },  /* ▁<extra_id_7> */
        { SMALL_FIRST + 5, true },  /* unused */
        { v.vocab.n_pieces, true },
        { v.vocab.n_pieces + 1, true },
        { v.vocab.n_pieces + 2, true },
        { -1, true },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(ink_tokenizer_is_special(t, rows[i].id), rows[i].special);
    ink_tokenizer_free(t);
}

static void refuse(const struct small_vocab *v, const char *why)
{
    struct ink_tokenizer *t;
    struct ink_err err;

    assert_int_equal(ink_tokenizer_new(&v->vocab, &t, &err), INK_CORRUPT);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void broken_vocabularies_are_refused(void **state)
{
    struct small_vocab good, v;
    char long_piece[8002];
    (void)state;

    init_vocab(&good);
    v = good, v.vocab.pieces = v.pieces, v.vocab.n_pieces = 0;
    refuse(&v, "0 pieces");
    v = good, v.vocab.pieces = v.pieces, v.vocab.eos = v.vocab.n_pieces;
    refuse(&v, "the eos id 9 is not in 0..8");
    v = good, v.vocab.pieces = v.pieces, v.vocab.unk = -1;
    refuse(&v, "neither an unknown piece nor byte fallback");
    v = good, v.vocab.pieces = v.pieces, v.vocab.n_extra_ids = -1;
    refuse(&v, "extra ids");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].type = 9;
    refuse(&v, "piece 4 has the unknown type 9");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].text = ink_slice_of("\xff");
    refuse(&v, "piece 4 is not text");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].text = (struct ink_slice){ "a\0b", 3 };
    refuse(&v, "piece 4 is not text");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].text = (struct ink_slice){ "", 0 };
    refuse(&v, "piece 4 is empty");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].text = ink_slice_of("b");
    refuse(&v, "both \"b\"");
    v = good, v.vocab.pieces = v.pieces, v.pieces[1].text = ink_slice_of("</s>");
    refuse(&v, "both \"</s>\"");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].score = NAN;
    refuse(&v, "score of piece 4");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].score = INFINITY;
    refuse(&v, "score of piece 4");
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].type = INK_PIECE_BYTE;
    refuse(&v, "byte piece 4 is \"a\"");
    v = good, v.vocab.pieces = v.pieces, v.vocab.byte_fallback = true;
    refuse(&v, "<0x00> is missing");
    memset(long_piece, 'a', sizeof(long_piece) - 1);
    long_piece[sizeof(long_piece) - 1] = '\0';
    v = good, v.vocab.pieces = v.pieces, v.pieces[4].text = ink_slice_of(long_piece);
    refuse(&v, "8001 bytes");
    v = good, v.vocab.pieces = v.pieces, v.vocab.charsmap = ink_slice_of("abc");
    refuse(&v, "charsmap");
}

static void the_digest_covers_everything_that_decides_ids(void **state)
{
    struct small_vocab good;
    uint8_t digests[9][32];
    size_t n = 0;
    (void)state;

    init_vocab(&good);
    for (int change = 0; change < 9; change++) {
        struct small_vocab v = good;

        v.vocab.pieces = v.pieces;
        if (change == 1)
            v.pieces[4].text = ink_slice_of("z");
        if (change == 2)
            v.pieces[4].score = -2.5F;
        if (change == 3)
            v.pieces[4].type = INK_PIECE_UNUSED;
        if (change == 4)
            v.vocab.add_dummy_prefix = false;
        if (change == 5)
            v.vocab.remove_extra_whitespaces = false;
        if (change == 6)
            v.vocab.n_extra_ids = 3;
        if (change == 7)
            v.vocab.eos = SMALL_PAD;
        /* 8: nothing is changed */
        struct ink_tokenizer *t = small_vocab_tokenizer(&v);
        ink_tokenizer_digest(t, digests[n++]);
        ink_tokenizer_free(t);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_equal(memcmp(digests[i], digests[j], 32) == 0, i == 8 && j == 0);
}

static double encode_ms(const struct ink_tokenizer *t, const char *text, size_t len)
{
    const struct ink_encode_options options = { .specials = true };
    double best = 1e9;

    for (int i = 0; i < 3; i++) {
        struct ink_tokens tokens = { 0 };
        int64_t start = ink_clock_ns();

        assert_int_equal(
            ink_tokenizer_encode(t, (struct ink_slice){ text, len }, &options, &tokens, NULL),
            INK_OK);
        double ms = ink_clock_ms_since(start);
        best = ms < best ? ms : best;
        free(tokens.ids);
    }
    return best;
}

/* Ten times the text takes about ten times the time, also where every place starts a long match. */
static void time_is_linear_in_length(void **state)
{
    enum { LONG = 3000000 };
    static const char *const units[] = { "这家餐厅的味道非常好，服务也很周到。", "a", "<extra_id_",
                                         " ", "\xf0\xa0\x80\x80" };
    struct ink_tokenizer *t = spiece_tokenizer("mt5");
    char *text = ink_alloc(LONG);
    (void)state;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t unit = strlen(units[i]), len = 0;

        for (; len + unit <= LONG; len += unit)
            memcpy(text + len, units[i], unit);
        double part = encode_ms(t, text, len / unit / 10 * unit), whole = encode_ms(t, text, len);
        print_message("%zu bytes of \"%s\": %.1f ms, a tenth %.1f ms\n", len, units[i], whole,
                      part);
        assert_true(whole < 40 * part + 40);
    }
    free(text);
    ink_tokenizer_free(t);
}

static void the_real_vocabularies_have_the_known_ids(void **state)
{
    static const struct {
        const char *name, *piece;
        int32_t id;
    } rows[] = {
        { "mt5", "</s>", 1 },
        { "mt5", "<0x00>", 3 },
        { "mt5", SP "<extra_id_0>", 250099 },
        { "mt5", "<extra_id_0>", -1 },
        { "umt5", "<s>", 2 },
        { "umt5", "<extra_id_0>", 256299 },
        { "umt5", "<extra_id_299>", 256000 },
        { "t5", "<extra_id_0>", 32099 },
        { "t5", "<extra_id_99>", 32000 },
        { "t5", "<extra_id_100>", -1 },
    };
    struct ink_tokenizer *t = NULL;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0) {
            ink_tokenizer_free(t);
            t = spiece_tokenizer(rows[i].name);
        }
        assert_int_equal(ink_tokenizer_find(t, ink_slice_of(rows[i].piece)), rows[i].id);
        if (rows[i].id > 100)
            assert_true(ink_tokenizer_is_special(t, rows[i].id));
    }
    ink_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_tokens_cut_the_text),
        cmocka_unit_test(the_end_token_is_added_on_request),
        cmocka_unit_test(what_does_not_fit_is_refused_with_both_numbers),
        cmocka_unit_test(encoding_appends),
        cmocka_unit_test(invalid_utf8_is_refused_with_its_place),
        cmocka_unit_test(pieces_are_found_by_spelling_and_by_id),
        cmocka_unit_test(what_must_not_be_drawn_is_special),
        cmocka_unit_test(broken_vocabularies_are_refused),
        cmocka_unit_test(the_digest_covers_everything_that_decides_ids),
        cmocka_unit_test(time_is_linear_in_length),
        cmocka_unit_test(the_real_vocabularies_have_the_known_ids),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
