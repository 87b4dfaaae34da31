/* A rewrite request out of JSON, by tables. What depends on the model is checked by ink_rewrite_start(). */
#include "server/rewrite_json.h"

#include "base/json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS_MAX = 3600 * 1000, SOURCE_IDS_MAX = 65536, TOP_DEFAULT = 5 };

static const char *const cache_words[] = { "auto", "refresh", "off", NULL };
const char *const rewrite_long_input_words[] = { "reject", "truncate", NULL };

static const struct field text_rows[] = {
    { "text", FIELD_TEXT, FIELD_EITHER | FIELD_NOT_BLANK,
      offsetof(struct ink_rewrite_call, rq.text), 0, 0, NULL, "The text to rewrite." },
    { "source_ids", FIELD_IDS, FIELD_EITHER, offsetof(struct ink_rewrite_call, source_ids), 1,
      SOURCE_IDS_MAX, NULL,
      "Encoder input as token ids, used exactly as given: no prompt, nothing added." },
};
const struct fields rewrite_text_fields = FIELDS(text_rows);

#define AT(member) offsetof(struct ink_rewrite_call, member)
static const struct field option_rows[] = {
    { "model", FIELD_NAME, FIELD_NO_DEFAULT, AT(rq.model), 0, 0, NULL,
      "Which model; the first that can rewrite when left out." },
    { "n", FIELD_INT, 0, AT(rq.n), 1, INK_REWRITE_N_MAX, NULL, "How many candidates." },
    { "temperature", FIELD_NUMBER, 0, AT(rq.temperature), 0, 5, NULL,
      "Higher is bolder; 0 always takes the likeliest token, and then has one candidate only." },
    { "top_p", FIELD_NUMBER, FIELD_ABOVE, AT(rq.top_p), 0, 1, NULL,
      "Draw from the likeliest tokens that have this probability together." },
    { "top_k", FIELD_INT, 0, AT(rq.top_k), 0, INT_MAX, NULL,
      "Draw from this many likeliest tokens; 0: from all." },
    { "min_p", FIELD_NUMBER, 0, AT(rq.min_p), 0, 1, NULL,
      "Leave out tokens less likely than this share of the likeliest." },
    { "repetition_penalty", FIELD_NUMBER, 0, AT(rq.repetition_penalty), 0.1, 10, NULL,
      "Above 1 makes tokens that were written already less likely." },
    { "max_tokens", FIELD_INT, FIELD_MODEL_MAX, AT(rq.max_tokens), 1, 0, NULL,
      "Of one candidate, the end token included; at most the model's max_output." },
    { "seed", FIELD_LONG, FIELD_NO_DEFAULT, AT(seed), 0, 9007199254740991.0, NULL,
      "The same seed gives the same answer; one is drawn and reported when left out." },
    { "stop", FIELD_STRINGS, FIELD_NO_DEFAULT, AT(stop), 0, INK_STOP_MAX, NULL,
      "A candidate ends before the first of these strings." },
    { "stream", FIELD_BOOL, 0, AT(stream), 0, 0, NULL, "Answer with server-sent events." },
    { "details", FIELD_BOOL, 0, AT(rq.details), 0, 0, NULL,
      "Each candidate has its tokens with their probabilities." },
    { "top", FIELD_INT, 0, AT(rq.n_top), 0, INK_TOP_MAX, NULL,
      "With details: how many alternatives of each token." },
    { "allow_same", FIELD_BOOL, 0, AT(rq.allow_same), 0, 0, NULL,
      "A candidate may be the source itself." },
    { "scripts", FIELD_NAME, FIELD_NO_DEFAULT, AT(rq.scripts), 0, 0, NULL,
      "Which part of the vocabulary is written: all, or zh; zh for a Chinese text when left out." },
    { "cache", FIELD_WORD, 0, AT(cache), 0, 0, cache_words, "How the result cache is used." },
    { "on_long_input", FIELD_WORD, 0, AT(rq.on_long_input), 0, 0, rewrite_long_input_words,
      "What to do with a text that is longer than the model takes." },
    { "timeout_ms", FIELD_INT, 0, AT(rq.timeout_ms), 1, TIMEOUT_MS_MAX, NULL,
      "Deadline, from admission; 504 when it is missed." },
    { "linger_ms", FIELD_INT, 0, AT(linger_ms), 0, INK_LINGER_MS_MAX, NULL,
      "With stream: how long the stream outlives its last reader, to be resumed." },
};
#undef AT
const struct fields rewrite_option_fields = FIELDS(option_rows);

void ink_rewrite_call_init(struct ink_rewrite_call *call)
{
    memset(call, 0, sizeof(*call));
    ink_rewrite_defaults(&call->rq);
    call->rq.timeout_ms = INK_REWRITE_TIMEOUT_MS;
    call->rq.n_top = TOP_DEFAULT;
    call->cache = INK_CACHE_AUTO;
    call->seed = -1;
}

void ink_rewrite_call_release(struct ink_rewrite_call *call)
{
    free(call->source_ids.ids);
    call->source_ids.ids = NULL;
    call->rq.source_ids = NULL;
}

enum ink_status ink_cache_mode_parse(const char *word, enum ink_cache_mode *out,
                                     struct ink_err *err)
{
    unsigned place;
    enum ink_status st = field_word("cache", cache_words, word, &place, err);

    if (st == INK_OK)
        *out = (enum ink_cache_mode)place;
    return st;
}

static void take_stop(struct ink_rewrite_request *rq, const json_t *stop)
{
    rq->n_stop = 0;
    if (json_is_string(stop)) {
        rq->stop[rq->n_stop++] =
            (struct ink_slice){ json_string_value(stop), json_string_length(stop) };
        return;
    }
    for (size_t i = 0; i < json_array_size(stop); i++) {
        const json_t *s = json_array_get(stop, i);

        rq->stop[rq->n_stop++] = (struct ink_slice){ json_string_value(s), json_string_length(s) };
    }
}

void ink_rewrite_call_finish(struct ink_rewrite_call *call)
{
    struct ink_rewrite_request *rq = &call->rq;

    if (call->source_ids.ids) {
        rq->source_ids = call->source_ids.ids;
        rq->n_source_ids = call->source_ids.n;
    }
    if (call->seed >= 0) {
        rq->has_seed = true;
        rq->seed = (uint64_t)call->seed;
    }
    if (call->stop)
        take_stop(rq, call->stop);
    rq->fresh = call->cache == INK_CACHE_OFF;
}

enum ink_status ink_rewrite_call_read(struct ink_rewrite_call *call, const json_t *obj,
                                      bool need_text, struct ink_err *err)
{
    enum ink_status st;

    if (!json_is_object(obj))
        return ink_err_param(err, INK_INVALID, "", "invalid_json",
                             "the request must be a JSON object such as {\"text\":\"...\"}");
    st = fields_read(&rewrite_text_fields, obj, !need_text, call, err);
    if (st == INK_OK)
        st = fields_read(&rewrite_option_fields, obj, false, call, err);
    if (st == INK_OK)
        ink_rewrite_call_finish(call);
    return st;
}

enum ink_status ink_rewrite_line(struct ink_slice line, json_t **object, struct ink_err *err)
{
    json_t *value;
    enum ink_status st = ink_json_parse(line.ptr, line.len, &value, err);

    if (st != INK_OK)
        return st;
    if (json_is_object(value)) {
        *object = value;
        return INK_OK;
    }
    if (json_is_string(value)) {
        *object = json_object();
        (void)json_object_set_new(*object, "text", value);
        return INK_OK;
    }
    json_decref(value);
    return ink_err_param(err, INK_INVALID, "", "invalid_value",
                         "a line must be a JSON string or an object with \"text\"");
}
