#include "unit.h"
#include "small_vocab.h"
#include "spiece_reader.h"
#include "token/detokenize.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SP  "\xe2\x96\x81"
#define BAD "\xef\xbf\xbd"

enum { A = SMALL_FIRST, SPACE, SPACE_B, INNER, USER, EXTRA, BYTES };

static void init_vocab(struct small_vocab *v)
{
    small_vocab_init(v);
    small_vocab_add(v, "a", -1, INK_PIECE_NORMAL);
    small_vocab_add(v, SP, -1, INK_PIECE_NORMAL);
    small_vocab_add(v, SP "b", -1, INK_PIECE_NORMAL);
    small_vocab_add(v, SP SP "c" SP "d", -1, INK_PIECE_NORMAL);
    small_vocab_add(v, "[u]", 0, INK_PIECE_USER_DEFINED);
    small_vocab_add(v, SP "<extra_id_3>", 0, INK_PIECE_USER_DEFINED);
    assert_int_equal(small_vocab_add_bytes(v), BYTES);
}

/* Decodes at once and as a stream, which must agree, and compares. */
static void check(const struct ink_tokenizer *t, const int32_t *ids, size_t n, const char *want)
{
    struct ink_detokenizer *d = ink_detokenizer_new(t);
    char stream[512];
    char *whole;
    size_t at = 0, len;
    struct ink_slice part;
    struct ink_err err;

    assert_int_equal(ink_tokenizer_decode(t, ids, n, false, &whole, &len, &err), INK_OK);
    assert_int_equal(len, strlen(want));
    assert_string_equal(whole, want);
    free(whole);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ink_detokenizer_add(d, ids[i], &part, &err), INK_OK);
        assert_true(ink_utf8_is_valid(part.ptr, part.len));
        memcpy(stream + at, part.ptr, part.len);
        at += part.len;
    }
    part = ink_detokenizer_finish(d);
    memcpy(stream + at, part.ptr, part.len);
    at += part.len;
    stream[at] = '\0';
    assert_string_equal(stream, want);
    ink_detokenizer_free(d);
}

struct row {
    int32_t ids[8];
    size_t n;
    const char *text;
};

static void check_rows(const struct small_vocab *v, const struct row *rows, size_t n)
{
    struct ink_tokenizer *t = small_vocab_tokenizer(v);

    for (size_t i = 0; i < n; i++)
        check(t, rows[i].ids, rows[i].n, rows[i].text);
    ink_tokenizer_free(t);
}

static void spaces_come_back_except_in_front(void **state)
{
    static const struct row rows[] = {
        { { 0 }, 0, "" },
        { { SPACE }, 1, "" },
        { { SPACE, A, SPACE_B, A }, 4, "a ba" },
        { { SPACE_B, SPACE, A }, 3, "b a" },
        { { SPACE, SPACE, SPACE_B }, 3, "b" }, /* all spaces in front go, one a piece */
        { { SMALL_EOS, SPACE_B, SMALL_EOS }, 3, "b" },
        { { INNER }, 1, " c d" },
        { { A, INNER, USER }, 3, "a  c d[u]" },
    };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    check_rows(&v, rows, sizeof(rows) / sizeof(rows[0]));
}

static void only_the_added_space_goes_where_spaces_are_kept(void **state)
{
    static const struct row rows[] = {
        { { SPACE, A }, 2, "a" },
        { { SPACE, SPACE, A }, 3, " a" },
        { { SPACE, SMALL_EOS, SPACE, A }, 4, " a" },
        { { SPACE, SPACE_B }, 2, " b" },
    };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    v.vocab.remove_extra_whitespaces = false;
    check_rows(&v, rows, sizeof(rows) / sizeof(rows[0]));
}

static void every_space_stays_without_a_prefix(void **state)
{
    static const struct row rows[] = { { { SPACE, A }, 2, " a" },
                                       { { SPACE_B, SPACE }, 2, " b " } };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    v.vocab.remove_extra_whitespaces = v.vocab.add_dummy_prefix = false;
    check_rows(&v, rows, 2);
}

static void bytes_form_characters(void **state)
{
    static const struct row rows[] = {
        { { BYTES + 0xe4, BYTES + 0xbd, BYTES + 0xa0 }, 3, "你" },
        { { BYTES + 'x', SPACE_B }, 2, "x b" },
        { { BYTES + 0xf0, BYTES + 0x9f, BYTES + 0x98, BYTES + 0x80, A },
          5,
          "\xf0\x9f\x98\x80"
          "a" },
        { { BYTES + 0xe4, BYTES + 0xbd }, 2, BAD BAD },        /* cut at the end */
        { { BYTES + 0xe4, BYTES + 0xbd, A }, 3, BAD BAD "a" }, /* cut by a piece */
        { { BYTES + 0xe4, BYTES + 0xe4, BYTES + 0xbd, BYTES + 0xa0 }, 4, BAD "你" },
        { { BYTES + 0xed, BYTES + 0xa0, BYTES + 0x80 }, 3, BAD BAD BAD }, /* a surrogate */
        { { BYTES + 0xc0, BYTES + 0x80 }, 2, BAD BAD },                   /* overlong */
        { { BYTES + 0xf4, BYTES + 0x90, BYTES + 0x80, BYTES + 0x80 }, 4, BAD BAD BAD BAD },
        { { BYTES + 0xff }, 1, BAD },
        { { BYTES + 0xef, BYTES + 0xbf, BYTES + 0xbd }, 3, BAD }, /* U+FFFD itself */
        { { BYTES + 0xe4, SMALL_EOS, BYTES + 0xbd },
          3,
          BAD BAD }, /* control pieces end a run too */
        { { BYTES + ' ', SPACE_B }, 2, "  b" },
    };
    struct small_vocab v;
    (void)state;

    init_vocab(&v);
    check_rows(&v, rows, sizeof(rows) / sizeof(rows[0]));
}

static void control_pieces_have_no_text_unless_asked_for(void **state)
{
    static const int32_t ids[] = { SPACE, A, EXTRA, SMALL_UNK, SMALL_PAD, SMALL_EOS };
    struct small_vocab v;
    char *text;
    size_t len;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    check(t, ids, 6, "a <extra_id_3> \xe2\x81\x87 ");
    assert_int_equal(ink_tokenizer_decode(t, ids, 6, true, &text, &len, NULL), INK_OK);
    assert_string_equal(text, "a <extra_id_3><unk><pad></s>");
    free(text);
    ink_tokenizer_free(t);
}

static void ids_outside_the_vocabulary_are_refused(void **state)
{
    static const int32_t bad[] = { -1, BYTES + 256, INT32_MAX };
    struct small_vocab v;
    struct ink_err err;
    struct ink_slice part;
    char *text;
    size_t len;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    struct ink_detokenizer *d = ink_detokenizer_new(t);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(ink_tokenizer_decode(t, &bad[i], 1, false, &text, &len, &err),
                         INK_INVALID);
        assert_non_null(strstr(err.text, "is not in 0..264"));
        assert_int_equal(ink_detokenizer_add(d, bad[i], &part, &err), INK_INVALID);
    }
    ink_detokenizer_free(d);
    ink_tokenizer_free(t);
}

/* What is shown early is never taken back: a character appears with its last byte, not before. */
static void a_stream_holds_back_only_what_is_cut(void **state)
{
    static const struct {
        int32_t id;
        const char *text;
    } rows[] = {
        { SPACE, "" },          { A, "a" },           { BYTES + 0xe4, "" }, { BYTES + 0xbd, "" },
        { BYTES + 0xa0, "你" }, { BYTES + 0xe5, "" }, { A, BAD "a" },       { SPACE_B, " b" },
    };
    struct small_vocab v;
    struct ink_slice part;
    (void)state;

    init_vocab(&v);
    struct ink_tokenizer *t = small_vocab_tokenizer(&v);
    struct ink_detokenizer *d = ink_detokenizer_new(t);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            assert_int_equal(ink_detokenizer_add(d, rows[i].id, &part, NULL), INK_OK);
            assert_int_equal(part.len, strlen(rows[i].text));
            assert_memory_equal(part.ptr, rows[i].text, part.len);
        }
        assert_int_equal(ink_detokenizer_finish(d).len, 0);
        assert_int_equal(ink_detokenizer_add(d, BYTES + 0xe5, &part, NULL), INK_OK);
        ink_detokenizer_clear(d); /* also forgets the byte that waits */
    }
    ink_detokenizer_free(d);
    ink_tokenizer_free(t);
}

static void text_survives_encoding_and_decoding(void **state)
{
    static const char *const texts[] = {
        "这家餐厅的味道非常好。",
        "iPhone15 costs 5999 yuan.",
        "𠮷野家 \xf0\x9f\xa7\xbf",
        "a b  c",
        "É à ü",
    };
    static const char *const after[] = {
        /* what mT5's normalizer makes of them */
        "这家餐厅的味道非常好。",
        "iPhone15 costs 5999 yuan.",
        "𠮷野家 \xf0\x9f\xa7\xbf",
        "a b c",
        "É à ü",
    };
    static const struct ink_encode_options options = { .add_special = true };
    struct ink_tokenizer *t = spiece_tokenizer("mt5");
    (void)state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ink_tokens tokens = { 0 };

        assert_int_equal(ink_tokenizer_encode(t, ink_slice_of(texts[i]), &options, &tokens, NULL),
                         INK_OK);
        check(t, tokens.ids, tokens.n, after[i]);
        free(tokens.ids);
    }
    ink_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spaces_come_back_except_in_front),
        cmocka_unit_test(only_the_added_space_goes_where_spaces_are_kept),
        cmocka_unit_test(every_space_stays_without_a_prefix),
        cmocka_unit_test(bytes_form_characters),
        cmocka_unit_test(control_pieces_have_no_text_unless_asked_for),
        cmocka_unit_test(ids_outside_the_vocabulary_are_refused),
        cmocka_unit_test(a_stream_holds_back_only_what_is_cut),
        cmocka_unit_test(text_survives_encoding_and_decoding),
    };
    return cmocka_run_group_tests_name("detokenize", tests, NULL, NULL);
}
