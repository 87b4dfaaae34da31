/* config.json of the T5 family: defaults are those of transformers' configuration classes. */
#include "convert/config.h"

#include "base/file.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CONFIG_BYTES = 4 << 20 };

struct family {
    const char *name;
    const char *classes[3]; /* of transformers, that have encoder, decoder and head */
    const char *feed_forward;
    int64_t vocab_size, d_ff, n_layers, n_heads;
    bool bias_per_layer, scales_output;
};

static const struct family families[] = {
    { "t5",
      { "T5ForConditionalGeneration", "T5WithLMHeadModel" },
      "relu",
      32128,
      2048,
      6,
      8,
      false,
      true },
    { "mt5", { "MT5ForConditionalGeneration" }, "gated-gelu", 250112, 1024, 8, 6, false, false },
    { "umt5", { "UMT5ForConditionalGeneration" }, "gated-gelu", 250112, 1024, 8, 6, true, true },
};

static const struct family *find_family(const char *name)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    }
    return NULL;
}

/* Any of the named classes will do; without the key the family is believed. */
static enum ink_status check_class(const json_t *root, const struct family *f, struct ink_err *err)
{
    const json_t *list = json_object_get(root, "architectures"), *v;
    size_t i;

    if (json_array_size(list) == 0)
        return INK_OK;
    json_array_foreach(list, i, v)
    {
        for (size_t c = 0; c < 3 && f->classes[c]; c++) {
            if (json_is_string(v) && strcmp(json_string_value(v), f->classes[c]) == 0)
                return INK_OK;
        }
    }
    v = json_array_get(list, 0);
    return ink_err_set(err, INK_UNSUPPORTED, "architectures: %s is not supported; %s is",
                       json_is_string(v) ? json_string_value(v) : "?", f->classes[0]);
}

static enum ink_status read_family(const json_t *root, const struct family **out,
                                   struct ink_err *err)
{
    const char *name = NULL;
    size_t len;
    enum ink_status st = ink_json_string(root, "model_type", &name, &len, err);

    if (st != INK_OK)
        return st;
    if (!name)
        return ink_err_set(err, INK_INVALID, "model_type: missing");
    *out = find_family(name);
    if (!*out)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "model_type: %s is not supported; t5, mt5 and umt5 are", name);
    if (ink_json_has(root, "quantization_config"))
        return ink_err_set(
            err, INK_UNSUPPORTED,
            "quantization_config: the weights are already quantized; use the original checkpoint");
    return check_class(root, *out, err);
}

/* transformers reads "gated-gelu" as the tanh form, whatever gelu means elsewhere. */
static const struct {
    const char *spec, *activation;
    bool is_gated;
} feed_forwards[] = {
    { "relu", "relu", false },
    { "gated-gelu", "gelu_tanh", true },
    { "gated-gelu_new", "gelu_tanh", true },
    { "gated-gelu_pytorch_tanh", "gelu_tanh", true },
};

static enum ink_status read_activation(const json_t *root, const char *preset, struct t5_config *c,
                                       struct ink_err *err)
{
    const char *spec = preset;
    size_t len;
    enum ink_status st = ink_json_string(root, "feed_forward_proj", &spec, &len, err);

    if (st != INK_OK)
        return st;
    for (size_t i = 0; i < sizeof(feed_forwards) / sizeof(feed_forwards[0]); i++) {
        if (strcmp(feed_forwards[i].spec, spec) == 0) {
            c->is_gated = feed_forwards[i].is_gated;
            c->activation = feed_forwards[i].activation;
            return INK_OK;
        }
    }
    return ink_err_set(err, INK_UNSUPPORTED,
                       "feed_forward_proj: %s is not supported; relu and gated-gelu are", spec);
}

/* Sizes: large enough for any published model, small enough that products of two fit in 63 bits. */
static enum ink_status read_sizes(const json_t *root, const struct family *f, struct t5_config *c,
                                  struct ink_err *err)
{
    int64_t n_encoder = f->n_layers, n_decoder;
    enum ink_status st;

    c->vocab_size = f->vocab_size;
    c->d_model = 512;
    c->d_kv = 64;
    c->d_ff = f->d_ff;
    c->n_heads = f->n_heads;
    c->n_buckets = 32;
    c->max_distance = 128;
    c->n_positions = 512;
    c->epsilon = 1e-6;
    if ((st = ink_json_int(root, "vocab_size", 2, 1 << 20, &c->vocab_size, err)) != INK_OK ||
        (st = ink_json_int(root, "d_model", 1, 1 << 16, &c->d_model, err)) != INK_OK ||
        (st = ink_json_int(root, "d_kv", 1, 1 << 12, &c->d_kv, err)) != INK_OK ||
        (st = ink_json_int(root, "d_ff", 1, 1 << 18, &c->d_ff, err)) != INK_OK ||
        (st = ink_json_int(root, "num_heads", 1, 1 << 10, &c->n_heads, err)) != INK_OK ||
        (st = ink_json_int(root, "num_layers", 1, 256, &n_encoder, err)) != INK_OK)
        return st;
    n_decoder = n_encoder;
    if ((st = ink_json_int(root, "num_decoder_layers", 1, 256, &n_decoder, err)) != INK_OK ||
        (st = ink_json_int(root, "relative_attention_num_buckets", 4, 1 << 16, &c->n_buckets,
                           err)) != INK_OK ||
        (st = ink_json_int(root, "relative_attention_max_distance", 2, 1 << 24, &c->max_distance,
                           err)) != INK_OK ||
        (st = ink_json_int(root, "n_positions", 1, 1 << 24, &c->n_positions, err)) != INK_OK ||
        (st = ink_json_number(root, "layer_norm_epsilon", 0.0, 1.0, &c->epsilon, err)) != INK_OK)
        return st;
    c->n_encoder_layers = (int)n_encoder;
    c->n_decoder_layers = (int)n_decoder;
    return INK_OK;
}

/* A token id; a list counts by its first entry. */
static enum ink_status read_id(const json_t *root, const char *name, const struct t5_config *c,
                               int64_t *out, struct ink_err *err)
{
    const json_t *v = json_object_get(root, name);

    if (json_is_array(v))
        v = json_array_get(v, 0);
    if (!v || json_is_null(v))
        return INK_OK;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= c->vocab_size)
        return ink_err_set(err, INK_INVALID, "%s: no token number below %lld", name,
                           (long long)c->vocab_size);
    *out = json_integer_value(v);
    return INK_OK;
}

static enum ink_status read_head(const json_t *root, const struct family *f, struct t5_config *c,
                                 struct ink_err *err)
{
    const char *version = "";
    bool tied = true;
    size_t len;
    enum ink_status st;

    if ((st = ink_json_bool(root, "tie_word_embeddings", &tied, err)) != INK_OK ||
        (st = ink_json_string(root, "transformers_version", &version, &len, err)) != INK_OK)
        return st;
    c->says_untied = !tied;
    if (f->scales_output)
        c->scale_output = tied;
    else
        c->scale_output = tied && ink_json_has(root, "tie_word_embeddings") && version[0] >= '2' &&
                          version[0] <= '4' && version[1] == '.';
    return ink_json_bool(root, "scale_decoder_outputs", &c->scale_output, err);
}

static enum ink_status read_config(const json_t *root, struct t5_config *c, struct ink_err *err)
{
    const struct family *f = NULL;
    enum ink_status st;

    *c = (struct t5_config){ .decoder_start = -1, .eos = -1, .pad = -1 };
    if (!json_is_object(root))
        return ink_err_set(err, INK_INVALID, "must be an object");
    if ((st = read_family(root, &f, err)) != INK_OK)
        return st;
    snprintf(c->family, sizeof(c->family), "%s", f->name);
    c->bias_per_layer = f->bias_per_layer;
    if ((st = read_sizes(root, f, c, err)) != INK_OK ||
        (st = read_activation(root, f->feed_forward, c, err)) != INK_OK ||
        (st = read_head(root, f, c, err)) != INK_OK ||
        (st = read_id(root, "decoder_start_token_id", c, &c->decoder_start, err)) != INK_OK ||
        (st = read_id(root, "eos_token_id", c, &c->eos, err)) != INK_OK)
        return st;
    return read_id(root, "pad_token_id", c, &c->pad, err);
}

static enum ink_status load(const char *path, json_t **out, struct ink_err *err)
{
    char *text = NULL;
    size_t len;
    enum ink_status st = ink_file_read(path, MAX_CONFIG_BYTES, &text, &len, err);

    if (st != INK_OK)
        return st;
    if ((st = ink_json_parse(text, len, out, err)) != INK_OK)
        (void)ink_err_prefix(err, st, path);
    free(text);
    return st;
}

enum ink_status config_load(const char *dir, struct t5_config *out, struct ink_err *err)
{
    char *path = ink_path_join(dir, "config.json"),
         *generation = ink_path_join(dir, "generation_config.json");
    json_t *root = NULL, *more = NULL;
    enum ink_status st;

    if (!ink_file_exists(path)) {
        st = ink_err_set(err, INK_NOT_FOUND,
                         "%s: no config.json: not a Hugging Face checkpoint folder", dir);
        goto out;
    }
    if ((st = load(path, &root, err)) != INK_OK)
        goto out;
    if ((st = read_config(root, out, err)) != INK_OK) {
        (void)ink_err_prefix(err, st, path);
        goto out;
    }
    if (ink_file_exists(generation)) {
        if ((st = load(generation, &more, err)) != INK_OK)
            goto out;
        /* transformers generates with what generation_config.json says. */
        st = read_id(more, "decoder_start_token_id", out, &out->decoder_start, err);
        if (st == INK_OK)
            st = read_id(more, "eos_token_id", out, &out->eos, err);
        if (st != INK_OK)
            (void)ink_err_prefix(err, st, generation);
    }
    if (out->decoder_start < 0)
        out->decoder_start = out->pad >= 0 ? out->pad : 0;
out:
    json_decref(root);
    json_decref(more);
    free(path);
    free(generation);
    return st;
}
