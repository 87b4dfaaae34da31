/* Inkstone's own API: /v1/rewrite, /v1/score, /v1/tokenize. JSON goes no further than this file. */
#include "server/router.h"

#include "base/json.h"
#include "server/answer.h"
#include "server/fields.h"
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

static void init_rewrite(void *call)
{
    ink_rewrite_call_init(call);
}

/* The tables that ink_rewrite_call_read() uses. */
const struct body rewrite_body = {
    .name = "RewriteRequest",
    .tables = { &rewrite_text_fields, &rewrite_option_fields },
    .size = sizeof(struct ink_rewrite_call),
    .init = init_rewrite,
};

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
    enum ink_status st = field_object(ink_buf_slice(&rq->body), &doc, err);

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

struct score_call {
    struct ink_score_request ask;
    struct field_ids source_ids, target_ids; /* owned */
};

#define AT(member) offsetof(struct score_call, member)
static const struct field score_rows[] = {
    { "source", FIELD_TEXT, FIELD_EITHER, AT(ask.source), 0, 0, NULL,
      "Text, tokenized with the special tokens that the reference adds." },
    { "source_ids", FIELD_IDS, FIELD_EITHER, AT(source_ids), 1, IDS_MAX, NULL,
      "The source as token ids, used exactly as given." },
    { "model", FIELD_NAME, FIELD_NO_DEFAULT, AT(ask.model), 0, 0, NULL,
      "Which model; the first that can score when left out." },
    { "target", FIELD_TEXT, FIELD_EITHER, AT(ask.target), 0, 0, NULL,
      "Text whose tokens are scored, the end token behind them." },
    { "target_ids", FIELD_IDS, FIELD_EITHER, AT(target_ids), 1, IDS_MAX, NULL,
      "The target as token ids, used exactly as given." },
    { "top", FIELD_INT, 0, AT(ask.n_top), 0, INK_TOP_MAX, NULL,
      "How many alternatives of each target token." },
};
#undef AT
static const struct fields score_fields = FIELDS(score_rows);

static void init_score(void *body)
{
    *(struct score_call *)body =
        (struct score_call){ .ask = { .n_source_ids = -1, .n_target_ids = -1 } };
}

const struct body score_body = { .name = "ScoreRequest",
                                 .tables = { &score_fields },
                                 .size = sizeof(struct score_call),
                                 .init = init_score };

static bool client_left(void *arg)
{
    const struct request *rq = arg;

    return atomic_load(&rq->gone) || atomic_load(&rq->server->stopping);
}

static enum ink_status score(struct request *rq, struct score_call *call, struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    struct ink_score_request *ask = &call->ask;
    struct ink_score_result result = { 0 };
    struct ink_served *served;
    enum ink_status st = ink_catalog_find(catalog, ask->model, INK_CAN_SCORE, &served, err);

    if (st != INK_OK)
        return st;
    if (call->source_ids.ids) {
        ask->source_ids = call->source_ids.ids;
        ask->n_source_ids = call->source_ids.n;
    }
    if (call->target_ids.ids) {
        ask->target_ids = call->target_ids.ids;
        ask->n_target_ids = call->target_ids.n;
    }
    ask->is_unwanted = client_left;
    ask->unwanted_arg = rq;
    st = ink_score(catalog, ask, &result, err);
    if (st != INK_OK) {
        request_explain_end(rq->server, err);
        return st;
    }
    reply_json(rq, 200, ink_answer_score(served, &result));
    ink_score_release(&result);
    return INK_OK;
}

enum ink_status route_score(struct request *rq, struct ink_err *err)
{
    struct score_call call;
    json_t *doc = NULL;
    enum ink_status st = field_object(ink_buf_slice(&rq->body), &doc, err);

    if (st != INK_OK)
        return st;
    init_score(&call);
    st = body_read(&score_body, doc, &call, err);
    if (st == INK_OK)
        st = score(rq, &call, err);
    free(call.source_ids.ids);
    free(call.target_ids.ids);
    json_decref(doc);
    return st;
}

/* --- /v1/tokenize ------------------------------------------------------------------------------ */

struct tokenize_call {
    struct ink_slice text;
    struct field_ids ids; /* owned */
    const char *model;
    bool add_special;
};

#define AT(member) offsetof(struct tokenize_call, member)
static const struct field tokenize_rows[] = {
    { "text", FIELD_TEXT, FIELD_EITHER, AT(text), 0, 0, NULL, "Text to turn into token ids." },
    { "ids", FIELD_IDS, FIELD_EITHER, AT(ids), 1, IDS_MAX, NULL, "Token ids to turn into text." },
    { "model", FIELD_NAME, FIELD_NO_DEFAULT, AT(model), 0, 0, NULL,
      "Whose vocabulary; the first model's when left out." },
    { "add_special", FIELD_BOOL, 0, AT(add_special), 0, 0, NULL,
      "Add the special tokens that the reference adds, such as the end token." },
};
#undef AT
static const struct fields tokenize_fields = FIELDS(tokenize_rows);

static void init_tokenize(void *body)
{
    *(struct tokenize_call *)body = (struct tokenize_call){ .add_special = true };
}

const struct body tokenize_body = { .name = "TokenizeRequest",
                                    .tables = { &tokenize_fields },
                                    .size = sizeof(struct tokenize_call),
                                    .init = init_tokenize };

static enum ink_status tokenize(struct request *rq, const struct ink_served *served,
                                const struct tokenize_call *call, struct ink_err *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    enum ink_status st = ink_tokenize(served, call->text, call->add_special, &ids, &n, err);

    if (st != INK_OK)
        return st;
    reply_json(rq, 200, ink_answer_tokens(served, ids, n));
    free(ids);
    return INK_OK;
}

static enum ink_status detokenize(struct request *rq, const struct ink_served *served,
                                  const struct field_ids *ids, struct ink_err *err)
{
    char *text = NULL;
    size_t len = 0;
    enum ink_status st = ink_detokenize(served, ids->ids, (size_t)ids->n, &text, &len, err);

    if (st != INK_OK)
        return st;
    reply_json(rq, 200, ink_answer_text(served, (struct ink_slice){ text, len }));
    free(text);
    return INK_OK;
}

enum ink_status route_tokenize(struct request *rq, struct ink_err *err)
{
    struct tokenize_call call;
    struct ink_served *served;
    json_t *doc = NULL;
    enum ink_status st = field_object(ink_buf_slice(&rq->body), &doc, err);

    if (st != INK_OK)
        return st;
    init_tokenize(&call);
    st = body_read(&tokenize_body, doc, &call, err);
    if (st == INK_OK)
        st = ink_catalog_find(atomic_load(&rq->server->catalog), call.model, 0, &served, err);
    if (st == INK_OK)
        st = call.ids.ids ? detokenize(rq, served, &call.ids, err)
                          : tokenize(rq, served, &call, err);
    free(call.ids.ids);
    json_decref(doc);
    return st;
}
