/* A bounded queue and the threads that empty it. The queue is a list through the requests themselves. */
#include "server/workers.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "server/request.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 16 };

struct workers {
    void (*run)(struct request *rq);
    int max_waiting;
    int n_threads;
    pthread_t threads[THREADS_MAX];

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t more;
    struct request *first, **last;
    int n_waiting;
    bool stopping;
};

static void *work(void *arg)
{
    struct workers *w = arg;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct request *rq = w->first;

        if (!rq) {
            if (w->stopping)
                break;
            pthread_cond_wait(&w->more, &w->lock);
            continue;
        }
        w->first = rq->next_work;
        if (!w->first)
            w->last = &w->first;
        w->n_waiting--;
        pthread_mutex_unlock(&w->lock);
        w->run(rq); /* rq may be gone when it returns */
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct workers *workers_start(const char *name, int n_threads, int max_waiting,
                              void (*run)(struct request *rq))
{
    struct workers *w = ink_zalloc(sizeof(*w));

    w->run = run;
    w->max_waiting = max_waiting;
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    ink_cond_init(&w->more);
    for (int i = 0; i < n_threads && i < THREADS_MAX; i++) {
        if (ink_thread_start(&w->threads[w->n_threads], name, work, w) == 0)
            w->n_threads++;
    }
    if (w->n_threads == 0) {
        workers_stop(w);
        return NULL;
    }
    return w;
}

bool workers_push(struct workers *w, struct request *rq)
{
    pthread_mutex_lock(&w->lock);
    bool taken = !w->stopping && w->n_waiting < w->max_waiting;
    if (taken) {
        rq->next_work = NULL;
        *w->last = rq;
        w->last = &rq->next_work;
        w->n_waiting++;
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    return taken;
}

void workers_stop(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_threads; i++)
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
