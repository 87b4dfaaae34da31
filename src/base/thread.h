#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/* A condition variable on the monotonic clock, for use with ink_clock_deadline(). */
void ink_cond_init(pthread_cond_t *cond);

/* Starts a thread named `name` (at most 15 characters) with all signals blocked; 0 or an errno. */
int ink_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* Processors this process may use; at least 1. */
int ink_thread_n_cpus(void);

/* Makes the calling thread give way to others: adds `by` to its nice value. Best effort. */
void ink_thread_nice(int by);

#endif
