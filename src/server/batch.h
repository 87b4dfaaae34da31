#ifndef SERVER_BATCH_H
#define SERVER_BATCH_H

#include "base/status.h"
#include "server/rewrite_json.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Calls of many texts. One thread, the loop, runs all of them side by side (task/batch.h): it takes texts out of a call's
 * input while the model has too little to do, a text a call in turn, and writes answers into the call's outbox. Memory
 * is bounded at both ends: input is taken from the socket no faster than it is worked off, and when the outbox is full,
 * finished texts wait where they are, so no more are started.
 *
 * Input is a JSON array, or lines; lines are either a complete body, or arrive while earlier ones are answered. In the
 * latter case the answer begins while the request is still being sent. libmicrohttpd queues an answer only before or
 * after a body, so that one is written to the socket past it, and the connection ends with it.
 *
 *     input   io thread --batch_feed()--> lines -.
 *                                 or the body ---+--> loop: tasks --> outbox --> io thread, or the loop itself
 */
struct batch;   /* one call; a reference each for its request and the loop */
struct batches; /* the loop */
struct ink_server;
struct request;

enum {
    BATCH_TEXTS_MAX = 10000,
    BATCH_BODY_MAX = 16 * 1024 * 1024,
    BATCH_LINE_MAX = 1024 * 1024,
    BATCH_CALLS_MAX = 256,
    BATCH_BODIES_MAX = 256 * 1024 * 1024, /* bytes of all bodies together */
    BATCH_IDLE_MS = 60000, /* a sender without a whole line, a reader without a byte */
};

enum batch_answer {
    BATCH_DOCUMENT, /* {"id","model","results","usage","timings"} */
    BATCH_LINES,    /* R a line, then {"done","ok","failed"} */
    BATCH_AUGMENT,  /* {"results":[{"original","augmented_texts"}]} */
};

/* What a request says before its body. */
struct batch_form {
    bool lines_in;  /* the body is NDJSON */
    bool lines_out; /* so is the answer */
    bool ordered;   /* lines in the order of the texts */
};

struct batches *batches_start(struct ink_server *server); /* NULL: no thread */
/* Every request must have left. NULL is fine. */
void batches_stop(struct batches *t);
/* The server drains, or stops: the loop looks at both flags. */
void batches_wake(struct batches *t);
/* The server stops now: answers end where they are. */
void batches_abandon(struct batches *t);

struct batch_counts {
    int running;             /* calls */
    long long ok, failed;    /* texts answered */
    long long cancelled;     /* texts under way when their client left */
    long long bytes_in_file; /* answers that wait for a slow reader */
};
void batches_counts(struct batches *t, struct batch_counts *out);

/* --- a call ------------------------------------------------------------------------------------- */

/* Reads a request's headers and query. INK_INVALID: `ordered` is neither 0 nor 1. Io thread. */
INK_NODISCARD enum ink_status batch_read_form(const struct request *rq, struct batch_form *form,
                                              struct ink_err *err);

/*
 * Starts a call whose body is there; the request's reference is in rq->batch. Takes what it is given, also when it
 * fails. `call` has the defaults for every text; its strings live in `options`, NULL if nowhere. Either `texts` (an array)
 * or `body` (lines, which free() releases) is given. INK_BUSY: too many calls.
 */
struct batch_input {
    struct ink_rewrite_call call;
    json_t *options;
    json_t *texts;
    char *body;
    size_t body_len;
    const char *model; /* its name; outlives the server */
    enum batch_answer answer;
    bool ordered;
};
void batch_input_release(struct batch_input *in);
INK_NODISCARD enum ink_status batch_start(struct request *rq, struct batch_input *in,
                                          struct ink_err *err);

/* Sets the reply of a request with a batch. Io thread. */
void batch_reply(struct request *rq);

/*
 * Starts a call whose lines arrive from now on; the first of them, or the end, is there. Writes the answer's head with the
 * headers in rq->response, which it uses up. Io thread. INK_BUSY as above; INK_IO: no descriptor is free.
 */
INK_NODISCARD enum ink_status batch_open_feed(struct request *rq, bool http10, struct ink_err *err);
/* Takes up to `len` bytes and returns how many. When it is not all, the connection is parked. Io thread. */
size_t batch_feed(struct request *rq, const char *bytes, size_t len);
/* The body is complete. */
void batch_feed_end(struct request *rq);
/* Whether everything was answered and sent; while it is not, the connection is parked. Io thread. */
bool batch_feed_done(struct request *rq);

/* The client has left: cancels. Any thread. */
void batch_abandon(struct batch *b);
/* Whether the request got its whole answer. */
bool batch_was_answered(struct batch *b);
/* Now and then, for a request that feeds: whether its connection is to be shut down. The ticker. */
bool batch_tick(struct request *rq, int64_t now_ms);
/* The request ends: gives up its reference, which cancels what still runs. NULL is fine. */
void batch_leave(struct request *rq);

#endif
