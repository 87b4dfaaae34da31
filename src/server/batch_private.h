#ifndef SERVER_BATCH_PRIVATE_H
#define SERVER_BATCH_PRIVATE_H

#include "base/lines.h"
#include "server/batch.h"
#include "server/outbox.h"
#include "task/batch.h"

#include <pthread.h>
#include <stdatomic.h>

/* A call from the inside: batch.c works it off, batch_wire.c brings bytes in and out, batch_loop.c is the thread. */
enum { BATCH_BLOCK = 16 * 1024 };

struct batch_sums {
    long long tokens_input, tokens_output;
    double queue_ms, tokenize_ms, encode_ms, first_token_ms, decode_ms, other_ms, total_ms;
};

struct batch {
    struct batches *loop;
    struct ink_server *server;
    struct batch *next; /* in the loop's list, or on the way there */
    atomic_int refs;
    int64_t start_ns;

    /* The loop's own. */
    struct batch_input in; /* texts, options and defaults */
    int64_t n_next;        /* the next text of the array */
    size_t body_at;        /* up to where the body was made into lines */
    struct ink_batch *tasks;
    struct ink_buf line; /* a copy of the line being looked at */
    bool line_held;      /* the engine had no room for it */
    bool line_too_long;
    bool input_ended;
    bool begun, tail_put; /* the answer's first, its last bytes are in the outbox */
    bool cancelled;       /* because the server stops */
    long long n_ok, n_failed;
    struct batch_sums sums;
    int64_t in_file; /* last told to the counters */

    /* Feeds: the loop's own, but for the lock's part below. */
    bool is_feed;
    bool chunked;
    int fd;              /* a duplicate of the connection's; -1: libmicrohttpd sends */
    struct ink_buf wire; /* framed, not yet taken by the socket */
    size_t wire_at;
    bool wants_write; /* the socket was full */
    bool last_framed;

    atomic_bool gone;          /* the client left, or the server does */
    _Atomic int64_t moved_ms;  /* a byte was sent, a line came, or an answer was written */
    _Atomic int64_t closed_ms; /* everything was sent; 0: not yet */

    pthread_mutex_t lock; /* guards the rest; before libmicrohttpd's */
    struct request *rq;   /* NULL: it has ended */
    struct ink_lines lines;
    bool lines_ended;   /* all bytes are there */
    struct ink_err cut; /* why no more are taken; code INK_OK: they are */
    struct outbox out;
    bool out_ended; /* nothing more comes into `out` */
};

/* --- batch.c: on the loop --- */

/* Makes the tasks' side of a call that has come to the loop; `wake(arg)` wakes the loop. */
void batch_begin(struct batch *b, struct ink_batch_pool *pool, void (*wake)(void *arg), void *arg);
/* Adds at most one text; true when it did. */
bool batch_admit(struct batch *b);
/* Takes in what the engine has done and writes what is finished. True when it wrote anything. */
bool batch_deliver(struct batch *b);
/* Frees what the loop owns of it. */
void batch_end(struct batch *b);

/* --- batch_wire.c --- */

void batch_unref(struct batch *b);
/* Sends what there is; false when the call is over for the loop. */
bool batch_flush(struct batch *b, int64_t now_ms);
/* Lets the io thread look: there is output, or room for input. */
void batch_wake_reader(struct batch *b);

/* --- batch_loop.c --- */

/* Hands a call to the loop. False: there are too many. */
bool batches_take(struct batches *t, struct batch *b);
void batches_count_text(struct batches *t, bool ok);
void batches_count_cancelled(struct batches *t, int n);
void batches_count_file(struct batches *t, int64_t change);

#endif
