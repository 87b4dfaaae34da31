/* The route table and the look-up. */
#include "server/router.h"

#include "server/batch.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1024 * 1024 };

const struct route routes[] = {
    /* method, path, handler, body, flags, about, takes, gives */
    { "POST", "/v1/rewrite", route_rewrite, 1 * MIB, ROUTE_MODEL | ROUTE_JSON,
      "Rewrites a text several times.", &rewrite_body, "Rewrite" },
    { "POST", "/v1/rewrite/prepare", route_prepare, 1 * MIB, ROUTE_MODEL | ROUTE_JSON | ROUTE_QUIET,
      "Encodes a text ahead of its rewriting.", &prepare_body, "Prepared" },
    { "POST", "/v1/rewrite/batch", route_rewrite_batch, BATCH_BODY_MAX,
      ROUTE_MODEL | ROUTE_JSON | ROUTE_BATCH | ROUTE_LINES, "Rewrites many texts.",
      &rewrite_batch_body, "Batch" },
    { "POST", "/augment", route_augment, 1 * MIB, ROUTE_MODEL | ROUTE_JSON,
      "Rewrites a text, in the dialect of the mT5 WebUI family.", &augment_body, "Augmented" },
    { "POST", "/augment_batch", route_augment_batch, BATCH_BODY_MAX,
      ROUTE_MODEL | ROUTE_JSON | ROUTE_BATCH, "The same for many texts.", &augment_batch_body,
      "AugmentedBatch" },
    { "GET", "/v1/streams/{id}", route_stream_resume, 0, 0,
      "Reads a stream that lingers, from behind Last-Event-ID on.", NULL, "text/event-stream" },
    { "DELETE", "/v1/streams/{id}", route_stream_delete, 0, 0, "Cancels a stream that lingers.",
      NULL, "StreamEnd" },
    { "POST", "/v1/score", route_score, 1 * MIB, ROUTE_MODEL | ROUTE_JSON | ROUTE_SLOW,
      "Log-probability of each token of a target, given a source.", &score_body, "Score" },
    { "POST", "/v1/tokenize", route_tokenize, 1 * MIB, ROUTE_MODEL | ROUTE_JSON,
      "Token ids of a text, or the text of token ids.", &tokenize_body, "Tokens" },
    { "GET", "/v1/models", route_models, 0, ROUTE_INLINE | ROUTE_MODEL | ROUTE_QUIET,
      "The models that are served.", NULL, "Models" },
    { "GET", "/health", route_health, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET,
      "Whether the server lives.", NULL, "Health" },
    { "GET", "/ready", route_ready, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET,
      "Whether its models can be used: 503 while they load and while it drains.", NULL, "Ready" },
    { "GET", "/metrics", route_metrics, 0, ROUTE_INLINE | ROUTE_QUIET,
      "Counters as Prometheus text.", NULL, "text/plain" },
    { "GET", "/openapi.json", route_openapi, 0, ROUTE_INLINE | ROUTE_QUIET,
      "This API as an OpenAPI document.", NULL, "OpenAPI" },
    { "GET", "/", route_page, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET, "The page.", NULL,
      "text/html" },
};
const size_t routes_n = sizeof(routes) / sizeof(routes[0]);

static bool row_matches(const struct route *r, const char *path)
{
    size_t fixed = strcspn(r->path, "{");

    if (r->path[fixed])
        return strncmp(path, r->path, fixed) == 0 && path[fixed] && !strchr(path + fixed, '/');
    return strcmp(r->path, path) == 0 || (r->run == route_page && page_has(path));
}

const struct route *route_find(const char *method, const char *path, char allow[ROUTE_ALLOW_CAP])
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    size_t len = 0;

    allow[0] = '\0';
    for (size_t i = 0; i < routes_n; i++) {
        const struct route *r = &routes[i];

        if (!row_matches(r, path))
            continue;
        if (strcmp(r->method, wanted) == 0)
            return r;
        const char *names = strcmp(r->method, "GET") == 0 ? "GET, HEAD" : r->method;
        int n = snprintf(allow + len, ROUTE_ALLOW_CAP - len, "%s%s", len ? ", " : "", names);
        if (n > 0 && (size_t)n < ROUTE_ALLOW_CAP - len)
            len += (size_t)n;
    }
    return NULL;
}
