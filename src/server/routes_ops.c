/* What operators and their programs ask: alive, ready, how much. None of them touches the engine's locks. */
#include "server/router.h"

#include "base/clock.h"
#include "server/batch.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/state.h"
#include "server/stream.h"
#include "task/catalog.h"
#include "task/counters.h"

#include <math.h>

enum { METRICS_MAX = 1024 * 1024 };

static const char *state_word(struct ink_server *s)
{
    if (atomic_load(&s->draining))
        return "draining";
    return atomic_load(&s->catalog) ? "ready" : "loading";
}

enum ink_status route_health(struct request *rq, struct ink_err *err)
{
    struct ink_server *s = rq->server;
    json_t *o = json_object();
    (void)err;

    (void)json_object_set_new(o, "status", json_string("ok"));
    (void)json_object_set_new(o, "state", json_string(state_word(s)));
    (void)json_object_set_new(o, "version", json_string(INKSTONE_VERSION));
    (void)json_object_set_new(
        o, "uptime_s", json_real(floor((double)(ink_clock_ms() - s->metrics.start_ms)) / 1000));
    reply_json(rq, 200, o);
    return INK_OK;
}

enum ink_status route_ready(struct request *rq, struct ink_err *err)
{
    struct ink_server *s = rq->server;

    if (atomic_load(&s->draining))
        return ink_err_param(err, INK_BUSY, "", "draining",
                             "the server is shutting down; try again in 5 s");
    if (!atomic_load(&s->catalog))
        return ink_err_param(err, INK_BUSY, "", "loading",
                             "the model is still being loaded; try again in 1 s");

    json_t *o = json_object();
    (void)json_object_set_new(o, "status", json_string("ready"));
    (void)json_object_set_new(o, "models",
                              json_integer(ink_catalog_n_models(atomic_load(&s->catalog))));
    reply_json(rq, 200, o);
    return INK_OK;
}

/* A model is called like its file; in a label, quotes and backslashes must be escaped. */
static void escape_label(const char *text, char *out, size_t cap)
{
    size_t n = 0;

    for (; *text && n + 2 < cap; text++) {
        if (*text == '"' || *text == '\\')
            out[n++] = '\\';
        out[n++] = *text == '\n' ? ' ' : *text;
    }
    out[n] = '\0';
}

/* Row `i` of every model, so that a metric's lines stand together as the format asks. */
static enum ink_status write_engine_row(struct ink_catalog *catalog, int i, struct ink_buf *out)
{
    enum ink_status st = INK_OK;

    for (int m = 0; m < ink_catalog_n_models(catalog) && st == INK_OK; m++) {
        const struct ink_served *served = ink_catalog_model(catalog, m);
        struct ink_counter rows[INK_COUNTERS_MAX];
        char name[256];

        if (i >= ink_served_counters(served, rows))
            continue;
        escape_label(ink_served_name(served), name, sizeof(name));
        if (m == 0)
            st = ink_buf_addf(out, "# HELP inkstone_%s %s\n# TYPE inkstone_%s %s\n", rows[i].name,
                              rows[i].help, rows[i].name, rows[i].type);
        if (st == INK_OK)
            st = ink_buf_addf(out, "inkstone_%s{model=\"%s\"} %.15g\n", rows[i].name, name,
                              rows[i].value);
    }
    return st;
}

static enum ink_status write_batches(struct ink_server *s, struct ink_buf *out)
{
    struct batch_counts n;

    batches_counts(s->batches, &n);
    return ink_buf_addf(
        out,
        "# HELP inkstone_batches_running Calls of many texts that are being answered.\n"
        "# TYPE inkstone_batches_running gauge\ninkstone_batches_running %d\n"
        "# HELP inkstone_batch_texts_total Texts of such calls, by how they ended.\n"
        "# TYPE inkstone_batch_texts_total counter\n"
        "inkstone_batch_texts_total{result=\"ok\"} %lld\n"
        "inkstone_batch_texts_total{result=\"failed\"} %lld\n"
        "inkstone_batch_texts_total{result=\"cancelled\"} %lld\n"
        "# HELP inkstone_batch_body_bytes Bytes of their bodies in memory.\n"
        "# TYPE inkstone_batch_body_bytes gauge\ninkstone_batch_body_bytes %lld\n"
        "# HELP inkstone_batch_file_bytes Bytes of answers in files, for clients that do not read yet.\n"
        "# TYPE inkstone_batch_file_bytes gauge\ninkstone_batch_file_bytes %lld\n",
        n.running, n.ok, n.failed, n.cancelled, (long long)atomic_load(&s->batch_bytes),
        n.bytes_in_file);
}

static enum ink_status write_metrics(struct ink_server *s, struct ink_buf *out)
{
    struct ink_catalog *catalog = atomic_load(&s->catalog);
    int n_kept;
    size_t kept_bytes;
    enum ink_status st = ink_buf_addf(out,
                                      "# HELP inkstone_ready Models are loaded and work is taken.\n"
                                      "# TYPE inkstone_ready gauge\ninkstone_ready %d\n",
                                      state_word(s)[0] == 'r');

    if (st == INK_OK)
        st = metrics_write(&s->metrics, out);
    if (st == INK_OK)
        st = write_batches(s, out);
    streams_kept(s->streams, &n_kept, &kept_bytes);
    if (st == INK_OK)
        st = ink_buf_addf(out,
                          "# HELP inkstone_http_streams_kept Streams that linger or could.\n"
                          "# TYPE inkstone_http_streams_kept gauge\n"
                          "inkstone_http_streams_kept %d\n"
                          "# HELP inkstone_http_streams_kept_bytes Bytes of their events.\n"
                          "# TYPE inkstone_http_streams_kept_bytes gauge\n"
                          "inkstone_http_streams_kept_bytes %zu\n",
                          n_kept, kept_bytes);
    for (int i = 0; catalog && i < INK_COUNTERS_MAX && st == INK_OK; i++)
        st = write_engine_row(catalog, i, out);
    return st;
}

enum ink_status route_metrics(struct request *rq, struct ink_err *err)
{
    struct ink_buf text;

    ink_buf_init(&text, METRICS_MAX);
    enum ink_status st = write_metrics(rq->server, &text);
    if (st != INK_OK) {
        ink_buf_release(&text);
        return ink_err_set(err, st, "the metrics do not fit into %d bytes", METRICS_MAX);
    }
    size_t len = text.len;
    char *bytes = ink_buf_take(&text);
    ink_buf_release(&text);
    reply_text(rq, 200, "text/plain; version=0.0.4; charset=utf-8", bytes, len);
    return INK_OK;
}
