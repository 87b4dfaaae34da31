#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "base/buf.h"
#include "base/status.h"
#include "server/router.h"

#include <stdatomic.h>
#include <stdint.h>

/* The server's own counters; any thread may count. */
enum { METRIC_CODES = 20, METRIC_BUCKETS = 12 };

struct metrics {
    int64_t start_ms;
    atomic_llong requests[ROUTES_MAX + 1]
                         [METRIC_CODES]; /* by route (the last: unknown) and status code */
    atomic_llong buckets[ROUTES_MAX + 1][METRIC_BUCKETS + 1];
    atomic_llong duration_us[ROUTES_MAX + 1];
    atomic_llong clients_gone;
    atomic_llong slow_clients;
    atomic_int running;
    atomic_int streams;
    atomic_int connections;
};

void metrics_count(struct metrics *m, const struct route *route, int code, int64_t duration_ns);

/* Prometheus text of the above. */
INK_NODISCARD enum ink_status metrics_write(struct metrics *m, struct ink_buf *out);

#endif
