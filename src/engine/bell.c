/* A reference-counted binary event. */
#include "engine/bell.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct bell {
    atomic_int refs;
    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t rings;
    bool rung;
};

struct bell *bell_new(void)
{
    struct bell *b = ink_zalloc(sizeof(*b));

    atomic_init(&b->refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    ink_cond_init(&b->rings);
    return b;
}

struct bell *bell_ref(struct bell *b)
{
    atomic_fetch_add(&b->refs, 1);
    return b;
}

void bell_unref(struct bell *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->rings);
    free(b);
}

void bell_ring(struct bell *b)
{
    pthread_mutex_lock(&b->lock);
    if (!b->rung) {
        b->rung = true;
        pthread_cond_signal(&b->rings);
    }
    pthread_mutex_unlock(&b->lock);
}

void bell_wait(struct bell *b, int timeout_ms)
{
    struct timespec deadline = ink_clock_deadline(timeout_ms < 0 ? 0 : timeout_ms);
    int late = 0;

    pthread_mutex_lock(&b->lock);
    while (!b->rung && !late) {
        if (timeout_ms < 0)
            pthread_cond_wait(&b->rings, &b->lock);
        else
            late = pthread_cond_timedwait(&b->rings, &b->lock, &deadline);
    }
    b->rung = false;
    pthread_mutex_unlock(&b->lock);
}
