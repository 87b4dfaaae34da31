#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include <stdbool.h>

/*
 * Threads that run handlers: first in, first out, bounded. What they run may block; the io threads never do.
 */
struct workers;
struct request;

/* Starts `n_threads` that call `run(request)`; at most `max_waiting` requests wait. NULL when no thread could start. */
struct workers *workers_start(const char *name, int n_threads, int max_waiting,
                              void (*run)(struct request *rq));
/* Takes `rq` for a thread; false when too many wait or the workers are stopping. */
bool workers_push(struct workers *w, struct request *rq);
/* Runs what waits, then ends the threads. NULL is fine. */
void workers_stop(struct workers *w);

#endif
