/* Streams: a log that a task fills and requests read, and the table of those that outlive their readers. */
#include "server/stream.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"
#include "task/task.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum { LOG_MAX = 32 * 1024 * 1024, BLOCK = 16 * 1024 };

struct streams {
    struct ink_server *server;
    pthread_mutex_t lock;
    struct stream *first; /* all there are */
};

struct stream {
    struct streams *table;
    const struct dialect *dialect;
    int linger_ms; /* 0: ends with its last reader */
    int key;

    /* Under the table's lock: */
    struct stream *next;
    int refs; /* the table's own while it is kept, one a reader, one while the ticker pulls */
    int n_readers;
    int64_t idle_since_ms; /* without readers since */
    int64_t pulled_ms;     /* when the ticker last pulled */

    atomic_bool kept;  /* can be found; cleared under the table's lock */
    atomic_bool ended; /* the log is complete; set under the lock below */
    _Atomic size_t n_bytes;

    pthread_mutex_t lock; /* guards what follows, and the readers' places */
    struct work work;     /* no task once it has ended */
    struct stream_log log;
    bool broken; /* ended before its last event, for lack of room */

    pthread_mutex_t readers_lock; /* the waker takes it under the task's own lock */
    struct request *readers;
};

/* --- one stream ------------------------------------------------------------------------------- */

static void wake_readers(void *arg)
{
    struct stream *s = arg;

    pthread_mutex_lock(&s->readers_lock);
    for (struct request *rq = s->readers; rq; rq = rq->next_reader)
        request_unpark(rq);
    pthread_mutex_unlock(&s->readers_lock);
}

static struct stream *stream_new(struct streams *t, const struct work *work,
                                 const struct dialect *dialect, int linger_ms, int key)
{
    struct stream *s = ink_zalloc(sizeof(*s));

    s->table = t;
    s->dialect = dialect;
    s->linger_ms = linger_ms;
    s->key = key;
    s->work = *work;
    atomic_init(&s->kept, linger_ms > 0);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->readers_lock, NULL);
    stream_log_init(&s->log, ink_task_result(work->task)->id, LOG_MAX);
    ink_task_set_waker(work->task, wake_readers, s);
    return s;
}

static void stream_free(struct stream *s)
{
    if (!s)
        return;
    ink_task_free(s->work.task); /* cancels; the waker is not called after this */
    stream_log_release(&s->log);
    pthread_mutex_destroy(&s->readers_lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void end_locked(struct stream *s)
{
    ink_task_free(s->work.task);
    s->work.task = NULL;
    atomic_store(&s->ended, true);
}

/* Writes into the log what the task has to tell, `room` bytes and a little more. */
static void pull_locked(struct stream *s, size_t room)
{
    size_t before = stream_log_end(&s->log);
    enum ink_status st = INK_OK;

    while (st == INK_OK && !atomic_load(&s->ended) && stream_log_end(&s->log) - before < room) {
        struct ink_task_event ev;
        struct ink_err err = { 0 };

        if (ink_task_next(s->work.task, 0, &ev, &err) != INK_OK) {
            request_explain_end(s->table->server, &err);
            st = s->dialect->fail(&s->log, &err);
            end_locked(s);
        } else if (ev.kind == INK_TASK_IDLE) {
            break;
        } else {
            st = s->dialect->event(&s->log, &s->work, &ev);
            if (ev.kind == INK_TASK_DONE)
                end_locked(s);
        }
    }
    if (st != INK_OK) {
        s->broken = true;
        end_locked(s);
    }
    atomic_store(&s->n_bytes, s->log.bytes.len);
}

/* What nobody can ask for again is dropped when all have read it. */
static void forget_locked(struct stream *s)
{
    bool all = !atomic_load(&s->kept);

    pthread_mutex_lock(&s->readers_lock);
    for (const struct request *rq = s->readers; rq && all; rq = rq->next_reader)
        all = rq->stream_place == stream_log_end(&s->log);
    pthread_mutex_unlock(&s->readers_lock);
    if (all)
        stream_log_forget(&s->log);
}

static bool reader_has_more(struct request *rq)
{
    struct stream *s = rq->stream;

    pthread_mutex_lock(&s->lock);
    bool more = rq->stream_place < stream_log_end(&s->log) || atomic_load(&s->ended) ||
                ink_task_has_event(s->work.task);
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* The next bytes for a reader; 0: none now. `*end`: what to return for good instead. */
static size_t take(struct request *rq, char *to, size_t cap, ssize_t *end)
{
    struct stream *s = rq->stream;
    bool grown = false;

    pthread_mutex_lock(&s->lock);
    if (rq->stream_place == stream_log_end(&s->log)) {
        pull_locked(s, BLOCK);
        grown = rq->stream_place < stream_log_end(&s->log) || atomic_load(&s->ended);
    }
    size_t n = stream_log_read(&s->log, rq->stream_place, to, cap);
    rq->stream_place += n;
    if (n == 0 && atomic_load(&s->ended))
        *end = s->broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    if (n > 0)
        forget_locked(s);
    pthread_mutex_unlock(&s->lock);
    if (grown)
        wake_readers(s); /* the others */
    return n;
}

static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
    static const char ping[] = ": ping\n\n"; /* a comment; a dead socket shows itself by it */
    struct request *rq = cls;
    ssize_t end = 0;
    (void)pos;

    if (atomic_load(&rq->gone))
        return MHD_CONTENT_READER_END_WITH_ERROR;

    size_t n = take(rq, to, max, &end);
    if (end != 0)
        return end;
    if (n == 0 && stream_wants_ping(rq, ink_clock_ms()) && max >= sizeof(ping) - 1) {
        n = sizeof(ping) - 1;
        memcpy(to, ping, n);
    }
    if (n > 0)
        atomic_store(&rq->written_ms, ink_clock_ms());
    else
        request_park(rq, reader_has_more); /* only because it is suspended may 0 be returned */
    return (ssize_t)n;
}

void stream_reply(struct request *rq)
{
    const struct stream *s = rq->stream;

    atomic_store(&rq->written_ms, ink_clock_ms());
    rq->response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, rq, NULL);
    rq->status = 200;
    reply_header(rq, "Content-Type", "text/event-stream; charset=utf-8");
    reply_header(rq, "Cache-Control", "no-cache");
    reply_header(rq, "X-Accel-Buffering", "no");
    reply_header(rq, "X-Stream-Id", s->log.id);
    work_add_cache_header(&s->work, rq);
}

bool stream_wants_ping(const struct request *rq, int64_t now_ms)
{
    return now_ms - atomic_load(&rq->written_ms) >= STREAM_PING_MS;
}

/* --- the table -------------------------------------------------------------------------------- */

struct streams *streams_new(struct ink_server *server)
{
    struct streams *t = ink_zalloc(sizeof(*t));

    t->server = server;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

/* Returns the stream when it has to be freed: with no lock held, for that takes the task's. */
static struct stream *unref_locked(struct stream *s)
{
    if (--s->refs > 0)
        return NULL;
    for (struct stream **at = &s->table->first; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    return s;
}

/* From here on it ends with its last reader. */
static struct stream *drop_locked(struct stream *s)
{
    atomic_store(&s->kept, false);
    return unref_locked(s);
}

void streams_free(struct streams *t)
{
    if (!t)
        return;
    while (t->first)
        stream_free(drop_locked(t->first));
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static void sum_kept_locked(const struct streams *t, int *n, size_t *bytes)
{
    *n = 0;
    *bytes = 0;
    for (const struct stream *s = t->first; s; s = s->next) {
        if (atomic_load(&s->kept)) {
            ++*n;
            *bytes += atomic_load(&s->n_bytes);
        }
    }
}

void streams_kept(struct streams *t, int *n, size_t *bytes)
{
    pthread_mutex_lock(&t->lock);
    sum_kept_locked(t, n, bytes);
    pthread_mutex_unlock(&t->lock);
}

/* Of those that linger without readers, the one left first. */
static struct stream *first_left_locked(const struct streams *t, bool finished)
{
    struct stream *first = NULL;

    for (struct stream *s = t->first; s; s = s->next) {
        if (atomic_load(&s->kept) && s->n_readers == 0 && (!finished || atomic_load(&s->ended)) &&
            (!first || s->idle_since_ms < first->idle_since_ms))
            first = s;
    }
    return first;
}

static struct stream *largest_locked(const struct streams *t)
{
    struct stream *largest = NULL;

    for (struct stream *s = t->first; s; s = s->next) {
        if (atomic_load(&s->kept) &&
            (!largest || atomic_load(&s->n_bytes) > atomic_load(&largest->n_bytes)))
            largest = s;
    }
    return largest;
}

static struct stream *find_locked(const struct streams *t, const char *id, int key)
{
    struct stream *s = t->first;

    while (s && !(atomic_load(&s->kept) && s->key == key && strcmp(s->log.id, id) == 0))
        s = s->next;
    return s;
}

static enum ink_status no_such_stream(const char *id, struct ink_err *err)
{
    return ink_err_param(
        err, INK_NOT_FOUND, "id", "not_found",
        "no stream '%.40s' is kept; only those started with linger_ms are, and for that long", id);
}

/* Another reader; `place` is valid. */
static void add_reader_locked(struct stream *s, struct request *rq, size_t place)
{
    rq->stream = s;
    rq->stream_place = place;
    pthread_mutex_lock(&s->readers_lock);
    rq->next_reader = s->readers;
    s->readers = rq;
    pthread_mutex_unlock(&s->readers_lock);
}

enum ink_status stream_start(struct streams *t, struct request *rq, const struct work *work,
                             const struct dialect *dialect, int linger_ms, int key,
                             struct ink_err *err)
{
    struct stream *s = stream_new(t, work, dialect, linger_ms, key);
    struct stream *dead = NULL;
    bool full = false;

    pthread_mutex_lock(&t->lock);
    if (linger_ms > 0) {
        int n;
        size_t bytes;

        sum_kept_locked(t, &n, &bytes);
        if (n >= STREAMS_KEPT_MAX) {
            struct stream *old = first_left_locked(t, true);

            full = !old;
            dead = old ? drop_locked(old) : NULL;
        }
    }
    if (!full) {
        s->refs = 1 + (linger_ms > 0);
        s->n_readers = 1;
        s->next = t->first;
        t->first = s;
    }
    pthread_mutex_unlock(&t->lock);
    stream_free(dead);
    if (full) {
        stream_free(s);
        return ink_err_param(err, INK_BUSY, "linger_ms", "overloaded",
                             "%d streams linger already; try again in 5 s, or without linger_ms",
                             STREAMS_KEPT_MAX);
    }
    pthread_mutex_lock(&s->lock);
    add_reader_locked(s, rq, 0);
    pthread_mutex_unlock(&s->lock);
    return INK_OK;
}

/* Gives back what a reader holds. */
static void release_reader(struct stream *s)
{
    struct streams *t = s->table;

    pthread_mutex_lock(&t->lock);
    if (--s->n_readers == 0)
        s->idle_since_ms = ink_clock_ms();
    struct stream *dead = unref_locked(s);
    pthread_mutex_unlock(&t->lock);
    stream_free(dead);
}

enum ink_status stream_resume(struct streams *t, struct request *rq, const char *id, int key,
                              const char *last_event_id, struct ink_err *err)
{
    int n = 0;
    size_t place;
    struct stream *s;

    pthread_mutex_lock(&t->lock);
    s = find_locked(t, id, key);
    if (s) {
        s->refs++;
        s->n_readers++;
    }
    pthread_mutex_unlock(&t->lock);
    if (!s)
        return no_such_stream(id, err);

    pthread_mutex_lock(&s->lock);
    bool named = stream_event_number(last_event_id ? last_event_id : "", id, &n);
    bool there = named && stream_log_after(&s->log, n, &place);
    int n_events = s->log.n_events;
    if (there)
        add_reader_locked(s, rq, place);
    pthread_mutex_unlock(&s->lock);
    if (there)
        return INK_OK;

    release_reader(s);
    if (named && n <= n_events)
        return no_such_stream(id, err); /* dropped a moment ago */
    return ink_err_param(err, INK_INVALID, "Last-Event-ID", "invalid_value",
                         "Last-Event-ID: must be an event of this stream, %s:0 to %s:%d", id, id,
                         n_events);
}

void stream_leave(struct request *rq)
{
    struct stream *s = rq->stream;

    if (!s)
        return;
    pthread_mutex_lock(&s->readers_lock);
    for (struct request **at = &s->readers; *at; at = &(*at)->next_reader) {
        if (*at == rq) {
            *at = rq->next_reader;
            break;
        }
    }
    pthread_mutex_unlock(&s->readers_lock);
    rq->stream = NULL;
    release_reader(s);
}

static bool cancel(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool runs = s->work.task != NULL;
    if (runs)
        ink_task_cancel(s->work.task);
    pthread_mutex_unlock(&s->lock);
    return runs;
}

enum ink_status stream_delete(struct streams *t, const char *id, int key, bool *was_running,
                              struct ink_err *err)
{
    struct stream *s, *dead = NULL;

    pthread_mutex_lock(&t->lock);
    s = find_locked(t, id, key);
    if (s) {
        *was_running = cancel(s);
        dead = drop_locked(s);
    }
    pthread_mutex_unlock(&t->lock);
    if (!s)
        return no_such_stream(id, err);
    stream_free(dead);
    return INK_OK;
}

void streams_cancel(struct streams *t)
{
    pthread_mutex_lock(&t->lock);
    for (struct stream *s = t->first; s; s = s->next)
        (void)cancel(s);
    pthread_mutex_unlock(&t->lock);
}

int streams_n_alone(struct streams *t)
{
    int n = 0;

    pthread_mutex_lock(&t->lock);
    for (const struct stream *s = t->first; s; s = s->next)
        n += s->n_readers == 0 && !atomic_load(&s->ended);
    pthread_mutex_unlock(&t->lock);
    return n;
}

/* One that has to go: its time is over, or there are too many bytes. */
static struct stream *next_to_drop_locked(const struct streams *t, int64_t now_ms)
{
    int n;
    size_t bytes;

    for (struct stream *s = t->first; s; s = s->next) {
        if (atomic_load(&s->kept) && s->n_readers == 0 && now_ms - s->idle_since_ms >= s->linger_ms)
            return s;
    }
    sum_kept_locked(t, &n, &bytes);
    if (bytes <= STREAMS_BYTES_MAX)
        return NULL;
    struct stream *idle = first_left_locked(t, false);
    return idle ? idle : largest_locked(t);
}

static struct stream *next_to_pull_locked(const struct streams *t, int64_t now_ms)
{
    struct stream *s = t->first;

    while (s && !(s->n_readers == 0 && !atomic_load(&s->ended) && s->pulled_ms != now_ms))
        s = s->next;
    return s;
}

void streams_tick(struct streams *t, int64_t now_ms)
{
    struct stream *s, *dead;

    pthread_mutex_lock(&t->lock);
    while ((s = next_to_drop_locked(t, now_ms)) != NULL) {
        dead = drop_locked(s);
        pthread_mutex_unlock(&t->lock);
        stream_free(dead);
        pthread_mutex_lock(&t->lock);
    }
    while ((s = next_to_pull_locked(t, now_ms)) != NULL) {
        s->pulled_ms = now_ms;
        s->refs++;
        pthread_mutex_unlock(&t->lock);
        pthread_mutex_lock(&s->lock);
        pull_locked(s, SIZE_MAX);
        pthread_mutex_unlock(&s->lock);
        wake_readers(s); /* should one have come meanwhile */
        pthread_mutex_lock(&t->lock);
        dead = unref_locked(s);
        pthread_mutex_unlock(&t->lock);
        stream_free(dead);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
}
