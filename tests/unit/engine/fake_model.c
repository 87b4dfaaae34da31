#include "engine/fake_model.h"

#include "base/alloc.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FAKE_HEADS = 4 };

struct ink_model {
    struct fake_options o;
    struct ink_model_info info;
    int32_t
        *memory; /* [n_blocks][INK_KV_BLOCK_TOKENS] the token that wrote each place; -1: nobody */
    int32_t *heads[FAKE_HEADS];
    int head_n[FAKE_HEADS], n_heads;
    float *logits; /* [max_rows][n_vocab] */
    float *full;
    const struct ink_encode_item *items;
    int n_items, layers_left;
    int decodes, advances;
    pthread_mutex_t lock; /* guards counts */
    struct fake_counts counts;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 29);
}

static uint64_t digest(const int32_t *a, int n, const int32_t *b, int n_b)
{
    uint64_t h = (uint64_t)n;

    for (int i = 0; i < n; i++)
        h = mix(h, (uint64_t)a[i]);
    for (int i = 0; i < n_b; i++)
        h = mix(h, (uint64_t)b[i]);
    return h;
}

void fake_logits_mixed(const int32_t *source, int n_source, const int32_t *history, int n_history,
                       float *logits, int n_vocab)
{
    uint64_t h = digest(source, n_source, history, n_history);

    for (int i = 0; i < n_vocab; i++)
        logits[i] = (float)(mix(mix(h, (uint64_t)i), 77) >> 40) / (float)(1 << 24) * 8.0f;
    logits[FAKE_EOS] = (float)n_history * 0.5f;
}

void fake_logits_endless(const int32_t *source, int n_source, const int32_t *history, int n_history,
                         float *logits, int n_vocab)
{
    fake_logits_mixed(source, n_source, history, n_history, logits, n_vocab);
    logits[FAKE_EOS] = -100;
}

void fake_logits_echo(const int32_t *source, int n_source, const int32_t *history, int n_history,
                      float *logits, int n_vocab)
{
    (void)history;
    for (int i = 0; i < n_vocab; i++)
        logits[i] = 0;
    logits[n_history <= n_source ? source[n_history - 1] : FAKE_EOS] = 30;
}

static int or_default(int v, int fallback)
{
    return v ? v : fallback;
}

struct ink_model *fake_model_new(const struct fake_options *options)
{
    struct ink_model *m = ink_zalloc(sizeof(*m));
    struct fake_options *o = &m->o;

    *o = *options;
    o->n_vocab = or_default(o->n_vocab, 64);
    o->n_blocks = or_default(o->n_blocks, 64);
    o->max_rows = or_default(o->max_rows, 8);
    o->max_source = or_default(o->max_source, 256);
    o->max_target = or_default(o->max_target, 256);
    o->n_layers = or_default(o->n_layers, 4);
    if (!o->logits)
        o->logits = fake_logits_mixed;
    m->info = (struct ink_model_info){
        .arch = "t5",
        .name = "fake",
        .type = "f32",
        .device = "cpu",
        .compute = "f32",
        .has_encoder = true,
        .n_vocab = o->n_vocab,
        .n_encoder_layers = o->n_layers,
        .n_decoder_layers = o->n_layers,
        .d_model = 8,
        .decoder_start = FAKE_START,
        .max_source_tokens = o->max_source,
        .max_target_tokens = o->max_target,
        .max_rows = o->max_rows,
        .n_blocks = o->n_blocks,
        .bytes_kv = 1000 * (int64_t)o->n_blocks,
    };
    m->memory = ink_alloc((size_t)o->n_blocks * INK_KV_BLOCK_TOKENS * sizeof(*m->memory));
    memset(m->memory, 0xff, (size_t)o->n_blocks * INK_KV_BLOCK_TOKENS * sizeof(*m->memory));
    m->logits = ink_alloc((size_t)o->max_rows * (size_t)o->n_vocab * sizeof(float));
    m->full = ink_alloc((size_t)o->n_vocab * sizeof(float));
    m->n_heads = 1;
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void ink_model_close(struct ink_model *m)
{
    if (!m)
        return;
    for (int i = 1; i < m->n_heads; i++)
        free(m->heads[i]);
    free(m->memory);
    free(m->logits);
    free(m->full);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

const struct ink_model_info *ink_model_info(const struct ink_model *m)
{
    return &m->info;
}

void fake_model_counts(struct ink_model *m, struct fake_counts *out)
{
    pthread_mutex_lock(&m->lock);
    *out = m->counts;
    pthread_mutex_unlock(&m->lock);
}

enum ink_status ink_model_add_head(struct ink_model *m, const int32_t *ids, int n, int *head,
                                   struct ink_err *err)
{
    (void)err;
    assert(m->n_heads < FAKE_HEADS);
    m->heads[m->n_heads] = ink_alloc((size_t)n * sizeof(*ids));
    memcpy(m->heads[m->n_heads], ids, (size_t)n * sizeof(*ids));
    m->head_n[m->n_heads] = n;
    *head = m->n_heads++;
    return INK_OK;
}

const int32_t *ink_model_head_ids(const struct ink_model *m, int head, int *n)
{
    *n = head ? m->head_n[head] : m->o.n_vocab;
    return m->heads[head];
}

static void nap(int us)
{
    if (us > 0)
        nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

enum ink_status ink_model_encode_begin(struct ink_model *m, const struct ink_encode_item *items,
                                       int n_items, struct ink_err *err)
{
    (void)err;
    assert(!m->items && n_items > 0);
    m->items = items;
    m->n_items = n_items;
    m->layers_left = m->o.n_layers;
    pthread_mutex_lock(&m->lock);
    m->counts.batches++;
    if (n_items > m->counts.most_encoded_together)
        m->counts.most_encoded_together = n_items;
    pthread_mutex_unlock(&m->lock);
    return INK_OK;
}

static int32_t *place(struct ink_model *m, const int32_t *blocks, int pos)
{
    int32_t block = blocks[pos / INK_KV_BLOCK_TOKENS];

    assert(block >= 0 && block < m->o.n_blocks);
    return &m->memory[(size_t)block * INK_KV_BLOCK_TOKENS + (size_t)(pos % INK_KV_BLOCK_TOKENS)];
}

enum ink_status ink_model_encode_advance(struct ink_model *m, int n_layers, bool *done,
                                         struct ink_err *err)
{
    assert(m->items && n_layers > 0);
    if (++m->advances == m->o.fail_encode)
        return ink_err_set(err, INK_DEVICE, "the encoder broke");
    for (int i = 0; i < n_layers && m->layers_left > 0; i++, m->layers_left--)
        nap(m->o.layer_us);
    pthread_mutex_lock(&m->lock);
    m->counts.layers += n_layers;
    pthread_mutex_unlock(&m->lock);
    *done = m->layers_left == 0;
    if (!*done)
        return INK_OK;
    for (int i = 0; i < m->n_items; i++) {
        for (int k = 0; k < m->items[i].n_tokens; k++)
            *place(m, m->items[i].blocks, k) = m->items[i].tokens[k];
    }
    pthread_mutex_lock(&m->lock);
    m->counts.encoded += m->n_items;
    pthread_mutex_unlock(&m->lock);
    m->items = NULL;
    return INK_OK;
}

void ink_model_encode_abort(struct ink_model *m)
{
    if (m->items) {
        pthread_mutex_lock(&m->lock);
        m->counts.aborted++;
        pthread_mutex_unlock(&m->lock);
    }
    m->items = NULL;
}

enum ink_status ink_model_decode(struct ink_model *m, struct ink_decode_row *rows, int n_rows,
                                 struct ink_err *err)
{
    int32_t source[1024], history[1024];

    assert(n_rows > 0 && n_rows <= m->o.max_rows);
    if (++m->decodes == m->o.fail_decode)
        return ink_err_set(err, INK_DEVICE, "the decoder broke");
    nap(m->o.decode_us);
    for (int i = 0; i < n_rows; i++) {
        struct ink_decode_row *r = &rows[i];
        float *out = m->logits + (size_t)i * (size_t)m->o.n_vocab;

        assert(r->n_source <= 1024 && r->pos < 1024);
        *place(m, r->blocks, r->pos) = r->token;
        for (int k = 0; k < r->n_source; k++)
            source[k] = *place(m, r->source_blocks, k);
        for (int k = 0; k <= r->pos; k++)
            history[k] = *place(m, r->blocks, k);
        m->o.logits(source, r->n_source, history, r->pos + 1, m->full, m->o.n_vocab);
        for (int k = 0; k < (r->head ? m->head_n[r->head] : m->o.n_vocab); k++)
            out[k] = m->full[r->head ? m->heads[r->head][k] : k];
        r->logits = out;
    }
    pthread_mutex_lock(&m->lock);
    m->counts.steps++;
    m->counts.rows += n_rows;
    if (n_rows > m->counts.most_rows)
        m->counts.most_rows = n_rows;
    pthread_mutex_unlock(&m->lock);
    return INK_OK;
}
