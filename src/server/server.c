/*
 * Start, drain and stop; the connection callbacks; the ticker.
 *
 * libmicrohttpd's threads call handle() several times for one request: with its
 * headers, with each piece of its body, when the body is complete, and again
 * after every resume. request.h has the stages. A worker always ends by resuming
 * the connection; from there on the io thread owns the request again.
 */
#include "server/server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/batch.h"
#include "server/media.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"
#include "server/stream.h"
#include "server/workers.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 200,
    HEAD_MS = 10000, /* first line to last header; below common proxy time-outs of 15 s and up */
    BODY_MS = 30000, /* for a small body; BODY_BYTES_PER_MS more for a large one */
    BODY_BYTES_PER_MS = 64, /* 64 kB/s: slower than any phone line of today */
    KEEP_ALIVE_S = 60,
    NEVER_ASKED_MS = 20000, /* a connection without a first line */
    SWALLOW_MAX =
        64 * 1024 * 1024,    /* of a refused body, so that its sender gets to read the answer */
    CONN_MEMORY = 48 * 1024, /* headers in and out */
    BACKLOG = 512,
    WAITING_MAX = 4096,
    SLOW_WAITING_MAX = 64,
    STOP_MS = 15000,
};

/* --- the answer's way out -------------------------------------------------------------------- */

static void add_common_headers(struct request *rq)
{
    static const struct {
        const char *name, *value;
    } common[] = {
        { "Content-Security-Policy",
          "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'" },
        { "X-Content-Type-Options", "nosniff" },
        { "Referrer-Policy", "no-referrer" },
        { "Cross-Origin-Resource-Policy", "same-origin" },
    };
    const char *origin = MHD_lookup_connection_value(rq->mhd, MHD_HEADER_KIND, "Origin");
    const char *allowed = auth_cors_origin(&rq->server->auth, origin);

    for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
        if (!(allowed && strcmp(common[i].name, "Cross-Origin-Resource-Policy") == 0))
            reply_header(rq, common[i].name, common[i].value);
    }
    if (!MHD_get_response_header(rq->response, "Cache-Control"))
        reply_header(rq, "Cache-Control", "no-store");
    if (allowed) {
        reply_header(rq, "Access-Control-Allow-Origin", allowed);
        reply_header(rq, "Access-Control-Expose-Headers", "X-Cache, X-Stream-Id, Retry-After");
        reply_header(rq, "Vary", "Origin");
    }
}

static void set_stage(struct request *rq, enum request_stage stage)
{
    pthread_mutex_lock(&rq->server->lock);
    rq->stage = stage;
    pthread_mutex_unlock(&rq->server->lock);
}

static enum MHD_Result send_reply(struct request *rq)
{
    if (!rq->response)
        return MHD_NO; /* the client is gone: nothing to say, close */
    add_common_headers(rq);
    set_stage(rq, STAGE_REPLY);

    enum MHD_Result queued = MHD_queue_response(rq->mhd, (unsigned)rq->status, rq->response);
    MHD_destroy_response(rq->response); /* the queue holds its own reference */
    rq->response = NULL;
    return queued;
}

/* --- the request's way in -------------------------------------------------------------------- */

static enum ink_status check_unavailable(struct ink_server *s, const struct route *route,
                                         struct ink_err *err)
{
    if (!(route->flags & ROUTE_MODEL))
        return INK_OK;
    if (atomic_load(&s->draining))
        return ink_err_param(err, INK_BUSY, "", "draining",
                             "the server is shutting down; try again in 5 s");
    if (!atomic_load(&s->catalog))
        return ink_err_param(err, INK_BUSY, "", "loading",
                             "the model is still being loaded; try again in 1 s");
    return INK_OK;
}

static enum ink_status check_type(const struct request *rq, struct ink_err *err)
{
    const char *type = request_header(rq, "Content-Type");
    bool lines = (rq->route->flags & ROUTE_LINES) != 0;

    if (!(rq->route->flags & ROUTE_JSON) || media_is(type, "application/json") ||
        (lines && media_is(type, "application/x-ndjson")))
        return INK_OK;
    return ink_err_param(err, INK_INVALID, "Content-Type", "unsupported_media_type",
                         "Content-Type: this path takes application/json%s",
                         lines ? " or application/x-ndjson" : "");
}

static enum ink_status too_large(const struct request *rq, struct ink_err *err)
{
    return ink_err_param(
        err, INK_INVALID, "", "too_large", "the body is larger than the %zu bytes that %s takes%s",
        rq->route->body_max, rq->route->path,
        rq->route->flags & ROUTE_BATCH
            ? "; send more as NDJSON, Content-Type and Accept application/x-ndjson, "
              "to /v1/rewrite/batch"
            : "");
}

/* Lines that are answered while they arrive: as many as there are. */
static bool is_feed(const struct request *rq)
{
    return rq->form.lines_in && rq->form.lines_out;
}

/* Everything that can be said from the headers alone. */
static enum ink_status check_head(struct request *rq, const char *method, const char *url,
                                  const char *allow, int64_t content_length, struct ink_err *err)
{
    struct ink_server *s = rq->server;
    char local[64] = "";
    struct sockaddr_storage address = { 0 };
    socklen_t len = sizeof(address);

    if (getsockname(rq->conn->fd, (struct sockaddr *)&address, &len) == 0)
        (void)getnameinfo((struct sockaddr *)&address, len, local, sizeof(local), NULL, 0,
                          NI_NUMERICHOST);

    struct auth_request who = {
        .host = request_header(rq, "Host"),
        .origin = request_header(rq, "Origin"),
        .authorization = request_header(rq, "Authorization"),
        .local_address = strncmp(local, "::ffff:", 7) == 0 ? local + 7 : local,
        .open = rq->route && (rq->route->flags & ROUTE_OPEN),
    };
    enum ink_status st = auth_check(&s->auth, &who, err);

    if (st != INK_OK)
        return st;
    if (!rq->route && allow[0])
        return ink_err_param(err, INK_INVALID, "", "method_not_allowed",
                             "this path does not answer %.16s, but %s", method, allow);
    if (!rq->route)
        return ink_err_param(err, INK_NOT_FOUND, "", "not_found", "%.100s: no such path", url);
    st = check_unavailable(s, rq->route, err);
    if (st != INK_OK)
        return st;
    st = check_type(rq, err);
    if (st == INK_OK && (rq->route->flags & ROUTE_LINES))
        st = batch_read_form(rq, &rq->form, err);
    if (st != INK_OK)
        return st;
    if (content_length > (int64_t)rq->route->body_max && rq->route->body_max > 0 && !is_feed(rq))
        return too_large(rq, err);
    return INK_OK;
}

static int64_t content_length_of(const struct request *rq)
{
    const char *text = request_header(rq, "Content-Length");

    return text ? (int64_t)strtoll(text, NULL, 10) : 0;
}

/* Answers a browser that asks whether another origin's page may call. */
static bool is_preflight(struct request *rq, const char *method)
{
    return strcmp(method, "OPTIONS") == 0 &&
           auth_cors_origin(&rq->server->auth, request_header(rq, "Origin")) &&
           request_header(rq, "Access-Control-Request-Method");
}

static enum MHD_Result begin(struct request *rq, const char *url, const char *method)
{
    char allow[ROUTE_ALLOW_CAP];
    int64_t length = content_length_of(rq);

    (void)snprintf(rq->path, sizeof(rq->path), "%s", rq->has_nul ? "%00" : url);
    rq->route = route_find(method, rq->path, allow);
    ink_buf_init(&rq->body, rq->route && rq->route->body_max > 0 ? rq->route->body_max : 1);
    if (is_preflight(rq, method)) {
        reply_static(rq, 204, "text/plain", "", 0);
        reply_header(rq, "Access-Control-Allow-Methods", "GET, POST, DELETE");
        reply_header(rq, "Access-Control-Allow-Headers",
                     "Content-Type, Authorization, Last-Event-ID");
        reply_header(rq, "Access-Control-Max-Age", "600");
    } else if (check_head(rq, method, url, allow, length, &rq->refused) != INK_OK) {
        reply_error(rq, &rq->refused);
        if (allow[0] && !rq->route)
            reply_header(rq, "Allow", allow);
    }
    if (rq->response && (length > SWALLOW_MAX || (length > 0 && request_header(rq, "Expect"))))
        return send_reply(rq);
    set_stage(rq, STAGE_BODY);
    return MHD_YES;
}

/* Bodies with many texts are large, and together must not be more than the machine has. */
static enum ink_status count_batch_bytes(struct request *rq, size_t len, struct ink_err *err)
{
    if (!(rq->route->flags & ROUTE_BATCH))
        return INK_OK;
    rq->batch_bytes += (int64_t)len;
    if (atomic_fetch_add(&rq->server->batch_bytes, (int64_t)len) + (int64_t)len <= BATCH_BODIES_MAX)
        return INK_OK;
    return ink_err_param(err, INK_BUSY, "", "overloaded",
                         "too many large requests at once; try again in 5 s");
}

static enum MHD_Result take_body(struct request *rq, const char *bytes, size_t len)
{
    if (atomic_fetch_add(&rq->body_seen, (int64_t)len) + (int64_t)len > SWALLOW_MAX)
        return MHD_NO;
    if (rq->response || !rq->route || rq->route->body_max == 0)
        return MHD_YES; /* already decided, or nobody asked for a body: swallow */
    enum ink_status st = count_batch_bytes(rq, len, &rq->refused);

    if (st == INK_OK && ink_buf_add(&rq->body, bytes, len) != INK_OK)
        st = too_large(rq, &rq->refused);
    if (st != INK_OK)
        reply_error(rq, &rq->refused);
    return MHD_YES;
}

/* Counted before the look at `draining`: ink_server_drain() sets that flag, then looks at the count. */
static enum ink_status count_running(struct request *rq, struct ink_err *err)
{
    rq->counted = true;
    atomic_fetch_add(&rq->server->metrics.running, 1);
    return check_unavailable(rq->server, rq->route, err);
}

/* The first line, or the end, of lines that are answered while they arrive. */
static enum ink_status open_feed(struct request *rq, const char *version, struct ink_err *err)
{
    enum ink_status st = count_running(rq, err);

    if (st != INK_OK)
        return st;
    reply_static(rq, 200, "application/x-ndjson", "", 0); /* for its headers only */
    add_common_headers(rq);
    st = batch_open_feed(rq, strcmp(version, "HTTP/1.0") == 0, err);
    if (st == INK_OK)
        set_stage(rq, STAGE_FEED);
    return st;
}

static enum MHD_Result feed(struct request *rq, const char *bytes, size_t *len)
{
    if (*len > 0) {
        *len -= batch_feed(rq, bytes, *len);
        return MHD_YES;
    }
    batch_feed_end(rq);
    if (!batch_feed_done(rq))
        return MHD_YES;
    rq->status = 200; /* if it was answered; the answer was the connection's last */
    return MHD_NO;
}

/* Worker. The last thing it does with the request is to hand it back. */
static void run_handler(struct request *rq)
{
    struct ink_err err = { 0 };

    if (!atomic_load(&rq->gone) && rq->route->run(rq, &err) != INK_OK)
        reply_error(rq, &err);
    MHD_resume_connection(rq->mhd);
}

/* The body is complete. */
static enum MHD_Result dispatch(struct request *rq)
{
    struct ink_server *s = rq->server;
    struct ink_err err = { 0 };

    if (rq->response)
        return send_reply(rq);
    if (rq->route->flags & ROUTE_INLINE) {
        if (rq->route->run(rq, &err) != INK_OK)
            reply_error(rq, &err);
        return send_reply(rq);
    }

    if (count_running(rq, &err) != INK_OK) {
        reply_error(rq, &err);
        return send_reply(rq);
    }
    set_stage(rq, STAGE_WORK);
    MHD_suspend_connection(rq->mhd);
    if (!workers_push(rq->route->flags & ROUTE_SLOW ? s->slow_workers : s->workers, rq)) {
        (void)ink_err_param(&err, INK_BUSY, "", "overloaded",
                            "too many requests are waiting; try again in 1 s");
        reply_error(rq, &err);
        MHD_resume_connection(rq->mhd);
    }
    return MHD_YES;
}

/*
 * A worker has given the request back: with an answer, with a stream to read, with a task, or with nothing
 * because the client left.
 */
static enum MHD_Result after_work(struct request *rq)
{
    if (!rq->response && rq->stream) {
        stream_reply(rq);
        atomic_fetch_add(&rq->server->metrics.streams, 1);
        return send_reply(rq);
    }
    if (!rq->response && rq->batch)
        batch_reply(rq);
    if (rq->response || !rq->work.task)
        return send_reply(rq);
    set_stage(rq, STAGE_WAIT);
    ink_task_set_waker(rq->work.task, request_unpark, rq);
    return work_collect(rq) ? send_reply(rq) : MHD_YES;
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *mhd, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **con_cls)
{
    struct request *rq = *con_cls;
    struct ink_err err = { 0 };
    (void)cls, (void)mhd;

    if (!rq)
        return MHD_NO;
    switch (rq->stage) {
    case STAGE_HEAD:
        return begin(rq, url, method);
    case STAGE_BODY:
        if (is_feed(rq) && !rq->response) {
            if (open_feed(rq, version, &err) == INK_OK)
                return feed(rq, upload, upload_len);
            reply_error(rq, &err);
        }
        if (*upload_len > 0) {
            enum MHD_Result taken = take_body(rq, upload, *upload_len);

            *upload_len = 0;
            return taken;
        }
        return dispatch(rq);
    case STAGE_WORK:
        return after_work(rq);
    case STAGE_WAIT:
        return work_collect(rq) ? send_reply(rq) : MHD_YES;
    case STAGE_FEED:
        return feed(rq, upload, upload_len);
    case STAGE_REPLY:
        break;
    }
    return MHD_NO;
}

/* The first line of a request is there: the request begins. */
static void *first_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct ink_server *s = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct request *rq = ink_zalloc(sizeof(*rq));

    rq->server = s;
    rq->mhd = mhd;
    rq->start_ns = ink_clock_ns();
    rq->conn = info->socket_context;
    rq->has_nul = strstr(uri, "%00") != NULL; /* decoded, it would end the path early */
    pthread_mutex_lock(&s->lock);
    rq->conn->rq = rq;
    rq->conn->has_asked = true;
    pthread_mutex_unlock(&s->lock);
    return rq;
}

static void count_request(struct request *rq, enum MHD_RequestTerminationCode how)
{
    struct ink_server *s = rq->server;
    int64_t took = ink_clock_ns() - rq->start_ns;
    bool lost = rq->stage == STAGE_FEED
                    ? !batch_was_answered(rq->batch)
                    : atomic_load(&rq->gone) || rq->status == 0 ||
                          (how != MHD_REQUEST_TERMINATED_COMPLETED_OK && rq->counted);
    int code = lost ? 499 : rq->status;

    if (lost)
        atomic_fetch_add(&s->metrics.clients_gone, 1);
    metrics_count(&s->metrics, rq->route, code, took);
    if (rq->counted) /* last: whoever sees that nothing runs sees the other counts complete */
        atomic_fetch_sub(&s->metrics.running, 1);

    bool quiet = rq->route && (rq->route->flags & ROUTE_QUIET);
    ink_log(quiet ? INK_LOG_DEBUG : INK_LOG_INFO, "%s %s %d %.1f ms",
            rq->route ? rq->route->method : "-", rq->route ? rq->route->path : "(no route)", code,
            (double)took / 1e6);
}

/* Runs on every way out of a request. */
static void completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                      enum MHD_RequestTerminationCode how)
{
    struct request *rq = *con_cls;
    struct ink_server *s = cls;
    (void)mhd;

    if (!rq)
        return;
    *con_cls = NULL;
    pthread_mutex_lock(&s->lock);
    rq->conn->rq = NULL;
    rq->conn->idle_since_ms = ink_clock_ms();
    pthread_mutex_unlock(&s->lock);

    /* Before it is counted as done: a drain then sees the one or the other. */
    if (rq->stream && rq->stage == STAGE_REPLY)
        atomic_fetch_sub(&s->metrics.streams, 1);
    stream_leave(rq);
    count_request(rq, how);
    batch_leave(rq); /* cancels */
    atomic_fetch_sub(&s->batch_bytes, rq->batch_bytes);
    ink_task_free(rq->work.task); /* cancels; its waker is not called after this */
    if (rq->response)
        MHD_destroy_response(rq->response);
    if (rq->body.ptr)
        ink_buf_release(&rq->body);
    free(rq);
}

static void connection_changed(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct ink_server *s = cls;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct conn *c = ink_zalloc(sizeof(*c));

        c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        c->idle_since_ms = ink_clock_ms();
        *socket_context = c;
        pthread_mutex_lock(&s->lock);
        c->next = &s->conns;
        c->prev = s->conns.prev;
        c->prev->next = c;
        s->conns.prev = c;
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_add(&s->metrics.connections, 1);
    } else {
        struct conn *c = *socket_context;

        pthread_mutex_lock(&s->lock);
        c->prev->next = c->next;
        c->next->prev = c->prev;
        pthread_mutex_unlock(&s->lock);
        atomic_fetch_sub(&s->metrics.connections, 1);
        free(c);
        *socket_context = NULL;
    }
}

/* --- the ticker ------------------------------------------------------------------------------- */

/*
 * Nothing has been sent on this connection for the request, so an answer may be written past libmicrohttpd.
 */
static void cut_slow_sender_locked(struct ink_server *s, struct conn *c)
{
    static const char body[] =
        "{\"error\":{\"message\":\"the request took too long to arrive\","
        "\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"request_timeout\"}}\n";
    char answer[512];

    if (c->is_cut)
        return;
    c->is_cut = true;
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\n"
                       "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                       sizeof(body) - 1, body);
    (void)send(c->fd, answer, (size_t)len,
               MSG_DONTWAIT | MSG_NOSIGNAL); /* it may be gone already */
    (void)shutdown(c->fd, SHUT_RDWR);
    atomic_fetch_add(&s->metrics.slow_clients, 1);
}

static bool peer_has_left(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/*
 * A connection that owes us bytes. The library can miss the end of one that is closed in the middle of
 * a line, as the end comes between its reading and its waiting; shutting down wakes it.
 */
static void tick_sender_locked(struct ink_server *s, struct conn *c, int64_t age_ms, int64_t max_ms)
{
    if (age_ms > max_ms)
        cut_slow_sender_locked(s, c);
    else if (peer_has_left(c->fd))
        (void)shutdown(c->fd, SHUT_RDWR);
}

static void tick_request_locked(struct ink_server *s, struct conn *c, int64_t now_ms)
{
    struct request *rq = c->rq;
    int64_t age_ms = now_ms - rq->start_ns / 1000000;

    switch (rq->stage) {
    case STAGE_HEAD:
        tick_sender_locked(s, c, age_ms, HEAD_MS);
        break;
    case STAGE_BODY:
        tick_sender_locked(s, c, age_ms, BODY_MS + atomic_load(&rq->body_seen) / BODY_BYTES_PER_MS);
        break;
    case STAGE_WORK:
        if (peer_has_left(c->fd))
            atomic_store(&rq->gone, true);
        break;
    case STAGE_FEED:
        if (batch_tick(rq, now_ms))
            (void)shutdown(c->fd, SHUT_RDWR);
        break;
    case STAGE_REPLY:
        if (rq->batch && peer_has_left(c->fd)) {
            batch_abandon(rq->batch);
            request_unpark(rq);
        }
        if (!rq->stream)
            break;
        if (stream_wants_ping(rq, now_ms))
            request_unpark(rq);
        /* fall through */
    case STAGE_WAIT:
        if (!atomic_load(&rq->gone) && peer_has_left(c->fd)) {
            atomic_store(&rq->gone, true);
            if (rq->work.task)
                ink_task_cancel(rq->work.task);
        }
        if (atomic_load(&rq->gone))
            request_unpark(rq);
        break;
    }
}

static void *tick(void *arg)
{
    struct ink_server *s = arg;

    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stopping)) {
        int64_t now_ms = ink_clock_ms();

        for (struct conn *c = s->conns.next; c != &s->conns; c = c->next) {
            if (c->rq)
                tick_request_locked(s, c, now_ms);
            else
                tick_sender_locked(s, c, now_ms - c->idle_since_ms,
                                   c->has_asked ? KEEP_ALIVE_S * 1000 + HEAD_MS : NEVER_ASKED_MS);
        }
        pthread_mutex_unlock(&s->lock);
        streams_tick(s->streams, now_ms);
        pthread_mutex_lock(&s->lock);

        struct timespec next = ink_clock_deadline(TICK_MS);
        pthread_cond_timedwait(&s->tick, &s->lock, &next);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- start, drain, stop ----------------------------------------------------------------------- */

static enum ink_status listen_on(const struct addrinfo *at, const char *host, int port, int *out,
                                 struct ink_err *err)
{
    int yes = 1;
    int fd = socket(at->ai_family, SOCK_STREAM, 0);

    if (fd < 0)
        return ink_err_set(err, INK_IO, "%s:%d: %s", host, port, strerror(errno));
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes,
                     sizeof(yes)); /* over connections of a dead server */
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        *out = fd;
        return INK_OK;
    }

    int why = errno;
    char holder[80];
    close(fd);
    if (why == EADDRINUSE && ink_port_holder(port, holder, sizeof(holder)))
        return ink_err_set(err, INK_BUSY,
                           "%s:%d: port in use by %s; stop it or choose another --port", host, port,
                           holder);
    if (why == EADDRINUSE)
        return ink_err_set(err, INK_BUSY, "%s:%d: port in use; choose another --port", host, port);
    return ink_err_set(err, INK_IO, "%s:%d: %s", host, port, strerror(why));
}

static bool is_loopback_address(const struct sockaddr *a, socklen_t len)
{
    char text[64];

    return getnameinfo(a, len, text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
           auth_is_loopback(text);
}

static enum ink_status open_listener(const struct ink_server_options *o, const char *host, int *fd,
                                     bool *is_v6, struct ink_err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    char service[16];
    enum ink_status st;

    (void)snprintf(service, sizeof(service), "%d", o->port);
    int why = getaddrinfo(host, service, &hints, &found);
    if (why != 0)
        return ink_err_param(err, INK_INVALID, "host", "", "--host %s: %s", host,
                             gai_strerror(why));

    if (!is_loopback_address(found->ai_addr, found->ai_addrlen) && o->n_api_keys == 0 &&
        !o->insecure)
        st = ink_err_param(
            err, INK_INVALID, "host", "",
            "--host %s: others could call this server; give it an --api-key, or say --insecure",
            host);
    else
        st = listen_on(found, host, o->port, fd, err);
    *is_v6 = found->ai_family == AF_INET6;
    freeaddrinfo(found);
    return st;
}

static int port_of(int fd)
{
    struct sockaddr_storage a = { 0 };
    socklen_t len = sizeof(a);
    char service[16];

    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0 ||
        getnameinfo((struct sockaddr *)&a, len, NULL, 0, service, sizeof(service),
                    NI_NUMERICSERV) != 0)
        return 0;
    return (int)strtol(service, NULL, 10);
}

static char *url_of(const char *host, int port)
{
    char url[320];

    (void)snprintf(url, sizeof(url), strchr(host, ':') ? "http://[%s]:%d" : "http://%s:%d", host,
                   port);
    return ink_strdup(url);
}

static void log_line(void *cls, const char *format, va_list args)
{
    char text[256];
    (void)cls;

    (void)vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    ink_log(INK_LOG_DEBUG, "http: %s", text);
}

static enum ink_status start_daemon(struct ink_server *s, const struct ink_server_options *o,
                                    int fd, bool is_v6, struct ink_err *err)
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG | (is_v6 ? (unsigned)MHD_USE_IPv6 : 0U);
    int max_connections = o->max_connections > 0 ? o->max_connections : 1024;
    int n_io = o->n_io_threads > 1 ? o->n_io_threads : 2;
    sigset_t all, before;

    /* Its threads inherit the mask: signals are for the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, s, MHD_OPTION_EXTERNAL_LOGGER, log_line, s,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)n_io,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)KEEP_ALIVE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONN_MEMORY,
        MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_NOTIFY_CONNECTION, connection_changed,
        s, MHD_OPTION_URI_LOG_CALLBACK, first_line, s, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->daemon ? INK_OK
                     : ink_err_set(err, INK_IO, "the HTTP server could not start its threads");
}

static int clamp(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

enum ink_status ink_server_start(const struct ink_server_options *o, struct ink_server **out,
                                 struct ink_err *err)
{
    const char *host = o->host ? o->host : "127.0.0.1";
    struct ink_server *s;
    struct auth auth;
    enum ink_status st;
    bool is_v6 = false;
    int fd = -1;

    if (o->port < 0 || o->port > 65535)
        return ink_err_param(err, INK_INVALID, "port", "", "--port %d is not in 0..65535", o->port);
    if (strlen(host) > 255)
        return ink_err_param(err, INK_INVALID, "host", "", "--host: longer than 255 characters");
    st = auth_init(&auth, o->api_keys, o->n_api_keys, host, o->allowed_hosts, o->n_allowed_hosts,
                   o->cors_origins, o->n_cors_origins, err);
    if (st != INK_OK)
        return st;
    st = open_listener(o, host, &fd, &is_v6, err);
    if (st != INK_OK) {
        auth_release(&auth);
        return st;
    }

    s = ink_zalloc(sizeof(*s));
    s->auth = auth;
    s->conns.next = s->conns.prev = &s->conns;
    s->metrics.start_ms = ink_clock_ms();
    s->port = port_of(fd);
    s->url = url_of(host, s->port);
    atomic_store(&s->catalog, o->catalog);
    s->streams = streams_new(s);
    pthread_mutex_init(&s->lock, NULL);
    ink_cond_init(&s->tick);
    s->workers = workers_start("ink-worker",
                               clamp(o->n_workers > 0 ? o->n_workers : ink_thread_n_cpus(), 2, 8),
                               WAITING_MAX, run_handler);
    s->slow_workers = workers_start("ink-slow", 2, SLOW_WAITING_MAX, run_handler);
    s->has_ticker = ink_thread_start(&s->ticker, "ink-ticker", tick, s) == 0;
    s->batches = batches_start(s);
    if (!s->workers || !s->slow_workers || !s->batches || !s->has_ticker)
        st = ink_err_set(err, INK_IO, "the HTTP server could not start its threads");
    else
        st = start_daemon(s, o, fd, is_v6, err);
    if (st != INK_OK) {
        close(fd);
        ink_server_stop(s);
        return st;
    }
    *out = s;
    return INK_OK;
}

void ink_server_set_catalog(struct ink_server *s, struct ink_catalog *catalog)
{
    atomic_store(&s->catalog, catalog);
}

int ink_server_port(const struct ink_server *s)
{
    return s->port;
}

const char *ink_server_url(const struct ink_server *s)
{
    return s->url;
}

static void nap(int wait_ms)
{
    struct timespec t = { wait_ms / 1000, (long)(wait_ms % 1000) * 1000000 };

    (void)nanosleep(&t, NULL);
}

/*
 * Requests, and streams that run without a reader. A stream's reader may come or go between two looks, so the
 * streams are looked at on both sides.
 */
static int n_running(struct ink_server *s)
{
    int before = streams_n_alone(s->streams);
    int requests = atomic_load(&s->metrics.running);
    int after = streams_n_alone(s->streams);

    return requests + (before > after ? before : after);
}

int ink_server_drain(struct ink_server *s, int timeout_ms)
{
    int64_t end_ms = ink_clock_ms() + timeout_ms;

    atomic_store(&s->draining, true);
    if (s->batches)
        batches_wake(s->batches);
    while (n_running(s) > 0 && ink_clock_ms() < end_ms)
        nap(10);
    return n_running(s);
}

/* Cancels what runs; true while a worker has a request or one is parked. */
static bool hurry(struct ink_server *s)
{
    bool busy = false;

    streams_cancel(s->streams);
    if (s->batches)
        batches_wake(s->batches);
    pthread_mutex_lock(&s->lock);
    for (struct conn *c = s->conns.next; c != &s->conns; c = c->next) {
        struct request *rq = c->rq;

        if (!rq)
            continue;
        if (rq->stage == STAGE_WAIT)
            ink_task_cancel(rq->work.task);
        request_unpark(rq);
        busy = busy || rq->stage == STAGE_WORK || rq->stage == STAGE_WAIT ||
               (rq->stage == STAGE_REPLY && (rq->stream || rq->batch)) ||
               (rq->stage == STAGE_FEED && !batch_was_answered(rq->batch));
    }
    pthread_mutex_unlock(&s->lock);
    return busy;
}

/* Who did not read a batch's answer by now never will; its connection may be suspended. */
static void abandon_batches(struct ink_server *s)
{
    struct batch_counts n;
    int64_t end_ms = ink_clock_ms() + 1000;

    if (!s->batches)
        return;
    batches_abandon(s->batches);
    do {
        batches_counts(s->batches, &n);
        nap(1);
    } while (n.running > 0 && ink_clock_ms() < end_ms);
}

void ink_server_stop(struct ink_server *s)
{
    if (!s)
        return;
    atomic_store(&s->draining, true);
    atomic_store(&s->stopping, true);
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->tick);
    pthread_mutex_unlock(&s->lock);
    if (s->has_ticker)
        pthread_join(s->ticker, NULL);

    /* The library may not be stopped while a connection is suspended. A client that does not read its stream
       only costs the wait: its connection is not suspended. */
    int64_t end_ms = ink_clock_ms() + STOP_MS;
    while (hurry(s) && ink_clock_ms() < end_ms)
        nap(5);
    abandon_batches(s);
    workers_stop(s->workers);
    workers_stop(s->slow_workers);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    batches_stop(s->batches);
    streams_free(s->streams);
    auth_release(&s->auth);
    pthread_cond_destroy(&s->tick);
    pthread_mutex_destroy(&s->lock);
    free(s->url);
    free(s);
}
