#ifndef SERVER_STATE_H
#define SERVER_STATE_H

#include "server/auth.h"
#include "server/metrics.h"
#include "server/request.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the files of this room share of the server. */
struct batches;
struct streams;
struct workers;

struct ink_server {
    struct MHD_Daemon *daemon;
    struct workers *workers, *slow_workers;
    struct auth auth;
    struct metrics metrics;
    struct streams *streams;
    struct batches *batches;
    _Atomic int64_t batch_bytes;         /* of bodies with many texts, all together */
    struct ink_catalog *_Atomic catalog; /* NULL while loading */
    atomic_bool draining;
    atomic_bool stopping;
    int port;
    char *url;
    pthread_t ticker;
    bool has_ticker;

    pthread_mutex_t
        lock; /* guards the list and what conn and request say it guards; before the engine's
                               and libmicrohttpd's own locks */
    pthread_cond_t tick; /* wakes the ticker to end */
    struct conn conns;   /* the ring's head */
};

#endif
