/*
 * How a call's bytes come in and go out.
 *
 * A complete body's answer is pulled out of the outbox by libmicrohttpd, which parks when that is empty. Lines that arrive
 * while they are answered are the other case: the io thread copies upload into the call's line buffer and parks when that is
 * full, so the library stops reading and the socket's window closes; the loop sends the answer itself, in chunks. The
 * library writes nothing to a connection whose body is arriving, and the connection ends with the answer.
 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/batch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/batch_private.h"
#include "server/media.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    WIRE_MAX = 64 * 1024,
    CLOSING_MS =
        2000, /* for a client to read the end of an answer that came before the end of its request */
};

static const char media_lines[] = "application/x-ndjson";

/* --- making and freeing ------------------------------------------------------------------------- */

void batch_input_release(struct batch_input *in)
{
    ink_rewrite_call_release(&in->call);
    json_decref(in->options);
    json_decref(in->texts);
    free(in->body);
    *in = (struct batch_input){ 0 };
}

static struct batch *batch_new(struct request *rq, struct batch_input *in)
{
    struct batch *b = ink_zalloc(sizeof(*b));

    b->loop = rq->server->batches;
    b->server = rq->server;
    atomic_init(&b->refs, 1);
    b->start_ns = ink_clock_ns();
    b->in = *in;
    *in = (struct batch_input){ 0 };
    b->fd = -1;
    b->rq = rq;
    atomic_init(&b->moved_ms, ink_clock_ms());
    pthread_mutex_init(&b->lock, NULL);
    ink_buf_init(&b->line, BATCH_LINE_MAX);
    ink_buf_init(&b->wire, WIRE_MAX);
    ink_lines_init(&b->lines, BATCH_LINE_MAX);
    outbox_init(&b->out);
    return b;
}

void batch_unref(struct batch *b)
{
    if (atomic_fetch_sub(&b->refs, 1) > 1)
        return;
    batch_input_release(&b->in);
    ink_buf_release(&b->line);
    ink_buf_release(&b->wire);
    ink_lines_release(&b->lines);
    outbox_release(&b->out);
    if (b->fd >= 0)
        close(b->fd);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Gives the call to the loop and the request. */
static enum ink_status hand_over(struct request *rq, struct batch *b, struct ink_err *err)
{
    atomic_fetch_add(&b->refs, 1);
    if (!batches_take(b->loop, b)) {
        b->rq = NULL;
        atomic_store(&b->refs, 1); /* nobody else has seen it */
        batch_unref(b);
        return ink_err_param(err, INK_BUSY, "", "overloaded",
                             "%d batches run already; try again in 5 s", BATCH_CALLS_MAX);
    }
    rq->batch = b;
    return INK_OK;
}

enum ink_status batch_start(struct request *rq, struct batch_input *in, struct ink_err *err)
{
    return hand_over(rq, batch_new(rq, in), err);
}

void batch_wake_reader(struct batch *b)
{
    pthread_mutex_lock(&b->lock);
    if (b->rq)
        request_unpark(b->rq);
    pthread_mutex_unlock(&b->lock);
}

void batch_abandon(struct batch *b)
{
    atomic_store(&b->gone, true);
    batches_wake(b->loop);
}

bool batch_was_answered(struct batch *b)
{
    return atomic_load(&b->closed_ms) != 0;
}

void batch_leave(struct request *rq)
{
    struct batch *b = rq->batch;

    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->rq = NULL;
    pthread_mutex_unlock(&b->lock);
    batch_abandon(b); /* nothing is left to do when it was answered */
    batch_unref(b);
    rq->batch = NULL;
}

/* --- headers ------------------------------------------------------------------------------------ */

enum ink_status batch_read_form(const struct request *rq, struct batch_form *form,
                                struct ink_err *err)
{
    const char *ordered = MHD_lookup_connection_value(rq->mhd, MHD_GET_ARGUMENT_KIND, "ordered");

    form->lines_in = media_is(request_header(rq, "Content-Type"), media_lines);
    form->lines_out = media_accepts(request_header(rq, "Accept"), media_lines);
    form->ordered = ordered && (strcmp(ordered, "1") == 0 || strcmp(ordered, "true") == 0);
    if (ordered && !form->ordered && strcmp(ordered, "0") != 0 && strcmp(ordered, "false") != 0)
        return ink_err_param(err, INK_INVALID, "ordered", "invalid_value",
                             "ordered: must be 0 or 1");
    return INK_OK;
}

/* --- out, by libmicrohttpd ---------------------------------------------------------------------- */

static bool has_output(struct request *rq)
{
    struct batch *b = rq->batch;

    pthread_mutex_lock(&b->lock);
    bool has = !outbox_is_empty(&b->out) || b->out_ended;
    pthread_mutex_unlock(&b->lock);
    return has || atomic_load(&b->gone);
}

static ssize_t read_answer(void *cls, uint64_t pos, char *to, size_t max)
{
    struct request *rq = cls;
    struct batch *b = rq->batch;
    (void)pos;

    if (atomic_load(&b->gone) || atomic_load(&rq->gone))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    pthread_mutex_lock(&b->lock);
    long n = outbox_take(&b->out, to, max);
    bool ended = b->out_ended && outbox_is_empty(&b->out);
    pthread_mutex_unlock(&b->lock);

    if (n < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n > 0) {
        batches_wake(b->loop); /* there is room */
        return (ssize_t)n;
    }
    if (ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    request_park(rq, has_output);
    return 0; /* allowed only because the connection is suspended */
}

void batch_reply(struct request *rq)
{
    rq->response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BATCH_BLOCK, read_answer, rq, NULL);
    rq->status = 200;
    reply_header(rq, "Content-Type",
                 rq->batch->in.answer == BATCH_LINES ? media_lines : "application/json");
    reply_header(rq, "X-Accel-Buffering", "no");
}

/* --- in, while it is answered ------------------------------------------------------------------- */

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct ink_buf *head = cls;
    (void)kind;

    return ink_buf_addf(head, "%s: %s\r\n", name, value ? value : "") == INK_OK ? MHD_YES : MHD_NO;
}

static enum ink_status write_date(struct ink_buf *head)
{
    static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
    static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    time_t now = time(NULL);
    struct tm t;

    if (!gmtime_r(&now, &t))
        return INK_OK; /* a server without a clock sends none */
    return ink_buf_addf(head, "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n", days[t.tm_wday],
                        t.tm_mday, months[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min,
                        t.tm_sec);
}

/* The answer's head, with the headers that libmicrohttpd would have sent. */
static enum ink_status write_head(struct batch *b, struct request *rq)
{
    enum ink_status st = ink_buf_adds(&b->wire, "HTTP/1.1 200 OK\r\n");

    reply_header(rq, "X-Accel-Buffering", "no");
    (void)MHD_get_response_headers(rq->response, add_header, &b->wire);
    if (st == INK_OK)
        st = write_date(&b->wire);
    if (st == INK_OK && b->chunked)
        st = ink_buf_adds(&b->wire, "Transfer-Encoding: chunked\r\n");
    if (st == INK_OK)
        st = ink_buf_adds(&b->wire, "Connection: close\r\n\r\n");
    MHD_destroy_response(rq->response);
    rq->response = NULL;
    return st;
}

enum ink_status batch_open_feed(struct request *rq, bool http10, struct ink_err *err)
{
    struct batch_input in = { .answer = BATCH_LINES, .ordered = rq->form.ordered };
    int yes = 1;

    ink_rewrite_call_init(&in.call);
    struct batch *b = batch_new(rq, &in);
    b->is_feed = true;
    b->chunked = !http10;
    b->fd = fcntl(rq->conn->fd, F_DUPFD_CLOEXEC, 0);
    if (b->fd < 0) {
        b->rq = NULL;
        batch_unref(b);
        return ink_err_param(err, INK_BUSY, "", "overloaded",
                             "too many connections are open; try again in 5 s");
    }
    (void)setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (write_head(b, rq) != INK_OK) {
        b->rq = NULL;
        batch_unref(b);
        return ink_err_set(err, INK_NO_MEMORY, "the answer's head does not fit");
    }
    /* The ticker looks after it: it knows whether the silence is ours. */
    (void)MHD_set_connection_option(rq->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    return hand_over(rq, b, err);
}

static bool takes_no_more(const struct batch *b)
{
    return atomic_load(&b->gone) || atomic_load(&b->closed_ms) != 0;
}

static bool has_room(struct request *rq)
{
    struct batch *b = rq->batch;

    pthread_mutex_lock(&b->lock);
    bool has = ink_lines_room(&b->lines) > 0 || b->cut.code != INK_OK;
    pthread_mutex_unlock(&b->lock);
    return has || takes_no_more(b);
}

size_t batch_feed(struct request *rq, const char *bytes, size_t len)
{
    struct batch *b = rq->batch;
    size_t taken = 0;

    pthread_mutex_lock(&b->lock);
    bool over = b->cut.code != INK_OK || takes_no_more(b);
    while (!over && taken < len) {
        size_t room = ink_lines_room(&b->lines);
        size_t n = room < len - taken ? room : len - taken;
        char *to = n > 0 ? ink_lines_reserve(&b->lines, n) : NULL;

        if (!to)
            break;
        memcpy(to, bytes + taken, n);
        ink_lines_commit(&b->lines, n);
        taken += n;
    }
    pthread_mutex_unlock(&b->lock);

    if (over)
        return len; /* dropped */
    batches_wake(b->loop);
    if (taken < len)
        request_park(rq, has_room);
    return taken;
}

void batch_feed_end(struct request *rq)
{
    struct batch *b = rq->batch;

    pthread_mutex_lock(&b->lock);
    if (!b->lines_ended)
        atomic_store(&b->moved_ms, ink_clock_ms());
    b->lines.ended = b->lines_ended = true;
    pthread_mutex_unlock(&b->lock);
    batches_wake(b->loop);
}

static bool is_over(struct request *rq)
{
    return takes_no_more(rq->batch);
}

bool batch_feed_done(struct request *rq)
{
    if (is_over(rq))
        return true;
    request_park(rq, is_over);
    return false;
}

/* --- out, by the loop --------------------------------------------------------------------------- */

/* The next piece, framed; false: there is none. */
static bool fill_wire(struct batch *b)
{
    char piece[BATCH_BLOCK];
    enum ink_status st = INK_OK;

    ink_buf_clear(&b->wire);
    b->wire_at = 0;
    pthread_mutex_lock(&b->lock);
    long n = outbox_take(&b->out, piece, sizeof(piece));
    bool ended = b->out_ended && outbox_is_empty(&b->out);
    int64_t in_file = outbox_in_file(&b->out);
    pthread_mutex_unlock(&b->lock);

    batches_count_file(b->loop, in_file - b->in_file);
    b->in_file = in_file;
    if (n < 0) {
        atomic_store(&b->gone, true);
        return false;
    }
    if (n > 0) {
        if (b->chunked)
            st = ink_buf_addf(&b->wire, "%lx\r\n", (unsigned long)n);
        if (st == INK_OK)
            st = ink_buf_add(&b->wire, piece, (size_t)n);
        if (st == INK_OK && b->chunked)
            st = ink_buf_adds(&b->wire, "\r\n");
    } else if (ended && !b->last_framed) {
        b->last_framed = true;
        if (b->chunked)
            st = ink_buf_adds(&b->wire, "0\r\n\r\n");
    }
    return st == INK_OK && b->wire.len > 0;
}

static bool is_stuck(struct batch *b, int64_t now_ms)
{
    pthread_mutex_lock(&b->lock);
    bool may_wait = !b->lines_ended && b->cut.code == INK_OK && outbox_wants(&b->out, true);
    pthread_mutex_unlock(&b->lock);
    return !may_wait && now_ms - atomic_load(&b->moved_ms) > BATCH_IDLE_MS;
}

static void send_wire(struct batch *b, int64_t now_ms)
{
    b->wants_write = false;
    while (b->wire_at < b->wire.len || fill_wire(b)) {
        ssize_t n = send(b->fd, b->wire.ptr + b->wire_at, b->wire.len - b->wire_at,
                         MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            b->wants_write = true;
            if (is_stuck(b, now_ms)) {
                ink_log(INK_LOG_INFO, "a client reads none of its batch's answers: left");
                atomic_store(&b->gone, true);
            }
            return;
        }
        if (n < 0) {
            atomic_store(&b->gone, true);
            return;
        }
        b->wire_at += (size_t)n;
        atomic_store(&b->moved_ms, now_ms);
    }
}

bool batch_flush(struct batch *b, int64_t now_ms)
{
    if (!b->is_feed) {
        /* The request reads what is left of it without the loop. */
        pthread_mutex_lock(&b->lock);
        bool ended = b->out_ended;
        pthread_mutex_unlock(&b->lock);
        return !ended;
    }
    send_wire(b, now_ms);
    if (!b->last_framed || b->wire_at < b->wire.len)
        return true;
    if (!atomic_load(&b->gone)) {
        (void)shutdown(b->fd, SHUT_WR); /* a client that still sends sees the end */
        atomic_store(&b->closed_ms, now_ms);
    }
    batch_wake_reader(b);
    return false;
}

/* --- the ticker's look -------------------------------------------------------------------------- */

/* Also while bytes that nobody has read wait before the end. */
static bool has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool batch_tick(struct request *rq, int64_t now_ms)
{
    struct batch *b = rq->batch;
    int64_t closed_ms = atomic_load(&b->closed_ms);

    if (closed_ms != 0)
        return now_ms - closed_ms > CLOSING_MS;
    if (!atomic_load(&b->gone) && has_hung_up(rq->conn->fd))
        batch_abandon(b);
    if (atomic_load(&b->gone)) {
        request_unpark(rq);
        return true;
    }
    if (!atomic_load(&rq->parked) && now_ms - atomic_load(&b->moved_ms) > BATCH_IDLE_MS) {
        pthread_mutex_lock(&b->lock);
        if (b->cut.code == INK_OK && !b->lines_ended)
            (void)ink_err_param(&b->cut, INK_INVALID, "", "request_timeout",
                                "no line came for %d s; the lines before it are answered",
                                BATCH_IDLE_MS / 1000);
        pthread_mutex_unlock(&b->lock);
        batches_wake(b->loop);
    }
    return false;
}
