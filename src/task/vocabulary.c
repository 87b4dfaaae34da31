/* GGUF metadata to a tokenizer. */
#include "task/vocabulary.h"

#include "base/alloc.h"
#include "model/model_file.h"
#include "token/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PIECES = 1 << 22 };

static const char key_tokens[] = "tokenizer.ggml.tokens";
static const char key_scores[] = "tokenizer.ggml.scores";
static const char key_types[] = "tokenizer.ggml.token_type";
static const char key_charsmap[] = "tokenizer.ggml.precompiled_charsmap";

static bool read_bool(const struct ink_model_file *f, const char *key, bool fallback)
{
    bool value;

    return ink_model_file_bool(f, key, &value) ? value : fallback;
}

/* -1 when there is no such key or the id is not in the vocabulary. */
static int32_t read_id(const struct ink_model_file *f, const char *key, int64_t n)
{
    int64_t id;

    return ink_model_file_int(f, key, &id) && id >= 0 && id < n ? (int32_t)id : -1;
}

static int32_t find_text(const struct ink_vocab *v, const char *text)
{
    for (int32_t i = 0; i < v->n_pieces; i++) {
        if (ink_slice_eq(v->pieces[i].text, ink_slice_of(text)))
            return i;
    }
    return -1;
}

static int32_t find_type(const struct ink_vocab *v, int32_t type)
{
    for (int32_t i = 0; i < v->n_pieces; i++) {
        if (v->pieces[i].type == type)
            return i;
    }
    return -1;
}

/* Files from converters that do not say: whether all 256 byte pieces are there decides. */
static bool has_all_bytes(const struct ink_vocab *v)
{
    int n = 0;

    for (int32_t i = 0; i < v->n_pieces; i++)
        n += v->pieces[i].type == INK_PIECE_BYTE;
    return n == 256;
}

static enum ink_status read_pieces(const struct ink_model_file *f, int64_t n,
                                   struct ink_piece *pieces, struct ink_err *err)
{
    const float *scores = ink_model_file_array_data(f, key_scores, "f32");
    const int32_t *types = ink_model_file_array_data(f, key_types, "i32");

    if (!scores || ink_model_file_array(f, key_scores) != n)
        return ink_err_set(err, INK_CORRUPT, "%s: %s must be %lld floats, one for each token",
                           ink_model_file_path(f), key_scores, (long long)n);
    if (!types || ink_model_file_array(f, key_types) != n)
        return ink_err_set(err, INK_CORRUPT, "%s: %s must be %lld integers, one for each token",
                           ink_model_file_path(f), key_types, (long long)n);
    for (int64_t i = 0; i < n; i++)
        pieces[i] = (struct ink_piece){
            .text = ink_model_file_array_string(f, key_tokens, i),
            .score = scores[i],
            .type = types[i],
        };
    return INK_OK;
}

enum ink_status vocabulary_read(const struct ink_model_file *f, struct ink_tokenizer **out,
                                struct ink_err *err)
{
    const char *kind = "";
    const uint8_t *charsmap = ink_model_file_array_data(f, key_charsmap, "u8");
    int64_t n = ink_model_file_array(f, key_tokens);
    enum ink_status st;

    if (!ink_model_file_string(f, "tokenizer.ggml.model", &kind) || strcmp(kind, "t5") != 0)
        return ink_err_set(
            err, INK_UNSUPPORTED,
            "%s: tokenizer.ggml.model is \"%s\"; served are \"t5\" (SentencePiece unigram)",
            ink_model_file_path(f), kind);
    if (n < 1 || n > MAX_PIECES)
        return ink_err_set(err, INK_CORRUPT, "%s: %s is missing or not 1..%d strings",
                           ink_model_file_path(f), key_tokens, MAX_PIECES);

    struct ink_piece *pieces = ink_try_alloc((size_t)n, sizeof(*pieces));
    if (!pieces)
        return ink_err_set(err, INK_NO_MEMORY, "%s: no memory for %lld tokens",
                           ink_model_file_path(f), (long long)n);
    st = read_pieces(f, n, pieces, err);
    if (st != INK_OK)
        goto out;

    struct ink_vocab v = {
        .kind = INK_VOCAB_UNIGRAM,
        .pieces = pieces,
        .n_pieces = (int32_t)n,
        .bos = read_id(f, "tokenizer.ggml.bos_token_id", n),
        .eos = read_id(f, "tokenizer.ggml.eos_token_id", n),
        .unk = read_id(f, "tokenizer.ggml.unknown_token_id", n),
        .pad = read_id(f, "tokenizer.ggml.padding_token_id", n),
        .add_dummy_prefix = read_bool(f, "tokenizer.ggml.add_space_prefix", true),
        .remove_extra_whitespaces = read_bool(f, "tokenizer.ggml.remove_extra_whitespaces", true),
        .escape_whitespaces = read_bool(f, "tokenizer.ggml.escape_whitespaces", true),
    };
    if (charsmap)
        v.charsmap = (struct ink_slice){ (const char *)charsmap,
                                         (size_t)ink_model_file_array(f, key_charsmap) };
    v.byte_fallback = read_bool(f, "inkstone.tokenizer.byte_fallback", has_all_bytes(&v));
    if (v.eos < 0)
        v.eos = find_text(&v, "</s>");
    if (v.pad < 0)
        v.pad = find_text(&v, "<pad>");
    if (v.unk < 0)
        v.unk = find_type(&v, INK_PIECE_UNKNOWN);
    st = ink_tokenizer_new(&v, out, err);
    if (st != INK_OK)
        (void)ink_err_prefix(err, st, ink_model_file_path(f));
out:
    free(pieces);
    return st;
}
