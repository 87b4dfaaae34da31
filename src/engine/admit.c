/*
 * Who may start: memory and places, oldest first.
 *
 * A sequence starts when a slot and the blocks for all it may grow to are free; its job's source has
 * blocks of its own. Nobody overtakes: when the oldest one in need has to wait, so do all behind it, except that
 * a job whose source is still being encoded holds up nobody.
 *
 * Progress: what runs ends and gives back. When nothing runs, one in need may take the source blocks of all behind it
 * (they encode again later), so the oldest gets what it needs: any job that was accepted fits into an empty pool.
 */
#include "engine/lane.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>

/* Sources encoded ahead of free slots, so that a slot that falls free is filled at once. */
static int ahead_of(const struct ink_lane *lane)
{
    return lane->n_slots / 2 > 16 ? lane->n_slots / 2 : 16;
}

static bool is_idle(const struct run *run)
{
    return run->n_pending + run->n_running == 0;
}

/*
 * Whose source can be taken for `self`: the oldest idle run's; failing that and with `force`, that of the youngest run
 * that waits behind `self`. Never one before it, or two would take from each other for ever.
 */
static struct run *victim(struct ink_lane *lane, const struct run *self, bool force)
{
    struct run *found = NULL;
    bool behind = false;

    for (struct run *run = lane->runs; run; run = run->next) {
        if (run == self) {
            behind = true;
            continue;
        }
        if (run->source != SOURCE_READY && run->source != SOURCE_TAKEN)
            continue;
        if (is_idle(run))
            return run;
        if (force && behind && run->n_running == 0)
            found = run;
    }
    return found;
}

/* Whether `n_blocks` are free, or could be made so without touching anything that runs. */
static bool make_room(struct ink_lane *lane, const struct run *self, int n_blocks)
{
    while (kv_pool_n_free(lane->kv) < n_blocks) {
        if (source_store_drop(lane->sources))
            continue;

        bool stuck = lane->n_slots_used == 0 && lane->n_encoding == 0;
        struct run *run = victim(lane, self, stuck);

        if (!run)
            return false;
        lane_give_source(lane, run);
    }
    return true;
}

bool lane_take_source(struct ink_lane *lane, struct run *run)
{
    if (!make_room(lane, run, run->n_source_blocks))
        return false;
    if (kv_pool_take(lane->kv, run->spec->n_source, run->source_blocks) != INK_OK)
        return false;
    run->source = SOURCE_TAKEN;
    return true;
}

static int tokens_of(const struct run *run, int seq)
{
    return run->spec->targets ? run->spec->targets[seq].n : run->spec->max_new;
}

/* False when a slot or memory is missing. */
static bool start_seq(struct ink_lane *lane, struct run *run, int seq)
{
    int n_tokens = tokens_of(run, seq);
    int slot = 0;

    if (lane->n_slots_used == lane->n_slots)
        return false;
    while (lane->slots[slot].run)
        slot++;

    struct slot *s = &lane->slots[slot];

    s->n_blocks = kv_pool_blocks_for(lane->kv, n_tokens);
    if (!make_room(lane, run, s->n_blocks) || kv_pool_take(lane->kv, n_tokens, s->blocks) != INK_OK)
        return false;
    s->run = run;
    s->seq = seq;
    s->served = 0;
    lane->n_slots_used++;
    run->seqs[seq].state = SEQ_RUNNING;
    run->seqs[seq].slot = slot;
    run->n_pending--;
    run->n_running++;
    return true;
}

bool lane_start_pending(struct ink_lane *lane)
{
    for (struct run *run = lane->runs; run; run = run->next) {
        if (run->n_pending == 0)
            continue;
        if (run->source == SOURCE_NONE && !lane_take_source(lane, run))
            return false;
        if (run->source != SOURCE_READY)
            continue;
        for (int i = 0; i < run->spec->n_seqs; i++) {
            if (run->seqs[i].state == SEQ_PENDING && !start_seq(lane, run, i))
                return false;
        }
    }
    return true;
}

static struct run *run_new(struct ink_lane *lane, struct ink_job *job)
{
    const struct ink_job_spec *spec = job_spec(job);
    struct run *run = ink_zalloc(sizeof(*run) + (size_t)spec->n_seqs * sizeof(run->seqs[0]));

    run->job = job;
    run->spec = spec;
    run->n_source_blocks = kv_pool_blocks_for(lane->kv, spec->n_source);
    run->source_blocks = ink_alloc((size_t)run->n_source_blocks * sizeof(*run->source_blocks));
    run->n_pending = spec->n_seqs;
    run->admitted_ns = ink_clock_ns();
    return run;
}

/* The first of the queue; it stays there. Only this thread removes, so it stays valid. */
static struct ink_job *queue_head(struct ink_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    struct ink_job *job = lane->queue_len > 0 ? lane->queue[0] : NULL;
    pthread_mutex_unlock(&lane->lock);
    return job;
}

static void queue_pop(struct ink_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->queue_len--;
    for (int i = 0; i < lane->queue_len; i++)
        lane->queue[i] = lane->queue[i + 1];
    pthread_mutex_unlock(&lane->lock);
}

/* Tells those who wait where they are: their own records always, their readers twice a second. */
static void announce_queue(struct ink_lane *lane)
{
    int64_t now = ink_clock_ns();
    bool announce = now - lane->announced_ns > 500 * (int64_t)1000000;
    double ms = lane->job_ms / (lane->stats.jobs_running > 0 ? lane->stats.jobs_running : 1);

    pthread_mutex_lock(&lane->lock);
    int n = lane->queue_len;
    for (int i = 0; i < n; i++)
        lane->passing[i] = lane->queue[i];
    pthread_mutex_unlock(&lane->lock);

    for (int i = 0; i < n; i++)
        job_set_position(lane->passing[i], i, (int)((i + 1) * ms), announce);
    if (announce)
        lane->announced_ns = now;
}

/* Where decoding never pauses nothing is encoded ahead: then the oldest one gives way to the newest. */
static void bound_ahead(struct ink_lane *lane, struct run ***end)
{
    enum { AHEAD_MAX = 8 };
    struct run *oldest = NULL;
    int n = 0;

    for (struct run *run = lane->runs; run; run = run->next) {
        if (!run_is_ahead(run) || run->source == SOURCE_ENCODING)
            continue;
        oldest = oldest ? oldest : run;
        n++;
    }
    if (n < AHEAD_MAX)
        return;

    struct ink_err result;

    (void)ink_err_param(&result, INK_BUSY, "", "overloaded", "no time to encode ahead");
    lane_end_run(lane, oldest, &result);
    for (*end = &lane->runs; **end;)
        *end = &(**end)->next;
}

void lane_admit(struct ink_lane *lane)
{
    bool moved = false;
    struct run **end = &lane->runs;
    struct ink_job *job;

    if (!lane_start_pending(lane))
        return;
    while (*end)
        end = &(*end)->next;
    while ((job = queue_head(lane)) != NULL) {
        if (lane->n_live > 0 &&
            lane->n_live + job_spec(job)->n_seqs > lane->n_slots + ahead_of(lane))
            break;

        struct run *run = run_new(lane, job);

        if (!run_is_ahead(run) && !lane_take_source(lane, run)) {
            free(run->source_blocks);
            free(run);
            break;
        }
        queue_pop(lane);
        if (run_is_ahead(run))
            bound_ahead(lane, &end);
        *end = run;
        end = &run->next;
        lane->n_live += run->n_pending;
        lane->stats.jobs_running++;
        moved = true;
    }
    if (moved)
        announce_queue(lane);
}
