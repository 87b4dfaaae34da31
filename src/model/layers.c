/* Embedding, norm, feed-forward activation, KV memory and attention as operators that share the rows among threads. */
#define _GNU_SOURCE
#include "model/layers.h"

#include "model/i8_kernel.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* Columns [from, from + n) of every row, as a tensor of its own. */
static struct ggml_tensor *columns(struct graph *g, struct ggml_tensor *t, int64_t from, int64_t n)
{
    return ggml_view_2d(g->ctx, t, n, t->ne[1], t->nb[1], (size_t)from * sizeof(float));
}

/* --- embedding --- */

struct embed_params {
    const struct weight *table;
    const int32_t *tokens;
};

static void run_embed(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct embed_params *p = params;
    int from, to;

    graph_share((int)dst->ne[1], 1, ith, nth, &from, &to);
    for (int r = from; r < to; r++)
        weight_row(p->table, p->tokens[r], graph_row(dst, r));
}

struct ggml_tensor *layer_embed(struct graph *g, const struct weight *table, const int32_t *tokens,
                                int n)
{
    struct embed_params *p = graph_params(g, sizeof(*p));

    *p = (struct embed_params){ table, tokens };
    return graph_custom(g, "embed", table->n_in, n, run_embed, p, NULL, 0);
}

struct ggml_tensor *layer_input(struct graph *g, float *data, int width, int n)
{
    struct ggml_tensor *t = ggml_new_tensor_2d(g->ctx, GGML_TYPE_F32, width, n);

    t->data = data;
    return t;
}

/* --- norm and activation, each followed by the quantization its readers need --- */

struct norm_params {
    const struct graph *g;
    const float *weight;
    float eps;
    int width;
    bool has_delta;
    const int32_t *pick;
};

/* One row of the result: the sum, the normed row, and the quantized row where int8 layers will read it. */
static void run_add_norm(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct norm_params *p = params;
    const struct vector_ops *vec = p->g->vec;
    int from, to;

    graph_share((int)dst->ne[1], 1, ith, nth, &from, &to);
    for (int r = from; r < to; r++) {
        int source = p->pick ? p->pick[r] : r;
        const float *x = graph_row(dst->src[0], source);
        float *sum = graph_row(dst, r);
        float *normed = sum + p->width;

        if (p->has_delta)
            vec->add(x, graph_row(dst->src[1], source), p->width, sum);
        else
            memcpy(sum, x, (size_t)p->width * sizeof(*sum));
        vec->rms_norm(sum, p->weight, p->eps, p->width, normed);
        if (p->g->i8)
            p->g->i8->quantize(normed, p->width, p->g->one_term, (uint8_t *)(normed + p->width));
    }
}

static int64_t quantized_width(const struct graph *g, int width)
{
    return g->i8 ? (int64_t)(i8_row_bytes(width) / sizeof(float)) : 0;
}

/* Floats [from, from + width) of the row, then their quantized form. */
static struct act act_in(struct graph *g, struct ggml_tensor *t, int64_t from, int width)
{
    struct act a = act_of(columns(g, t, from, width));

    if (g->i8)
        a.quantized = columns(g, t, from + width, quantized_width(g, width));
    return a;
}

struct layer_norm layer_add_norm(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *delta,
                                 const float *weight, float eps, const int32_t *pick, int n_pick)
{
    const int width = (int)x->ne[0];
    struct norm_params *p = graph_params(g, sizeof(*p));
    struct ggml_tensor *sources[] = { x, delta };

    *p = (struct norm_params){ g, weight, eps, width, delta != NULL, pick };
    struct ggml_tensor *t =
        graph_custom(g, "norm", 2 * width + quantized_width(g, width), pick ? n_pick : x->ne[1],
                     run_add_norm, p, sources, delta ? 2 : 1);
    return (struct layer_norm){ columns(g, t, 0, width), act_in(g, t, width, width) };
}

struct activate_params {
    const struct graph *g;
    enum layer_activation kind;
    int width;
};

static void run_activate(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct activate_params *p = params;
    int from, to;

    graph_share((int)dst->ne[1], 1, ith, nth, &from, &to);
    for (int r = from; r < to; r++) {
        const float *x = graph_row(dst->src[0], r);
        float *y = graph_row(dst, r);

        if (p->kind == LAYER_RELU)
            p->g->vec->relu(x, p->width, y);
        else
            p->g->vec->gelu_gate(x, x + p->width, p->width, y);
        if (p->g->i8)
            p->g->i8->quantize(y, p->width, p->g->one_term, (uint8_t *)(y + p->width));
    }
}

struct act layer_activate(struct graph *g, struct ggml_tensor *x, enum layer_activation kind)
{
    const int width = (int)(kind == LAYER_RELU ? x->ne[0] : x->ne[0] / 2);
    struct activate_params *p = graph_params(g, sizeof(*p));

    *p = (struct activate_params){ g, kind, width };
    struct ggml_tensor *t = graph_custom(g, "activate", width + quantized_width(g, width), x->ne[1],
                                         run_activate, p, &x, 1);
    return act_in(g, t, 0, width);
}

/* --- keys and values --- */

static size_t k_head(const struct kv_memory *kv)
{
    return (size_t)kv->d * KEY_BLOCK;
}

static size_t v_head(const struct kv_memory *kv)
{
    return (size_t)kv->d_padded * KEY_BLOCK;
}

/* Index of a (block, layer, head) in units of one head's block. */
static size_t head_index(const struct kv_memory *kv, int32_t block, int layer, int head)
{
    return ((size_t)block * (size_t)kv->n_layers + (size_t)layer) * (size_t)kv->n_heads +
           (size_t)head;
}

enum ink_status kv_memory_init(struct kv_memory *kv, int n_blocks, int n_layers, int n_heads, int d,
                               struct ink_err *err)
{
    *kv = (struct kv_memory){ .n_blocks = n_blocks,
                              .n_layers = n_layers,
                              .n_heads = n_heads,
                              .d = d,
                              .d_padded = (d + 7) / 8 * 8 };
    size_t heads = (size_t)n_blocks * (size_t)n_layers * (size_t)n_heads;
    size_t k_bytes = heads * k_head(kv) * sizeof(float);
    size_t v_bytes = heads * v_head(kv) * sizeof(float);

    /* Zeroed and only backed by memory where touched, so a generous pool costs what is used of it. */
    void *p = mmap(NULL, k_bytes + v_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return ink_err_set(err, INK_NO_MEMORY, "no memory for %zu MiB of keys and values",
                           (k_bytes + v_bytes) >> 20);
    kv->k = p;
    kv->v = (float *)(void *)((char *)p + k_bytes);
    kv->bytes = k_bytes + v_bytes;
    return INK_OK;
}

void kv_memory_release(struct kv_memory *kv)
{
    if (kv->k)
        munmap(kv->k, kv->bytes);
    *kv = (struct kv_memory){ 0 };
}

struct store_params {
    struct kv_memory *kv;
    int layer, k_column, v_column;
    const struct kv_slot *slots;
};

static void run_store(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct store_params *p = params;
    const struct kv_memory *kv = p->kv;
    const struct ggml_tensor *x = dst->src[0];
    const size_t d = (size_t)kv->d;
    int from, to;

    graph_share((int)x->ne[1], 1, ith, nth, &from, &to);
    for (int r = from; r < to; r++) {
        const struct kv_slot *at = &p->slots[r];

        for (int h = 0; h < kv->n_heads; h++) {
            size_t i = head_index(kv, at->block, p->layer, h);
            const float *k = graph_row(x, r) + p->k_column + (size_t)h * d;
            const float *v = graph_row(x, r) + p->v_column + (size_t)h * d;
            float *k_to = kv->k + i * k_head(kv) + at->offset;

            for (size_t j = 0; j < d; j++)
                k_to[j * KEY_BLOCK] = k[j];
            memcpy(kv->v + i * v_head(kv) + (size_t)at->offset * (size_t)kv->d_padded, v,
                   d * sizeof(*v));
        }
    }
}

struct ggml_tensor *layer_kv_store(struct graph *g, struct kv_memory *kv, int layer,
                                   struct ggml_tensor *x, int k_column, int v_column,
                                   const struct kv_slot *slots)
{
    struct store_params *p = graph_params(g, sizeof(*p));

    *p = (struct store_params){ kv, layer, k_column, v_column, slots };
    return graph_custom(g, "store KV", 1, 1, run_store, p, &x, 1);
}

/* --- attention --- */

struct attend_params {
    const struct graph *g;
    const struct kv_memory *kv;
    int layer;
    float scale;
    const struct attend_row *rows;
    const struct position_bias *bias;
    float *scores;   /* scratch of every thread */
    size_t scores_n; /* floats of one thread */
};

static void attend_head(const struct attend_params *p, const struct attend_row *row, int h,
                        const float *q, float *s, float *out)
{
    const struct vector_ops *vec = p->g->vec;
    const struct kv_memory *kv = p->kv;
    const int n_blocks = (row->n_keys + KEY_BLOCK - 1) / KEY_BLOCK;
    const float *bias = p->bias && p->bias->bias
                            ? p->bias->bias + (size_t)h * (size_t)p->bias->n + row->bias_from
                            : NULL;
    float *y = s + n_blocks * KEY_BLOCK; /* d_padded floats */

    for (int b = 0; b < n_blocks; b++)
        vec->key_scores(q, kv->k + head_index(kv, row->blocks[b], p->layer, h) * k_head(kv), kv->d,
                        s + b * KEY_BLOCK);
    if (p->scale != 1.0f)
        for (int j = 0; j < row->n_keys; j++)
            s[j] *= p->scale;
    if (bias)
        vec->add(s, bias, row->n_keys, s);
    float total = vec->soften(s, row->n_keys, n_blocks * KEY_BLOCK);

    memset(y, 0, (size_t)kv->d_padded * sizeof(*y));
    for (int b = 0; b < n_blocks; b++) {
        int n = row->n_keys - b * KEY_BLOCK < KEY_BLOCK ? row->n_keys - b * KEY_BLOCK : KEY_BLOCK;

        vec->add_values(s + b * KEY_BLOCK,
                        kv->v + head_index(kv, row->blocks[b], p->layer, h) * v_head(kv), n,
                        kv->d_padded, y);
    }
    for (int i = 0; i < kv->d; i++)
        out[i] = y[i] / total;
}

/* Threads share (head, row) pairs, heads outermost: rows of one source follow each other while its keys are warm. */
static void run_attend(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct attend_params *p = params;
    const int n_rows = (int)dst->ne[1];
    const int d = p->kv->d;
    int from, to;

    graph_share(n_rows * p->kv->n_heads, 1, ith, nth, &from, &to);
    for (int t = from; t < to; t++) {
        int h = t / n_rows, r = t % n_rows;

        attend_head(p, &p->rows[r], h, graph_row(dst->src[0], r) + (size_t)h * (size_t)d,
                    p->scores + (size_t)ith * p->scores_n,
                    graph_row(dst, r) + (size_t)h * (size_t)d);
    }
}

struct ggml_tensor *layer_attend(struct graph *g, const struct kv_memory *kv, int layer,
                                 struct ggml_tensor *x, struct ggml_tensor *stored, float scale,
                                 const struct attend_row *rows, const struct position_bias *bias)
{
    struct attend_params *p = graph_params(g, sizeof(*p));
    struct ggml_tensor *sources[] = { x, stored };
    int most = 0;

    for (int64_t r = 0; r < x->ne[1]; r++)
        most = rows[r].n_keys > most ? rows[r].n_keys : most;
    *p = (struct attend_params){
        .g = g, .kv = kv, .layer = layer, .scale = scale, .rows = rows, .bias = bias
    };
    p->scores_n =
        (size_t)(most + KEY_BLOCK) / KEY_BLOCK * KEY_BLOCK + KEY_BLOCK + (size_t)kv->d_padded;
    p->scores = graph_params(g, p->scores_n * sizeof(float) * (size_t)device_n_threads(g->device));
    return graph_custom(g, "attend", (int64_t)kv->n_heads * kv->d, x->ne[1], run_attend, p, sources,
                        stored ? 2 : 1);
}
