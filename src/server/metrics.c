/* Counters by route and status code, and one histogram of durations a route. */
#include "server/metrics.h"

#include "base/clock.h"

static const int codes[METRIC_CODES - 1] = { 200, 204, 304, 400, 401, 403, 404, 405, 408, 413,
                                             415, 422, 429, 431, 499, 500, 501, 503, 504 };
static const double bounds_s[METRIC_BUCKETS] = { 0.001, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                 0.25,  0.5,   1,    2.5,   10,   30 };

static size_t route_index(const struct route *route)
{
    return route ? (size_t)(route - routes) : routes_n;
}

static size_t code_index(int code)
{
    for (size_t i = 0; i < METRIC_CODES - 1; i++) {
        if (codes[i] == code)
            return i;
    }
    return METRIC_CODES - 1;
}

void metrics_count(struct metrics *m, const struct route *route, int code, int64_t duration_ns)
{
    size_t r = route_index(route);
    size_t b = 0;

    while (b < METRIC_BUCKETS && (double)duration_ns > bounds_s[b] * 1e9)
        b++;
    atomic_fetch_add(&m->requests[r][code_index(code)], 1);
    atomic_fetch_add(&m->buckets[r][b], 1);
    atomic_fetch_add(&m->duration_us[r], duration_ns / 1000);
}

static const char *route_label(size_t r)
{
    return r < routes_n ? routes[r].path : "other";
}

static enum ink_status write_requests(struct metrics *m, struct ink_buf *out)
{
    enum ink_status st =
        ink_buf_adds(out, "# HELP inkstone_http_requests_total Requests answered.\n"
                          "# TYPE inkstone_http_requests_total counter\n");

    for (size_t r = 0; r <= routes_n && st == INK_OK; r++) {
        for (size_t c = 0; c < METRIC_CODES && st == INK_OK; c++) {
            long long n = atomic_load(&m->requests[r][c]);

            if (n > 0)
                st = ink_buf_addf(out,
                                  "inkstone_http_requests_total{route=\"%s\",code=\"%d\"} %lld\n",
                                  route_label(r), c < METRIC_CODES - 1 ? codes[c] : 0, n);
        }
    }
    return st;
}

static enum ink_status write_durations(struct metrics *m, struct ink_buf *out)
{
    static const char name[] = "inkstone_http_request_seconds";
    enum ink_status st = ink_buf_addf(
        out, "# HELP %s From the first line to the answer's end.\n# TYPE %s histogram\n", name,
        name);

    for (size_t r = 0; r <= routes_n && st == INK_OK; r++) {
        const char *label = route_label(r);
        long long sum = 0;
        bool any = false;

        for (size_t b = 0; b <= METRIC_BUCKETS; b++)
            any = any || atomic_load(&m->buckets[r][b]) > 0;
        for (size_t b = 0; any && b < METRIC_BUCKETS && st == INK_OK; b++) {
            sum += atomic_load(&m->buckets[r][b]);
            st = ink_buf_addf(out, "%s_bucket{route=\"%s\",le=\"%g\"} %lld\n", name, label,
                              bounds_s[b], sum);
        }
        if (!any || st != INK_OK)
            continue;
        sum += atomic_load(&m->buckets[r][METRIC_BUCKETS]);
        st = ink_buf_addf(out,
                          "%s_bucket{route=\"%s\",le=\"+Inf\"} %lld\n%s_sum{route=\"%s\"} %.6f\n"
                          "%s_count{route=\"%s\"} %lld\n",
                          name, label, sum, name, label,
                          (double)atomic_load(&m->duration_us[r]) / 1e6, name, label, sum);
    }
    return st;
}

enum ink_status metrics_write(struct metrics *m, struct ink_buf *out)
{
    const struct {
        const char *name, *type, *help;
        double value;
    } rows[] = {
        { "inkstone_uptime_seconds", "gauge", "Since the server started.",
          (double)(ink_clock_ms() - m->start_ms) / 1e3 },
        { "inkstone_http_running", "gauge", "Requests being worked on.", atomic_load(&m->running) },
        { "inkstone_http_streams", "gauge", "Event streams being written.",
          atomic_load(&m->streams) },
        { "inkstone_http_connections", "gauge", "Open connections.", atomic_load(&m->connections) },
        { "inkstone_http_clients_gone_total", "counter", "Clients that left before their answer.",
          (double)atomic_load(&m->clients_gone) },
        { "inkstone_http_slow_clients_total", "counter",
          "Clients cut off because they sent too slowly.", (double)atomic_load(&m->slow_clients) },
    };
    enum ink_status st = INK_OK;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && st == INK_OK; i++)
        st = ink_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", rows[i].name, rows[i].help,
                          rows[i].name, rows[i].type, rows[i].name, rows[i].value);
    if (st == INK_OK)
        st = write_requests(m, out);
    return st == INK_OK ? write_durations(m, out) : st;
}
