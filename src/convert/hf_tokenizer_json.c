/*
 * tokenizer.json as transformers' fast tokenizers of this family write it:
 *
 *   model          {"type": "Unigram", "unk_id", "byte_fallback", "vocab": [[piece, score], ...]}
 *   normalizer     null, Precompiled {"precompiled_charsmap": base64}, or a Sequence of it with Strip and the
 *                  Replace of runs of spaces
 *   pre_tokenizer  Metaspace, alone or after WhitespaceSplit
 *
 * Together the last two mean what SentencePiece calls add_dummy_prefix and remove_extra_whitespaces. A part that is not
 * listed here would change ids, so it is refused by name.
 */
#include "convert/hf_tokenizer_json.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 16, N_BYTES = 256 };

int64_t json_token_id(const json_t *v)
{
    double id = json_number_value(v); /* 0 for what is no number */

    return json_is_number(v) && id >= 0.0 && id < (double)VOCAB_MAX_PIECES && id == floor(id)
               ? (int64_t)id
               : -1;
}

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));

    return type ? type : "?";
}

static bool is_type(const json_t *part, const char *type)
{
    return strcmp(type_of(part), type) == 0;
}

/* --- the charsmap ------------------------------------------------------------------------------------ */

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes into `out` (room for 3/4 of `len`); false when it is not base64. */
static bool decode_base64(const char *text, size_t len, char *out, size_t *out_len)
{
    uint32_t bits = 0;
    int n_bits = 0;
    size_t n = 0;

    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (char)(bits >> n_bits & 0xff);
        }
    }
    *out_len = n;
    return len % 4 != 1;
}

static enum ink_status read_charsmap(const json_t *part, struct vocab *v, struct ink_err *err)
{
    const json_t *text = json_object_get(part, "precompiled_charsmap");
    size_t len = json_string_length(text), n;

    if (json_is_null(text))
        return INK_OK;
    if (!json_is_string(text) || len > VOCAB_MAX_CHARSMAP)
        return ink_err_set(err, INK_CORRUPT,
                           "normalizer: precompiled_charsmap is missing or too large");
    char *bytes = ink_arena_alloc(v->arena, len + 1);

    if (!decode_base64(json_string_value(text), len, bytes, &n))
        return ink_err_set(err, INK_CORRUPT, "normalizer: precompiled_charsmap is not base64");
    v->charsmap = (struct ink_slice){ bytes, n };
    return INK_OK;
}

/* --- normalizer and pre-tokenizer -------------------------------------------------------------------- */

/* {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " " or "▁"} */
static bool merges_spaces(const json_t *part)
{
    const char *pattern =
        json_string_value(json_object_get(json_object_get(part, "pattern"), "Regex"));
    const char *content = json_string_value(json_object_get(part, "content"));

    return pattern && content && strcmp(pattern, " {2,}") == 0 &&
           (strcmp(content, " ") == 0 || strcmp(content, "\xe2\x96\x81") == 0);
}

static enum ink_status read_normalizer_part(const json_t *part, struct vocab *v,
                                            struct ink_err *err)
{
    if (is_type(part, "Precompiled"))
        return read_charsmap(part, v, err);
    if (is_type(part, "Strip") || (is_type(part, "Replace") && merges_spaces(part))) {
        v->remove_extra_whitespaces = true;
        return INK_OK;
    }
    return ink_err_set(err, INK_UNSUPPORTED, "normalizer: %s is not supported", type_of(part));
}

static enum ink_status read_pre_tokenizer_part(const json_t *part, struct vocab *v,
                                               struct ink_err *err)
{
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    const char *mark = json_string_value(json_object_get(part, "replacement"));

    if (is_type(part, "WhitespaceSplit")) {
        v->remove_extra_whitespaces = true;
        return INK_OK;
    }
    if (!is_type(part, "Metaspace") || (mark && strcmp(mark, "\xe2\x96\x81") != 0))
        return ink_err_set(err, INK_UNSUPPORTED, "pre_tokenizer: %s is not supported",
                           type_of(part));
    v->add_dummy_prefix = scheme ? strcmp(scheme, "never") != 0
                                 : !json_is_false(json_object_get(part, "add_prefix_space"));
    return INK_OK;
}

typedef enum ink_status part_fn(const json_t *part, struct vocab *v, struct ink_err *err);

/* One part, or a Sequence whose parts are the list `key`. */
static enum ink_status read_parts(const json_t *root, const char *key, part_fn *read,
                                  struct vocab *v, struct ink_err *err)
{
    const json_t *parts = json_object_get(root, key);
    enum ink_status st = INK_OK;

    if (!root || json_is_null(root))
        return INK_OK;
    if (!is_type(root, "Sequence"))
        return read(root, v, err);
    if (json_array_size(parts) > MAX_PARTS)
        return ink_err_set(err, INK_UNSUPPORTED, "%s: more than %d of them", key, MAX_PARTS);
    for (size_t i = 0; i < json_array_size(parts) && st == INK_OK; i++)
        st = read(json_array_get(parts, i), v, err);
    return st;
}

/* --- the vocabulary ---------------------------------------------------------------------------------- */

static enum ink_status read_pieces(const json_t *list, struct vocab *v, struct ink_err *err)
{
    const json_t *entry;
    size_t i;

    if (json_array_size(list) == 0)
        return ink_err_set(err, INK_CORRUPT, "model: no vocab");
    json_array_foreach(list, i, entry)
    {
        const json_t *text = json_array_get(entry, 0), *score = json_array_get(entry, 1);

        if (!json_is_string(text) || !json_is_number(score))
            return ink_err_set(err, INK_CORRUPT, "model: vocab entry %zu is not [piece, score]", i);
        enum ink_status st =
            vocab_add(v, (struct ink_slice){ json_string_value(text), json_string_length(text) },
                      (float)json_number_value(score), PIECE_NORMAL, err);

        if (st != INK_OK)
            return ink_err_prefix(err, st, "model: vocab");
    }
    return INK_OK;
}

static enum ink_status mark_bytes(struct vocab *v, struct ink_err *err)
{
    int n = 0;

    for (int32_t i = 0; i < v->n_pieces; i++) {
        const char *s = v->pieces[i].text;
        unsigned value;
        char end;

        if (strlen(s) == 6 && sscanf(s, "<0x%2X%c", &value, &end) == 2 && end == '>') {
            v->pieces[i].type = PIECE_BYTE;
            n++;
        }
    }
    if (n != N_BYTES)
        return ink_err_set(err, INK_CORRUPT,
                           "model: byte_fallback, but %d byte pieces instead of %d", n, N_BYTES);
    return INK_OK;
}

/* Texts that "added_tokens" lists are matched before the vocabulary: control, or user-defined. */
static void mark_added(const json_t *list, struct vocab *v)
{
    const json_t *token;
    size_t i;

    json_array_foreach(list, i, token)
    {
        const char *text = json_string_value(json_object_get(token, "content"));
        int64_t n = json_token_id(json_object_get(token, "id"));

        if (!text || n < 0 || n >= v->n_pieces || v->pieces[n].type != PIECE_NORMAL ||
            strcmp(v->pieces[n].text, text) != 0)
            continue;
        v->pieces[n].type =
            json_is_true(json_object_get(token, "special")) ? PIECE_CONTROL : PIECE_USER_DEFINED;
    }
}

enum ink_status hf_tokenizer_json_read(const json_t *root, struct vocab *v, struct ink_err *err)
{
    const json_t *model = json_object_get(root, "model");
    int64_t unk = json_token_id(json_object_get(model, "unk_id"));
    enum ink_status st;

    if (!is_type(model, "Unigram"))
        return ink_err_set(err, INK_UNSUPPORTED,
                           "a tokenizer of kind %s; only Unigram is supported", type_of(model));
    if ((st = read_pieces(json_object_get(model, "vocab"), v, err)) != INK_OK)
        return st;
    if (unk < 0 || unk >= v->n_pieces)
        return ink_err_set(err, INK_CORRUPT, "model: unk_id is missing or no piece");
    v->unk = (int32_t)unk;
    v->pieces[v->unk].type = PIECE_UNKNOWN;
    v->escape_whitespaces = true;
    v->byte_fallback = json_is_true(json_object_get(model, "byte_fallback"));
    if (v->byte_fallback && (st = mark_bytes(v, err)) != INK_OK)
        return st;
    mark_added(json_object_get(root, "added_tokens"), v);
    v->eos = vocab_find(v, "</s>");
    v->pad = vocab_find(v, "<pad>");
    v->n_own = v->n_pieces;
    st = read_parts(json_object_get(root, "normalizer"), "normalizers", read_normalizer_part, v,
                    err);
    if (st == INK_OK)
        st = read_parts(json_object_get(root, "pre_tokenizer"), "pretokenizers",
                        read_pre_tokenizer_part, v, err);
    return st;
}
