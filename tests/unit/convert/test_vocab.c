/* Vocabularies: SentencePiece models, tokenizer.json, what other files add, and the padding behind. */
#include "unit.h"

#include "convert/spiece.h"
#include "convert/vocab.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\xe2\x96\x81"

/* --- SentencePiece models --------------------------------------------------------------------------- */

static enum ink_status read(const struct ink_buf *b, struct vocab *v, struct ink_err *err)
{
    vocab_init(v);
    *err = (struct ink_err){ 0 };
    return spiece_read((struct ink_slice){ b->ptr, b->len }, v, err);
}

static void a_sentencepiece_model_is_read(void **state)
{
    struct ink_buf b, spec;
    struct vocab v;
    struct ink_err err;
    (void)state;

    ink_buf_init(&b, 1 << 16);
    ink_buf_init(&spec, 1 << 16);
    proto_piece(&b, "<unk>", 0.0F, 2);
    proto_piece(&b, "<s>", 0.0F, 3);
    proto_piece(&b, "</s>", 0.0F, 3);
    proto_piece(&b, MARK "\xe4\xbd\xa0", -2.5F, 0);
    proto_piece(&b, "<0x0A>", 0.0F, 6);
    proto_piece(&b, "name", 0.0F, 4);
    proto_piece(&b, "old", 0.0F, 5);
    proto_bytes(&spec, 1, "ignored/corpus.txt", 18);
    proto_float(&spec, 10, 0.9995F);
    proto_int(&spec, 35, 1);
    proto_bytes(&b, 2, spec.ptr, spec.len);
    ink_buf_clear(&spec);
    proto_bytes(&spec, 2, "\4\0\0\0abcdx\0", 10);
    proto_int(&spec, 3, 0);
    proto_int(&spec, 4, 0);
    proto_bytes(&b, 3, spec.ptr, spec.len);
    assert_int_equal(read(&b, &v, &err), INK_OK);

    assert_int_equal(v.n_pieces, 7);
    assert_int_equal(v.n_own, 7);
    assert_string_equal(v.pieces[3].text, MARK "\xe4\xbd\xa0");
    assert_true(v.pieces[3].score == -2.5F);
    assert_int_equal(v.pieces[3].type, PIECE_NORMAL);
    assert_int_equal(v.pieces[4].type, PIECE_BYTE);
    assert_int_equal(v.pieces[5].type, PIECE_USER_DEFINED);
    assert_int_equal(v.pieces[6].type, PIECE_UNUSED);
    /* The format's defaults. */
    assert_int_equal(v.unk, 0);
    assert_int_equal(v.bos, 1);
    assert_int_equal(v.eos, 2);
    assert_int_equal(v.pad, -1);
    assert_true(v.byte_fallback);
    assert_true(v.escape_whitespaces);
    assert_false(v.add_dummy_prefix);
    assert_false(v.remove_extra_whitespaces);
    assert_int_equal(v.charsmap.len, 10);
    assert_memory_equal(v.charsmap.ptr, "\4\0\0\0abcdx\0", 10);
    vocab_release(&v);
    ink_buf_release(&b);
    ink_buf_release(&spec);
}

static void other_kinds_of_models_are_refused(void **state)
{
    static const struct {
        unsigned field;
        uint64_t value;
        const char *part;
    } rows[] = {
        { 3, 2, "of kind bpe" },
        { 3, 3, "of kind word" },
        { 3, 4, "of kind char" },
        { 24, 1, "treat_whitespace_as_suffix" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_buf b, spec;
        struct vocab v;
        struct ink_err err;

        ink_buf_init(&b, 1 << 16);
        ink_buf_init(&spec, 1 << 16);
        proto_piece(&b, "<unk>", 0.0F, 2);
        proto_int(&spec, rows[i].field, rows[i].value);
        proto_bytes(&b, 2, spec.ptr, spec.len);
        assert_int_equal(read(&b, &v, &err), INK_UNSUPPORTED);
        assert_non_null(strstr(err.text, rows[i].part));
        vocab_release(&v);
        ink_buf_release(&b);
        ink_buf_release(&spec);
    }
}

static void damaged_models_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *part;
    } rows[] = {
        { "", 0, "no pieces" },
        { "\x0a", 1, "a field" }, /* length missing */
        { "\x0a\x05"
          "abc",
          5, "a field" }, /* longer than the rest */
        { "\x0a\x03\x0a\x05"
          "a",
          5, "a piece" }, /* the same inside a piece */
        { "\x0a\x02\x18\x09", 4, "a piece's type" },
        { "\x0a\x04\x0a\x02\xff\xfe", 6, "not valid UTF-8" },
        { "\x0a\x03\x0a\x01"
          "a",
          5, "no unknown piece" },
        { "\x0b\x00", 2, "a field" }, /* a group: no such wire type any more */
        { "\x00\x00", 2, "a field" }, /* field number 0 */
        { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "a field" },
        { "version https://git-lfs.github.com/spec/v1\n", 43, "" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_buf b;
        struct vocab v;
        struct ink_err err;

        ink_buf_init(&b, 1 << 16);
        assert_int_equal(ink_buf_add(&b, rows[i].bytes, rows[i].len), INK_OK);
        /* In these, ids 0..2 exist only as far as there are pieces. */
        if (strcmp(rows[i].part, "no unknown piece") == 0) {
            struct ink_buf spec;

            ink_buf_init(&spec, 100);
            proto_int(&spec, 40, UINT64_MAX);
            proto_bytes(&b, 2, spec.ptr, spec.len);
            ink_buf_release(&spec);
        }
        assert_int_equal(read(&b, &v, &err), INK_CORRUPT);
        if (!strstr(err.text, rows[i].part))
            fail_msg("row %zu: wanted \"%s\", got %s", i, rows[i].part, err.text);
        vocab_release(&v);
        ink_buf_release(&b);
    }
}

/* --- folders ------------------------------------------------------------------------------------------ */

static void rows_beyond_the_pieces_are_padding(void **state)
{
    char *dir = folder_new();
    struct vocab v;
    struct ink_err err;
    (void)state;

    tiny_spiece(dir);
    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 15, 0, &err), INK_OK);
    assert_int_equal(v.n_own, TINY_PIECES);
    assert_int_equal(v.n_pieces, 15);
    assert_string_equal(v.pieces[12].text, "[PAD12]");
    assert_int_equal(v.pieces[12].type, PIECE_UNUSED);
    vocab_release(&v);

    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 11, 0, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "12 pieces, but the embedding only 11 rows"));
    vocab_release(&v);
    folder_remove(dir);
}

static void extra_ids_count_down_where_nobody_names_them(void **state)
{
    char *dir = folder_new();
    struct vocab v;
    struct ink_err err;
    (void)state;

    tiny_spiece(dir);
    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 16, 3, &err), INK_OK);
    assert_string_equal(v.pieces[12].text, "<extra_id_2>");
    assert_string_equal(v.pieces[14].text, "<extra_id_0>");
    assert_int_equal(v.pieces[14].type, PIECE_CONTROL);
    assert_string_equal(v.pieces[15].text, "[PAD15]");
    vocab_release(&v);

    /* The configuration's number counts; what has no row is left out altogether. */
    folder_puts(dir, "tokenizer_config.json",
                "{\"extra_ids\": 1, \"model_max_length\": 1000000000000000019884624838656}");
    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 16, 3, &err), INK_OK);
    assert_string_equal(v.pieces[12].text, "<extra_id_0>");
    assert_string_equal(v.pieces[13].text, "[PAD13]");
    vocab_release(&v);
    folder_puts(dir, "tokenizer_config.json", "{\"extra_ids\": 100}");
    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 16, 3, &err), INK_OK);
    assert_string_equal(v.pieces[12].text, "[PAD12]");
    vocab_release(&v);
    folder_remove(dir);
}

static void added_tokens_take_their_numbers(void **state)
{
    static const struct {
        const char *file, *text;
        int32_t type;
    } rows[] = {
        { "added_tokens.json", "{\"</s>\": 1, \"<new>\": 13, \"<far>\": 99}", PIECE_USER_DEFINED },
        { "tokenizer_config.json",
          "{\"added_tokens_decoder\": {\"1\": {\"content\": \"other\", \"special\": true}, \"13\": {\"content\": \"<new>\", "
          "\"special\": true}, \"99\": {\"content\": \"<far>\", \"special\": true}}}",
          PIECE_CONTROL },
        { "tokenizer.json",
          "{\"added_tokens\": [{\"id\": 13, \"content\": \"<new>\", \"special\": false}]}",
          PIECE_USER_DEFINED },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *dir = folder_new();
        struct vocab v;
        struct ink_err err;

        tiny_spiece(dir);
        folder_puts(dir, rows[i].file, rows[i].text);
        vocab_init(&v);
        assert_int_equal(vocab_load(&v, dir, 16, 0, &err), INK_OK);
        assert_int_equal(v.n_pieces, 16);
        assert_string_equal(v.pieces[1].text, "</s>");
        assert_string_equal(v.pieces[12].text, "[PAD12]");
        assert_string_equal(v.pieces[13].text, "<new>");
        assert_int_equal(v.pieces[13].type, rows[i].type);
        vocab_release(&v);
        folder_remove(dir);
    }
}

static void wrong_files_are_named(void **state)
{
    static const struct {
        const char *file, *text, *part;
    } rows[] = {
        { "added_tokens.json", "{\"<new>\": \"13\"}", "added_tokens.json: added token -1" },
        { "added_tokens.json", "{\"<new>\": 13", "added_tokens.json: not valid JSON" },
        { "tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": {}}}",
          "tokenizer_config.json: added_tokens_decoder: x" },
        { "tokenizer_config.json", "{\"added_tokens_decoder\": {\"13\": {}}}", "added token 13" },
        { "tokenizer_config.json", "{\"extra_ids\": -4}", "tokenizer_config.json: extra_ids" },
        { "tokenizer.json", "{\"added_tokens\": [{\"content\": \"x\"}]}",
          "tokenizer.json: added token -1" },
        { "spiece.model", "nonsense", "spiece.model: not a SentencePiece model" },
    };
    struct vocab v;
    struct ink_err err;
    char *dir = folder_new();
    (void)state;

    vocab_init(&v);
    assert_int_equal(vocab_load(&v, dir, 16, 0, &err), INK_NOT_FOUND);
    assert_non_null(strstr(err.text, "no tokenizer"));
    vocab_release(&v);
    folder_remove(dir);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        dir = folder_new();
        tiny_spiece(dir);
        folder_puts(dir, rows[i].file, rows[i].text);
        vocab_init(&v);
        err = (struct ink_err){ 0 };
        assert_int_not_equal(vocab_load(&v, dir, 16, 0, &err), INK_OK);
        if (!strstr(err.text, rows[i].part) || !strstr(err.text, dir))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
        vocab_release(&v);
        folder_remove(dir);
    }
}

/* --- tokenizer.json ----------------------------------------------------------------------------------- */

/* A tokenizer.json with these parts, loaded; the caller releases. */
static enum ink_status load_json(const char *normalizer, const char *pre_tokenizer,
                                 const char *model, struct vocab *v, struct ink_err *err)
{
    char text[4096];
    char *dir = folder_new();

    snprintf(text, sizeof(text),
             "{\"added_tokens\": [{\"id\": 0, \"content\": \"<pad>\", \"special\": true},"
             "{\"id\": 1, \"content\": \"</s>\", \"special\": true},"
             "{\"id\": 4, \"content\": \"b\", \"special\": false},"
             "{\"id\": 5, \"content\": \"<extra_id_0>\", \"special\": true}],"
             "\"normalizer\": %s, \"pre_tokenizer\": %s, \"model\": %s}",
             normalizer, pre_tokenizer, model);
    folder_puts(dir, "tokenizer.json", text);
    vocab_init(v);
    *err = (struct ink_err){ 0 };

    enum ink_status st = vocab_load(v, dir, 8, 0, err);

    folder_remove(dir);
    return st;
}

static const char metaspace[] =
    "{\"type\": \"Metaspace\", \"replacement\": \"" MARK "\", \"prepend_scheme\": \"always\"}";
static const char unigram[] =
    "{\"type\": \"Unigram\", \"unk_id\": 2, \"vocab\": [[\"<pad>\", 0], [\"</s>\", 0.0], "
    "[\"<unk>\", 0.0], [\"" MARK "a\", -1.5], [\"b\", -2]]}";

static void a_tokenizer_json_is_read(void **state)
{
    struct vocab v;
    struct ink_err err;
    (void)state;

    assert_int_equal(
        load_json(
            "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Precompiled\", "
            "\"precompiled_charsmap\": \"BAAAAGFiY2R4AA==\"}, {\"type\": \"Replace\", \"pattern\": "
            "{\"Regex\": \" {2,}\"}, \"content\": \"" MARK "\"}]}",
            metaspace, unigram, &v, &err),
        INK_OK);
    assert_int_equal(v.n_own, 5);
    assert_int_equal(v.n_pieces, 8);
    assert_int_equal(v.pieces[0].type, PIECE_CONTROL);
    assert_int_equal(v.pieces[2].type, PIECE_UNKNOWN);
    assert_int_equal(v.pieces[3].type, PIECE_NORMAL);
    assert_true(v.pieces[3].score == -1.5F);
    assert_int_equal(v.pieces[4].type, PIECE_USER_DEFINED);
    assert_string_equal(v.pieces[5].text, "<extra_id_0>");
    assert_int_equal(v.pieces[5].type, PIECE_CONTROL);
    assert_int_equal(v.pieces[6].type, PIECE_UNUSED);
    assert_int_equal(v.pad, 0);
    assert_int_equal(v.eos, 1);
    assert_int_equal(v.unk, 2);
    assert_int_equal(v.bos, -1);
    assert_true(v.add_dummy_prefix && v.remove_extra_whitespaces && v.escape_whitespaces &&
                !v.byte_fallback);
    assert_int_equal(v.charsmap.len, 10);
    assert_memory_equal(v.charsmap.ptr, "\4\0\0\0abcdx\0", 10);
    vocab_release(&v);
}

static void whitespace_rules_follow_the_parts(void **state)
{
    static const struct {
        const char *normalizer, *pre_tokenizer;
        bool prefix, merge;
    } rows[] = {
        { "null", metaspace, true, false },
        { "null", "{\"type\": \"Metaspace\", \"prepend_scheme\": \"never\"}", false, false },
        { "null", "{\"type\": \"Metaspace\", \"add_prefix_space\": false}", false, false },
        { "null", "{\"type\": \"Metaspace\", \"add_prefix_space\": true}", true, false },
        { "{\"type\": \"Strip\"}", metaspace, true, true },
        { "null",
          "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Metaspace\"}]}",
          true, true },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct vocab v;
        struct ink_err err;

        assert_int_equal(load_json(rows[i].normalizer, rows[i].pre_tokenizer, unigram, &v, &err),
                         INK_OK);
        assert_int_equal(v.add_dummy_prefix, rows[i].prefix);
        assert_int_equal(v.remove_extra_whitespaces, rows[i].merge);
        assert_int_equal(v.charsmap.len, 0);
        vocab_release(&v);
    }
}

static void parts_that_would_change_ids_are_refused(void **state)
{
    static const struct {
        const char *normalizer, *pre_tokenizer, *model, *part;
    } rows[] = {
        { "{\"type\": \"Lowercase\"}", metaspace, unigram,
          "normalizer: Lowercase is not supported" },
        { "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"b\"}",
          metaspace, unigram, "normalizer: Replace" },
        { "{\"type\": \"Precompiled\", \"precompiled_charsmap\": \"?!\"}", metaspace, unigram,
          "not base64" },
        { "{\"type\": \"Precompiled\"}", metaspace, unigram, "precompiled_charsmap is missing" },
        { "null", "{\"type\": \"ByteLevel\"}", unigram, "pre_tokenizer: ByteLevel" },
        { "null", "{\"type\": \"Metaspace\", \"replacement\": \"_\"}", unigram,
          "pre_tokenizer: Metaspace" },
        { "null", metaspace, "{\"type\": \"BPE\"}", "of kind BPE" },
        { "null", metaspace, "null", "of kind ?" },
        { "null", metaspace, "{\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]]}", "unk_id" },
        { "null", metaspace, "{\"type\": \"Unigram\", \"unk_id\": 5, \"vocab\": [[\"a\", 0]]}",
          "unk_id" },
        { "null", metaspace, "{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"a\"]]}",
          "vocab entry 0" },
        { "null", metaspace, "{\"type\": \"Unigram\", \"unk_id\": 0}", "no vocab" },
        { "null", metaspace,
          "{\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true, \"vocab\": [[\"a\", 0]]}",
          "0 byte pieces instead of 256" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct vocab v;
        struct ink_err err;

        assert_int_not_equal(
            load_json(rows[i].normalizer, rows[i].pre_tokenizer, rows[i].model, &v, &err), INK_OK);
        if (!strstr(err.text, rows[i].part) || !strstr(err.text, "tokenizer.json: "))
            fail_msg("wanted \"%s\", got %s", rows[i].part, err.text);
        vocab_release(&v);
    }
}

static void extra_ids_without_rows_are_dropped(void **state)
{
    struct vocab v;
    struct ink_err err;
    (void)state;

    assert_int_equal(
        load_json(
            "null", metaspace,
            "{\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", 0], [\"b\", 0], "
            "[\"c\", 0], [\"b\", 0], [\"<extra_id_3>\", 0], [\"<extra_id_2>\", 0], [\"<extra_id_1>\", 0], "
            "[\"<extra_id_0>\", 0]]}",
            &v, &err),
        INK_OK);
    assert_int_equal(v.n_own, 5);
    assert_int_equal(v.n_pieces, 8);
    vocab_release(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentencepiece_model_is_read),
        cmocka_unit_test(other_kinds_of_models_are_refused),
        cmocka_unit_test(damaged_models_are_refused),
        cmocka_unit_test(rows_beyond_the_pieces_are_padding),
        cmocka_unit_test(extra_ids_count_down_where_nobody_names_them),
        cmocka_unit_test(added_tokens_take_their_numbers),
        cmocka_unit_test(wrong_files_are_named),
        cmocka_unit_test(a_tokenizer_json_is_read),
        cmocka_unit_test(whitespace_rules_follow_the_parts),
        cmocka_unit_test(parts_that_would_change_ids_are_refused),
        cmocka_unit_test(extra_ids_without_rows_are_dropped),
    };
    return cmocka_run_group_tests_name("vocab", tests, NULL, NULL);
}
