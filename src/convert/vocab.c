/*
 * Puts a vocabulary together from the files of a Hugging Face folder.
 *
 * The pieces come from the SentencePiece model or, where there is none, from tokenizer.json. Tokens that other files
 * add behind them (T5's <extra_id_N>, tokens of a fine-tuning) come next; whatever rows of the embedding are left are
 * padded with unused pieces, because a GGUF file has one token per row.
 */
#include "convert/vocab.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "convert/hf_tokenizer_json.h"
#include "convert/spiece.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENIZER_BYTES = 256 << 20, MAX_ADDED = 65536 };

/* As low as llama.cpp's converter sets them: never the best path of a text. */
static const float padding_score = -10000.0F, added_score = -1000.0F;

void vocab_init(struct vocab *v)
{
    *v = (struct vocab){ .arena = ink_arena_new(), .bos = -1, .eos = -1, .unk = -1, .pad = -1 };
}

void vocab_release(struct vocab *v)
{
    free(v->pieces);
    ink_arena_free(v->arena);
    *v = (struct vocab){ 0 };
}

static enum ink_status check_text(struct ink_slice text, int64_t id, struct ink_err *err)
{
    if (text.len > VOCAB_MAX_PIECE_BYTES || memchr(text.ptr, '\0', text.len) ||
        !ink_utf8_is_valid(text.ptr, text.len))
        return ink_err_set(err, INK_CORRUPT,
                           "piece %lld is longer than %d bytes or not valid UTF-8", (long long)id,
                           VOCAB_MAX_PIECE_BYTES);
    return INK_OK;
}

enum ink_status vocab_add(struct vocab *v, struct ink_slice text, float score, int32_t type,
                          struct ink_err *err)
{
    enum ink_status st = check_text(text, v->n_pieces, err);

    if (st != INK_OK)
        return st;
    if (v->n_pieces == VOCAB_MAX_PIECES)
        return ink_err_set(err, INK_CORRUPT, "more than %d pieces", VOCAB_MAX_PIECES);
    if (v->n_pieces == v->cap_pieces) {
        v->cap_pieces = v->cap_pieces ? 2 * v->cap_pieces : 4096;
        v->pieces = ink_realloc(v->pieces, (size_t)v->cap_pieces * sizeof(*v->pieces));
    }
    v->pieces[v->n_pieces++] =
        (struct piece){ ink_arena_strndup(v->arena, text.ptr, text.len), score, type };
    return INK_OK;
}

enum ink_status vocab_pad(struct vocab *v, int64_t n, struct ink_err *err)
{
    char name[32];
    enum ink_status st = INK_OK;

    while (st == INK_OK && v->n_pieces < n) {
        snprintf(name, sizeof(name), "[PAD%d]", v->n_pieces);
        st = vocab_add(v, ink_slice_of(name), padding_score, PIECE_UNUSED, err);
    }
    return st;
}

enum ink_status vocab_put(struct vocab *v, int64_t id, struct ink_slice text, int32_t type,
                          struct ink_err *err)
{
    enum ink_status st = check_text(text, id, err);

    if (st == INK_OK && (id < 0 || id >= VOCAB_MAX_PIECES))
        st = ink_err_set(err, INK_CORRUPT, "an added token has number %lld, which is not in 0..%d",
                         (long long)id, VOCAB_MAX_PIECES - 1);
    if (st == INK_OK)
        st = vocab_pad(v, id + 1, err);
    if (st == INK_OK)
        v->pieces[id] =
            (struct piece){ ink_arena_strndup(v->arena, text.ptr, text.len), added_score, type };
    return st;
}

int32_t vocab_find(const struct vocab *v, const char *text)
{
    for (int32_t i = 0; i < v->n_pieces; i++) {
        if (strcmp(v->pieces[i].text, text) == 0)
            return i;
    }
    return -1;
}

/* --- files ------------------------------------------------------------------------------------------- */

/*
 * Parses dir/name into `*out`; stays NULL when there is no such file. Integers become reals: transformers writes 10^30
 * where it means "no limit", which no integer holds.
 */
static enum ink_status load_json(const char *dir, const char *name, json_t **out,
                                 struct ink_err *err)
{
    json_error_t why;
    char *path = ink_path_join(dir, name), *text = NULL;
    size_t len;
    enum ink_status st = INK_OK;

    if (ink_file_exists(path)) {
        st = ink_file_read(path, MAX_TOKENIZER_BYTES, &text, &len, err);
        if (st == INK_OK && !(*out = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, &why)))
            st = ink_err_set(err, INK_INVALID, "%s: not valid JSON: line %d, column %d: %s", path,
                             why.line, why.column, why.text);
    }
    free(text);
    free(path);
    return st;
}

static enum ink_status load_spiece(struct vocab *v, const char *dir, bool *found,
                                   struct ink_err *err)
{
    static const char *const names[] = { "spiece.model", "tokenizer.model",
                                         "sentencepiece.bpe.model" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = ink_path_join(dir, names[i]);

        if (!ink_file_exists(path)) {
            free(path);
            continue;
        }
        struct ink_map map;
        enum ink_status st = ink_map_open(path, &map, err);

        if (st == INK_OK) {
            st = spiece_read((struct ink_slice){ (const char *)map.ptr, map.len }, v, err);
            ink_map_close(&map);
            if (st != INK_OK)
                (void)ink_err_prefix(err, st, path);
        }
        free(path);
        *found = true;
        return st;
    }
    *found = false;
    return INK_OK;
}

/* --- added tokens ------------------------------------------------------------------------------------ */

struct adding {
    struct vocab *v;
    int64_t n_rows;
};

/* One added token. Those inside the vocabulary repeat what it says; those beyond the embedding cannot be used. */
static enum ink_status add_token(const struct adding *a, int64_t id, const json_t *text,
                                 bool special, struct ink_err *err)
{
    if (!json_is_string(text) || id < 0)
        return ink_err_set(err, INK_CORRUPT, "added token %lld: its text or number is missing",
                           (long long)id);
    if ((id < a->v->n_own || id >= a->n_rows))
        return INK_OK;

    struct ink_slice s = { json_string_value(text), json_string_length(text) };

    return vocab_put(a->v, id, s, special ? PIECE_CONTROL : PIECE_USER_DEFINED, err);
}

/* added_tokens.json: {"<extra_id_0>": 32099, ...} */
static enum ink_status add_from_map(const struct adding *a, json_t *map, struct ink_err *err)
{
    const char *text;
    json_t *id;
    enum ink_status st = INK_OK;

    json_object_foreach(map, text, id)
    {
        json_t *s = json_string(text);

        st = add_token(a, json_token_id(id), s, strncmp(text, "<extra_id_", 10) == 0, err);
        json_decref(s);
        if (st != INK_OK)
            break;
    }
    return st;
}

/* tokenizer_config.json: {"added_tokens_decoder": {"32099": {"content", "special"}, ...}} */
static enum ink_status add_from_decoder(const struct adding *a, const json_t *config,
                                        struct ink_err *err)
{
    const char *key;
    json_t *token;

    json_object_foreach(json_object_get(config, "added_tokens_decoder"), key, token)
    {
        char *end;
        long long id = strtoll(key, &end, 10);

        if (key[0] == '\0' || *end != '\0')
            return ink_err_set(err, INK_CORRUPT, "added_tokens_decoder: %s is no number", key);
        enum ink_status st = add_token(a, id, json_object_get(token, "content"),
                                       json_is_true(json_object_get(token, "special")), err);

        if (st != INK_OK)
            return st;
    }
    return INK_OK;
}

/* tokenizer.json: {"added_tokens": [{"id", "content", "special"}, ...]} */
static enum ink_status add_from_list(const struct adding *a, const json_t *root,
                                     struct ink_err *err)
{
    size_t i;
    json_t *token;

    json_array_foreach(json_object_get(root, "added_tokens"), i, token)
    {
        enum ink_status st = add_token(a, json_token_id(json_object_get(token, "id")),
                                       json_object_get(token, "content"),
                                       json_is_true(json_object_get(token, "special")), err);

        if (st != INK_OK)
            return st;
    }
    return INK_OK;
}

/* T5's sentinels, counted down from the end, where nobody has named them. */
static enum ink_status add_extra_ids(const struct adding *a, int64_t n, struct ink_err *err)
{
    char name[32];
    enum ink_status st = INK_OK;

    if (n <= 0 || a->v->n_own + n > a->n_rows || vocab_find(a->v, "<extra_id_0>") >= 0 ||
        vocab_find(a->v, "\xe2\x96\x81<extra_id_0>") >= 0)
        return INK_OK;
    for (int64_t i = n - 1; i >= 0 && st == INK_OK; i--) {
        snprintf(name, sizeof(name), "<extra_id_%lld>", (long long)i);
        st = vocab_put(a->v, a->v->n_own + n - 1 - i, ink_slice_of(name), PIECE_CONTROL, err);
    }
    return st;
}

static enum ink_status prefixed(struct ink_err *err, enum ink_status st, const char *dir,
                                const char *name)
{
    char *path = ink_path_join(dir, name);

    if (st != INK_OK)
        (void)ink_err_prefix(err, st, path);
    free(path);
    return st;
}

static enum ink_status add_tokens(struct vocab *v, const char *dir, const json_t *tokenizer,
                                  int64_t n_rows, int default_extra_ids, struct ink_err *err)
{
    const struct adding a = { v, n_rows };
    json_t *added = NULL, *config = NULL;
    int64_t n_extra = default_extra_ids;
    enum ink_status st;

    if ((st = load_json(dir, "added_tokens.json", &added, err)) != INK_OK ||
        (st = load_json(dir, "tokenizer_config.json", &config, err)) != INK_OK)
        goto out;
    st = prefixed(err, add_from_map(&a, added, err), dir, "added_tokens.json");
    if (st == INK_OK)
        st = prefixed(err, add_from_decoder(&a, config, err), dir, "tokenizer_config.json");
    if (st == INK_OK)
        st = prefixed(err, add_from_list(&a, tokenizer, err), dir, "tokenizer.json");
    if (st == INK_OK)
        st = prefixed(err, ink_json_int(config, "extra_ids", 0, MAX_ADDED, &n_extra, err), dir,
                      "tokenizer_config.json");
    if (st == INK_OK)
        st = add_extra_ids(&a, n_extra, err);
out:
    json_decref(added);
    json_decref(config);
    return st;
}

/*
 * transformers 5 lets T5's <extra_id_N> follow every vocabulary, even mT5's, which has its own and no rows for these.
 * What has no row was never trained.
 */
static void drop_surplus_extra_ids(struct vocab *v, int64_t n_rows)
{
    int32_t n = v->n_own;

    while (n > 0 && strncmp(v->pieces[n - 1].text, "<extra_id_", 10) == 0)
        n--;
    if (v->n_own > n_rows && n <= n_rows)
        v->n_own = v->n_pieces = n;
}

enum ink_status vocab_load(struct vocab *v, const char *dir, int64_t n_rows, int default_extra_ids,
                           struct ink_err *err)
{
    json_t *tokenizer = NULL;
    bool found;
    enum ink_status st = load_spiece(v, dir, &found, err);

    if (st == INK_OK)
        st = load_json(dir, "tokenizer.json", &tokenizer, err);
    if (st == INK_OK && !found) {
        if (!tokenizer)
            st = ink_err_set(err, INK_NOT_FOUND,
                             "%s: no tokenizer: neither spiece.model nor tokenizer.json", dir);
        else
            st = prefixed(err, hf_tokenizer_json_read(tokenizer, v, err), dir, "tokenizer.json");
    }
    if (st == INK_OK)
        drop_surplus_extra_ids(v, n_rows);
    if (st == INK_OK && v->n_own > n_rows)
        st = ink_err_set(err, INK_INVALID,
                         "%s: the vocabulary has %d pieces, but the embedding only %lld rows", dir,
                         v->n_own, (long long)n_rows);
    if (st == INK_OK)
        st = add_tokens(v, dir, tokenizer, n_rows, default_extra_ids, err);
    if (st == INK_OK)
        st = vocab_pad(v, n_rows, err);
    json_decref(tokenizer);
    return st;
}
