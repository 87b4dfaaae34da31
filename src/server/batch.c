/*
 * One call worked off: texts out of its input, tasks, answers into its outbox. On the loop's thread; the lock is held only
 * to copy a line out or an answer in.
 */
#include "server/batch.h"

#include "base/clock.h"
#include "base/json.h"
#include "server/answer.h"
#include "server/batch_private.h"
#include "server/request.h"
#include "server/state.h"
#include "task/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_MS = 1000 }; /* of a sender, while the server drains */

/* What its answer needs to know of a text, in the task's tag. */
enum { TEXT_DETAILS = 1, TEXT_CACHE_OFF = 2 };

static void *tag_of(const struct ink_rewrite_call *call)
{
    return (void *)(uintptr_t)((call->rq.details ? TEXT_DETAILS : 0) |
                               (call->cache == INK_CACHE_OFF ? TEXT_CACHE_OFF : 0));
}

/* --- input -------------------------------------------------------------------------------------- */

/* Moves more of a complete body to where lines are made of it. */
static void fill_locked(struct batch *b)
{
    size_t room = ink_lines_room(&b->lines);
    size_t left = b->in.body_len - b->body_at;
    size_t n = room < left ? room : left;
    char *to = n > 0 ? ink_lines_reserve(&b->lines, n) : NULL;

    if (to) {
        memcpy(to, b->in.body + b->body_at, n);
        b->body_at += n;
        ink_lines_commit(&b->lines, n);
    }
    if (b->body_at == b->in.body_len)
        b->lines.ended = b->lines_ended = true;
}

/* The next line, into b->line. */
static enum ink_line_state next_line(struct batch *b)
{
    struct ink_slice line = { 0 };
    enum ink_line_state st;

    pthread_mutex_lock(&b->lock);
    int64_t before = b->lines.consumed;
    if (!b->is_feed)
        fill_locked(b);
    st = b->cut.code != INK_OK ? INK_LINE_END : ink_lines_next(&b->lines, &line);
    if (st == INK_LINE_READY) {
        ink_buf_clear(&b->line);
        if (ink_buf_add(&b->line, line.ptr, line.len) != INK_OK)
            st = INK_LINE_TOO_LONG;
    }
    bool has_room = b->is_feed && ink_lines_room(&b->lines) >= BATCH_BLOCK;
    bool moved = b->lines.consumed != before;
    pthread_mutex_unlock(&b->lock);

    if (moved)
        atomic_store(&b->moved_ms, ink_clock_ms());
    if (has_room)
        batch_wake_reader(b);
    return st;
}

static enum ink_status read_array_text(const struct batch *b, struct ink_rewrite_call *call,
                                       struct ink_err *err)
{
    const json_t *text = json_array_get(b->in.texts, (size_t)b->n_next);

    if (!json_is_string(text))
        return ink_err_param(err, INK_INVALID, "texts", "invalid_value",
                             "texts[%lld]: must be a string", (long long)b->n_next);
    call->rq.text = (struct ink_slice){ json_string_value(text), json_string_length(text) };
    return INK_OK;
}

/* INK_BUSY: later. Anything else is said in the text's place. */
static enum ink_status start(struct batch *b, struct ink_err *err)
{
    struct ink_rewrite_call call = b->in.call;
    json_t *object = NULL;
    enum ink_status st;

    if (call.rq.has_seed)
        call.rq.seed = ink_batch_seed(call.rq.seed, (uint64_t)ink_batch_n_added(b->tasks));
    if (b->in.texts) {
        st = read_array_text(b, &call, err);
    } else if (b->line_too_long) {
        st = ink_err_param(err, INK_INVALID, "text", "input_too_long",
                           "a line longer than %d bytes", BATCH_LINE_MAX);
    } else {
        st = ink_rewrite_line(ink_buf_slice(&b->line), &object, err);
        if (st == INK_OK)
            st = ink_rewrite_call_read(&call, object, true, err);
    }
    if (st == INK_OK)
        st = ink_batch_add(b->tasks, &call.rq, tag_of(&call));
    if (call.source_ids.ids != b->in.call.source_ids.ids)
        ink_rewrite_call_release(&call);
    json_decref(object);
    return st;
}

/* False: no text is there now. */
static bool has_text(struct batch *b)
{
    enum ink_line_state st;

    if (b->in.texts) {
        b->input_ended = (size_t)b->n_next == json_array_size(b->in.texts);
        return !b->input_ended;
    }
    if (b->line_held)
        return true;
    st = next_line(b);
    b->line_too_long = st == INK_LINE_TOO_LONG;
    b->line_held = st == INK_LINE_READY || st == INK_LINE_TOO_LONG;
    b->input_ended = st == INK_LINE_END;
    return b->line_held;
}

/* A sender that could go on for ever does not hold a server that wants to end. */
static void cut_when_quiet(struct batch *b)
{
    bool quiet =
        ink_batch_n_open(b->tasks) == 0 && ink_clock_ms() - atomic_load(&b->moved_ms) > QUIET_MS;

    if (!b->is_feed || !(quiet || atomic_load(&b->server->stopping)))
        return;
    pthread_mutex_lock(&b->lock);
    if (b->cut.code == INK_OK && !b->lines_ended)
        (void)ink_err_param(&b->cut, INK_BUSY, "", "draining",
                            "the server is shutting down; send the rest again in 5 s");
    pthread_mutex_unlock(&b->lock);
}

bool batch_admit(struct batch *b)
{
    bool closing = atomic_load(&b->server->draining);
    struct ink_err err = { 0 };
    enum ink_status st;

    if (b->input_ended || !(closing ? ink_batch_has_room(b->tasks) : ink_batch_wants(b->tasks)))
        return false;
    if (!has_text(b)) {
        if (closing && !b->input_ended)
            cut_when_quiet(b);
        return false;
    }
    st = closing ? ink_err_param(&err, INK_BUSY, "", "draining",
                                 "the server is shutting down; try again in 5 s")
                 : start(b, &err);
    if (st == INK_BUSY && !closing)
        return false;
    if (st != INK_OK)
        ink_batch_add_finished(b->tasks, &err, NULL);
    b->n_next++;
    b->line_held = false;
    return true;
}

/* --- output ------------------------------------------------------------------------------------- */

/* Whether the answers may outgrow memory: while the sender may not read yet. */
static bool may_spool_locked(const struct batch *b)
{
    return b->is_feed && !b->lines_ended && b->cut.code == INK_OK;
}

static bool wants_answers(struct batch *b)
{
    pthread_mutex_lock(&b->lock);
    bool wants = outbox_wants(&b->out, may_spool_locked(b));
    pthread_mutex_unlock(&b->lock);
    return wants;
}

static void put_bytes(struct batch *b, const char *bytes, size_t len)
{
    pthread_mutex_lock(&b->lock);
    enum ink_status st = outbox_add(&b->out, bytes, len);
    int64_t in_file = outbox_in_file(&b->out);
    pthread_mutex_unlock(&b->lock);

    atomic_store(&b->moved_ms, ink_clock_ms());
    batches_count_file(b->loop, in_file - b->in_file);
    b->in_file = in_file;
    if (st != INK_OK)
        atomic_store(&b->gone,
                     true); /* one answer beyond all bounds: better none than a wrong one */
}

static void put_text(struct batch *b, const char *text)
{
    put_bytes(b, text, strlen(text));
}

/* Takes the reference. */
static void put_json(struct batch *b, json_t *value)
{
    char *text = ink_json_dump(value);

    json_decref(value);
    if (text)
        put_text(b, text);
    else
        atomic_store(&b->gone, true);
    free(text);
}

/* Everything in front of the first answer. */
static void put_head(struct batch *b)
{
    char head[128];

    if (b->in.answer == BATCH_DOCUMENT) {
        json_t *model = json_string(b->in.model);
        char *name = json_dumps(model, JSON_ENCODE_ANY);

        /* The batch's own name, which nobody has to find again. */
        (void)snprintf(head, sizeof(head),
                       "{\"id\":\"rb-%016llx\",\"model\":", (unsigned long long)ink_clock_ns());
        put_text(b, head);
        put_text(b, name ? name : "null");
        put_text(b, ",\"results\":[");
        free(name);
        json_decref(model);
    } else if (b->in.answer == BATCH_AUGMENT) {
        put_text(b, "{\"results\":[");
    }
}

static void sum_up(struct batch_sums *sums, const struct ink_task_result *r)
{
    sums->tokens_input += r->usage.tokens_input;
    sums->tokens_output += r->usage.tokens_output;
    sums->queue_ms += r->timings.queue_ms;
    sums->tokenize_ms += r->timings.tokenize_ms;
    sums->encode_ms += r->timings.encode_ms;
    sums->first_token_ms += r->timings.first_token_ms;
    sums->decode_ms += r->timings.decode_ms;
    sums->other_ms += r->timings.other_ms;
    sums->total_ms += r->timings.total_ms;
}

/*
 * The texts' stages overlap, so their times do not add up to the call's. What is told is the call's time, shared out in
 * proportion to what its texts spent in each stage.
 */
static struct ink_task_timings shared_out(const struct batch *b)
{
    const struct batch_sums *s = &b->sums;
    double total_ms = (double)(ink_clock_ns() - b->start_ns) / 1e6;
    double f = s->total_ms > 0 ? total_ms / s->total_ms : 0;
    struct ink_task_timings t = {
        .queue_ms = f * s->queue_ms,
        .tokenize_ms = f * s->tokenize_ms,
        .encode_ms = f * s->encode_ms,
        .first_token_ms = f * s->first_token_ms,
        .decode_ms = f * s->decode_ms,
        .total_ms = total_ms,
    };

    t.other_ms =
        total_ms - t.queue_ms - t.tokenize_ms - t.encode_ms - t.first_token_ms - t.decode_ms;
    if (t.other_ms < 0)
        t.other_ms = 0;
    return t;
}

static void put_summary(struct batch *b)
{
    struct ink_task_timings timings = shared_out(b);

    put_text(b, "],\"usage\":");
    put_json(b, ink_answer_usage(b->sums.tokens_input, b->sums.tokens_output));
    put_text(b, ",\"timings\":");
    put_json(b, ink_answer_timings(&timings));
    put_text(b, "}\n");
}

static void put_tail(struct batch *b)
{
    struct ink_err cut;
    char done[96];

    pthread_mutex_lock(&b->lock);
    cut = b->cut;
    pthread_mutex_unlock(&b->lock);

    if (b->in.answer == BATCH_DOCUMENT) {
        put_summary(b);
    } else if (b->in.answer == BATCH_AUGMENT) {
        put_text(b, "]}\n");
    } else if (cut.code != INK_OK) {
        put_json(b, ink_answer_failed(&cut));
        put_text(b, "\n");
    } else {
        (void)snprintf(done, sizeof(done), "{\"done\":true,\"ok\":%lld,\"failed\":%lld}\n", b->n_ok,
                       b->n_failed);
        put_text(b, done);
    }
    pthread_mutex_lock(&b->lock);
    b->out_ended = true;
    pthread_mutex_unlock(&b->lock);
}

static json_t *augment_answer(const struct batch *b, const struct ink_batch_text *text,
                              const struct ink_err *err)
{
    json_t *o = json_object();

    (void)json_object_set(o, "original", json_array_get(b->in.texts, (size_t)text->index));
    (void)json_object_set_new(o, "augmented_texts", ink_answer_texts(text->task));
    if (!text->task)
        (void)json_object_set_new(o, "error", ink_answer_error(err));
    return o;
}

static json_t *rewrite_answer(const struct ink_batch_text *text, const struct ink_err *err)
{
    uintptr_t tag = (uintptr_t)text->tag;
    json_t *o;

    if (!text->task)
        return ink_answer_numbered(text->index, ink_answer_failed(err));
    o = ink_answer_rewrite(text->served, ink_task_result(text->task), tag & TEXT_DETAILS);
    /* Until there is a cache, every answer is computed: a miss, or without the cache altogether. */
    (void)json_object_set_new(o, "cache", json_string(tag & TEXT_CACHE_OFF ? "off" : "miss"));
    return ink_answer_numbered(text->index, o);
}

static void put_answer(struct batch *b, struct ink_batch_text *text)
{
    bool first = b->n_ok + b->n_failed == 0;
    struct ink_err err = text->err;

    request_explain_end(b->server, &err);
    if (b->in.answer != BATCH_LINES && !first)
        put_text(b, ",");
    put_json(b, b->in.answer == BATCH_AUGMENT ? augment_answer(b, text, &err)
                                              : rewrite_answer(text, &err));
    if (b->in.answer == BATCH_LINES)
        put_text(b, "\n");

    if (text->task) {
        sum_up(&b->sums, ink_task_result(text->task));
        b->n_ok++;
    } else {
        b->n_failed++;
    }
    batches_count_text(b->loop, text->task != NULL);
    ink_task_free(text->task);
}

bool batch_deliver(struct batch *b)
{
    struct ink_batch_text text;
    bool wrote = false;

    if (atomic_load(&b->server->stopping) && !b->cancelled) {
        b->cancelled = true;
        ink_batch_cancel(b->tasks);
    }
    ink_batch_pull(b->tasks);
    if (!b->begun) {
        b->begun = true;
        put_head(b);
    }
    while (wants_answers(b) && ink_batch_take(b->tasks, &text)) {
        put_answer(b, &text);
        wrote = true;
    }
    if (b->input_ended && ink_batch_n_open(b->tasks) == 0 && !b->tail_put) {
        b->tail_put = true;
        put_tail(b);
        wrote = true;
    }
    if (wrote)
        batch_wake_reader(b);
    return wrote;
}

/* --- its life on the loop ----------------------------------------------------------------------- */

void batch_begin(struct batch *b, struct ink_batch_pool *pool, void (*wake)(void *arg), void *arg)
{
    b->tasks = ink_batch_new(pool, b->in.ordered, wake, arg);
}

void batch_end(struct batch *b)
{
    if (b->tasks)
        batches_count_cancelled(b->loop, ink_batch_n_running(b->tasks));
    ink_batch_free(b->tasks);
    b->tasks = NULL;
    batches_count_file(b->loop, -b->in_file);
    b->in_file = 0;
}
