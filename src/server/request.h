#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include "base/buf.h"
#include "base/status.h"
#include "server/batch.h"
#include "server/router.h"
#include "server/work.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * One request from its first line to the end of its answer, and the connection
 * it came on.
 *
 *     HEAD -> BODY -> WORK -> WAIT -> REPLY
 *       \_______\_____________________/ (refused early, or answered at once)
 *                \-> FEED                (lines that are answered while they arrive)
 *
 * HEAD    the first line has been read; headers are arriving           io thread
 * BODY    headers are checked, the body is arriving                    io thread
 * WORK    suspended; a worker runs the handler                         worker
 * WAIT    a task runs; io pulls its events and parks in between        io thread
 * REPLY   the answer is on its way out (a stream still parks)          io thread
 * FEED    a batch's lines go to its loop, which answers them itself    io thread
 *
 * The thread named owns the request. Others touch only what is atomic, and find the request through the server's
 * connection list, whose lock also guards `stage`. The completed callback frees it, on every way out.
 */
enum { REQUEST_PATH_CAP = 128 };

enum request_stage { STAGE_HEAD, STAGE_BODY, STAGE_WORK, STAGE_WAIT, STAGE_REPLY, STAGE_FEED };

struct ink_server;
struct request;
struct stream;

struct conn {
    struct conn *next, *prev; /* the server's list, under its lock */
    int fd;                   /* borrowed from libmicrohttpd while in the list */
    int64_t idle_since_ms;    /* opened, or last answer finished; under the lock */
    struct request *rq;       /* what it is busy with, or NULL; under the lock */
    bool has_asked;           /* a first line has come; under the lock */
    bool is_cut;              /* too slow: answered and shut down; under the lock */
};

struct request {
    struct ink_server *server;
    struct conn *conn;
    struct MHD_Connection *mhd;
    const struct route *route;   /* NULL: no such route */
    char path[REQUEST_PATH_CAP]; /* cut when longer; no route is */
    bool has_nul;                /* the path has an encoded NUL: no such route */
    enum request_stage stage;
    int64_t start_ns;
    struct request *next_work; /* in a worker's queue */

    struct ink_buf body;
    _Atomic int64_t body_seen; /* bytes arrived, kept or not */

    struct ink_err refused;        /* decided before the body was there; code INK_OK: not */
    struct MHD_Response *response; /* what to send, with `status`; owned until queued */
    int status;

    struct work work;            /* a plain answer's task, in WAIT; empty otherwise */
    struct stream *stream;       /* what it reads in REPLY, or NULL; one reference */
    size_t stream_place;         /* up to where it has read; under the stream's lock */
    struct request *next_reader; /* of the same stream; under its readers' lock */
    _Atomic int64_t written_ms;  /* stream: when bytes last went out */

    struct batch_form form; /* of a route that takes NDJSON */
    struct batch *batch;    /* many texts; one reference. See batch.h */
    int64_t batch_bytes;    /* of its body, counted against BATCH_BODIES_MAX */

    atomic_bool parked; /* suspended; whoever makes it false resumes */
    atomic_bool gone;   /* the client left: cancel, say nothing */
    bool counted;       /* among the server's running requests */
};

/*
 * Suspends the connection until request_unpark(), which any thread may call. `has_more` is the second look:
 * whether there is something to do after all.
 */
void request_park(struct request *rq, bool (*has_more)(struct request *rq));
void request_unpark(void *rq);

/* A header's value, or NULL. While a thread owns the request. */
const char *request_header(const struct request *rq, const char *name);
/* What stands in the path where its route has "{...}"; "" when the route has none. */
const char *request_path_id(const struct request *rq);
/* Which API key it came with, as auth_key_of(). */
int request_key(const struct request *rq);

/* A task that ended badly: what the client is told. The server's own stop is not the client's fault. */
void request_explain_end(struct ink_server *server, struct ink_err *err);

#endif
