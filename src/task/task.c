/*
 * From a running job to events.
 *
 * Nothing is queued: an event is found by looking, in a fixed order, at what there is to tell (a place in the queue, resets,
 * text, finished candidates). Only when there is nothing are new tokens pulled from the job, and only when that brought
 * nothing does a call wait.
 *
 * Whether a complete candidate is taken depends on the texts of those before it alone, so the outcome does not
 * depend on which of them was ready first: it is refused as soon as it equals one that was taken, and taken when all before
 * it are decided.
 */
#include "task/task.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/trace.h"
#include "task/task_private.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUE_GRACE_MS = 50 }; /* who gets on at once was never queued */

struct ink_task *task_new(const struct ink_served *served, int n)
{
    struct ink_task *task = ink_zalloc(sizeof(*task));

    task->served = served;
    task->n = n;
    task->candidates = ink_zalloc((size_t)n * sizeof(*task->candidates));
    task->described = ink_zalloc((size_t)n * sizeof(*task->described));
    task->told_position = -1;
    task->result.model = served->name;
    task->result.device = served->info.device;
    task->result.cache = "miss";
    task->result.source_cache = "miss";
    task->result.candidates = task->described;
    task->result.n_candidates = n;
    return task;
}

void task_warn(struct ink_task *task, const char *fmt, ...)
{
    struct ink_task_result *r = &task->result;
    va_list args;

    if (r->n_warnings == INK_WARNINGS_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(task->warnings[r->n_warnings], sizeof(task->warnings[0]), fmt, args);
    va_end(args);
    r->warnings[r->n_warnings] = task->warnings[r->n_warnings];
    r->n_warnings++;
}

void ink_task_free(struct ink_task *task)
{
    if (!task)
        return;
    ink_trace_end(task);
    if (task->job) {
        ink_job_set_waker(task->job, NULL, NULL);
        if (!task->ended) /* else it was closed, cancelled, or has ended by itself */
            ink_job_cancel(task->job);
        ink_job_unref(task->job);
    }
    for (int i = 0; i < task->n; i++) {
        if (task->candidates[i].rules)
            candidate_release(&task->candidates[i]);
    }
    for (int i = 0; i < task->rules.n_stops; i++)
        free((char *)task->stops[i].ptr);
    free(task->source_key.ids);
    free(task->candidates);
    free(task->described);
    free(task);
}

void ink_task_set_waker(struct ink_task *task, void (*wake)(void *arg), void *arg)
{
    ink_job_set_waker(task->job, wake, arg);
}

void ink_task_cancel(struct ink_task *task)
{
    ink_job_cancel(task->job);
}

/* --- deciding --- */

static bool is_decided(const struct candidate *c)
{
    return c->state == CANDIDATE_ACCEPTED || c->state == CANDIDATE_FAILED;
}

/* A task without candidates only waits for its job. */
static bool all_decided(const struct ink_task *task)
{
    for (int i = 0; i < task->n; i++) {
        if (!is_decided(&task->candidates[i]))
            return false;
    }
    return task->n > 0;
}

static bool same_ids(const struct ink_tokens *a, const struct ink_tokens *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->ids, b->ids, a->n * sizeof(*a->ids)) == 0);
}

/* Why a complete candidate cannot be taken, whatever those before it will be; NULL: nothing speaks against it. */
static const char *objection(const struct ink_task *task, const struct candidate *c,
                             struct ink_err *error)
{
    if (candidate_text(c).len == 0) {
        ink_err_param(error, INK_INVALID, "", "empty", "candidate %d: the model's answer is empty",
                      c->index);
        return "empty";
    }
    if (!task->allow_same && task->source_key.n > 0 && same_ids(&c->key, &task->source_key)) {
        ink_err_param(error, INK_INVALID, "", "same_as_source",
                      "candidate %d: the answer is the source itself", c->index);
        return "duplicate";
    }
    for (int i = 0; i < c->index; i++) {
        const struct candidate *other = &task->candidates[i];

        if (other->state == CANDIDATE_ACCEPTED && same_ids(&c->key, &other->key)) {
            ink_err_param(error, INK_INVALID, "", "duplicate",
                          "candidate %d: the same as candidate %d", c->index, i);
            return "duplicate";
        }
    }
    return NULL;
}

static void refuse(struct ink_task *task, struct candidate *c, const char *reason,
                   struct ink_err *error)
{
    size_t len = strlen(error->text);

    if (!task->greedy && c->attempt < TASK_MAX_REDRAWS) {
        /* When the job has just ended, the candidate stays undecided: the task ends with the job's own reason. */
        if (ink_job_redraw(task->job, c->index, NULL) == INK_OK)
            candidate_restart(c, reason);
        return;
    }
    if (c->attempt > 0)
        (void)snprintf(error->text + len, sizeof(error->text) - len, ", also when drawn %d times",
                       c->attempt + 1);
    candidate_fail(c, error, reason);
}

/* Takes or refuses what is complete, in the order of indexes, until nothing changes. */
static void decide(struct ink_task *task)
{
    bool all_before = true;

    for (int i = 0; i < task->n; i++) {
        struct candidate *c = &task->candidates[i];

        if (c->state == CANDIDATE_COMPLETE) {
            struct ink_err error;
            const char *reason = objection(task, c, &error);

            if (reason)
                refuse(task, c, reason, &error);
            else if (all_before)
                candidate_accept(c);
        }
        all_before &= is_decided(c);
        if (is_decided(c))
            candidate_describe(c, &task->described[i]);
    }
}

static enum ink_status pull(struct ink_task *task, struct ink_err *err)
{
    for (int i = 0; i < task->n; i++) {
        bool halt;
        enum ink_status st = candidate_pull(&task->candidates[i], task->job, &halt, err);

        if (st != INK_OK)
            return st;
        if (halt)
            ink_job_halt(task->job, i);
    }
    decide(task);
    return INK_OK;
}

/* --- the end --- */

static double between_ms(int64_t from, int64_t to)
{
    return from > 0 && to > from ? (double)(to - from) / 1e6 : 0;
}

/* The stages follow each other from the moment the request came. */
static void trace_stages(const struct ink_task *task, const struct ink_job_status *st)
{
    const int64_t now = ink_clock_ns();
    const struct {
        const char *name;
        int64_t from, to;
    } stages[] = {
        { "tokenize", task->start_ns, task->start_ns + (int64_t)(task->tokenize_ms * 1e6) },
        { "queue", st->submitted_ns, st->encode_ns },
        { st->source_kept ? "encode (kept)" : "encode", st->encode_ns, st->encoded_ns },
        { "first token", st->encoded_ns, st->first_ns },
        { "decode", st->first_ns, st->last_ns },
    };

    if (!ink_trace_is_of(task))
        return;
    ink_trace_span(INK_TRACE_REQUEST, task->result.id, task->start_ns, now, "candidates", task->n);
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        if (stages[i].from > 0 && stages[i].to >= stages[i].from)
            ink_trace_span(INK_TRACE_REQUEST, stages[i].name, stages[i].from, stages[i].to, NULL,
                           0);
    }
    ink_trace_end(task);
}

static void sum_up(struct ink_task *task)
{
    struct ink_task_timings *t = &task->result.timings;
    struct ink_job_status st;

    ink_job_status(task->job, &st);
    if (st.source_kept)
        task->result.source_cache = "hit";
    t->tokenize_ms = task->tokenize_ms;
    t->queue_ms = between_ms(st.submitted_ns, st.encode_ns);
    t->encode_ms = between_ms(st.encode_ns, st.encoded_ns);
    t->first_token_ms = between_ms(st.encoded_ns, st.first_ns);
    t->decode_ms = between_ms(st.first_ns, st.last_ns);
    t->total_ms = ink_clock_ms_since(task->start_ns);
    t->other_ms = t->total_ms - t->tokenize_ms - t->queue_ms - t->encode_ms - t->first_token_ms -
                  t->decode_ms;
    if (t->other_ms < 0)
        t->other_ms = 0;
    task->result.usage.tokens_output = 0;
    for (int i = 0; i < task->n; i++) {
        candidate_describe(&task->candidates[i], &task->described[i]);
        task->result.usage.tokens_output += task->described[i].n_tokens;
    }
    trace_stages(task, &st);
}

/* All candidates were told. */
static enum ink_status finish(struct ink_task *task, struct ink_task_event *ev, struct ink_err *err)
{
    const struct candidate *failed = NULL;
    int n_failed = 0;

    task->ended = true;
    ink_job_close(task->job);
    for (int i = task->n - 1; i >= 0; i--) {
        if (task->candidates[i].state == CANDIDATE_FAILED) {
            failed = &task->candidates[i];
            n_failed++;
        }
    }
    if (n_failed > 0 && n_failed < task->n)
        task_warn(task, "%d of %d candidates failed: see their errors", n_failed, task->n);
    sum_up(task);
    if (n_failed == task->n && task->n > 0)
        return ink_err_param(err, INK_INVALID, "", "no_usable_output",
                             "none of %d candidates is usable: %s", task->n, failed->error.text);
    *ev = (struct ink_task_event){ .kind = INK_TASK_DONE };
    return INK_OK;
}

/* The job has ended before its candidates were decided. */
static enum ink_status give_up(struct ink_task *task, const struct ink_err *why,
                               struct ink_err *err)
{
    struct ink_err late;

    /* All its sequences were complete when its time was over, but one of them had to be drawn again. */
    if (why->code == INK_OK) {
        ink_err_set(&late, INK_TIMEOUT, "the time was over before all candidates were usable");
        why = &late;
    }
    task->ended = true;
    for (int i = 0; i < task->n; i++) {
        if (!is_decided(&task->candidates[i]))
            candidate_fail(&task->candidates[i], why, NULL);
    }
    sum_up(task);
    if (err)
        *err = *why;
    return why->code;
}

/* --- telling --- */

/* The next thing to tell about candidate `c`; false: nothing. */
static bool tell_candidate(struct ink_task *task, struct candidate *c, struct ink_task_event *ev)
{
    *ev = (struct ink_task_event){ .index = c->index };
    if (c->resets) {
        c->resets = false;
        ev->kind = INK_TASK_RESET;
        ev->reason = c->reset_reason;
        ev->text = (struct ink_slice){ "", 0 };
        return true;
    }
    if (candidate_unsent(c).len > 0) {
        ev->kind = INK_TASK_TEXT;
        ev->text = candidate_unsent(c);
        c->sent = c->end;
        return true;
    }
    if (is_decided(c) && !c->announced) {
        c->announced = true;
        ev->kind = INK_TASK_CANDIDATE;
        ev->candidate = &task->described[c->index];
        return true;
    }
    return false;
}

static bool tell(struct ink_task *task, struct ink_task_event *ev)
{
    for (int i = 0; i < task->n; i++) {
        if (tell_candidate(task, &task->candidates[i], ev))
            return true;
    }
    return false;
}

static bool tell_queue(struct ink_task *task, const struct ink_job_status *st,
                       struct ink_task_event *ev)
{
    if (st->stage != INK_JOB_QUEUED || st->position == task->told_position)
        return false;
    if (st->position == 0 && between_ms(st->submitted_ns, ink_clock_ns()) < QUEUE_GRACE_MS)
        return false;
    task->told_position = st->position;
    *ev = (struct ink_task_event){ .kind = INK_TASK_QUEUED,
                                   .position = st->position,
                                   .wait_ms = st->wait_ms };
    return true;
}

enum ink_status ink_task_next(struct ink_task *task, int timeout_ms, struct ink_task_event *ev,
                              struct ink_err *err)
{
    int64_t deadline = ink_clock_ms() + timeout_ms;

    if (task->ended)
        return ink_err_set(err, INK_CANCELLED, "the task has ended");
    for (;;) {
        struct ink_job_status job;
        enum ink_status st;
        int64_t left;

        if (tell(task, ev))
            return INK_OK;
        if (all_decided(task))
            return finish(task, ev, err);

        /* Both before pulling: what comes afterwards is then seen by the next look. */
        task->seen = ink_job_version(task->job);
        ink_job_status(task->job, &job);
        task->job_over = job.stage == INK_JOB_ENDED;
        st = pull(task, err);
        if (st != INK_OK) {
            task->ended = true;
            ink_job_cancel(task->job);
            return st;
        }
        if (tell(task, ev))
            return INK_OK;
        if (all_decided(task))
            continue;
        if (job.stage == INK_JOB_ENDED && task->n == 0 && job.result.code == INK_OK)
            return finish(task, ev, err);
        if (job.stage == INK_JOB_ENDED)
            return give_up(task, &job.result, err);
        if (tell_queue(task, &job, ev))
            return INK_OK;

        left = deadline - ink_clock_ms();
        if (left <= 0 ||
            !ink_job_wait(task->job, task->seen, left > INT_MAX ? INT_MAX : (int)left)) {
            *ev = (struct ink_task_event){ .kind = INK_TASK_IDLE };
            return INK_OK;
        }
    }
}

bool ink_task_has_event(struct ink_task *task)
{
    if (task->ended)
        return false;
    for (int i = 0; i < task->n; i++) {
        const struct candidate *c = &task->candidates[i];

        if (c->resets || candidate_unsent(c).len > 0 || (is_decided(c) && !c->announced))
            return true;
    }
    return all_decided(task) || task->job_over || ink_job_version(task->job) != task->seen;
}

enum ink_status ink_task_wait(struct ink_task *task, struct ink_err *err)
{
    struct ink_task_event ev;
    enum ink_status st;

    do {
        st = ink_task_next(task, 1000, &ev, err);
    } while (st == INK_OK && ev.kind != INK_TASK_DONE);
    return st;
}

const struct ink_task_result *ink_task_result(const struct ink_task *task)
{
    return &task->result;
}
