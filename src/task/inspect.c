/* Reads a model file's keys and sums up its tensors by role; the roles come from the ecosystem's tensor names. */
#include "task/inspect.h"

#include "base/alloc.h"
#include "model/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 128 };

/* First match counts. */
static const struct {
    const char *part, *role;
} roles[] = {
    { "_scale", "scales" },       { "norm", "norm" },
    { "rel_b", "position bias" }, { "token_embd", "embedding" },
    { "output.", "output head" }, { "cross_attn", "cross-attention" },
    { "attn", "attention" },      { "ffn", "feed-forward" },
};

static const char *role_of(const char *name)
{
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strstr(name, roles[i].part))
            return roles[i].role;
    }
    return "other";
}

static void add_tensor(struct ink_inspection *x, const struct ink_tensor_info *t)
{
    const char *role = role_of(t->name);
    int64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    struct ink_inspect_group *g = x->groups;

    while (g < x->groups + x->n_groups &&
           (strcmp(g->role, role) != 0 || strcmp(g->type, t->type) != 0))
        g++;
    if (g == x->groups + x->n_groups) {
        if (x->n_groups == INK_INSPECT_GROUPS)
            g--; /* beyond the table's room, into its last row */
        else
            *(x->groups + x->n_groups++) =
                (struct ink_inspect_group){ .role = role, .type = t->type };
    }
    g->n_tensors++;
    g->n_weights += n;
    g->bytes += (int64_t)t->size;
    if (strcmp(role, "scales") != 0) {
        x->n_tensors++;
        x->n_weights += n;
    }
}

static int64_t int_or_none(const struct ink_model_file *f, const char *key)
{
    int64_t v;

    return ink_model_file_int(f, key, &v) ? v : -1;
}

/* A key of the file's own architecture. */
static int64_t hparam(const struct ink_inspection *x, const char *name)
{
    char key[KEY_MAX];

    snprintf(key, sizeof(key), "%.60s.%s", x->arch, name);
    return int_or_none(x->file, key);
}

static const char *string_or(const struct ink_model_file *f, const char *key, const char *otherwise)
{
    const char *s = otherwise;

    (void)ink_model_file_string(f, key, &s);
    return s;
}

static void read_numbers(struct ink_inspection *x)
{
    struct ink_tensor_info t;
    char key[KEY_MAX];

    x->context = hparam(x, "context_length");
    x->d_model = hparam(x, "embedding_length");
    x->d_ff = hparam(x, "feed_forward_length");
    x->n_heads = hparam(x, "attention.head_count");
    x->d_head = hparam(x, "attention.key_length");
    if (x->d_head < 0 && x->n_heads > 0 && x->d_model > 0)
        x->d_head = x->d_model / x->n_heads;
    x->n_encoder_layers = hparam(x, "block_count");
    x->n_decoder_layers = hparam(x, "decoder_block_count");
    if (strcmp(x->arch, "t5") == 0) {
        if (x->n_decoder_layers < 0)
            x->n_decoder_layers = x->n_encoder_layers;
    } else { /* no encoder: the blocks are a decoder's */
        x->n_decoder_layers = x->n_encoder_layers;
        x->n_encoder_layers = -1;
    }
    snprintf(key, sizeof(key), "%.60s.feed_forward_activation", x->arch);
    x->activation = string_or(x->file, key, "");
    x->n_vocab = ink_model_file_find(x->file, "token_embd.weight", &t) ? t.ne[1] : -1;
    x->own_head = ink_model_file_find(x->file, "output.weight", &t);
}

static void read_tokenizer(struct ink_inspection *x)
{
    enum { PIECE_UNUSED = 5, PIECE_BYTE = 6 };
    const struct ink_model_file *f = x->file;
    const int32_t *types = ink_model_file_array_data(f, "tokenizer.ggml.token_type", "i32");
    int64_t n = ink_model_file_array(f, "tokenizer.ggml.token_type");

    x->tokenizer = string_or(f, "tokenizer.ggml.model", "");
    x->n_pieces = ink_model_file_array(f, "tokenizer.ggml.tokens");
    for (int64_t i = 0; types && i < n; i++) {
        x->n_unused += types[i] == PIECE_UNUSED;
        x->n_bytes += types[i] == PIECE_BYTE;
    }
    x->bos = int_or_none(f, "tokenizer.ggml.bos_token_id");
    x->eos = int_or_none(f, "tokenizer.ggml.eos_token_id");
    x->unk = int_or_none(f, "tokenizer.ggml.unknown_token_id");
    x->pad = int_or_none(f, "tokenizer.ggml.padding_token_id");
    int64_t charsmap = ink_model_file_array(f, "tokenizer.ggml.precompiled_charsmap");

    x->charsmap_bytes = charsmap > 0 ? charsmap : 0;
}

static void read_file(struct ink_inspection *x)
{
    const struct ink_model_file *f = x->file;
    uint8_t digest[INK_SHA256_LEN];
    struct ink_tensor_info t;

    x->name = string_or(f, "general.name", "");
    x->arch = ink_model_file_arch(f);
    x->family = string_or(f, "inkstone.family", "");
    x->license = string_or(f, "general.license", "");
    x->prompt = string_or(f, "inkstone.prompt", NULL);
    x->type = ink_model_file_type(f);
    (void)ink_model_file_bool(f, "inkstone.demo", &x->demo);
    x->bytes = (int64_t)ink_model_file_size(f);
    ink_model_file_digest(f, digest);
    ink_sha256_hex(digest, x->digest);
    for (int64_t i = 0; i < ink_model_file_n_tensors(f); i++) {
        ink_model_file_tensor(f, i, &t);
        add_tensor(x, &t);
    }
    read_numbers(x);
    read_tokenizer(x);
}

enum ink_status ink_inspect(const char *path, bool load, const struct ink_model_options *options,
                            struct ink_inspection **out, struct ink_err *err)
{
    struct ink_inspection *x = ink_zalloc(sizeof(*x));
    enum ink_status st = ink_model_file_open(path, &x->file, err);

    if (st != INK_OK) {
        ink_inspect_close(x);
        return st;
    }
    read_file(x);
    if (load && ink_model_open(x->file, options, &x->model, &x->load_err) == INK_OK) {
        x->info = *ink_model_info(x->model);
        x->loaded = true;
    }
    *out = x;
    return INK_OK;
}

void ink_inspect_close(struct ink_inspection *x)
{
    if (!x)
        return;
    ink_model_close(x->model);
    ink_model_file_close(x->file);
    free(x);
}
