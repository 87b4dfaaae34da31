/* Many texts in a call: /v1/rewrite/batch, and /augment and /augment_batch, which spell the same differently. */
#include "server/router.h"

#include "server/answer.h"
#include "server/batch.h"
#include "server/fields.h"
#include "server/json_fields.h"
#include "server/request.h"
#include "server/rewrite_json.h"
#include "server/state.h"
#include "task/catalog.h"
#include "task/rewrite.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUES_MAX = 100000, /* JSON values in a body, which need more memory than their bytes */
    AUGMENT_TIMEOUT_MS = 10000,
};

/* --- the body ----------------------------------------------------------------------------------- */

static enum ink_status too_many(const char *what, struct ink_err *err)
{
    return ink_err_param(
        err, INK_INVALID, "texts", "too_large",
        "%s than %d texts in one call; send more as NDJSON, Content-Type and Accept "
        "application/x-ndjson, to /v1/rewrite/batch",
        what, BATCH_TEXTS_MAX);
}

/* At least as many as it has, but for one and those that stand alone in brackets. */
static size_t count_commas(const char *s, size_t len)
{
    bool in_string = false;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (s[i] == '"')
            in_string = !in_string;
        else if (s[i] == '\\' && in_string)
            i++;
        else if (s[i] == ',' && !in_string)
            n++;
    }
    return n;
}

/* A body with texts: the struct behind the tables below. */
struct texts_call {
    struct ink_rewrite_call call;
    const json_t *texts; /* borrowed */
};

static const struct field texts_rows[] = {
    { "texts", FIELD_ELEMENTS, FIELD_REQUIRED, offsetof(struct texts_call, texts), 1,
      BATCH_TEXTS_MAX, NULL,
      "The texts, strings; what is wrong with one is said in its place. More: as NDJSON." },
};
static const struct fields texts_fields = FIELDS(texts_rows);

/* The body, by its tables; the texts apart. */
static enum ink_status read_body(struct request *rq, const struct body *body,
                                 struct batch_input *in, struct ink_err *err)
{
    struct texts_call got = { 0 };
    enum ink_status st;

    if (count_commas(rq->body.ptr, rq->body.len) > VALUES_MAX)
        return too_many("far more", err);
    st = field_object(ink_buf_slice(&rq->body), &in->options, err);
    ink_buf_release(&rq->body); /* a call may take long, and has its texts now */
    if (st != INK_OK)
        return st;
    if (json_array_size(json_object_get(in->options, "texts")) > BATCH_TEXTS_MAX)
        return too_many("more", err);
    body->init(&got);
    st = body_read(body, in->options, &got, err);
    if (st != INK_OK)
        return st;
    ink_rewrite_call_finish(&got.call);
    in->call = got.call;
    in->texts = json_incref(json_object_get(in->options, "texts"));
    return INK_OK;
}

static size_t count_lines(const char *s, size_t len)
{
    size_t n = len > 0 && s[len - 1] != '\n';

    for (const char *at = s; len > 0 && (at = memchr(at, '\n', len - (size_t)(at - s))) != NULL;
         at++)
        n++;
    return n;
}

/* The body's lines. */
static enum ink_status take_lines(struct request *rq, struct batch_input *in, struct ink_err *err)
{
    in->body_len = rq->body.len;
    in->body = ink_buf_take(&rq->body);
    return count_lines(in->body, in->body_len) > BATCH_TEXTS_MAX && in->answer != BATCH_LINES
               ? too_many("more", err)
               : INK_OK;
}

/* Checks what all texts have in common, once. */
static enum ink_status check_options(const struct request *rq, struct batch_input *in,
                                     struct ink_err *err)
{
    struct ink_served *served;
    enum ink_status st =
        ink_rewrite_check(atomic_load(&rq->server->catalog), &in->call.rq, &served, err);

    if (st == INK_OK)
        in->model = ink_served_name(served);
    return st;
}

/* --- /v1/rewrite/batch -------------------------------------------------------------------------- */

static void init_batch(void *call)
{
    ink_rewrite_call_init(call);
    ((struct texts_call *)call)->texts = NULL;
}

const struct body rewrite_batch_body = {
    .name = "RewriteBatchRequest",
    .tables = { &texts_fields, &rewrite_option_fields },
    .size = sizeof(struct texts_call),
    .init = init_batch,
};

enum ink_status route_rewrite_batch(struct request *rq, struct ink_err *err)
{
    struct batch_input in = { .answer = rq->form.lines_out ? BATCH_LINES : BATCH_DOCUMENT,
                              .ordered = rq->form.ordered || !rq->form.lines_out };
    enum ink_status st;

    ink_rewrite_call_init(&in.call);
    st =
        rq->form.lines_in ? take_lines(rq, &in, err) : read_body(rq, &rewrite_batch_body, &in, err);
    if (st == INK_OK)
        st = check_options(rq, &in, err);
    if (st == INK_OK)
        return batch_start(rq, &in, err);
    batch_input_release(&in);
    return st;
}

/* --- /augment, /augment_batch ------------------------------------------------------------------- */

#define AT(member) offsetof(struct texts_call, call.member)
static const struct field augment_text_rows[] = {
    { "text", FIELD_TEXT, FIELD_REQUIRED | FIELD_NOT_BLANK, AT(rq.text), 0, 0, NULL,
      "The text to rewrite." },
};
static const struct fields augment_text_fields = FIELDS(augment_text_rows);

static const char *const cache_words[] = { "auto", "refresh", "off", NULL };
static const struct field augment_rows[] = {
    { "num_return_sequences", FIELD_INT, 0, AT(rq.n), 1, INK_REWRITE_N_MAX, NULL,
      "How many texts to make of one." },
    { "temperature", FIELD_NUMBER, 0, AT(rq.temperature), 0, 5, NULL, "Higher is bolder." },
    { "max_length", FIELD_INT, FIELD_MODEL_MAX, AT(rq.max_tokens), 1, 0, NULL,
      "Tokens of one text, the end token included; at most the model's max_output." },
    { "top_k", FIELD_INT, 0, AT(rq.top_k), 0, INT_MAX, NULL,
      "Draw from this many likeliest tokens; 0: from all." },
    { "top_p", FIELD_NUMBER, FIELD_ABOVE, AT(rq.top_p), 0, 1, NULL,
      "Draw from the likeliest tokens that have this probability together." },
    { "model", FIELD_NAME, FIELD_NO_DEFAULT, AT(rq.model), 0, 0, NULL,
      "Which model; the first that can rewrite when left out." },
    { "seed", FIELD_LONG, FIELD_NO_DEFAULT, AT(seed), 0, 9007199254740991.0, NULL,
      "The same seed gives the same answer." },
    { "cache", FIELD_WORD, 0, AT(cache), 0, 0, cache_words, "How the result cache is used." },
    { "timeout_ms", FIELD_INT, 0, AT(rq.timeout_ms), 1, 3600 * 1000, NULL,
      "Deadline of each text, from its admission." },
};
#undef AT
static const struct fields augment_fields = FIELDS(augment_rows);

static void init_augment(void *body)
{
    struct texts_call *b = body;

    init_batch(b);
    b->call.rq.n = 1;
    b->call.rq.temperature = 1;
    b->call.rq.max_tokens = 128;
    b->call.rq.top_k = 50;
    b->call.rq.top_p = 0.95;
    b->call.rq.timeout_ms = AUGMENT_TIMEOUT_MS;
    b->call.cache = INK_CACHE_OFF;
}

const struct body augment_body = {
    .name = "AugmentRequest",
    .tables = { &augment_text_fields, &augment_fields },
    .size = sizeof(struct texts_call),
    .init = init_augment,
};
const struct body augment_batch_body = {
    .name = "AugmentBatchRequest",
    .tables = { &texts_fields, &augment_fields },
    .size = sizeof(struct texts_call),
    .init = init_augment,
};

/* An error about the one field that has another name here. */
static void use_dialect(struct ink_err *err)
{
    static const char ours[] = "max_tokens";
    struct ink_err was = *err;

    if (strcmp(was.param, ours) != 0)
        return;
    (void)snprintf(err->param, sizeof(err->param), "max_length");
    if (strncmp(was.text, ours, sizeof(ours) - 1) == 0)
        (void)snprintf(err->text, sizeof(err->text), "max_length%.380s",
                       was.text + sizeof(ours) - 1);
}

static json_t *augmented(const struct work *w)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "augmented_texts", ink_answer_texts(w->task));
    return o;
}

static enum ink_status start_augment(struct request *rq, const json_t *doc, struct ink_err *err)
{
    struct ink_catalog *catalog = atomic_load(&rq->server->catalog);
    struct texts_call got;
    struct ink_served *served;
    struct ink_task *task;
    enum ink_status st;

    init_augment(&got);
    st = body_read(&augment_body, doc, &got, err);
    if (st != INK_OK)
        return st;
    ink_rewrite_call_finish(&got.call);
    if ((st = ink_catalog_find(catalog, got.call.rq.model, INK_CAN_REWRITE, &served, err)) !=
            INK_OK ||
        (st = ink_rewrite_start(catalog, &got.call.rq, &task, err)) != INK_OK)
        return st;
    rq->work = (struct work){ .task = task,
                              .served = served,
                              .cache_word = got.call.cache == INK_CACHE_OFF ? "off" : "miss",
                              .answer = augmented };
    return INK_OK;
}

enum ink_status route_augment(struct request *rq, struct ink_err *err)
{
    json_t *doc = NULL;
    enum ink_status st = field_object(ink_buf_slice(&rq->body), &doc, err);

    if (st == INK_OK)
        st = start_augment(rq, doc, err);
    if (st != INK_OK)
        use_dialect(err);
    json_decref(doc);
    return st;
}

enum ink_status route_augment_batch(struct request *rq, struct ink_err *err)
{
    struct batch_input in = { .answer = BATCH_AUGMENT, .ordered = true };
    enum ink_status st = read_body(rq, &augment_batch_body, &in, err);

    if (st == INK_OK)
        st = check_options(rq, &in, err);
    if (st == INK_OK)
        return batch_start(rq, &in, err);
    use_dialect(err);
    batch_input_release(&in);
    return st;
}
