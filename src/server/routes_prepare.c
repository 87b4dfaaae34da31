/* POST /v1/rewrite/prepare: encodes a text while its writer still thinks, so that the request finds it ready. */
#include "server/router.h"

#include "server/answer.h"
#include "server/fields.h"
#include "server/json_fields.h"
#include "server/request.h"
#include "server/rewrite_json.h"
#include "server/state.h"
#include "server/work.h"
#include "task/catalog.h"
#include "task/rewrite.h"
#include "task/task.h"

enum { TIMEOUT_MS = 10000, TIMEOUT_MS_MAX = 3600 * 1000 };

#define AT(member) offsetof(struct ink_rewrite_request, member)
static const struct field rows[] = {
    { "text", FIELD_TEXT, FIELD_REQUIRED | FIELD_NOT_BLANK, AT(text), 0, 0, NULL,
      "The text that may be rewritten soon." },
    { "model", FIELD_NAME, FIELD_NO_DEFAULT, AT(model), 0, 0, NULL,
      "Which model; the first that can rewrite when left out." },
    { "on_long_input", FIELD_WORD, 0, AT(on_long_input), 0, 0, rewrite_long_input_words,
      "What to do with a text that is longer than the model takes." },
    { "timeout_ms", FIELD_INT, 0, AT(timeout_ms), 1, TIMEOUT_MS_MAX, NULL,
      "Deadline; 504 when the model had no time until then." },
};
static const struct fields fields = FIELDS(rows);

static void init(void *request)
{
    struct ink_rewrite_request *rq = request;

    ink_rewrite_defaults(rq);
    rq->timeout_ms = TIMEOUT_MS;
}

const struct body prepare_body = {
    .name = "PrepareRequest",
    .tables = { &fields },
    .size = sizeof(struct ink_rewrite_request),
    .init = init,
};

/* R without what only a rewriting has. */
static json_t *answer_prepared(const struct work *w)
{
    static const char *const none[] = { "rewrites", "seed", "cache" };
    json_t *o = ink_answer_rewrite(w->served, ink_task_result(w->task), false);

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        (void)json_object_del(o, none[i]);
    (void)json_object_set_new(o, "state", json_string("ready"));
    return o;
}

enum ink_status route_prepare(struct request *rq, struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    struct ink_rewrite_request call;
    struct ink_served *served;
    json_t *doc = NULL;
    enum ink_status st = field_object(ink_buf_slice(&rq->body), &doc, err);

    if (st != INK_OK)
        return st;
    init(&call);
    st = body_read(&prepare_body, doc, &call, err);
    if (st == INK_OK)
        st = ink_catalog_find(catalog, call.model, INK_CAN_REWRITE, &served, err);
    if (st == INK_OK)
        st = ink_rewrite_prepare(catalog, &call, &rq->work.task, err);
    if (st == INK_OK) {
        rq->work.served = served;
        rq->work.answer = answer_prepared;
    }
    json_decref(doc);
    return st;
}
