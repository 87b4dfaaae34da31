/* Names and order of the keys follow llama.cpp's converter; values come from the checkpoint's own files. */
#define _DEFAULT_SOURCE /* realpath */
#include "convert/metadata.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CARD_BYTES = 1 << 20, MAX_LICENSE = 64 };

/* llama.cpp's general.file_type; -1: it has no number for it. */
static const int file_types[] = {
    [INK_IMPORT_I8] = -1,   [INK_IMPORT_F32] = 0,   [INK_IMPORT_F16] = 1,
    [INK_IMPORT_BF16] = 32, [INK_IMPORT_Q8_0] = 7,  [INK_IMPORT_Q4_0] = 2,
    [INK_IMPORT_Q4_K] = 14, [INK_IMPORT_Q5_K] = 16, [INK_IMPORT_Q6_K] = 18,
};

/* --- the card ---------------------------------------------------------------------------------------- */

static char *folder_name(const char *dir)
{
    char *full = realpath(dir, NULL);
    const char *base = full ? strrchr(full, '/') : NULL;
    char *out = ink_strdup(base && base[1] != '\0' ? base + 1 : "model");

    free(full);
    return out;
}

/* "license: apache-2.0" between the two "---" lines that a README.md on the hub begins with; NULL if none. */
static char *readme_license(const char *dir)
{
    char *path = ink_path_join(dir, "README.md"), *text = NULL, *out = NULL;
    size_t len;

    if (ink_file_exists(path) && ink_file_read(path, MAX_CARD_BYTES, &text, &len, NULL) == INK_OK &&
        strncmp(text, "---\n", 4) == 0) {
        for (char *line = text + 4; line && strncmp(line, "---", 3) != 0;) {
            size_t n = strcspn(line, "\r\n");

            if (strncmp(line, "license:", 8) == 0) {
                const char *value = line + 8 + strspn(line + 8, " \"'");
                size_t value_len = strcspn(value, " \"'\r\n");

                if (value_len > 0 && value_len <= MAX_LICENSE)
                    out = ink_strndup(value, value_len);
                break;
            }
            line = line[n] == '\0' ? NULL : line + n + 1;
        }
    }
    free(text);
    free(path);
    return out;
}

static enum ink_status read_card(const json_t *root, struct model_card *card, struct ink_err *err)
{
    const char *name = NULL, *license = NULL, *prompt = NULL;
    size_t len;
    enum ink_status st;

    if ((st = ink_json_string(root, "name", &name, &len, err)) != INK_OK ||
        (st = ink_json_string(root, "license", &license, &len, err)) != INK_OK ||
        (st = ink_json_string(root, "prompt", &prompt, &len, err)) != INK_OK ||
        (st = ink_json_bool(root, "demo", &card->demo, err)) != INK_OK)
        return st;
    if (prompt && !strstr(prompt, "{text}"))
        return ink_err_set(err, INK_INVALID, "prompt: has no {text} where the user's text goes");
    card->name = name ? ink_strdup(name) : NULL;
    card->license = license ? ink_strdup(license) : NULL;
    card->prompt = prompt ? ink_strdup(prompt) : NULL;
    return INK_OK;
}

enum ink_status model_card_load(const char *dir, struct model_card *out, struct ink_err *err)
{
    char *path = ink_path_join(dir, "inkstone.json"), *text = NULL;
    json_t *root = NULL;
    size_t len;
    enum ink_status st = INK_OK;

    *out = (struct model_card){ 0 };
    if (ink_file_exists(path)) {
        st = ink_file_read(path, MAX_CARD_BYTES, &text, &len, err);
        if (st == INK_OK) {
            st = ink_json_parse(text, len, &root, err);
            if (st == INK_OK)
                st = read_card(root, out, err);
            if (st != INK_OK)
                (void)ink_err_prefix(err, st, path);
        }
    }
    if (st == INK_OK && !out->name)
        out->name = folder_name(dir);
    if (st == INK_OK && !out->license)
        out->license = readme_license(dir);
    json_decref(root);
    free(text);
    free(path);
    return st;
}

void model_card_release(struct model_card *card)
{
    free(card->name);
    free(card->license);
    free(card->prompt);
    *card = (struct model_card){ 0 };
}

/* --- keys -------------------------------------------------------------------------------------------- */

void metadata_write_general(struct gguf_context *g, const struct model_card *card,
                            enum ink_import_type type)
{
    gguf_set_val_str(g, "general.architecture", "t5");
    gguf_set_val_str(g, "general.type", "model");
    gguf_set_val_str(g, "general.name", card->name);
    if (card->license)
        gguf_set_val_str(g, "general.license", card->license);
    if (file_types[type] >= 0)
        gguf_set_val_u32(g, "general.file_type", (uint32_t)file_types[type]);
    gguf_set_val_u32(g, "general.quantization_version", 2); /* of ggml's block formats */
    if (card->prompt)
        gguf_set_val_str(g, "inkstone.prompt", card->prompt);
    if (card->demo)
        gguf_set_val_bool(g, "inkstone.demo", true);
    if (type == INK_IMPORT_I8)
        gguf_set_val_u32(g, "inkstone.i8_version", 1);
}

void metadata_write_config(struct gguf_context *g, const struct t5_config *c)
{
    double scale = c->scale_output ? 1.0 / sqrt((double)c->d_model) : 1.0;

    gguf_set_val_str(g, "inkstone.family", c->family);
    gguf_set_val_u32(g, "t5.context_length", (uint32_t)c->n_positions);
    gguf_set_val_u32(g, "t5.embedding_length", (uint32_t)c->d_model);
    gguf_set_val_u32(g, "t5.feed_forward_length", (uint32_t)c->d_ff);
    gguf_set_val_u32(g, "t5.block_count", (uint32_t)c->n_encoder_layers);
    gguf_set_val_u32(g, "t5.decoder_block_count", (uint32_t)c->n_decoder_layers);
    gguf_set_val_u32(g, "t5.attention.head_count", (uint32_t)c->n_heads);
    gguf_set_val_u32(g, "t5.attention.key_length", (uint32_t)c->d_kv);
    gguf_set_val_u32(g, "t5.attention.value_length", (uint32_t)c->d_kv);
    gguf_set_val_f32(g, "t5.attention.layer_norm_epsilon", (float)c->epsilon);
    gguf_set_val_f32(g, "t5.attention.layer_norm_rms_epsilon", (float)c->epsilon);
    gguf_set_val_u32(g, "t5.attention.relative_buckets_count", (uint32_t)c->n_buckets);
    gguf_set_val_u32(g, "t5.attention.relative_max_distance", (uint32_t)c->max_distance);
    gguf_set_val_str(g, "t5.feed_forward_activation", c->activation);
    gguf_set_val_f32(g, "t5.logit_scale", (float)scale);
    gguf_set_val_u32(g, "t5.decoder_start_token_id", (uint32_t)c->decoder_start);
}

static void write_id(struct gguf_context *g, const char *key, int64_t from_vocab,
                     int64_t from_config)
{
    int64_t id = from_vocab >= 0 ? from_vocab : from_config;

    if (id >= 0)
        gguf_set_val_u32(g, key, (uint32_t)id);
}

void metadata_write_vocab(struct gguf_context *g, const struct vocab *v, const struct t5_config *c)
{
    size_t n = (size_t)v->n_pieces;
    const char **texts = ink_alloc(n * sizeof(*texts));
    float *scores = ink_alloc(n * sizeof(*scores));
    int32_t *types = ink_alloc(n * sizeof(*types));

    for (size_t i = 0; i < n; i++) {
        texts[i] = v->pieces[i].text;
        scores[i] = v->pieces[i].score;
        types[i] = v->pieces[i].type;
    }
    gguf_set_val_str(g, "tokenizer.ggml.model", "t5");
    gguf_set_val_str(g, "tokenizer.ggml.pre", "default");
    gguf_set_arr_str(g, "tokenizer.ggml.tokens", texts, n);
    gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, n);
    gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types, n);
    gguf_set_val_bool(g, "tokenizer.ggml.add_space_prefix", v->add_dummy_prefix);
    gguf_set_val_bool(g, "tokenizer.ggml.remove_extra_whitespaces", v->remove_extra_whitespaces);
    if (v->charsmap.len > 0)
        gguf_set_arr_data(g, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8,
                          v->charsmap.ptr, v->charsmap.len);
    if (v->bos >= 0)
        gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    write_id(g, "tokenizer.ggml.eos_token_id", v->eos, c->eos);
    gguf_set_val_u32(g, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    write_id(g, "tokenizer.ggml.padding_token_id", v->pad, c->pad);
    gguf_set_val_bool(g, "tokenizer.ggml.add_bos_token", false);
    gguf_set_val_bool(g, "tokenizer.ggml.add_eos_token", true);
    gguf_set_val_bool(g, "inkstone.tokenizer.byte_fallback", v->byte_fallback);
    free(texts);
    free(scores);
    free(types);
}
