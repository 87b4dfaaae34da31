#ifndef SERVER_ROUTER_H
#define SERVER_ROUTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The table of everything the server answers. A handler runs on a worker, or with ROUTE_INLINE on an io thread, where
 * it must not wait. It sets the reply (reply.h) or returns why not.
 */
struct body;
struct request;

typedef enum ink_status route_fn(struct request *rq, struct ink_err *err);

enum route_flags {
    ROUTE_OPEN = 1 << 0,   /* needs no API key */
    ROUTE_INLINE = 1 << 1, /* answers within microseconds, on the io thread */
    ROUTE_MODEL = 1 << 2,  /* needs the catalog: 503 while loading or draining */
    ROUTE_JSON = 1 << 3,   /* the body must be application/json */
    ROUTE_SLOW = 1 << 4,   /* blocks until the engine is done: the slow workers' */
    ROUTE_QUIET = 1 << 5,  /* not in the log; not waited for when draining */
    ROUTE_BATCH = 1 << 6,  /* many texts: its bodies are counted together, see batch.h */
    ROUTE_LINES = 1 << 7,  /* the body may be application/x-ndjson as well */
};

struct route {
    const char *method;
    const char *path; /* a last part "{...}" stands for any one word */
    route_fn *run;
    size_t body_max; /* bytes */
    unsigned flags;
    const char *about;        /* one line, for openapi.json */
    const struct body *takes; /* the JSON object it reads, or NULL */
    const char *gives;        /* a shape of openapi.c, or a media type */
};

enum { ROUTES_MAX = 32, ROUTE_ALLOW_CAP = 64 };

/* The routes in the order of the table; the page's files are behind the last one, whose path is "/". */
extern const struct route routes[];
extern const size_t routes_n;

/* HEAD finds GET's row. NULL: none; then `allow` has the methods the path does answer ("" when it is unknown). */
const struct route *route_find(const char *method, const char *path, char allow[ROUTE_ALLOW_CAP]);

/* Handlers and bodies, one file per API. */
route_fn route_rewrite, route_score, route_tokenize; /* routes_native.c */
route_fn route_stream_resume, route_stream_delete;
route_fn route_rewrite_batch, route_augment, route_augment_batch; /* routes_batch.c */
extern const struct body rewrite_batch_body, augment_body, augment_batch_body;
extern const struct body rewrite_body, score_body, tokenize_body;
route_fn route_prepare; /* routes_prepare.c */
extern const struct body prepare_body;
route_fn route_models;                             /* routes_openai.c */
route_fn route_health, route_ready, route_metrics; /* routes_ops.c */
route_fn route_openapi;                            /* openapi.c */
route_fn route_page;                               /* routes_page.c */

/* routes_page.c: whether the page has a file of this path. */
bool page_has(const char *path);

#endif
