#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The HTTP server: listens, answers the routes of router.c from a catalog of models, and serves the page.
 *
 * Life: ink_server_start() binds the port and answers at once (/health is live, /ready and the model routes say
 * 503 "loading"); ink_server_set_catalog() opens the model routes; ink_server_drain() stops accepting work and
 * waits for what runs; ink_server_stop() ends everything. These calls come from one thread; requests are
 * answered on the server's own.
 */
struct ink_server;
struct ink_catalog;

struct ink_server_options {      /* zero means default; strings are copied */
    const char *host;            /* address or name to bind: "127.0.0.1" */
    int port;                    /* 0: the system chooses, see ink_server_port() */
    struct ink_catalog *catalog; /* borrowed; must outlive the server. NULL: still loading */
    const char *const *api_keys; /* Bearer keys; without any, everyone may call */
    int n_api_keys;
    const char *const *allowed_hosts; /* further names accepted in Host, without port */
    int n_allowed_hosts;
    const char *const *cors_origins; /* origins of other pages that may call, "https://x.example" */
    int n_cors_origins;
    bool insecure;       /* allow a non-loopback address without keys */
    int n_io_threads;    /* 2 */
    int n_workers;       /* one per processor, 2..8 */
    int max_connections; /* 1024 */
};

/*
 * INK_INVALID: an option is wrong, or `host` is not a loopback address and there are neither keys nor
 * `insecure`. INK_BUSY: the port is taken; the text says by whom where that can be known. INK_IO: other
 * socket errors.
 */
INK_NODISCARD enum ink_status ink_server_start(const struct ink_server_options *options,
                                               struct ink_server **out, struct ink_err *err);

/* Opens the routes that need a model. Once; `catalog` is complete and outlives the server. */
void ink_server_set_catalog(struct ink_server *server, struct ink_catalog *catalog);

int ink_server_port(const struct ink_server *server);
const char *ink_server_url(const struct ink_server *server); /* "http://127.0.0.1:7860"; borrowed */

/*
 * Refuses new work with 503 "draining" (health and metrics still answer), and waits up to `timeout_ms` until
 * no request is left, and no stream that runs without a reader. Returns how many are left: 0 when all are
 * done. A second call may come from a signal's handling with a time-out of 0.
 */
int ink_server_drain(struct ink_server *server, int timeout_ms);

/* Cancels what still runs, closes every connection, ends the threads. NULL is fine. */
void ink_server_stop(struct ink_server *server);

/*
 * Who listens on TCP port `port` of this machine, as "pid 4711 (name)", written to `out`; false when nobody
 * does or it cannot be known (another user's process).
 */
bool ink_port_holder(int port, char *out, size_t cap);

#endif
