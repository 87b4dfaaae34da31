/* Inkstone's own API: /v1/rewrite, /v1/score, /v1/tokenize. JSON goes no further than this file. */
#include "server/router.h"

#include "base/json.h"
#include "server/answer.h"
#include "server/json_fields.h"
#include "server/reply.h"
#include "server/request.h"
#include "server/rewrite_json.h"
#include "server/state.h"
#include "server/stream.h"
#include "task/catalog.h"
#include "task/score.h"
#include "task/task.h"
#include "task/tokenize.h"

#include <stdlib.h>
#include <string.h>

enum { IDS_MAX = 65536 };

static enum ink_status read_body(const struct request *rq, json_t **out, struct ink_err *err)
{
    json_t *doc;
    enum ink_status st = ink_json_parse(rq->body.ptr, rq->body.len, &doc, err);

    if (st != INK_OK)
        return st;
    if (!json_is_object(doc)) {
        json_decref(doc);
        return ink_err_param(err, INK_INVALID, "", "invalid_json",
                             "the body must be a JSON object");
    }
    *out = doc;
    return INK_OK;
}

/* --- /v1/rewrite ------------------------------------------------------------------------------- */

static json_t *typed(const char *type)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "type", json_string(type));
    return o;
}

static void put_text(json_t *o, const char *key, struct ink_slice text)
{
    (void)json_object_set_new(o, key, json_stringn(text.ptr ? text.ptr : "", text.len));
}

/* {"type": type, ...the fields of `rest`}; takes the reference to `rest`. */
static json_t *typed_with(const char *type, json_t *rest)
{
    json_t *o = typed(type);

    (void)json_object_update(o, rest);
    json_decref(rest);
    return o;
}

static enum ink_status native_event(struct stream_log *log, const struct work *w,
                                    const struct ink_task_event *ev)
{
    json_t *o;

    switch (ev->kind) {
    case INK_TASK_QUEUED:
        o = typed("queued");
        (void)json_object_set_new(o, "position", json_integer(ev->position));
        (void)json_object_set_new(o, "wait_ms", json_integer(ev->wait_ms));
        return stream_log_add(log, o);
    case INK_TASK_TEXT:
        if (ev->text.len == 0)
            return INK_OK;
        o = typed("delta");
        (void)json_object_set_new(o, "index", json_integer(ev->index));
        put_text(o, "text", ev->text);
        return stream_log_add(log, o);
    case INK_TASK_RESET:
        o = typed("reset");
        (void)json_object_set_new(o, "index", json_integer(ev->index));
        (void)json_object_set_new(o, "reason", json_string(ev->reason ? ev->reason : "duplicate"));
        put_text(o, "text", ev->text);
        return stream_log_add(log, o);
    case INK_TASK_CANDIDATE:
        return stream_log_add(
            log,
            typed_with("candidate", ink_answer_candidate(w->served, ev->candidate, w->details)));
    case INK_TASK_IDLE:
        return INK_OK;
    case INK_TASK_DONE:
        o = typed_with("done", work_answer(w));
        enum ink_status st = stream_log_add(log, o);
        return st == INK_OK ? stream_log_close(log) : st;
    }
    return INK_OK;
}

static enum ink_status native_fail(struct stream_log *log, const struct ink_err *err)
{
    json_t *o = typed("error");

    (void)json_object_set_new(o, "error", ink_answer_error(err));
    enum ink_status st = stream_log_add(log, o);
    return st == INK_OK ? stream_log_close(log) : st;
}

static const struct dialect native_dialect = { native_event, native_fail };

static enum ink_status start_rewrite(struct request *rq, const struct ink_rewrite_call *call,
                                     struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    struct ink_served *served;
    struct work work = { 0 };
    enum ink_status st = ink_catalog_find(catalog, call->rq.model, INK_CAN_REWRITE, &served, err);

    if (st != INK_OK)
        return st;
    st = ink_rewrite_start(catalog, &call->rq, &work.task, err);
    if (st != INK_OK)
        return st;
    work.served = served;
    work.details = call->rq.details;
    /* Until there is a cache, every answer is computed: a miss, or without the cache altogether. */
    work.cache_word = call->cache == INK_CACHE_OFF ? "off" : "miss";
    if (call->stream)
        return stream_start(rq->server->streams, rq, &work, &native_dialect, call->linger_ms,
                            request_key(rq), err);
    rq->work = work;
    return INK_OK;
}

enum ink_status route_rewrite(struct request *rq, struct ink_err *err)
{
    struct ink_rewrite_call call;
    json_t *doc = NULL;
    enum ink_status st = read_body(rq, &doc, err);

    if (st != INK_OK)
        return st;
    ink_rewrite_call_init(&call);
    st = ink_rewrite_call_read(&call, doc, true, err);
    if (st == INK_OK)
        st = start_rewrite(rq, &call, err);
    ink_rewrite_call_release(&call);
    json_decref(doc);
    return st;
}

/* --- /v1/streams/{id} -------------------------------------------------------------------------- */

enum ink_status route_stream_resume(struct request *rq, struct ink_err *err)
{
    return stream_resume(rq->server->streams, rq, request_path_id(rq), request_key(rq),
                         request_header(rq, "Last-Event-ID"), err);
}

enum ink_status route_stream_delete(struct request *rq, struct ink_err *err)
{
    const char *id = request_path_id(rq);
    bool was_running;
    enum ink_status st = stream_delete(rq->server->streams, id, request_key(rq), &was_running, err);

    if (st != INK_OK)
        return st;
    json_t *o = json_object();
    (void)json_object_set_new(o, "id", json_string(id));
    (void)json_object_set_new(o, "state", json_string(was_running ? "cancelled" : "finished"));
    reply_json(rq, 200, o);
    return INK_OK;
}

/* --- /v1/score --------------------------------------------------------------------------------- */

static enum ink_status read_side(const json_t *doc, const char *text_name, const char *ids_name,
                                 struct ink_slice *text, int32_t **ids, int *n, struct ink_err *err)
{
    const char *s = NULL;
    size_t len = 0;
    enum ink_status st = ink_json_string(doc, text_name, &s, &len, err);

    if (st == INK_OK)
        st = field_ids(doc, ids_name, IDS_MAX, ids, n, err);
    if (st != INK_OK)
        return st;
    if ((s != NULL) == (*ids != NULL))
        return ink_err_param(err, INK_INVALID, text_name, "invalid_value",
                             "%s: give either %s or %s", text_name, text_name, ids_name);
    *text = (struct ink_slice){ s, len };
    return INK_OK;
}

static enum ink_status score(struct request *rq, const json_t *doc, struct ink_score_request *ask,
                             struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    struct ink_score_result result = { 0 };
    struct ink_served *served;
    size_t len;
    enum ink_status st;

    if ((st = ink_json_string(doc, "model", &ask->model, &len, err)) != INK_OK ||
        (st = field_int(doc, "top", 0, 20, &ask->n_top, err)) != INK_OK ||
        (st = ink_catalog_find(catalog, ask->model, INK_CAN_SCORE, &served, err)) != INK_OK ||
        (st = ink_score(catalog, ask, &result, err)) != INK_OK)
        return st;
    reply_json(rq, 200, ink_answer_score(served, &result));
    ink_score_release(&result);
    return INK_OK;
}

enum ink_status route_score(struct request *rq, struct ink_err *err)
{
    struct ink_score_request ask = { .n_source_ids = -1, .n_target_ids = -1 };
    int32_t *source_ids = NULL, *target_ids = NULL;
    json_t *doc = NULL;
    enum ink_status st = read_body(rq, &doc, err);

    if (st != INK_OK)
        return st;
    st = read_side(doc, "source", "source_ids", &ask.source, &source_ids, &ask.n_source_ids, err);
    if (st == INK_OK)
        st = read_side(doc, "target", "target_ids", &ask.target, &target_ids, &ask.n_target_ids,
                       err);
    if (st == INK_OK) {
        ask.source_ids = source_ids;
        ask.target_ids = target_ids;
        st = score(rq, doc, &ask, err);
    }
    free(source_ids);
    free(target_ids);
    json_decref(doc);
    return st;
}

/* --- /v1/tokenize ------------------------------------------------------------------------------ */

static enum ink_status tokenize(struct request *rq, const struct ink_served *served,
                                const json_t *doc, struct ink_err *err)
{
    const char *text = NULL;
    size_t len = 0, n = 0;
    bool add_special = true;
    int32_t *ids = NULL;
    enum ink_status st;

    if ((st = ink_json_string(doc, "text", &text, &len, err)) != INK_OK ||
        (st = ink_json_bool(doc, "add_special", &add_special, err)) != INK_OK)
        return st;
    if (!text)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: missing; give text, or ids to decode");
    st = ink_tokenize(served, (struct ink_slice){ text, len }, add_special, &ids, &n, err);
    if (st != INK_OK)
        return st;
    reply_json(rq, 200, ink_answer_tokens(served, ids, n));
    free(ids);
    return INK_OK;
}

static enum ink_status detokenize(struct request *rq, const struct ink_served *served,
                                  const int32_t *ids, int n, struct ink_err *err)
{
    char *text = NULL;
    size_t len = 0;
    enum ink_status st = ink_detokenize(served, ids, (size_t)n, &text, &len, err);

    if (st != INK_OK)
        return st;
    reply_json(rq, 200, ink_answer_text(served, (struct ink_slice){ text, len }));
    free(text);
    return INK_OK;
}

enum ink_status route_tokenize(struct request *rq, struct ink_err *err)
{
    struct ink_served *served;
    const char *model = NULL;
    size_t len;
    int32_t *ids = NULL;
    int n_ids = 0;
    json_t *doc = NULL;
    enum ink_status st = read_body(rq, &doc, err);

    if (st != INK_OK)
        return st;
    if ((st = ink_json_string(doc, "model", &model, &len, err)) == INK_OK &&
        (st = ink_catalog_find(atomic_load(&rq->server->catalog), model, 0, &served, err)) ==
            INK_OK &&
        (st = field_ids(doc, "ids", IDS_MAX, &ids, &n_ids, err)) == INK_OK)
        st = ids ? detokenize(rq, served, ids, n_ids, err) : tokenize(rq, served, doc, err);
    free(ids);
    json_decref(doc);
    return st;
}
