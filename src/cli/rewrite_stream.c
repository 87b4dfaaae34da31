/*
 * A batch of rewrite tasks between a source and a sink. One poll() waits for input, for any task, or for Ctrl-C.
 */
#include "cli/rewrite_stream.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "server/answer.h"
#include "task/batch.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A text on its way: the batch's tag. */
struct parcel {
    struct rewrite_item item;
    bool details;
};

struct stream {
    const struct ink_rewrite_call *defaults;
    const struct rewrite_ends *ends;
    struct ink_batch *batch;
    struct parcel *held; /* a text the engine had no room for; waits here */
    bool in_ended;
    struct rewrite_counts counts;

    int wake[2];       /* a byte arrives after tasks changed ... */
    atomic_bool woken; /* ... unless one is on its way */
};

/* --- one text ----------------------------------------------------------------------------------- */

static void wake_up(void *arg)
{
    struct stream *s = arg;

    if (!atomic_exchange(&s->woken, true) && write(s->wake[1], "", 1) < 0)
        return; /* full: a wake-up is pending */
}

enum ink_status rewrite_object_of_text(struct ink_slice text, json_t **out, struct ink_err *err)
{
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);

    if (valid < text.len)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: not valid UTF-8 at byte %zu", valid);
    if (text.len > 0 && memchr(text.ptr, '\0', text.len))
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: has a NUL byte (U+0000)");
    *out = json_object();
    (void)json_object_set_new(*out, "text", json_stringn(text.ptr ? text.ptr : "", text.len));
    return INK_OK;
}

static void parcel_free(struct parcel *p)
{
    if (!p)
        return;
    json_decref(p->item.object);
    free(p->item.keep);
    free(p);
}

/* Hands a text over to the batch; false when the engine had no room. */
static bool hand_over(struct stream *s, struct parcel *p)
{
    struct ink_rewrite_call call = *s->defaults;
    struct ink_err err = p->item.err;
    enum ink_status st;

    if (!p->item.object) {
        ink_batch_add_finished(s->batch, &err, p);
        return true;
    }
    if (call.rq.has_seed)
        call.rq.seed = ink_batch_seed(call.rq.seed, (uint64_t)p->item.index);
    st = ink_rewrite_call_read(&call, p->item.object, true, &err);
    p->details = call.rq.details;
    if (st == INK_OK)
        st = ink_batch_add(s->batch, &call.rq, p);
    else
        ink_batch_add_finished(s->batch, &err, p);
    ink_rewrite_call_release(&call);
    return st != INK_BUSY;
}

/* --- the stream --------------------------------------------------------------------------------- */

/* Starts texts that are there already; true when more input is wanted. */
static bool admit(struct stream *s)
{
    while (!s->in_ended && ink_batch_wants(s->batch)) {
        struct parcel *p = s->held;

        if (!p) {
            struct rewrite_item item = { 0 };
            enum line_state st = s->ends->next(s->ends->arg, &item);

            if (st == LINE_AGAIN)
                return true;
            if (st == LINE_END) {
                s->in_ended = true;
                break;
            }
            p = ink_zalloc(sizeof(*p));
            p->item = item;
        }
        s->held = NULL;
        if (!hand_over(s, p)) {
            s->held = p;
            break;
        }
        s->counts.n_read++;
    }
    return false;
}

/* Writes what is finished; false: it cannot be written. */
static bool put_finished(struct stream *s)
{
    struct ink_batch_text text;
    bool ok = true;

    ink_batch_pull(s->batch);
    while (ok && ink_batch_take(s->batch, &text)) {
        struct parcel *p = text.tag;
        json_t *answer = NULL;

        if (text.task)
            answer = ink_answer_rewrite(text.served, ink_task_result(text.task), p->details);
        else if (text.err.code != INK_OK)
            answer = cli_error_json(&text.err);
        ink_task_free(text.task);
        s->counts.n_failed += text.err.code != INK_OK;
        s->counts.n_put++;
        ok = s->ends->put(s->ends->arg, &p->item, answer);
        parcel_free(p);
    }
    return ok;
}

/* Waits for whatever comes first: input (if wanted), a task, Ctrl-C. */
static void wait_for_anything(struct stream *s, bool want_input)
{
    char drained[256];
    struct pollfd fds[] = {
        { .fd = s->wake[0], .events = POLLIN },
        { .fd = interrupt_fd(), .events = POLLIN },
        { .fd = want_input ? s->ends->fd : -1, .events = POLLIN },
    };
    int retry_ms = ink_batch_retry_ms(s->batch);

    if (poll(fds, 3, retry_ms >= 0 && retry_ms < 1000 ? retry_ms : 1000) <= 0)
        return;
    if (fds[0].revents & POLLIN) {
        while (read(s->wake[0], drained, sizeof(drained)) == sizeof(drained))
            ;
        /* Before the caller looks at the tasks: what changes from here on writes again. */
        atomic_store(&s->woken, false);
    }
    if (fds[2].revents)
        s->ends->fill(s->ends->arg);
}

static enum rewrite_stream_end run(struct stream *s)
{
    for (;;) {
        if (interrupt_pending())
            return STREAM_INTERRUPTED;
        bool want_input = admit(s);
        int64_t n_put = s->counts.n_put;
        bool ok = put_finished(s);

        s->ends->progress(s->ends->arg, &s->counts);
        if (!ok)
            return STREAM_STOPPED;
        if (s->in_ended && !s->held && ink_batch_n_open(s->batch) == 0)
            return STREAM_ENDED;
        if (!want_input && s->counts.n_put > n_put)
            continue; /* writing made room for texts that are read already */
        /* Whoever reads our output must not wait for more of it than there is. */
        if (!s->ends->flush(s->ends->arg))
            return STREAM_STOPPED;
        wait_for_anything(s, want_input);
    }
}

static bool open_wake(int wake[2])
{
    if (pipe(wake) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

enum ink_status rewrite_stream(struct ink_catalog *catalog, const struct ink_rewrite_call *call,
                               bool unordered, const struct rewrite_ends *ends,
                               enum rewrite_stream_end *end, struct rewrite_counts *counts,
                               struct ink_err *err)
{
    struct stream s = { .defaults = call, .ends = ends };
    struct ink_batch_pool *pool;
    struct ink_batch_text text;

    if (!open_wake(s.wake))
        return ink_err_set(err, INK_IO, "cannot make a pipe: %s", strerror(errno));
    pool = ink_batch_pool_new(catalog);
    s.batch = ink_batch_new(pool, !unordered, wake_up, &s);

    *end = run(&s);

    /* The tags of what is under way are ours. */
    ink_batch_cancel(s.batch);
    while (ink_batch_n_open(s.batch) > 0) {
        ink_batch_pull(s.batch);
        while (ink_batch_take(s.batch, &text)) {
            ink_task_free(text.task);
            parcel_free(text.tag);
        }
        if (ink_batch_n_open(s.batch) > 0)
            (void)poll(NULL, 0, 5);
    }
    ink_batch_free(s.batch);
    ink_batch_pool_free(pool);
    parcel_free(s.held);
    close(s.wake[0]);
    close(s.wake[1]);
    *counts = s.counts;
    return INK_OK;
}
