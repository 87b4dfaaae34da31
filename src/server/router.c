/* The route table and the look-up. */
#include "server/router.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1024 * 1024 };

const struct route routes[] = {
    /* method path          handler         body      flags */
    { "POST", "/v1/rewrite", route_rewrite, 1 * MIB, ROUTE_MODEL | ROUTE_JSON },
    { "POST", "/v1/score", route_score, 1 * MIB, ROUTE_MODEL | ROUTE_JSON | ROUTE_SLOW },
    { "POST", "/v1/tokenize", route_tokenize, 1 * MIB, ROUTE_MODEL | ROUTE_JSON },
    { "GET", "/v1/streams/{id}", route_stream_resume, 0, 0 },
    { "DELETE", "/v1/streams/{id}", route_stream_delete, 0, 0 },
    { "GET", "/v1/models", route_models, 0, ROUTE_INLINE | ROUTE_MODEL | ROUTE_QUIET },
    { "GET", "/health", route_health, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET },
    { "GET", "/ready", route_ready, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET },
    { "GET", "/metrics", route_metrics, 0, ROUTE_INLINE | ROUTE_QUIET },
    { "GET", "/", route_page, 0, ROUTE_OPEN | ROUTE_INLINE | ROUTE_QUIET },
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
