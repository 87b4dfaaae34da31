/* Windows of computing time, and what the threads' shares of them say. */
#include "model/contention.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { MS = 1000000 };

#define WINDOW_NS      (40 * (int64_t)MS) /* a few decoder steps: a hiccup of 10 ms is none yet */
#define CALM_NS        (1000 * (int64_t)MS)
#define PAUSE_FIRST_NS (100 * (int64_t)MS) /* what one wrong decision costs is small */
#define PAUSE_LAST_NS  (16000 * (int64_t)MS)

/*
 * Waking up and a short visit of one of our own io threads cost a thread a few hundredths of its time; one busy
 * neighbour on the same core costs it half.
 */
#define KEPT_TOO_LONG 0.25
#define KEPT_HARDLY   0.10

void contention_init(struct contention *c, int n_threads)
{
    assert(n_threads >= 1 && n_threads <= CONTENTION_THREADS_MAX);
    memset(c, 0, sizeof(*c));
    c->n_threads = c->n_now = n_threads;
    c->pause_ns = PAUSE_FIRST_NS;
}

static int threads_kept(const struct contention *c, double share)
{
    int n = 0;

    for (int i = 0; i < c->n_now; i++)
        n += (double)c->kept_ns[i] > share * (double)c->wall_ns;
    return n;
}

void contention_observe(struct contention *c, int64_t now_ns, int64_t wall_ns,
                        const int64_t *ran_ns)
{
    c->wall_ns += wall_ns;
    for (int i = 0; i < c->n_now; i++)
        c->kept_ns[i] += wall_ns > ran_ns[i] ? wall_ns - ran_ns[i] : 0;
    if (c->wall_ns < WINDOW_NS)
        return;

    const bool all = c->n_now == c->n_threads;
    const int n_kept = threads_kept(c, KEPT_TOO_LONG);

    if (n_kept > 0 && c->n_now > 1) {
        c->n_now = c->n_now > n_kept ? c->n_now - n_kept : 1;
        c->calm_ns = 0;
        c->retry_ns = now_ns + c->pause_ns;
        c->pause_ns = 2 * c->pause_ns < PAUSE_LAST_NS ? 2 * c->pause_ns : PAUSE_LAST_NS;
    } else if (!all && now_ns >= c->retry_ns && threads_kept(c, KEPT_HARDLY) == 0) {
        /* If even these few are kept waiting, more would be too. */
        c->n_now = c->n_threads;
    } else if (all) {
        c->calm_ns += c->wall_ns;
        if (c->calm_ns >= CALM_NS)
            c->pause_ns = PAUSE_FIRST_NS;
    }
    c->wall_ns = 0;
    memset(c->kept_ns, 0, sizeof(c->kept_ns[0]) * (size_t)c->n_threads);
}
