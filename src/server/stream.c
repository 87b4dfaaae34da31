/*
 * Turns a task into an answer without holding a thread.
 *
 * When there is nothing to send, the connection parks: it is suspended, and the
 * task's waker, or the server's ticker when a ping is due or the client has left,
 * unparks it. `parked` makes each suspend meet exactly one resume:
 *
 *     io thread                            waker
 *     suspend; parked = true               (the event is already readable)
 *     event there after all? -> unpark     unpark
 *
 * Whoever turns `parked` from true to false resumes; an event that comes
 * between the look and the parking is seen by the second look.
 */
#include "server/stream.h"

#include "base/clock.h"
#include "server/answer.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"
#include "task/task.h"

#include <string.h>
#include <sys/types.h>

enum { OUT_MAX = 32 * 1024 * 1024, BLOCK = 16 * 1024 };

void request_unpark(void *arg)
{
    struct request *rq = arg;

    if (atomic_exchange(&rq->parked, false))
        MHD_resume_connection(rq->mhd);
}

void request_park(struct request *rq)
{
    MHD_suspend_connection(rq->mhd);
    atomic_store(&rq->parked, true);
    if (ink_task_has_event(rq->task) || atomic_load(&rq->gone) ||
        atomic_load(&rq->server->stopping))
        request_unpark(rq);
}

/* A task that ended badly: what the client is told. The server's own stop is not the client's fault. */
static void explain_end(struct request *rq, struct ink_err *err)
{
    if (err->code == INK_CANCELLED && atomic_load(&rq->server->stopping))
        (void)ink_err_param(err, INK_BUSY, "", "draining",
                            "the server is shutting down; try again in 5 s");
}

json_t *task_answer(struct request *rq)
{
    json_t *answer = ink_answer_rewrite(rq->served, ink_task_result(rq->task), rq->details);

    if (rq->cache_word)
        (void)json_object_set_new(answer, "cache", json_string(rq->cache_word));
    if (rq->warning)
        (void)json_array_append_new(json_object_get(answer, "warnings"), json_string(rq->warning));
    return answer;
}

static void add_cache_header(struct request *rq)
{
    if (rq->cache_word)
        reply_header(rq, "X-Cache", rq->cache_word);
}

bool task_collect(struct request *rq)
{
    for (;;) {
        struct ink_task_event ev;
        struct ink_err err = { 0 };

        if (atomic_load(&rq->gone))
            return true;
        if (ink_task_next(rq->task, 0, &ev, &err) != INK_OK) {
            explain_end(rq, &err);
            reply_error(rq, &err);
            return true;
        }
        if (ev.kind == INK_TASK_DONE) {
            reply_json(rq, 200, task_answer(rq));
            add_cache_header(rq);
            return true;
        }
        if (ev.kind == INK_TASK_IDLE) {
            request_park(rq);
            return false;
        }
    }
}

/* Encodes what there is into rq->out; leaves it empty when there is nothing. */
static enum ink_status refill(struct request *rq)
{
    ink_buf_clear(&rq->out);
    rq->out_taken = 0;

    while (rq->out.len < BLOCK) {
        struct ink_task_event ev;
        struct ink_err err = { 0 };
        enum ink_status st;

        if (ink_task_next(rq->task, 0, &ev, &err) != INK_OK) {
            rq->out_ended = true;
            explain_end(rq, &err);
            return rq->dialect->fail(rq, &err);
        }
        if (ev.kind == INK_TASK_IDLE)
            break;
        st = rq->dialect->event(rq, &ev);
        if (st != INK_OK)
            return st;
        if (ev.kind == INK_TASK_DONE) {
            rq->out_ended = true;
            return INK_OK;
        }
    }

    /* A comment line: clients skip it, and a dead socket shows itself. */
    if (rq->out.len == 0 && task_stream_wants_ping(rq, ink_clock_ms()))
        return ink_buf_adds(&rq->out, ": ping\n\n");
    return INK_OK;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct request *rq = cls;
    (void)pos;

    if (atomic_load(&rq->gone))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (rq->out_taken == rq->out.len) {
        if (rq->out_ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        if (refill(rq) != INK_OK)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (rq->out.len == 0) {
            request_park(rq);
            return 0; /* allowed only because the connection is suspended */
        }
    }

    size_t left = rq->out.len - rq->out_taken;
    size_t n = left < max ? left : max;
    memcpy(to, rq->out.ptr + rq->out_taken, n);
    rq->out_taken += n;
    atomic_store(&rq->written_ms, ink_clock_ms());
    return (ssize_t)n;
}

void task_stream(struct request *rq)
{
    ink_buf_init(&rq->out, OUT_MAX);
    atomic_store(&rq->written_ms, ink_clock_ms());
    rq->response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, stream_read, rq, NULL);
    rq->status = 200;
    reply_header(rq, "Content-Type", "text/event-stream; charset=utf-8");
    reply_header(rq, "Cache-Control", "no-cache");
    reply_header(rq, "X-Accel-Buffering", "no");
    add_cache_header(rq);
}

bool task_stream_wants_ping(struct request *rq, int64_t now_ms)
{
    return now_ms - atomic_load(&rq->written_ms) >= STREAM_PING_MS;
}
