/*
 * A loaded model: opens the file, chooses the architecture, and turns the caller's tokens, positions and block
 * numbers into graphs. What differs between architectures is behind arch_ops; nothing here knows one.
 */
#include "model/model.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "model/arch.h"
#include "model/graph.h"
#include "model/i8_kernel.h"
#include "model/probe.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A head's rows are packed when it is first used: the full head of a large vocabulary may never be. */
struct head {
    int32_t *ids; /* NULL: all */
    int n;
    bool made;
    struct linear linear;
};

/* The encoder batch under way. */
struct encoding {
    bool active;
    int n_tokens, next_layer;
    int32_t *tokens;
    float *x;                      /* [E, n_tokens] between slices */
    struct kv_slot *scratch_slots; /* where a token's keys go while encoding */
    struct attend_row *rows;
    int32_t *scratch_blocks; /* 0, 1, 2, ...: a source's scratch blocks are consecutive */
    struct kv_slot *slots;   /* where its cross-attention keys go */
};

struct ink_model {
    const struct ink_model_file *file;
    struct ink_model_options options;
    struct ink_model_info info;
    char name[128], compute[64];

    const struct arch_ops *ops;
    struct arch *arch;
    struct device *device;
    struct graph graph;
    struct kv_memory kv;      /* the pool */
    struct kv_memory scratch; /* one encoder layer's keys and values */
    struct head heads[INK_HEAD_MAX];
    int n_heads;
    struct encoding enc;

    struct kv_slot *slots; /* [max_rows], like the next four: inputs of a decode step */
    struct attend_row *self, *cross;
    int32_t *tokens, *pick;
};

static void fill_defaults(struct ink_model_options *o)
{
    if (o->n_threads <= 0)
        o->n_threads = ink_thread_n_cpus();
    if (o->max_rows <= 0)
        o->max_rows = 64;
    if (o->max_encode_tokens <= 0)
        o->max_encode_tokens = 2048;
    if (o->n_blocks <= 0)
        o->n_blocks = 512;
}

static void set_names(struct ink_model *m)
{
    const char *name;

    if (!ink_model_file_string(m->file, "general.name", &name) || name[0] == '\0') {
        const char *path = ink_model_file_path(m->file);
        const char *slash = strrchr(path, '/');

        name = slash ? slash + 1 : path;
    }
    snprintf(m->name, sizeof(m->name), "%s", name);
    size_t len = strlen(m->name);
    if (len > 5 && strcmp(m->name + len - 5, ".gguf") == 0)
        m->name[len - 5] = '\0';
    m->info.name = m->name;
    m->info.arch = m->ops->name;
    m->info.type = ink_model_file_type(m->file);
    m->info.device = device_name(m->device);
}

static void describe_compute(struct ink_model *m, const struct i8_kernel *kernel)
{
    if (m->ops->uses_i8(m->arch))
        snprintf(m->compute, sizeof(m->compute), "%s (%s)",
                 m->options.compute == INK_COMPUTE_I8_FAST ? "i8-fast" : "i8", kernel->name);
    else if (m->options.compute == INK_COMPUTE_EXACT)
        snprintf(m->compute, sizeof(m->compute), "exact, %s weights (%s)", m->info.type,
                 m->graph.vec->name);
    else
        snprintf(m->compute, sizeof(m->compute), "%s (%s)", m->info.type, m->graph.vec->name);
    m->info.compute = m->compute;
}

static enum ink_status alloc_encoding(struct ink_model *m, struct ink_err *err)
{
    const size_t n = (size_t)m->options.max_encode_tokens;
    struct encoding *e = &m->enc;

    e->tokens = ink_try_alloc(n, sizeof(*e->tokens));
    e->x = ink_try_alloc(n * (size_t)m->info.d_model, sizeof(*e->x));
    e->scratch_slots = ink_try_alloc(n, sizeof(*e->scratch_slots));
    e->rows = ink_try_alloc(n, sizeof(*e->rows));
    /* A source of one token still takes a block, so there may be as many blocks as tokens. */
    e->scratch_blocks = ink_try_alloc(n, sizeof(*e->scratch_blocks));
    e->slots = ink_try_alloc(n, sizeof(*e->slots));
    if (!e->tokens || !e->x || !e->scratch_slots || !e->rows || !e->scratch_blocks || !e->slots)
        return ink_err_set(err, INK_NO_MEMORY, "no memory to encode %zu tokens at once", n);
    for (size_t i = 0; i < n; i++)
        e->scratch_blocks[i] = (int32_t)i;
    return INK_OK;
}

static enum ink_status alloc_rows(struct ink_model *m, struct ink_err *err)
{
    const size_t n = (size_t)m->options.max_rows;

    m->slots = ink_try_alloc(n, sizeof(*m->slots));
    m->self = ink_try_alloc(n, sizeof(*m->self));
    m->cross = ink_try_alloc(n, sizeof(*m->cross));
    m->tokens = ink_try_alloc(n, sizeof(*m->tokens));
    m->pick = ink_try_alloc(n, sizeof(*m->pick));
    if (!m->slots || !m->self || !m->cross || !m->tokens || !m->pick)
        return ink_err_set(err, INK_NO_MEMORY, "no memory for steps of %zu rows", n);
    return INK_OK;
}

static enum ink_status warm_up(struct ink_model *m, struct ink_err *err);

enum ink_status ink_model_open(const struct ink_model_file *file,
                               const struct ink_model_options *options, struct ink_model **out,
                               struct ink_err *err)
{
    const int64_t start = ink_clock_ns();
    const char *arch = ink_model_file_arch(file);
    char known[256] = "";
    const struct arch_ops *ops = arch_find(arch, known, sizeof(known));

    if (!ops)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "%s: architecture '%s' is not supported; known: %s",
                           ink_model_file_path(file), arch, known);

    struct ink_model *m = ink_zalloc(sizeof(*m));
    const struct i8_kernel *kernel = i8_kernel_best();
    int n_heads, d;

    m->file = file;
    m->ops = ops;
    m->options = options ? *options : (struct ink_model_options){ 0 };
    fill_defaults(&m->options);
    m->info.max_rows = m->options.max_rows;
    m->info.n_blocks = m->options.n_blocks;
    m->info.max_target_tokens =
        1024; /* T5 has no limit of its own; far beyond what it writes well */

    enum ink_status st = device_open(m->options.n_threads, &m->device, err);
    if (st != INK_OK)
        goto fail;
    graph_init(&m->graph, m->device);
    set_names(m);
    struct arch_load load = {
        .file = file,
        .options = &m->options,
        .compute = m->options.compute == INK_COMPUTE_EXACT  ? LINEAR_ALL_FLOAT
                   : m->options.compute == INK_COMPUTE_AUTO ? LINEAR_AS_STORED
                                                            : LINEAR_ALL_I8,
        .kernel = kernel,
        .n_threads = m->options.n_threads,
    };
    const int64_t pack_start = ink_clock_ns();
    st = ops->load(&load, &m->arch, &m->info, err);
    if (st != INK_OK)
        goto fail;
    m->info.pack_ms = ink_clock_ms_since(pack_start);
    if (ops->uses_i8(m->arch))
        m->graph.i8 = kernel;
    m->graph.one_term = m->options.compute == INK_COMPUTE_I8_FAST;
    describe_compute(m, kernel);

    ops->kv_shape(m->arch, &n_heads, &d);
    st = kv_memory_init(&m->kv, m->options.n_blocks, m->info.n_decoder_layers, n_heads, d, err);
    if (st == INK_OK)
        st = kv_memory_init(&m->scratch, m->options.max_encode_tokens, 1, n_heads, d, err);
    if (st == INK_OK)
        st = alloc_encoding(m, err);
    if (st == INK_OK)
        st = alloc_rows(m, err);
    if (st != INK_OK)
        goto fail;
    m->heads[INK_HEAD_FULL].n = m->info.n_vocab;
    m->n_heads = 1;
    st = warm_up(m, err);
    if (st != INK_OK)
        goto fail;
    m->info.bytes_weights = (int64_t)ink_model_file_size(file);
    m->info.bytes_packed = ops->packed_bytes(m->arch);
    m->info.bytes_kv = (int64_t)(m->kv.bytes);
    m->info.bytes_graph = device_bytes(m->device);
    m->info.load_ms = ink_clock_ms_since(start);
    *out = m;
    return INK_OK;

fail:
    ink_model_close(m);
    return st;
}

void ink_model_close(struct ink_model *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_heads; i++) {
        linear_release(&m->heads[i].linear);
        free(m->heads[i].ids);
    }
    if (m->arch)
        m->ops->free(m->arch);
    kv_memory_release(&m->kv);
    kv_memory_release(&m->scratch);
    if (m->device)
        graph_release(&m->graph);
    device_close(m->device);
    free(m->enc.tokens);
    free(m->enc.x);
    free(m->enc.scratch_slots);
    free(m->enc.rows);
    free(m->enc.scratch_blocks);
    free(m->enc.slots);
    free(m->slots);
    free(m->self);
    free(m->cross);
    free(m->tokens);
    free(m->pick);
    free(m);
}

const struct ink_model_info *ink_model_info(const struct ink_model *m)
{
    return &m->info;
}

void ink_model_set_probe(struct ink_model *m, ink_probe_fn *save, void *arg)
{
    m->graph.probe = save;
    m->graph.probe_arg = arg;
}

/* --- heads --- */

enum ink_status ink_model_add_head(struct ink_model *m, const int32_t *ids, int n, int *head,
                                   struct ink_err *err)
{
    if (m->n_heads == INK_HEAD_MAX)
        return ink_err_set(err, INK_BUSY, "a model has at most %d output heads", INK_HEAD_MAX);
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= m->info.n_vocab || (i > 0 && ids[i] <= ids[i - 1]))
            return ink_err_set(err, INK_INVALID,
                               "output head: id %d at %d is out of range or order", ids[i], i);
    if (n < 1)
        return ink_err_set(err, INK_INVALID, "output head: no ids");

    struct head *h = &m->heads[m->n_heads];
    h->ids = ink_alloc((size_t)n * sizeof(*h->ids));
    memcpy(h->ids, ids, (size_t)n * sizeof(*h->ids));
    h->n = n;
    enum ink_status st = m->ops->make_head(m->arch, h->ids, n, &h->linear, err);
    if (st != INK_OK) {
        free(h->ids);
        *h = (struct head){ 0 };
        return st;
    }
    h->made = true;
    m->info.bytes_packed += linear_packed_bytes(&h->linear);
    *head = m->n_heads++;
    return INK_OK;
}

const int32_t *ink_model_head_ids(const struct ink_model *m, int head, int *n)
{
    *n = m->heads[head].n;
    return m->heads[head].ids;
}

static enum ink_status need_head(struct ink_model *m, int i, struct ink_err *err)
{
    struct head *h = &m->heads[i];

    if (h->made)
        return INK_OK;
    enum ink_status st = m->ops->make_head(m->arch, NULL, 0, &h->linear, err);
    if (st == INK_OK) {
        h->made = true;
        m->info.bytes_packed += linear_packed_bytes(&h->linear);
    }
    return st;
}

/* --- encoder --- */

static int blocks_for(int n_tokens)
{
    return (n_tokens + INK_KV_BLOCK_TOKENS - 1) / INK_KV_BLOCK_TOKENS;
}

enum ink_status ink_model_encode_begin(struct ink_model *m, const struct ink_encode_item *items,
                                       int n_items, struct ink_err *err)
{
    struct encoding *e = &m->enc;
    int n = 0, block = 0;

    assert(!e->active && m->info.has_encoder);
    for (int i = 0; i < n_items; i++) {
        if (items[i].n_tokens < 1 || items[i].n_tokens > m->options.max_encode_tokens - n)
            return ink_err_set(err, INK_INVALID, "an encoder batch holds 1..%d tokens",
                               m->options.max_encode_tokens);
        n += items[i].n_tokens;
    }
    n = 0;
    for (int i = 0; i < n_items; i++) {
        const struct ink_encode_item *it = &items[i];

        for (int p = 0; p < it->n_tokens; p++, n++) {
            int b = p / INK_KV_BLOCK_TOKENS, offset = p % INK_KV_BLOCK_TOKENS;

            if (it->tokens[p] < 0 || it->tokens[p] >= m->info.n_vocab)
                return ink_err_set(err, INK_INVALID, "token %d is not in the vocabulary of %d",
                                   it->tokens[p], m->info.n_vocab);
            assert(it->blocks[b] >= 0 && it->blocks[b] < m->options.n_blocks);
            e->tokens[n] = it->tokens[p];
            e->scratch_slots[n] = (struct kv_slot){ block + b, offset };
            e->slots[n] = (struct kv_slot){ it->blocks[b], offset };
            e->rows[n] = (struct attend_row){ e->scratch_blocks + block, it->n_tokens,
                                              m->ops->encoder_bias_from(m->arch, p) };
        }
        block += blocks_for(it->n_tokens);
    }
    e->n_tokens = n;
    e->next_layer = 0;
    e->active = true;
    return INK_OK;
}

enum ink_status ink_model_encode_advance(struct ink_model *m, int n_layers, bool *done,
                                         struct ink_err *err)
{
    struct encoding *e = &m->enc;
    struct graph *g = &m->graph;
    const int from = e->next_layer;
    const int left = m->info.n_encoder_layers - from;
    const int to = from + (n_layers < left ? n_layers : left);

    assert(e->active && n_layers > 0);
    graph_begin(g);
    struct ggml_tensor *x = from == 0 ? m->ops->embed(m->arch, g, e->tokens, e->n_tokens)
                                      : layer_input(g, e->x, m->info.d_model, e->n_tokens);
    x = m->ops->encode(m->arch, g, x, from, to, &m->scratch, e->scratch_slots, e->rows);
    if (to == m->info.n_encoder_layers)
        m->ops->encode_finish(m->arch, g, x, &m->kv, e->slots);
    else
        graph_output(g, x);

    enum ink_status st = graph_compute(g, err);
    if (st != INK_OK)
        return st;
    e->next_layer = to;
    *done = to == m->info.n_encoder_layers;
    if (*done)
        e->active = false;
    else
        memcpy(e->x, x->data, (size_t)m->info.d_model * (size_t)e->n_tokens * sizeof(*e->x));
    return INK_OK;
}

void ink_model_encode_abort(struct ink_model *m)
{
    m->enc.active = false;
}

/* --- decoder --- */

/* Rows of head `h`, their numbers into m->pick from `at`. */
static int pick_rows(struct ink_model *m, const struct ink_decode_row *rows, int n_rows, int h,
                     int at)
{
    int n = 0;

    for (int r = 0; r < n_rows; r++)
        if (rows[r].head == h)
            m->pick[at + n++] = r;
    return n;
}

enum ink_status ink_model_decode(struct ink_model *m, struct ink_decode_row *rows, int n_rows,
                                 struct ink_err *err)
{
    struct graph *g = &m->graph;
    struct ggml_tensor *logits[INK_HEAD_MAX] = { NULL };
    int picked[INK_HEAD_MAX + 1] = { 0 };
    enum ink_status st;

    assert(n_rows >= 1 && n_rows <= m->options.max_rows);
    for (int r = 0; r < n_rows; r++) {
        const struct ink_decode_row *row = &rows[r];

        if (row->token < 0 || row->token >= m->info.n_vocab)
            return ink_err_set(err, INK_INVALID, "token %d is not in the vocabulary of %d",
                               row->token, m->info.n_vocab);
        if (row->pos < 0 || row->pos >= m->info.max_target_tokens)
            return ink_err_set(err, INK_INVALID, "position %d is not in 0..%d", row->pos,
                               m->info.max_target_tokens - 1);
        m->tokens[r] = row->token;
        m->slots[r] = (struct kv_slot){ row->blocks[row->pos / INK_KV_BLOCK_TOKENS],
                                        row->pos % INK_KV_BLOCK_TOKENS };
        m->self[r] = (struct attend_row){ row->blocks, row->pos + 1,
                                          m->ops->decoder_bias_from(m->arch, row->pos) };
        m->cross[r] = (struct attend_row){ row->source_blocks, row->n_source, 0 };
        if (row->head >= 0) {
            st = need_head(m, row->head, err);
            if (st != INK_OK)
                return st;
        }
    }

    graph_begin(g);
    struct ggml_tensor *x = m->ops->embed(m->arch, g, m->tokens, n_rows);
    x = m->ops->decode(m->arch, g, x, &m->kv, m->slots, m->self, m->cross);
    graph_output(g, x);
    for (int h = 0; h < m->n_heads; h++) {
        int n = pick_rows(m, rows, n_rows, h, picked[h]);

        picked[h + 1] = picked[h] + n;
        if (n == 0)
            continue;
        logits[h] = m->ops->logits(m->arch, g, x, &m->heads[h].linear, m->pick + picked[h], n);
        graph_output(g, logits[h]);
    }
    st = graph_compute(g, err);
    if (st != INK_OK)
        return st;

    for (int h = 0; h < m->n_heads; h++)
        for (int i = picked[h]; i < picked[h + 1]; i++)
            rows[m->pick[i]].logits =
                (const float *)(const void *)((const char *)logits[h]->data +
                                              (size_t)(i - picked[h]) * logits[h]->nb[1]);
    return INK_OK;
}

/* One source of one token and one decoder row: touches every weight page and sizes the step's memory. */
static enum ink_status warm_up(struct ink_model *m, struct ink_err *err)
{
    const int32_t token = 0, block = 0;
    struct ink_encode_item item = { &token, 1, &block };
    struct ink_decode_row row = { .token = m->info.decoder_start,
                                  .blocks = (const int32_t[]){ 1 },
                                  .source_blocks = &block,
                                  .n_source = 1,
                                  .head = -1 };
    bool done = false;
    enum ink_status st = INK_OK;

    if (m->options.n_blocks < 2)
        return ink_err_set(err, INK_INVALID, "%d KV blocks are too few; at least 2 are needed",
                           m->options.n_blocks);
    if (m->info.has_encoder) {
        st = ink_model_encode_begin(m, &item, 1, err);
        if (st == INK_OK)
            st = ink_model_encode_advance(m, m->info.n_encoder_layers, &done, err);
    }
    if (st == INK_OK)
        st = ink_model_decode(m, &row, 1, err);
    return st;
}
