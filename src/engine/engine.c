/*
 * The engine thread: lanes take turns, a step each, until none has anything to do; then it sleeps until it is rung or
 * a deadline falls due.
 */
#include "engine/engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "engine/bell.h"
#include "engine/lane.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LANES = 16 };

struct ink_engine {
    pthread_t thread;
    struct bell *bell;
    atomic_bool stopping;
    pthread_mutex_t lock; /* guards what is below */
    struct ink_lane *lanes[MAX_LANES];
    int n_lanes;
};

/* Lanes are only ever added. */
static int lanes_of(struct ink_engine *e, struct ink_lane *lanes[MAX_LANES])
{
    pthread_mutex_lock(&e->lock);
    int n = e->n_lanes;
    memcpy(lanes, e->lanes, (size_t)n * sizeof(struct ink_lane *));
    pthread_mutex_unlock(&e->lock);
    return n;
}

static void sleep_until_needed(struct ink_engine *e, struct ink_lane **lanes, int n)
{
    int64_t first = INT64_MAX;

    for (int i = 0; i < n; i++) {
        int64_t t = lane_next_deadline(lanes[i]);

        first = t < first ? t : first;
    }
    if (first == INT64_MAX) {
        bell_wait(e->bell, -1);
        return;
    }
    int64_t ms = (first - ink_clock_ns()) / 1000000 + 1;
    bell_wait(e->bell, ms < 0 ? 0 : ms > INT_MAX ? INT_MAX : (int)ms);
}

static void *run_engine(void *arg)
{
    struct ink_engine *e = arg;
    struct ink_lane *lanes[MAX_LANES];
    int n = 0;

    /* Computing gives way to those who read and write connections. */
    ink_thread_nice(10);
    while (!atomic_load(&e->stopping)) {
        bool busy = false;

        n = lanes_of(e, lanes);
        for (int i = 0; i < n; i++)
            busy |= lane_step(lanes[i]);
        if (!busy && !atomic_load(&e->stopping))
            sleep_until_needed(e, lanes, n);
    }
    n = lanes_of(e, lanes);
    for (int i = 0; i < n; i++)
        lane_stop(lanes[i]);
    return NULL;
}

enum ink_status ink_engine_start(struct ink_engine **out, struct ink_err *err)
{
    struct ink_engine *e = ink_zalloc(sizeof(*e));

    e->bell = bell_new();
    atomic_init(&e->stopping, false);
    pthread_mutex_init(&e->lock, NULL);
    int rc = ink_thread_start(&e->thread, "engine", run_engine, e);
    if (rc != 0) {
        bell_unref(e->bell);
        pthread_mutex_destroy(&e->lock);
        free(e);
        return ink_err_set(err, INK_IO, "cannot start the engine thread: %s", strerror(rc));
    }
    *out = e;
    return INK_OK;
}

void ink_engine_stop(struct ink_engine *e)
{
    if (!e)
        return;
    atomic_store(&e->stopping, true);
    bell_ring(e->bell);
    pthread_join(e->thread, NULL);
    for (int i = 0; i < e->n_lanes; i++)
        lane_free(e->lanes[i]);
    bell_unref(e->bell);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

enum ink_status ink_engine_add(struct ink_engine *e, struct ink_model *model,
                               const struct ink_lane_options *options, struct ink_lane **out,
                               struct ink_err *err)
{
    struct ink_lane *lane = NULL;

    pthread_mutex_lock(&e->lock);
    if (e->n_lanes < MAX_LANES)
        lane = e->lanes[e->n_lanes++] = lane_new(e, model, options, e->bell);
    pthread_mutex_unlock(&e->lock);
    if (!lane)
        return ink_err_set(err, INK_BUSY, "at most %d models can be served at once", MAX_LANES);
    *out = lane;
    return INK_OK;
}
