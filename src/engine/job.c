/*
 * The meeting point of one reader and the engine.
 *
 * One lock, held for copies only. Every change bumps `version`, wakes waiters and calls the waker while the lock is held,
 * so that taking the waker away is a promise and not a hope. What the engine polls in every step
 * (cancelled, closed, asked) are atomics, so a step over many jobs takes no lock.
 *
 * `tokens` is written by the engine thread alone, with the lock held; the engine therefore reads it without.
 */
#include "engine/job.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "engine/bell.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct job_seq {
    enum ink_seq_state state;
    int attempt;
    int n;
};

struct ink_job {
    atomic_int refs;
    atomic_bool cancelled, closed, asked;

    struct ink_job_spec spec; /* fixed; its pointers lead into this allocation's arrays */
    int32_t *ids;             /* source, then the targets' tokens */
    struct ink_target *targets;

    pthread_mutex_t lock; /* guards everything below; held while waking */
    pthread_cond_t moved;
    void (*wake)(void *arg);
    void *wake_arg;
    struct bell *bell; /* NULL before submission */
    uint64_t version;
    struct ink_job_status status;
    struct ink_token *tokens; /* [n_seqs][max_new] */
    struct ink_token *tops;   /* [n_seqs][max_new][n_top]; NULL when n_top is 0 */
    struct job_seq seqs[];    /* [n_seqs] */
};

static void copy_ids(struct ink_job *job, const struct ink_job_spec *spec)
{
    size_t n = (size_t)spec->n_source;
    int32_t *p;

    for (int i = 0; spec->targets && i < spec->n_seqs; i++)
        n += (size_t)spec->targets[i].n;
    job->ids = p = ink_alloc((n ? n : 1) * sizeof(*p));
    if (spec->n_source > 0)
        memcpy(p, spec->source, (size_t)spec->n_source * sizeof(*p));
    p += spec->n_source;
    job->spec.source = job->ids;
    if (!spec->targets)
        return;
    job->targets = ink_alloc((size_t)spec->n_seqs * sizeof(*job->targets));
    for (int i = 0; i < spec->n_seqs; i++) {
        assert(spec->targets[i].n >= 1 && spec->targets[i].n <= spec->max_new);
        memcpy(p, spec->targets[i].ids, (size_t)spec->targets[i].n * sizeof(*p));
        job->targets[i] = (struct ink_target){ p, spec->targets[i].n };
        p += spec->targets[i].n;
    }
    job->spec.targets = job->targets;
}

struct ink_job *ink_job_new(const struct ink_job_spec *spec)
{
    assert(spec->n_seqs >= 0 && spec->n_seqs <= INK_JOB_SEQ_MAX && spec->max_new >= 1);
    assert(spec->n_top >= 0 && spec->n_top <= INK_JOB_TOP_MAX &&
           !(spec->no_end && spec->with_banned));

    size_t n_tokens = (size_t)spec->n_seqs * (size_t)spec->max_new;
    struct ink_job *job = ink_zalloc(sizeof(*job) + (size_t)spec->n_seqs * sizeof(job->seqs[0]));

    atomic_init(&job->refs, 1);
    atomic_init(&job->cancelled, false);
    atomic_init(&job->closed, !spec->keep_open);
    atomic_init(&job->asked, false);
    job->spec = *spec;
    copy_ids(job, spec);
    job->tokens = ink_alloc((n_tokens ? n_tokens : 1) * sizeof(*job->tokens));
    if (spec->n_top > 0 && n_tokens > 0)
        job->tops = ink_alloc(n_tokens * (size_t)spec->n_top * sizeof(*job->tops));
    pthread_mutex_init(&job->lock, NULL);
    ink_cond_init(&job->moved);
    return job;
}

struct ink_job *ink_job_ref(struct ink_job *job)
{
    atomic_fetch_add(&job->refs, 1);
    return job;
}

void ink_job_unref(struct ink_job *job)
{
    if (!job || atomic_fetch_sub(&job->refs, 1) != 1)
        return;
    bell_unref(job->bell);
    pthread_mutex_destroy(&job->lock);
    pthread_cond_destroy(&job->moved);
    free(job->ids);
    free(job->targets);
    free(job->tokens);
    free(job->tops);
    free(job);
}

static void announce_locked(struct ink_job *job)
{
    job->version++;
    pthread_cond_broadcast(&job->moved);
    if (job->wake)
        job->wake(job->wake_arg);
}

static void call_engine_locked(struct ink_job *job)
{
    if (job->bell)
        bell_ring(job->bell);
}

void ink_job_status(struct ink_job *job, struct ink_job_status *out)
{
    pthread_mutex_lock(&job->lock);
    *out = job->status;
    pthread_mutex_unlock(&job->lock);
}

int ink_job_read(struct ink_job *job, int seq, int from, struct ink_token *out,
                 struct ink_token *top, int cap, struct ink_seq_view *view)
{
    const struct job_seq *q = &job->seqs[seq];
    size_t at = (size_t)seq * (size_t)job->spec.max_new + (size_t)from;
    size_t n_top = (size_t)job->spec.n_top;

    assert(seq >= 0 && seq < job->spec.n_seqs && from >= 0);
    pthread_mutex_lock(&job->lock);
    int n = q->n - from < cap ? q->n - from : cap;

    if (n > 0) {
        memcpy(out, job->tokens + at, (size_t)n * sizeof(*out));
        if (top && job->tops)
            memcpy(top, job->tops + at * n_top, (size_t)n * n_top * sizeof(*top));
    }
    *view = (struct ink_seq_view){ q->state, q->attempt, q->n };
    pthread_mutex_unlock(&job->lock);
    return n > 0 ? n : 0;
}

uint64_t ink_job_version(struct ink_job *job)
{
    pthread_mutex_lock(&job->lock);
    uint64_t version = job->version;
    pthread_mutex_unlock(&job->lock);
    return version;
}

bool ink_job_wait(struct ink_job *job, uint64_t seen, int timeout_ms)
{
    struct timespec deadline = ink_clock_deadline(timeout_ms);
    int late = timeout_ms <= 0;

    pthread_mutex_lock(&job->lock);
    while (job->version == seen && !late)
        late = pthread_cond_timedwait(&job->moved, &job->lock, &deadline);
    bool moved = job->version != seen;
    pthread_mutex_unlock(&job->lock);
    return moved;
}

enum ink_status ink_job_redraw(struct ink_job *job, int seq, struct ink_err *err)
{
    struct job_seq *q = &job->seqs[seq];
    enum ink_status st = INK_OK;

    assert(job->spec.keep_open && seq >= 0 && seq < job->spec.n_seqs);
    pthread_mutex_lock(&job->lock);
    if (job->status.stage == INK_JOB_ENDED) {
        /* A job that ended well was closed, or its time was over while nothing was to be done. */
        st = job->status.result.code;
        if (st == INK_OK)
            st = ink_err_set(err, INK_TIMEOUT, "the job has ended; nothing can be redrawn");
        else if (err)
            *err = job->status.result;
    } else {
        *q = (struct job_seq){ .state = INK_SEQ_ACTIVE, .attempt = q->attempt + 1 };
        job->status.n_redraws++;
        atomic_store(&job->asked, true);
        call_engine_locked(job);
    }
    pthread_mutex_unlock(&job->lock);
    return st;
}

void ink_job_halt(struct ink_job *job, int seq)
{
    assert(seq >= 0 && seq < job->spec.n_seqs);
    pthread_mutex_lock(&job->lock);
    if (job->status.stage != INK_JOB_ENDED && job->seqs[seq].state == INK_SEQ_ACTIVE) {
        job->seqs[seq].state = INK_SEQ_HALTED;
        atomic_store(&job->asked, true);
        call_engine_locked(job);
    }
    pthread_mutex_unlock(&job->lock);
}

static void raise_flag(struct ink_job *job, atomic_bool *flag)
{
    atomic_store(flag, true);
    pthread_mutex_lock(&job->lock);
    call_engine_locked(job);
    pthread_mutex_unlock(&job->lock);
}

void ink_job_close(struct ink_job *job)
{
    raise_flag(job, &job->closed);
}

void ink_job_cancel(struct ink_job *job)
{
    raise_flag(job, &job->cancelled);
}

void ink_job_set_waker(struct ink_job *job, void (*wake)(void *arg), void *arg)
{
    pthread_mutex_lock(&job->lock);
    job->wake = wake;
    job->wake_arg = arg;
    pthread_mutex_unlock(&job->lock);
}

/* --- the engine's side --- */

const struct ink_job_spec *job_spec(const struct ink_job *job)
{
    return &job->spec;
}

void job_submit(struct ink_job *job, struct bell *bell, int position, int wait_ms)
{
    pthread_mutex_lock(&job->lock);
    assert(job->status.stage == INK_JOB_NEW);
    job->bell = bell_ref(bell);
    job->status.stage = INK_JOB_QUEUED;
    job->status.submitted_ns = ink_clock_ns();
    job->status.position = position;
    job->status.wait_ms = wait_ms;
    pthread_mutex_unlock(&job->lock);
}

int64_t job_deadline_ns(const struct ink_job *job)
{
    /* Written once, before the engine got the job. */
    if (job->spec.timeout_ms <= 0)
        return INT64_MAX;
    return job->status.submitted_ns + (int64_t)job->spec.timeout_ms * 1000000;
}

bool job_is_cancelled(const struct ink_job *job)
{
    return atomic_load(&job->cancelled);
}

bool job_is_closed(const struct ink_job *job)
{
    return atomic_load(&job->closed);
}

bool job_take_requests(struct ink_job *job)
{
    return atomic_load(&job->asked) && atomic_exchange(&job->asked, false);
}

void job_seq(struct ink_job *job, int seq, struct ink_seq_view *view)
{
    pthread_mutex_lock(&job->lock);
    const struct job_seq *q = &job->seqs[seq];

    *view = (struct ink_seq_view){ q->state, q->attempt, q->n };
    pthread_mutex_unlock(&job->lock);
}

void job_set_position(struct ink_job *job, int position, int wait_ms, bool announce)
{
    pthread_mutex_lock(&job->lock);
    job->status.position = position;
    job->status.wait_ms = wait_ms;
    if (announce)
        announce_locked(job);
    pthread_mutex_unlock(&job->lock);
}

void job_encode_begins(struct ink_job *job)
{
    pthread_mutex_lock(&job->lock);
    job->status.stage = INK_JOB_RUNNING;
    if (job->status.encode_ns == 0)
        job->status.encode_ns = ink_clock_ns();
    pthread_mutex_unlock(&job->lock);
}

void job_encode_ends(struct ink_job *job)
{
    pthread_mutex_lock(&job->lock);
    if (job->status.encoded_ns == 0)
        job->status.encoded_ns = ink_clock_ns();
    pthread_mutex_unlock(&job->lock);
}

void job_encode_kept(struct ink_job *job)
{
    job_encode_begins(job);
    pthread_mutex_lock(&job->lock);
    job->status.source_kept = true;
    job->status.encoded_ns = job->status.encode_ns;
    pthread_mutex_unlock(&job->lock);
}

void job_push(struct ink_job *job, int seq, int attempt, const struct ink_token *token,
              const struct ink_token *top, enum ink_seq_state state)
{
    struct job_seq *q = &job->seqs[seq];
    size_t n_top = (size_t)job->spec.n_top;

    pthread_mutex_lock(&job->lock);
    assert(job->status.stage != INK_JOB_ENDED);
    if (q->attempt == attempt && q->state == INK_SEQ_ACTIVE) {
        size_t at = (size_t)seq * (size_t)job->spec.max_new + (size_t)q->n;

        assert(q->n < job->spec.max_new);
        job->tokens[at] = *token;
        if (n_top > 0)
            memcpy(job->tops + at * n_top, top, n_top * sizeof(*top));
        q->n++;
        q->state = state;
        job->status.last_ns = ink_clock_ns();
        if (job->status.first_ns == 0)
            job->status.first_ns = job->status.last_ns;
    }
    pthread_mutex_unlock(&job->lock);
}

void job_announce(struct ink_job *job)
{
    pthread_mutex_lock(&job->lock);
    announce_locked(job);
    pthread_mutex_unlock(&job->lock);
}

const struct ink_token *job_tokens(const struct ink_job *job, int seq)
{
    return job->tokens + (size_t)seq * (size_t)job->spec.max_new;
}

void job_end(struct ink_job *job, const struct ink_err *result)
{
    pthread_mutex_lock(&job->lock);
    assert(job->status.stage != INK_JOB_ENDED);
    job->status.stage = INK_JOB_ENDED;
    job->status.result = *result;
    announce_locked(job);
    pthread_mutex_unlock(&job->lock);
}
