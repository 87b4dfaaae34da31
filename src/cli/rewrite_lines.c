/*
 * Standard input as a stream of rewrite tasks.
 *
 * A ring of slots holds the lines from the oldest that is not printed to the newest that was read. A slot is under way
 * (it has a task), finished (it has an answer), or free. Lines are read only while a slot is free and the
 * engine has not enough to do; one poll() then waits for input, for any task, or for Ctrl-C.
 */
#include "cli/rewrite_lines.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/json_lines.h"
#include "cli/lines.h"
#include "server/answer.h"
#include "task/batch.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
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
    int64_t index;         /* of the line; -1: free */
    struct ink_task *task; /* under way */
    bool details;
    json_t *answer; /* finished, not printed */
};

struct stream {
    struct ink_catalog *catalog;
    const struct ink_served *served;
    const struct ink_rewrite_call *defaults;
    struct rewrite_lines_options options;

    struct line_reader in;
    struct ink_slice held; /* a line the engine had no room for; waits here */
    bool is_held;
    bool in_ended;

    struct slot *ring;
    int n_ring;
    int n_under_way, under_way_max;
    int64_t n_read, n_printed, n_failed; /* lines; in order, line i lives in ring[i % n_ring] */
    int n_taken;                         /* slots that are not free */

    int wake[2];       /* a byte arrives after tasks changed ... */
    atomic_bool woken; /* ... unless one is on its way */
    struct progress progress;
};

/* --- one line ----------------------------------------------------------------------------------- */

static void wake_up(void *arg)
{
    struct stream *s = arg;

    if (!atomic_exchange(&s->woken, true) && write(s->wake[1], "", 1) < 0)
        return; /* full: a wake-up is pending */
}

static void finish(struct stream *s, struct slot *slot, json_t *answer)
{
    slot->answer = json_numbered(slot->index, answer);
    if (slot->task) {
        ink_task_free(slot->task);
        slot->task = NULL;
        s->n_under_way--;
    }
}

static void fail(struct stream *s, struct slot *slot, const struct ink_err *err)
{
    s->n_failed++;
    finish(s, slot, cli_error_json(err));
}

/* A text as the JSON object that stands for it, so that both spellings of a line meet the same checks. */
static enum ink_status object_of_text(struct ink_slice text, json_t **out, struct ink_err *err)
{
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);

    if (valid < text.len)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: not valid UTF-8 at byte %zu", valid);
    if (memchr(text.ptr, '\0', text.len))
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: has a NUL byte (U+0000)");
    *out = json_object();
    (void)json_object_set_new(*out, "text", json_stringn(text.ptr, text.len));
    return INK_OK;
}

static enum ink_status object_of_line(const struct stream *s, struct ink_slice line, json_t **out,
                                      struct ink_err *err)
{
    json_t *value;
    enum ink_status st;

    if (!s->options.jsonl)
        return object_of_text(line, out, err);
    st = ink_json_parse(line.ptr, line.len, &value, err);
    if (st != INK_OK)
        return st;
    if (json_is_object(value)) {
        *out = value;
        return INK_OK;
    }
    if (json_is_string(value)) {
        *out = json_object();
        (void)json_object_set_new(*out, "text", value);
        return INK_OK;
    }
    json_decref(value);
    return ink_err_param(err, INK_INVALID, "", "invalid_value",
                         "a line must be a JSON string or an object with \"text\"");
}

static enum ink_status start(struct stream *s, struct slot *slot, struct ink_slice line,
                             struct ink_err *err)
{
    struct ink_rewrite_call call = *s->defaults;
    json_t *object = NULL;
    enum ink_status st = object_of_line(s, line, &object, err);

    if (st != INK_OK)
        return st;
    if (call.rq.has_seed)
        call.rq.seed = ink_batch_seed(call.rq.seed, (uint64_t)slot->index);
    st = ink_rewrite_call_read(&call, object, true, err);
    slot->details = call.rq.details;
    if (st == INK_OK)
        st = ink_rewrite_start(s->catalog, &call.rq, &slot->task, err);
    ink_rewrite_call_release(&call);
    json_decref(object);
    return st;
}

/* Puts one line into the ring; false when the engine had no room, and the line is held. */
static bool take_line(struct stream *s, struct ink_slice line, bool too_long)
{
    struct ink_err err = { 0 };
    struct slot *slot = NULL;
    enum ink_status st;

    if (s->options.unordered) {
        for (int i = 0; i < s->n_ring && !slot; i++)
            slot = s->ring[i].index < 0 ? &s->ring[i] : NULL;
    } else {
        slot = &s->ring[s->n_read % s->n_ring];
    }
    slot->index = s->n_read;
    if (too_long)
        st = ink_err_param(&err, INK_INVALID, "text", "input_too_long",
                           "a line longer than %d bytes", LINES_MAX);
    else
        st = start(s, slot, line, &err);

    if (st == INK_BUSY && s->n_under_way > 0) {
        slot->index = -1;
        s->held = line;
        s->is_held = true;
        return false;
    }
    s->n_read++;
    s->n_taken++;
    if (st == INK_OK) {
        s->n_under_way++;
        ink_task_set_waker(slot->task, wake_up, s);
    } else {
        fail(s, slot, &err);
    }
    return true;
}

/* --- the stream --------------------------------------------------------------------------------- */

static bool has_room(const struct stream *s)
{
    return !s->in_ended && s->n_taken < s->n_ring && s->n_under_way < s->under_way_max;
}

/* Starts lines that are whole already; true when more input is wanted. */
static bool admit(struct stream *s)
{
    while (has_room(s)) {
        struct ink_slice line = { 0 };
        enum line_state st;

        if (s->is_held) {
            s->is_held = false;
            if (!take_line(s, s->held, false))
                return false;
            continue;
        }
        st = lines_next(&s->in, &line);
        if (st == LINE_AGAIN)
            return true;
        if (st == LINE_END)
            s->in_ended = true;
        else if (!take_line(s, line, st == LINE_TOO_LONG))
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

static void print_slot(struct stream *s, struct slot *slot)
{
    cli_print_json(slot->answer);
    *slot = (struct slot){ .index = -1 };
    s->n_printed++;
    s->n_taken--;
}

static void print_finished(struct stream *s)
{
    if (s->options.unordered) {
        for (int i = 0; i < s->n_ring; i++) {
            if (s->ring[i].answer)
                print_slot(s, &s->ring[i]);
        }
        return;
    }
    while (s->n_printed < s->n_read && s->ring[s->n_printed % s->n_ring].answer)
        print_slot(s, &s->ring[s->n_printed % s->n_ring]);
}

static void show_progress(struct stream *s)
{
    int64_t total = 0;

    if (s->in.total > 0 && s->in.consumed > 0)
        total = (int64_t)((double)s->in.total / (double)s->in.consumed * (double)s->n_read + 0.5);
    progress_update(&s->progress, s->n_printed, s->in_ended ? s->n_read : total, NULL);
}

/* Waits for whatever comes first: input (if wanted), a task, Ctrl-C. */
static void wait_for_anything(struct stream *s, bool want_input)
{
    char drained[256];
    struct pollfd fds[] = {
        { .fd = s->wake[0], .events = POLLIN },
        { .fd = interrupt_fd(), .events = POLLIN },
        { .fd = want_input ? s->in.fd : -1, .events = POLLIN },
    };

    /* Whoever reads our output must not wait for more of it than there is. */
    cli_flush();
    if (poll(fds, 3, 1000) <= 0)
        return;
    if (fds[0].revents & POLLIN) {
        while (read(s->wake[0], drained, sizeof(drained)) == sizeof(drained))
            ;
        /* Before the caller looks at the tasks: what changes from here on writes again. */
        atomic_store(&s->woken, false);
    }
    if (fds[2].revents)
        lines_fill(&s->in);
}

static int run(struct stream *s)
{
    for (;;) {
        if (interrupt_pending())
            return CLI_INTERRUPTED;
        bool want_input = admit(s);

        for (int i = 0; i < s->n_ring; i++)
            advance(s, &s->ring[i]);
        print_finished(s);
        show_progress(s);
        if (s->in_ended && s->n_taken == 0)
            break;
        if (cli_output_failed())
            return CLI_FAILED;
        if (!want_input && has_room(s) && (!s->is_held || s->n_under_way == 0))
            continue; /* printing made room for lines that are read already */
        wait_for_anything(s, want_input);
    }
    if (s->in.failed) {
        progress_end(&s->progress);
        fprintf(stderr, "inkstone: standard input: %s\n", strerror(s->in.failed));
        return CLI_FAILED;
    }
    return s->n_failed > 0 ? CLI_FAILED : CLI_OK;
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

int rewrite_lines(struct ink_catalog *catalog, const struct ink_served *served,
                  const struct ink_rewrite_call *call, const struct rewrite_lines_options *options)
{
    struct stream s = {
        .catalog = catalog, .served = served, .defaults = call, .options = *options
    };
    int status;

    if (!open_wake(s.wake)) {
        struct ink_err err;

        (void)ink_err_set(&err, INK_IO, "cannot make a pipe: %s", strerror(errno));
        return cli_fail(&err);
    }
    s.under_way_max = (options->n_parallel + call->rq.n - 1) / call->rq.n + UNDER_WAY_SPARE;
    s.n_ring = RING_FACTOR * s.under_way_max;
    s.ring = ink_zalloc((size_t)s.n_ring * sizeof(*s.ring));
    for (int i = 0; i < s.n_ring; i++)
        s.ring[i].index = -1;
    lines_init(&s.in, STDIN_FILENO);
    progress_begin(&s.progress, "rewriting", "texts");

    status = run(&s);

    progress_end(&s.progress);
    for (int i = 0; i < s.n_ring; i++) {
        ink_task_free(s.ring[i].task);
        json_decref(s.ring[i].answer);
    }
    free(s.ring);
    lines_release(&s.in);
    close(s.wake[0]);
    close(s.wake[1]);
    if (s.n_failed > 0 && status == CLI_FAILED && !cli_output_failed())
        fprintf(stderr, "inkstone: %lld of %lld texts failed; their lines say why\n",
                (long long)s.n_failed, (long long)s.n_read);
    return status;
}
