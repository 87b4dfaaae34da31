/*
 * One model and what runs on it: birth, a step as a list of verbs, and the ends of jobs.
 */
#include "engine/lane.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/bell.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Of all blocks, at most one in KEPT_SHARE is kept filled for sources that may come again. */
enum { KEPT_SHARE = 8 };

enum { N_QUEUE = 256, MAX_ENCODE_TOKENS = 2048, MAX_ITEMS = 128 };

/* Before the first job has been timed: what a wait is reckoned with. */
static const double first_job_ms = 1000;

static int blocks_of(int n_tokens)
{
    return (n_tokens + INK_KV_BLOCK_TOKENS - 1) / INK_KV_BLOCK_TOKENS;
}

static int or_default(int value, int fallback)
{
    return value > 0 ? value : fallback;
}

struct ink_lane *lane_new(struct ink_engine *e, struct ink_model *model,
                          const struct ink_lane_options *options, struct bell *bell)
{
    struct ink_lane *lane = ink_zalloc(sizeof(*lane));
    const struct ink_model_info *info = ink_model_info(model);

    lane->engine = e;
    lane->model = model;
    lane->info = info;
    lane->bell = bell;
    lane->kv = kv_pool_new(info->n_blocks, INK_KV_BLOCK_TOKENS);
    lane->sources = source_store_new(lane->kv, info->n_blocks / KEPT_SHARE);
    lane->sampler = sampler_new(info->n_vocab);
    lane->n_heads = or_default(options->n_heads, 1);
    assert(lane->n_heads <= INK_HEAD_MAX);
    lane->n_banned = options->n_banned;
    lane->banned = ink_alloc(((size_t)options->n_banned + 1) * sizeof(*lane->banned));
    if (options->n_banned > 0)
        memcpy(lane->banned, options->banned, (size_t)options->n_banned * sizeof(*lane->banned));

    lane->n_slots = or_default(options->n_parallel, info->max_rows);
    if (lane->n_slots > info->max_rows)
        lane->n_slots = info->max_rows;
    size_t n = (size_t)lane->n_slots;

    lane->slots = ink_zalloc(n * sizeof(*lane->slots));
    for (int i = 0; i < lane->n_slots; i++)
        lane->slots[i].blocks =
            ink_alloc((size_t)blocks_of(info->max_target_tokens) * sizeof(int32_t));
    lane->plan_seqs = ink_alloc(n * sizeof(*lane->plan_seqs));
    lane->shares = ink_alloc(n * sizeof(*lane->shares));
    lane->plan_slots = ink_alloc(n * sizeof(*lane->plan_slots));
    lane->rows = ink_alloc((size_t)info->max_rows * sizeof(*lane->rows));
    lane->top = ink_zalloc(INK_JOB_TOP_MAX * sizeof(*lane->top));

    lane->max_encode_tokens = or_default(options->max_encode_tokens, MAX_ENCODE_TOKENS);
    lane->max_items = MAX_ITEMS;
    lane->encoding = ink_alloc(MAX_ITEMS * sizeof(*lane->encoding));
    lane->items = ink_alloc(MAX_ITEMS * sizeof(*lane->items));

    lane->n_queue = or_default(options->n_queue, N_QUEUE);
    lane->queue = ink_alloc((size_t)lane->n_queue * sizeof(struct ink_job *));
    lane->passing = ink_alloc((size_t)lane->n_queue * sizeof(struct ink_job *));
    lane->job_ms = lane->shared_job_ms = first_job_ms;
    lane->stats.blocks_total = lane->stats.blocks_free = info->n_blocks;
    lane->shared_stats = lane->stats;
    pthread_mutex_init(&lane->lock, NULL);
    return lane;
}

void lane_free(struct ink_lane *lane)
{
    if (!lane)
        return;
    assert(!lane->runs && lane->queue_len == 0);
    source_store_free(lane->sources);
    kv_pool_free(lane->kv);
    sampler_free(lane->sampler);
    for (int i = 0; i < INK_HEAD_MAX; i++)
        free(lane->heads[i].banned);
    for (int i = 0; i < lane->n_slots; i++)
        free(lane->slots[i].blocks);
    free(lane->banned);
    free(lane->slots);
    free(lane->plan_seqs);
    free(lane->shares);
    free(lane->plan_slots);
    free(lane->rows);
    free(lane->top);
    free(lane->encoding);
    free(lane->items);
    free(lane->queue);
    free(lane->passing);
    pthread_mutex_destroy(&lane->lock);
    free(lane);
}

/* --- submission: other threads --- */

enum ink_status ink_lane_submit(struct ink_lane *lane, struct ink_job *job, struct ink_err *err)
{
    const struct ink_job_spec *spec = job_spec(job);
    const struct ink_model_info *info = lane->info;
    int n_blocks = blocks_of(spec->n_source) + blocks_of(spec->max_new);
    enum ink_status st = INK_OK;

    if (spec->n_source < 1 || spec->n_source > info->max_source_tokens)
        return ink_err_set(err, INK_INVALID, "a source of %d tokens is not in 1..%d",
                           spec->n_source, info->max_source_tokens);
    if (spec->max_new > info->max_target_tokens)
        return ink_err_set(err, INK_INVALID, "%d new tokens are more than the model's %d",
                           spec->max_new, info->max_target_tokens);
    if (n_blocks > info->n_blocks)
        return ink_err_set(
            err, INK_INVALID,
            "%d source and %d new tokens need %d blocks of KV memory; there are %d in all",
            spec->n_source, spec->max_new, n_blocks, info->n_blocks);
    if (spec->head < 0 || spec->head >= lane->n_heads)
        return ink_err_set(err, INK_INVALID, "the model has no output head %d", spec->head);

    pthread_mutex_lock(&lane->lock);
    int ahead = lane->queue_len;
    int wait_ms =
        (int)(ahead * lane->shared_job_ms / (lane->shared_running > 0 ? lane->shared_running : 1));
    pthread_mutex_unlock(&lane->lock);

    /* The job's lock and the lane's are never held together. */
    job_submit(job, lane->bell, ahead, wait_ms);

    pthread_mutex_lock(&lane->lock);
    if (lane->stopping) {
        st = INK_CANCELLED;
    } else if (lane->queue_len >= (spec->n_seqs > 0 ? lane->n_queue : lane->n_queue / 4)) {
        st = INK_BUSY; /* who only encodes ahead leaves the places to the others */
        lane->n_refused++;
    } else {
        lane->queue[lane->queue_len++] = ink_job_ref(job);
        lane->n_submitted++;
    }
    pthread_mutex_unlock(&lane->lock);

    if (st == INK_CANCELLED)
        return ink_err_set(err, st, "the engine is stopping");
    if (st == INK_BUSY)
        return ink_err_param(err, st, "", "overloaded",
                             "%d jobs are waiting already; try again in %d s", lane->n_queue,
                             ink_lane_retry_s(lane));
    bell_ring(lane->bell);
    return INK_OK;
}

int ink_lane_retry_s(struct ink_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    double ms = lane->queue_len * lane->shared_job_ms /
                (lane->shared_running > 0 ? lane->shared_running : 1);
    pthread_mutex_unlock(&lane->lock);

    /* Half the queue's time: there will be room then, though not for everyone. */
    double s = ms / 2000 + 1;
    return s > 60 ? 60 : (int)s;
}

void ink_lane_stats(struct ink_lane *lane, struct ink_engine_stats *out)
{
    pthread_mutex_lock(&lane->lock);
    *out = lane->shared_stats;
    out->jobs_submitted = lane->n_submitted;
    out->jobs_refused = lane->n_refused;
    out->queue_length = lane->queue_len;
    pthread_mutex_unlock(&lane->lock);
}

/* --- the ends of jobs --- */

static void count_end(struct ink_lane *lane, enum ink_status code)
{
    switch (code) {
    case INK_OK:
        lane->stats.jobs_finished++;
        break;
    case INK_CANCELLED:
        lane->stats.jobs_cancelled++;
        break;
    case INK_TIMEOUT:
        lane->stats.jobs_expired++;
        break;
    default:
        lane->stats.jobs_failed++;
    }
}

static void publish_stats(struct ink_lane *lane)
{
    lane->stats.sequences_running = lane->n_slots_used;
    lane->stats.sources_kept_blocks = source_store_n_blocks(lane->sources);
    lane->stats.blocks_free = kv_pool_n_free(lane->kv) + lane->stats.sources_kept_blocks;
    pthread_mutex_lock(&lane->lock);
    lane->shared_stats = lane->stats;
    lane->shared_job_ms = lane->job_ms;
    lane->shared_running = lane->stats.jobs_running;
    pthread_mutex_unlock(&lane->lock);
}

/* Counts and tells the end; what was counted before the reader hears of it is never seen too late. */
static void end_job(struct ink_lane *lane, struct ink_job *job, const struct ink_err *result)
{
    count_end(lane, result->code);
    publish_stats(lane);
    job_end(job, result);
    ink_job_unref(job);
}

void lane_free_slot(struct ink_lane *lane, int slot, enum seq_state state)
{
    struct slot *s = &lane->slots[slot];

    kv_pool_give(lane->kv, s->blocks, s->n_blocks);
    s->run->seqs[s->seq].state = state;
    s->run->n_running--;
    if (state == SEQ_PENDING)
        s->run->n_pending++;
    else
        lane->n_live--;
    s->run = NULL;
    lane->n_slots_used--;
}

void lane_give_source(struct ink_lane *lane, struct run *run)
{
    assert(run->source != SOURCE_ENCODING);
    if (run->source == SOURCE_READY && !run->spec->fresh)
        source_store_keep(lane->sources, run->spec->source, run->spec->n_source, run->source_blocks,
                          run->n_source_blocks);
    else if (run->source != SOURCE_NONE)
        kv_pool_give(lane->kv, run->source_blocks, run->n_source_blocks);
    run->source = SOURCE_NONE;
}

static void unlink_run(struct ink_lane *lane, struct run *run)
{
    struct run **p = &lane->runs;

    while (*p != run)
        p = &(*p)->next;
    *p = run->next;
}

void lane_end_run(struct ink_lane *lane, struct run *run, const struct ink_err *result)
{
    for (int i = 0; i < run->spec->n_seqs; i++) {
        if (run->seqs[i].state == SEQ_RUNNING)
            lane_free_slot(lane, run->seqs[i].slot, SEQ_DONE);
        else if (run->seqs[i].state == SEQ_PENDING)
            lane->n_live--;
        run->seqs[i].state = SEQ_DONE;
    }
    run->n_pending = 0;
    lane->stats.jobs_running--;
    if (run->source == SOURCE_ENCODING) {
        /* The model still reads the source and writes to the blocks: encode.c frees it afterwards. */
        run->dropped = true;
        ink_job_ref(run->job);
        end_job(lane, run->job, result);
        return;
    }
    lane_give_source(lane, run);
    unlink_run(lane, run);
    end_job(lane, run->job, result);
    free(run->source_blocks);
    free(run);
}

/* --- hearing the readers --- */

static bool is_over(const struct ink_job *job, int64_t now, bool idle, struct ink_err *result)
{
    if (job_is_cancelled(job)) {
        ink_err_set(result, INK_CANCELLED, "cancelled");
        return true;
    }
    if (now >= job_deadline_ns(job)) {
        if (idle) /* it has all it asked for; only redrawing is over */
            *result = (struct ink_err){ .code = INK_OK };
        else
            ink_err_param(result, INK_TIMEOUT, "", "deadline", "not finished within %d ms",
                          job_spec(job)->timeout_ms);
        return true;
    }
    if (idle && job_is_closed(job)) {
        *result = (struct ink_err){ .code = INK_OK };
        return true;
    }
    return false;
}

/* Takes out of the queue what was cancelled or has expired. */
static void hear_queue(struct ink_lane *lane)
{
    int64_t now = ink_clock_ns();
    int kept = 0, n = 0;
    struct ink_err result;

    pthread_mutex_lock(&lane->lock);
    for (int i = 0; i < lane->queue_len; i++) {
        if (is_over(lane->queue[i], now, false, &result))
            lane->passing[n++] = lane->queue[i];
        else
            lane->queue[kept++] = lane->queue[i];
    }
    lane->queue_len = kept;
    pthread_mutex_unlock(&lane->lock);

    for (int i = 0; i < n; i++) {
        (void)is_over(lane->passing[i], now, false, &result);
        end_job(lane, lane->passing[i], &result);
    }
}

/* Halts and redraws that the reader has asked for. */
static void hear_requests(struct ink_lane *lane, struct run *run)
{
    for (int i = 0; i < run->spec->n_seqs; i++) {
        struct seq *q = &run->seqs[i];
        struct ink_seq_view want;

        job_seq(run->job, i, &want);
        if (want.attempt == q->attempt && want.state == INK_SEQ_ACTIVE)
            continue;
        if (q->state == SEQ_RUNNING) {
            lane_free_slot(lane, q->slot, SEQ_DONE);
        } else if (q->state == SEQ_PENDING) {
            q->state = SEQ_DONE;
            run->n_pending--;
            lane->n_live--;
        }
        if (want.attempt > q->attempt) {
            lane->stats.redraws += (uint64_t)(want.attempt - q->attempt);
            q->attempt = want.attempt;
            if (want.state != INK_SEQ_ACTIVE)
                continue;
            q->n_done = 0;
            q->state = SEQ_PENDING;
            run->n_pending++;
            lane->n_live++;
        }
    }
}

static void hear_runs(struct ink_lane *lane)
{
    int64_t now = ink_clock_ns();
    struct run *next;

    for (struct run *run = lane->runs; run; run = next) {
        struct ink_err result;

        next = run->next;
        if (run->dropped)
            continue;
        if (job_take_requests(run->job))
            hear_requests(lane, run);
        if (is_over(run->job, now, !run_is_ahead(run) && run->n_pending + run->n_running == 0,
                    &result))
            lane_end_run(lane, run, &result);
    }
}

/* --- the step --- */

static bool has_queue(struct ink_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    bool has = lane->queue_len > 0;
    pthread_mutex_unlock(&lane->lock);
    return has;
}

bool lane_step(struct ink_lane *lane)
{
    hear_queue(lane);
    hear_runs(lane);
    lane_admit(lane);
    bool busy = lane_encode(lane);
    (void)lane_start_pending(
        lane); /* what was just encoded; who has to wait does so until the next step */
    busy |= lane_decode(lane);
    publish_stats(lane);
    return busy || has_queue(lane); /* what has just ended may have made room for the next */
}

int64_t lane_next_deadline(struct ink_lane *lane)
{
    int64_t first = INT64_MAX;

    for (const struct run *run = lane->runs; run; run = run->next) {
        int64_t t = run->dropped ? INT64_MAX : job_deadline_ns(run->job);

        first = t < first ? t : first;
    }
    pthread_mutex_lock(&lane->lock);
    for (int i = 0; i < lane->queue_len; i++) {
        int64_t t = job_deadline_ns(lane->queue[i]);

        first = t < first ? t : first;
    }
    pthread_mutex_unlock(&lane->lock);
    return first;
}

void lane_stop(struct ink_lane *lane)
{
    struct ink_err result;
    int n;

    ink_err_set(&result, INK_CANCELLED, "the server is stopping");
    ink_model_encode_abort(lane->model);
    for (struct run *run = lane->runs; run; run = run->next) {
        if (run->source == SOURCE_ENCODING)
            run->source = SOURCE_TAKEN;
    }
    lane->n_encoding = 0;
    for (struct run *run = lane->runs, *next; run; run = next) {
        next = run->next;
        if (run->dropped) {
            lane_give_source(lane, run);
            unlink_run(lane, run);
            ink_job_unref(run->job);
            free(run->source_blocks);
            free(run);
        } else {
            lane_end_run(lane, run, &result);
        }
    }

    pthread_mutex_lock(&lane->lock);
    lane->stopping = true;
    n = lane->queue_len;
    lane->queue_len = 0;
    pthread_mutex_unlock(&lane->lock);
    for (int i = 0; i < n; i++) /* nobody adds to a stopping queue */
        end_job(lane, lane->queue[i], &result);
}
