/*
 * A stream of rewrite tasks between a source and a sink.
 *
 * A ring of slots holds the texts from the oldest that is not written to the newest that was read. A slot is under way
 * (it has a task), finished, or free. Texts are read only while a slot is free and the engine has not enough to do; one
 * poll() then waits for input, for any task, or for Ctrl-C.
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

enum {
    UNDER_WAY_SPARE =
        4, /* texts waiting in the engine's queue, so that a free row is filled at once */
    RING_FACTOR =
        4, /* slots per text under way: how far one slow text may fall behind the others */
};

struct slot {
    bool taken;
    struct rewrite_item item;
    struct ink_task *task; /* under way */
    bool details;
    bool finished;  /* not written */
    json_t *answer; /* of a finished one */
};

struct stream {
    struct ink_catalog *catalog;
    const struct ink_served *served;
    const struct ink_rewrite_call *defaults;
    const struct rewrite_ends *ends;
    bool unordered;

    struct rewrite_item held; /* a text the engine had no room for; waits here */
    bool is_held;
    bool in_ended;

    struct slot *ring;
    int n_ring;
    int n_under_way, under_way_max;
    struct rewrite_counts
        counts;  /* in order, text number i of the stream lives in ring[i % n_ring] */
    int n_taken; /* slots that are not free */
    bool sink_failed;

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

static void item_release(struct rewrite_item *item)
{
    json_decref(item->object);
    free(item->keep);
    *item = (struct rewrite_item){ 0 };
}

static void finish(struct stream *s, struct slot *slot, json_t *answer)
{
    slot->answer = answer;
    slot->finished = true;
    if (slot->task) {
        ink_task_free(slot->task);
        slot->task = NULL;
        s->n_under_way--;
    }
}

static void fail(struct stream *s, struct slot *slot, const struct ink_err *err)
{
    s->counts.n_failed++;
    finish(s, slot, cli_error_json(err));
}

static enum ink_status start(struct stream *s, struct slot *slot, const struct rewrite_item *item,
                             struct ink_err *err)
{
    struct ink_rewrite_call call = *s->defaults;
    enum ink_status st;

    if (call.rq.has_seed)
        call.rq.seed = ink_batch_seed(call.rq.seed, (uint64_t)item->index);
    st = ink_rewrite_call_read(&call, item->object, true, err);
    slot->details = call.rq.details;
    if (st == INK_OK)
        st = ink_rewrite_start(s->catalog, &call.rq, &slot->task, err);
    ink_rewrite_call_release(&call);
    return st;
}

static struct slot *free_slot(struct stream *s)
{
    if (!s->unordered)
        return &s->ring[s->counts.n_read % s->n_ring];
    for (int i = 0; i < s->n_ring; i++) {
        if (!s->ring[i].taken)
            return &s->ring[i];
    }
    return NULL;
}

/* Puts one text into the ring and takes it over; false when the engine had no room, and it is held. */
static bool take(struct stream *s, struct rewrite_item *item)
{
    struct ink_err err = item->err;
    struct slot *slot = free_slot(s); /* there is one: has_room() */
    enum ink_status st = err.code;

    if (item->object)
        st = start(s, slot, item, &err);
    if (item->object && st == INK_BUSY && s->n_under_way > 0) {
        s->held = *item;
        s->is_held = true;
        return false;
    }
    slot->taken = true;
    slot->item = *item;
    s->counts.n_read++;
    s->n_taken++;
    if (st != INK_OK) {
        fail(s, slot, &err);
    } else if (slot->task) {
        s->n_under_way++;
        ink_task_set_waker(slot->task, wake_up, s);
    } else {
        finish(s, slot, NULL);
    }
    return true;
}

/* --- the stream --------------------------------------------------------------------------------- */

static bool has_room(const struct stream *s)
{
    return !s->in_ended && s->n_taken < s->n_ring && s->n_under_way < s->under_way_max;
}

/* Starts texts that are there already; true when more input is wanted. */
static bool admit(struct stream *s)
{
    while (has_room(s)) {
        struct rewrite_item item = { 0 };
        enum line_state st = LINE_READY;

        if (s->is_held) {
            item = s->held;
            s->is_held = false;
        } else {
            st = s->ends->next(s->ends->arg, &item);
        }
        if (st == LINE_AGAIN)
            return true;
        if (st == LINE_END)
            s->in_ended = true;
        else if (!take(s, &item))
            return false;
    }
    return false;
}

static void advance(struct stream *s, struct slot *slot)
{
    struct ink_task_event ev;
    struct ink_err err = { 0 };

    while (slot->task && ink_task_has_event(slot->task)) {
        if (ink_task_next(slot->task, 0, &ev, &err) != INK_OK)
            fail(s, slot, &err);
        else if (ev.kind == INK_TASK_DONE)
            finish(s, slot,
                   ink_answer_rewrite(s->served, ink_task_result(slot->task), slot->details));
        else if (ev.kind == INK_TASK_IDLE)
            return;
    }
}

static void put_slot(struct stream *s, struct slot *slot)
{
    if (!s->sink_failed && !s->ends->put(s->ends->arg, &slot->item, slot->answer))
        s->sink_failed = true;
    item_release(&slot->item);
    *slot = (struct slot){ 0 };
    s->counts.n_put++;
    s->n_taken--;
}

static void put_finished(struct stream *s)
{
    if (s->unordered) {
        for (int i = 0; i < s->n_ring; i++) {
            if (s->ring[i].finished)
                put_slot(s, &s->ring[i]);
        }
        return;
    }
    while (s->counts.n_put < s->counts.n_read && !s->sink_failed &&
           s->ring[s->counts.n_put % s->n_ring].finished)
        put_slot(s, &s->ring[s->counts.n_put % s->n_ring]);
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

    if (poll(fds, 3, 1000) <= 0)
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

        for (int i = 0; i < s->n_ring; i++)
            advance(s, &s->ring[i]);
        put_finished(s);
        s->ends->progress(s->ends->arg, &s->counts);
        if (s->sink_failed)
            return STREAM_STOPPED;
        if (s->in_ended && s->n_taken == 0)
            return STREAM_ENDED;
        if (!want_input && has_room(s) && (!s->is_held || s->n_under_way == 0))
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

enum ink_status rewrite_stream(struct ink_catalog *catalog, const struct ink_served *served,
                               const struct ink_rewrite_call *call,
                               const struct rewrite_stream_options *options,
                               const struct rewrite_ends *ends, enum rewrite_stream_end *end,
                               struct rewrite_counts *counts, struct ink_err *err)
{
    struct stream s = {
        .catalog = catalog,
        .served = served,
        .defaults = call,
        .ends = ends,
        .unordered = options->unordered,
    };

    if (!open_wake(s.wake))
        return ink_err_set(err, INK_IO, "cannot make a pipe: %s", strerror(errno));
    s.under_way_max = (options->n_parallel + call->rq.n - 1) / call->rq.n + UNDER_WAY_SPARE;
    s.n_ring = RING_FACTOR * s.under_way_max;
    s.ring = ink_zalloc((size_t)s.n_ring * sizeof(*s.ring));

    *end = run(&s);

    for (int i = 0; i < s.n_ring; i++) {
        ink_task_free(s.ring[i].task);
        json_decref(s.ring[i].answer);
        item_release(&s.ring[i].item);
    }
    if (s.is_held)
        item_release(&s.held);
    free(s.ring);
    close(s.wake[0]);
    close(s.wake[1]);
    *counts = s.counts;
    return INK_OK;
}
