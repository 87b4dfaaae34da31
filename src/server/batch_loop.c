/*
 * The thread that runs all batches: admits a text a call in turn, delivers, sends, and sleeps until a task, a socket or
 * a new call wakes it.
 */
#include "server/batch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "server/batch_private.h"
#include "server/request.h"
#include "server/state.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MS = 500 };

struct batches {
    struct ink_server *server;
    pthread_t thread;
    bool has_thread;
    int wake[2];       /* a byte arrives after something changed ... */
    atomic_bool woken; /* ... unless one is on its way */
    atomic_bool abandoned;
    atomic_llong n_ok, n_failed, n_cancelled, bytes_in_file;

    /* The loop's own. */
    struct ink_batch_pool *pool;
    struct batch *first; /* those that run */
    struct pollfd *fds;
    int n_fds, cap_fds;

    pthread_mutex_t lock; /* guards the rest; nothing is taken under it */
    struct batch *coming;
    int n_calls; /* running or coming */
    bool ending;
};

/* --- from any thread ---------------------------------------------------------------------------- */

static void wake_up(void *arg)
{
    struct batches *t = arg;

    if (!atomic_exchange(&t->woken, true) && write(t->wake[1], "", 1) < 0)
        return; /* full: a wake-up is pending */
}

void batches_wake(struct batches *t)
{
    wake_up(t);
}

bool batches_take(struct batches *t, struct batch *b)
{
    pthread_mutex_lock(&t->lock);
    bool taken = t->n_calls < BATCH_CALLS_MAX && !t->ending;
    if (taken) {
        t->n_calls++;
        b->next = t->coming;
        t->coming = b;
    }
    pthread_mutex_unlock(&t->lock);
    if (taken)
        wake_up(t);
    return taken;
}

void batches_count_text(struct batches *t, bool ok)
{
    atomic_fetch_add(ok ? &t->n_ok : &t->n_failed, 1);
}

void batches_count_cancelled(struct batches *t, int n)
{
    atomic_fetch_add(&t->n_cancelled, n);
}

void batches_count_file(struct batches *t, int64_t change)
{
    atomic_fetch_add(&t->bytes_in_file, change);
}

void batches_counts(struct batches *t, struct batch_counts *out)
{
    pthread_mutex_lock(&t->lock);
    out->running = t->n_calls;
    pthread_mutex_unlock(&t->lock);
    out->ok = atomic_load(&t->n_ok);
    out->failed = atomic_load(&t->n_failed);
    out->cancelled = atomic_load(&t->n_cancelled);
    out->bytes_in_file = atomic_load(&t->bytes_in_file);
}

void batches_abandon(struct batches *t)
{
    atomic_store(&t->abandoned, true);
    wake_up(t);
}

/* --- the loop ----------------------------------------------------------------------------------- */

/* False: the thread is to end. */
static bool adopt(struct batches *t)
{
    struct batch **last = &t->first;

    pthread_mutex_lock(&t->lock);
    struct batch *b = t->coming;
    bool ending = t->ending;
    t->coming = NULL;
    pthread_mutex_unlock(&t->lock);

    if (b && !t->pool)
        t->pool = ink_batch_pool_new(atomic_load(&t->server->catalog));
    while (*last)
        last = &(*last)->next;
    while (b) {
        struct batch *next = b->next;

        batch_begin(b, t->pool, wake_up, t);
        b->next = NULL;
        *last = b;
        last = &b->next;
        b = next;
    }
    return !ending || t->first;
}

static void drop(struct batches *t, struct batch **at)
{
    struct batch *b = *at;

    *at = b->next;
    batch_end(b);
    batch_wake_reader(b);
    pthread_mutex_lock(&t->lock);
    t->n_calls--;
    pthread_mutex_unlock(&t->lock);
    batch_unref(b);
}

static void drop_gone(struct batches *t)
{
    bool all = atomic_load(&t->abandoned);

    for (struct batch **at = &t->first; *at;) {
        if (all)
            atomic_store(&(*at)->gone, true);
        if (atomic_load(&(*at)->gone))
            drop(t, at);
        else
            at = &(*at)->next;
    }
}

/* Everybody gets a text before anybody gets a second one, and another begins each time. */
static void admit(struct batches *t)
{
    bool any;

    do {
        any = false;
        for (struct batch *b = t->first; b; b = b->next)
            any |= batch_admit(b);
    } while (any);
    if (t->first && t->first->next) {
        struct batch *b = t->first, **last = &t->first;

        t->first = b->next;
        b->next = NULL;
        while (*last)
            last = &(*last)->next;
        *last = b;
    }
}

static bool deliver(struct batches *t)
{
    int64_t now_ms = ink_clock_ms();
    bool any = false;

    for (struct batch **at = &t->first; *at;) {
        any |= batch_deliver(*at);
        if (batch_flush(*at, now_ms))
            at = &(*at)->next;
        else
            drop(t, at);
    }
    return any;
}

static void watch(struct batches *t, int fd, short events)
{
    if (t->n_fds == t->cap_fds) {
        t->cap_fds = t->cap_fds ? 2 * t->cap_fds : 16;
        t->fds = ink_realloc(t->fds, (size_t)t->cap_fds * sizeof(*t->fds));
    }
    t->fds[t->n_fds++] = (struct pollfd){ .fd = fd, .events = events };
}

static void wait_for_anything(struct batches *t)
{
    int timeout_ms = t->first ? WAIT_MS : -1;
    char drained[256];

    t->n_fds = 0;
    watch(t, t->wake[0], POLLIN);
    for (const struct batch *b = t->first; b; b = b->next) {
        int retry_ms = ink_batch_retry_ms(b->tasks);

        if (retry_ms >= 0 && retry_ms < timeout_ms)
            timeout_ms = retry_ms + 1;
        if (b->wants_write)
            watch(t, b->fd, POLLOUT);
    }
    if (poll(t->fds, (nfds_t)t->n_fds, timeout_ms) <= 0)
        return;
    if (t->fds[0].revents & POLLIN) {
        while (read(t->wake[0], drained, sizeof(drained)) == (ssize_t)sizeof(drained))
            ;
        /* Before the loop looks at anything: what changes from here on writes again. */
        atomic_store(&t->woken, false);
    }
}

static void *run(void *arg)
{
    struct batches *t = arg;

    while (adopt(t)) {
        drop_gone(t);
        admit(t);
        /* What was delivered may have made room for more. */
        if (!deliver(t))
            wait_for_anything(t);
    }
    return NULL;
}

/* --- start and stop ----------------------------------------------------------------------------- */

static bool open_wake(int wake[2])
{
    if (pipe(wake) != 0) {
        wake[0] = wake[1] = -1;
        return false;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

struct batches *batches_start(struct ink_server *server)
{
    struct batches *t = ink_zalloc(sizeof(*t));

    t->server = server;
    pthread_mutex_init(&t->lock, NULL);
    t->has_thread = open_wake(t->wake) && ink_thread_start(&t->thread, "ink-batch", run, t) == 0;
    if (t->has_thread)
        return t;
    batches_stop(t);
    return NULL;
}

void batches_stop(struct batches *t)
{
    if (!t)
        return;
    if (t->has_thread) {
        pthread_mutex_lock(&t->lock);
        t->ending = true;
        pthread_mutex_unlock(&t->lock);
        batches_abandon(t);
        pthread_join(t->thread, NULL);
    }
    ink_batch_pool_free(t->pool);
    for (int i = 0; i < 2; i++) {
        if (t->wake[i] >= 0)
            close(t->wake[i]);
    }
    free(t->fds);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
