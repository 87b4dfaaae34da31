#ifndef MODEL_CONTENTION_H
#define MODEL_CONTENTION_H

#include <stdint.h>

/*
 * How many of the compute threads the next graph should use.
 *
 * Threads meet after every node of a graph, so one that the system keeps from running holds up all others, a
 * time slice at a meeting: on two cores with a busy neighbour, a decoder step of 12 ms on two threads was seen to
 * take 700 ms, on one thread 19 ms. So the device watches how much of a graph's time each of its threads really ran.
 * Those that were kept waiting are given up, and the full number is tried again later, at growing intervals while
 * that fails. The number of threads never changes a result.
 *
 * Pure bookkeeping: no clock, no thread of its own. Times are nanoseconds of one monotonic clock.
 */
enum { CONTENTION_THREADS_MAX = 512 };

struct contention {
    int n_threads;                                    /* all there are */
    int n_now;                                        /* in use */
    int64_t wall_ns, kept_ns[CONTENTION_THREADS_MAX]; /* of the window under way; by thread */
    int64_t calm_ns;                                  /* computed with all threads, undisturbed */
    int64_t retry_ns, pause_ns; /* when all threads are tried again; the next pause */
};

void contention_init(struct contention *c, int n_threads);

/*
 * A graph that ran on the first c->n_now threads and ended at `now_ns` took `wall_ns`, in which thread i was on a
 * processor for ran_ns[i]. Decides c->n_now for the next one.
 */
void contention_observe(struct contention *c, int64_t now_ns, int64_t wall_ns,
                        const int64_t *ran_ns);

#endif
