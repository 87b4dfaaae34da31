/* A rewrite request out of JSON, field by field. What depends on the model is checked by ink_rewrite_start(). */
#include "server/rewrite_json.h"

#include "base/json.h"
#include "base/utf8.h"
#include "server/json_fields.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MS_MAX = 3600 * 1000,
    STOP_BYTES_MAX = 512, /* of one stop string */
    SOURCE_IDS_MAX = 65536,
    TOP_DEFAULT = 5,
};

static const int64_t seed_max = ((int64_t)1 << 53) - 1;

void ink_rewrite_call_init(struct ink_rewrite_call *call)
{
    memset(call, 0, sizeof(*call));
    ink_rewrite_defaults(&call->rq);
    call->rq.timeout_ms = INK_REWRITE_TIMEOUT_MS;
    call->rq.n_top = TOP_DEFAULT;
    call->cache = INK_CACHE_AUTO;
}

void ink_rewrite_call_release(struct ink_rewrite_call *call)
{
    free(call->source_ids);
    call->source_ids = NULL;
    call->rq.source_ids = NULL;
}

/* How many bytes of a wrong word an error shows: whole characters. */
static int shown_len(const char *word)
{
    size_t len = strlen(word);

    return (int)ink_utf8_complete_prefix(word, len < 40 ? len : 40);
}

enum ink_status ink_cache_mode_parse(const char *word, enum ink_cache_mode *out,
                                     struct ink_err *err)
{
    static const char *const words[] = { "auto", "refresh", "off" };

    for (int i = 0; i < 3; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = (enum ink_cache_mode)i;
            return INK_OK;
        }
    }
    return ink_err_param(err, INK_INVALID, "cache", "invalid_value",
                         "cache: '%.*s' is not auto, refresh or off", shown_len(word), word);
}

static bool is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (strchr(" \t\r\n", s[i]) == NULL)
            return false;
    }
    return true;
}

static enum ink_status read_text(struct ink_rewrite_call *call, const json_t *obj, bool need_text,
                                 struct ink_err *err)
{
    const char *text = NULL;
    size_t len = 0;
    enum ink_status st = ink_json_string(obj, "text", &text, &len, err);

    if (st != INK_OK)
        return st;
    st = field_ids(obj, "source_ids", SOURCE_IDS_MAX, &call->source_ids, &call->rq.n_source_ids,
                   err);
    if (st != INK_OK)
        return st;
    call->rq.source_ids = call->source_ids;
    if (text && call->source_ids)
        return ink_err_param(err, INK_INVALID, "source_ids", "invalid_value",
                             "source_ids: give either text or source_ids");
    if (!text)
        return need_text && !call->source_ids
                   ? ink_err_param(err, INK_INVALID, "text", "invalid_value",
                                   "text: missing; it is required")
                   : INK_OK;
    if (is_blank(text, len))
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: empty; write what to rewrite");
    call->rq.text = (struct ink_slice){ text, len };
    return INK_OK;
}

static enum ink_status add_stop(struct ink_rewrite_request *rq, const json_t *value,
                                struct ink_err *err)
{
    if (!json_is_string(value))
        return ink_err_param(err, INK_INVALID, "stop", "invalid_value",
                             "stop: must be a string or an array of strings");

    size_t len = json_string_length(value);
    if (len < 1 || len > STOP_BYTES_MAX)
        return ink_err_param(err, INK_INVALID, "stop", "invalid_value",
                             "stop: a string of %zu bytes; 1 to %d are possible", len,
                             STOP_BYTES_MAX);
    rq->stop[rq->n_stop++] = (struct ink_slice){ json_string_value(value), len };
    return INK_OK;
}

static enum ink_status read_stop(struct ink_rewrite_request *rq, const json_t *obj,
                                 struct ink_err *err)
{
    const json_t *stop = json_object_get(obj, "stop");

    if (!stop || json_is_null(stop))
        return INK_OK;
    rq->n_stop = 0;
    if (!json_is_array(stop))
        return add_stop(rq, stop, err);
    if (json_array_size(stop) > INK_STOP_MAX)
        return ink_err_param(err, INK_INVALID, "stop", "invalid_value",
                             "stop: %zu strings; at most %d", json_array_size(stop), INK_STOP_MAX);
    for (size_t i = 0; i < json_array_size(stop); i++) {
        enum ink_status st = add_stop(rq, json_array_get(stop, i), err);

        if (st != INK_OK)
            return st;
    }
    return INK_OK;
}

static enum ink_status read_sampling(struct ink_rewrite_request *rq, const json_t *obj,
                                     struct ink_err *err)
{
    int64_t seed = -1;
    enum ink_status st;

    if ((st = field_int(obj, "n", 1, INK_REWRITE_N_MAX, &rq->n, err)) != INK_OK ||
        (st = ink_json_number(obj, "temperature", 0, 5, &rq->temperature, err)) != INK_OK ||
        (st = ink_json_number(obj, "top_p", 0, 1, &rq->top_p, err)) != INK_OK ||
        (st = ink_json_number(obj, "min_p", 0, 1, &rq->min_p, err)) != INK_OK ||
        (st = field_int(obj, "top_k", 0, INT_MAX, &rq->top_k, err)) != INK_OK ||
        (st = ink_json_number(obj, "repetition_penalty", 0.1, 10, &rq->repetition_penalty, err)) !=
            INK_OK ||
        (st = ink_json_int(obj, "seed", 0, seed_max, &seed, err)) != INK_OK)
        return st;
    if (!(rq->top_p > 0))
        return ink_err_param(err, INK_INVALID, "top_p", "invalid_value",
                             "top_p: 0 is not above 0 and at most 1");
    if (seed >= 0) {
        rq->has_seed = true;
        rq->seed = (uint64_t)seed;
    }
    /* The upper bound is the model's, and the task says it. */
    return field_int(obj, "max_tokens", INT_MIN, INT_MAX, &rq->max_tokens, err);
}

static enum ink_status read_words(struct ink_rewrite_call *call, const json_t *obj,
                                  struct ink_err *err)
{
    const char *cache = NULL, *long_input = NULL;
    size_t len;
    enum ink_status st;

    if ((st = ink_json_string(obj, "model", &call->rq.model, &len, err)) != INK_OK ||
        (st = ink_json_string(obj, "scripts", &call->rq.scripts, &len, err)) != INK_OK ||
        (st = ink_json_string(obj, "cache", &cache, &len, err)) != INK_OK ||
        (st = ink_json_string(obj, "on_long_input", &long_input, &len, err)) != INK_OK)
        return st;
    if (cache && (st = ink_cache_mode_parse(cache, &call->cache, err)) != INK_OK)
        return st;
    if (!long_input)
        return INK_OK;
    if (strcmp(long_input, "reject") == 0)
        call->rq.on_long_input = INK_LONG_REJECT;
    else if (strcmp(long_input, "truncate") == 0)
        call->rq.on_long_input = INK_LONG_TRUNCATE;
    else
        return ink_err_param(err, INK_INVALID, "on_long_input", "invalid_value",
                             "on_long_input: '%.*s' is not reject or truncate",
                             shown_len(long_input), long_input);
    return INK_OK;
}

enum ink_status ink_rewrite_call_read(struct ink_rewrite_call *call, const json_t *obj,
                                      bool need_text, struct ink_err *err)
{
    struct ink_rewrite_request *rq = &call->rq;
    enum ink_status st;

    if (!json_is_object(obj))
        return ink_err_param(err, INK_INVALID, "", "invalid_json",
                             "the request must be a JSON object such as {\"text\":\"...\"}");
    if ((st = read_text(call, obj, need_text, err)) != INK_OK ||
        (st = read_words(call, obj, err)) != INK_OK ||
        (st = read_sampling(rq, obj, err)) != INK_OK || (st = read_stop(rq, obj, err)) != INK_OK ||
        (st = ink_json_bool(obj, "stream", &call->stream, err)) != INK_OK ||
        (st = ink_json_bool(obj, "details", &rq->details, err)) != INK_OK ||
        (st = ink_json_bool(obj, "allow_same", &rq->allow_same, err)) != INK_OK ||
        (st = field_int(obj, "top", 0, INK_TOP_MAX, &rq->n_top, err)) != INK_OK ||
        (st = field_int(obj, "timeout_ms", 1, TIMEOUT_MS_MAX, &rq->timeout_ms, err)) != INK_OK)
        return st;
    return field_int(obj, "linger_ms", 0, INK_LINGER_MS_MAX, &call->linger_ms, err);
}
