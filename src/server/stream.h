#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include "base/status.h"
#include "server/stream_log.h"
#include "server/work.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A task told as server-sent events.
 *
 * Its events are written into a log once, whoever reads; each reader has a place in the log and parks at its
 * end. Whoever gets there pulls more out of the task. A stream ends with its last reader, unless it lingers:
 * then the table keeps it for `linger_ms` from the moment when the last reader left, running or finished, and
 * it can be read again from any event. While nobody reads, the ticker pulls.
 *
 * Bounds: STREAMS_KEPT_MAX streams that linger, beyond which the finished one that was left first is dropped,
 * or a new one refused when there is none; STREAMS_BYTES_MAX of their events, beyond which the one left first
 * is dropped, and when all have readers, the largest goes on without lingering.
 *
 * Any thread, unless a function says otherwise. Locks: the table's, then a stream's, then its task's, then
 * its readers'.
 */
enum {
    STREAM_PING_MS = 10000,
    STREAMS_KEPT_MAX = 256,
    STREAMS_BYTES_MAX = 64 * 1024 * 1024,
};

struct ink_server;
struct ink_task_event;
struct request;
struct stream;
struct streams; /* the server's table of them */

/* How one API spells events; each adds whole events to the log. */
struct dialect {
    enum ink_status (*event)(struct stream_log *log, const struct work *w,
                             const struct ink_task_event *ev);
    enum ink_status (*fail)(struct stream_log *log, const struct ink_err *err);
};

struct streams *streams_new(struct ink_server *server);
/* Every reader must have left. NULL is fine. */
void streams_free(struct streams *t);

/*
 * Makes `rq` the first reader of a stream of `work`, which it takes (and cancels when it fails). `key` is the
 * API key that may come back to it, as auth_key_of() says. INK_BUSY: too many linger.
 */
INK_NODISCARD enum ink_status stream_start(struct streams *t, struct request *rq,
                                           const struct work *work, const struct dialect *dialect,
                                           int linger_ms, int key, struct ink_err *err);

/*
 * Makes `rq` one more reader, from behind the event that `last_event_id` names (NULL: from the first).
 * INK_NOT_FOUND: no such stream lingers, or it is another key's. INK_INVALID: it has no such event.
 */
INK_NODISCARD enum ink_status stream_resume(struct streams *t, struct request *rq, const char *id,
                                            int key, const char *last_event_id,
                                            struct ink_err *err);

/*
 * Cancels it and forgets it; those who read are told. `*was_running`: it had not ended before.
 * INK_NOT_FOUND as above.
 */
INK_NODISCARD enum ink_status stream_delete(struct streams *t, const char *id, int key,
                                            bool *was_running, struct ink_err *err);

/* Sets the streaming reply of a request that reads one. Io thread. */
void stream_reply(struct request *rq);
/* Whether a parked reader should be woken for a ping. */
bool stream_wants_ping(const struct request *rq, int64_t now_ms);
/* The request reads no more; the last one's leaving may end the stream. */
void stream_leave(struct request *rq);

/*
 * Pulls for those that nobody reads, drops what has lingered long enough or is too much. The ticker, now
 * and then.
 */
void streams_tick(struct streams *t, int64_t now_ms);
/* How many run that nobody reads: what a drain waits for beside requests. */
int streams_n_alone(struct streams *t);
/* How many linger or could, and the bytes of their events. */
void streams_kept(struct streams *t, int *n, size_t *bytes);
/* Cancels all that run. */
void streams_cancel(struct streams *t);

#endif
