#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A request's task turned into its answer without holding a thread: all at once
 * for a plain request, as server-sent events for a stream. Both park the connection while the task has nothing to
 * say. Io threads only.
 */
struct request;

enum { STREAM_PING_MS = 10000 };

/* R of the request's finished task; a new reference. */
json_t *task_answer(struct request *rq);

/* Pulls what there is. True: the reply is set, or the client is gone. False: the connection is parked. */
bool task_collect(struct request *rq);

/* Sets a streaming reply for the request's task and dialect. */
void task_stream(struct request *rq);

/* Whether a parked stream should be woken for a ping. Any thread. */
bool task_stream_wants_ping(struct request *rq, int64_t now_ms);

#endif
