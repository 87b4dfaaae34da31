/*
 * Many texts as a stream of tasks.
 *
 * How many run together: as many sequences as the model decodes at a time, and a few texts more, so that a place that falls
 * free is filled at once. More would only wait in the engine's queue, before those who come alone.
 */
#include "task/batch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "task/catalog.h"
#include "task/task.h"

#include <assert.h>
#include <stdlib.h>

enum {
    SPARE = 4, /* texts that may wait for a place */
    RING_FACTOR =
        4, /* the ring against what runs: how far one slow text may fall behind the others */
    RETRY_MS = 20, /* after the engine had no room */
    SLOTS_MIN = 16,
};

struct ink_batch_pool {
    struct ink_catalog *catalog;
    int n_models;
    int *n_seqs; /* [n_models] running for all batches */
};

struct slot {
    bool taken;
    bool finished;
    int64_t index;
    void *tag;
    int model; /* its number in the catalog, while running */
    int n_seqs;
    const struct ink_served *served;
    struct ink_task *task; /* running, or finished well */
    struct ink_err *err;   /* finished otherwise; NULL: nothing was to be computed */
};

struct ink_batch {
    struct ink_batch_pool *pool;
    bool ordered;
    void (*wake)(void *arg);
    void *wake_arg;

    struct slot *ring; /* in order, text i is in ring[i % n_ring] */
    int n_ring;
    int64_t n_added, n_taken;
    int n_running;
    int n_seqs; /* of all that are not taken */
    int n_last; /* what the last text asked for: a guess at the next */
    int model_last;
    int64_t retry_ms; /* the engine had no room: not before this time; 0: it had */
};

/* --- pool --------------------------------------------------------------------------------------- */

struct ink_batch_pool *ink_batch_pool_new(struct ink_catalog *catalog)
{
    struct ink_batch_pool *pool = ink_zalloc(sizeof(*pool));

    pool->catalog = catalog;
    pool->n_models = ink_catalog_n_models(catalog);
    pool->n_seqs = ink_zalloc((size_t)(pool->n_models + 1) * sizeof(*pool->n_seqs));
    return pool;
}

void ink_batch_pool_free(struct ink_batch_pool *pool)
{
    if (!pool)
        return;
    free(pool->n_seqs);
    free(pool);
}

static int model_number(const struct ink_batch_pool *pool, const struct ink_served *served)
{
    int i = 0;

    while (i < pool->n_models && ink_catalog_model(pool->catalog, i) != served)
        i++;
    return i;
}

/* Most sequences that should run together when a text asks for `n`. */
static int seqs_max(const struct ink_batch *b, int model, int n)
{
    int parallel = model < b->pool->n_models
                       ? ink_served_n_parallel(ink_catalog_model(b->pool->catalog, model))
                       : 1;

    return (parallel > 0 ? parallel : 1) + SPARE * n;
}

/* --- batch -------------------------------------------------------------------------------------- */

struct ink_batch *ink_batch_new(struct ink_batch_pool *pool, bool ordered, void (*wake)(void *arg),
                                void *arg)
{
    struct ink_batch *b = ink_zalloc(sizeof(*b));

    b->pool = pool;
    b->ordered = ordered;
    b->wake = wake;
    b->wake_arg = arg;
    b->n_last = 1;
    b->n_ring = RING_FACTOR * seqs_max(b, 0, 1);
    if (b->n_ring < SLOTS_MIN)
        b->n_ring = SLOTS_MIN;
    b->ring = ink_zalloc((size_t)b->n_ring * sizeof(*b->ring));
    return b;
}

/* It runs no more. */
static void stop_running(struct ink_batch *b, struct slot *slot)
{
    b->n_running--;
    b->pool->n_seqs[slot->model] -= slot->n_seqs;
}

void ink_batch_free(struct ink_batch *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->n_ring; i++) {
        struct slot *slot = &b->ring[i];

        if (slot->taken && !slot->finished)
            stop_running(b, slot);
        ink_task_free(slot->task);
        free(slot->err);
    }
    free(b->ring);
    free(b);
}

bool ink_batch_has_room(const struct ink_batch *b)
{
    return ink_batch_n_open(b) < b->n_ring;
}

bool ink_batch_wants(struct ink_batch *b)
{
    int max = seqs_max(b, b->model_last, b->n_last);

    if (!ink_batch_has_room(b) || b->n_seqs >= RING_FACTOR * max ||
        b->pool->n_seqs[b->model_last] >= max)
        return false;
    if (b->retry_ms > 0 && ink_clock_ms() < b->retry_ms)
        return false;
    b->retry_ms = 0;
    if (b->model_last < b->pool->n_models &&
        ink_served_is_crowded(ink_catalog_model(b->pool->catalog, b->model_last))) {
        b->retry_ms = ink_clock_ms() + RETRY_MS;
        return false;
    }
    return true;
}

int ink_batch_retry_ms(const struct ink_batch *b)
{
    int64_t left;

    if (b->retry_ms == 0)
        return -1;
    left = b->retry_ms - ink_clock_ms();
    return left > 0 ? (int)left : 0;
}

static struct slot *free_slot(struct ink_batch *b)
{
    int i = (int)(b->n_added % b->n_ring);

    assert(ink_batch_has_room(b));
    while (b->ring[i].taken) /* only when texts are not taken in order */
        i = (i + 1) % b->n_ring;
    return &b->ring[i];
}

static void occupy(struct ink_batch *b, struct slot *slot, void *tag)
{
    slot->taken = true;
    slot->index = b->n_added++;
    slot->tag = tag;
}

static struct ink_err *copy_of(const struct ink_err *err)
{
    struct ink_err *copy = ink_alloc(sizeof(*copy));

    *copy = *err;
    return copy;
}

void ink_batch_add_finished(struct ink_batch *b, const struct ink_err *err, void *tag)
{
    struct slot *slot = free_slot(b);

    occupy(b, slot, tag);
    slot->finished = true;
    slot->err = err->code != INK_OK ? copy_of(err) : NULL;
}

enum ink_status ink_batch_add(struct ink_batch *b, const struct ink_rewrite_request *rq, void *tag)
{
    struct ink_served *served;
    struct ink_task *task;
    struct ink_err err = { 0 };
    int model;
    enum ink_status st =
        ink_catalog_find(b->pool->catalog, rq->model, INK_CAN_REWRITE, &served, &err);

    if (st == INK_OK) {
        model = model_number(b->pool, served);
        b->model_last = model;
        b->n_last = rq->n >= 1 && rq->n <= INK_REWRITE_N_MAX ? rq->n : 1;
        /* The guess was of another model. */
        if (b->pool->n_seqs[model] >= seqs_max(b, model, b->n_last))
            return INK_BUSY;
        st = ink_rewrite_start(b->pool->catalog, rq, &task, &err);
    }
    if (st == INK_BUSY) {
        b->retry_ms = ink_clock_ms() + RETRY_MS;
        return st;
    }
    if (st != INK_OK) {
        ink_batch_add_finished(b, &err, tag);
        return INK_OK;
    }

    struct slot *slot = free_slot(b);
    occupy(b, slot, tag);
    slot->served = served;
    slot->task = task;
    slot->model = model;
    slot->n_seqs = rq->n;
    b->n_running++;
    b->n_seqs += rq->n;
    b->pool->n_seqs[model] += rq->n;
    ink_task_set_waker(task, b->wake, b->wake_arg);
    return INK_OK;
}

/* --- on the way --------------------------------------------------------------------------------- */

static void pull(struct ink_batch *b, struct slot *slot)
{
    struct ink_task_event ev = { .kind = INK_TASK_QUEUED };
    struct ink_err err = { 0 };

    while (ev.kind != INK_TASK_IDLE && ink_task_has_event(slot->task)) {
        enum ink_status st = ink_task_next(slot->task, 0, &ev, &err);

        if (st == INK_OK && ev.kind != INK_TASK_DONE)
            continue;
        slot->finished = true;
        stop_running(b, slot);
        if (st == INK_OK)
            return;
        ink_task_free(slot->task);
        slot->task = NULL;
        slot->err = copy_of(&err);
        return;
    }
}

void ink_batch_pull(struct ink_batch *b)
{
    for (int i = 0; i < b->n_ring && b->n_running > 0; i++) {
        if (b->ring[i].taken && !b->ring[i].finished)
            pull(b, &b->ring[i]);
    }
}

static struct slot *first_finished(struct ink_batch *b)
{
    struct slot *next = &b->ring[b->n_taken % b->n_ring];
    struct slot *first = NULL;

    if (b->ordered)
        return next->finished ? next : NULL;
    for (int i = 0; i < b->n_ring; i++) {
        struct slot *slot = &b->ring[i];

        if (slot->finished && (!first || slot->index < first->index))
            first = slot;
    }
    return first;
}

bool ink_batch_take(struct ink_batch *b, struct ink_batch_text *out)
{
    struct slot *slot = ink_batch_n_open(b) > b->n_running ? first_finished(b) : NULL;

    if (!slot)
        return false;
    *out = (struct ink_batch_text){
        .index = slot->index, .tag = slot->tag, .served = slot->served, .task = slot->task
    };
    if (slot->err)
        out->err = *slot->err;
    b->n_seqs -= slot->n_seqs;
    b->n_taken++;
    free(slot->err);
    *slot = (struct slot){ 0 };
    return true;
}

int64_t ink_batch_n_added(const struct ink_batch *b)
{
    return b->n_added;
}

int ink_batch_n_open(const struct ink_batch *b)
{
    return (int)(b->n_added - b->n_taken);
}

int ink_batch_n_running(const struct ink_batch *b)
{
    return b->n_running;
}

void ink_batch_cancel(struct ink_batch *b)
{
    for (int i = 0; i < b->n_ring; i++) {
        if (b->ring[i].taken && !b->ring[i].finished)
            ink_task_cancel(b->ring[i].task);
    }
}

/* --- seeds -------------------------------------------------------------------------------------- */

uint64_t ink_batch_seed(uint64_t seed, uint64_t index)
{
    uint64_t x =
        seed + index * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: distinct for distinct indexes */

    if (index == 0)
        return seed;
    /* Two rounds of multiply and shift (the finalizer of SplitMix64): every input bit reaches every output bit. */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x >> 11;
}
