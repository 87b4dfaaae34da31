/* One row per error word; the contract's section on errors is this table. */
#include "server/error_words.h"

#include <string.h>

static const char invalid[] = "invalid_request_error";
static const char rate[] = "rate_limit_error";
static const char ours[] = "server_error";

static const struct error_word words[] = {
    { "internal", 500, ours }, /* first: the answer to anything unknown */
    { "invalid_json", 400, invalid },
    { "invalid_value", 400, invalid },
    { "input_too_long", 400, invalid },
    { "unauthorized", 401, invalid },
    { "forbidden_origin", 403, invalid },
    { "not_found", 404, invalid },
    { "model_not_found", 404, invalid },
    { "method_not_allowed", 405, invalid },
    { "request_timeout", 408, invalid },
    { "too_large", 413, invalid },
    { "unsupported_media_type", 415, invalid },
    { "no_usable_output", 422, invalid },
    /* Of one candidate, inside an answer: why none of its attempts could be used. */
    { "duplicate", 422, invalid },
    { "empty", 422, invalid },
    { "same_as_source", 422, invalid },
    { "overloaded", 429, rate },
    { "cancelled", 499, invalid },
    { "loading", 503, ours },
    { "draining", 503, ours },
    { "deadline", 504, ours },
};

static const char *word_of_status(enum ink_status code)
{
    switch (code) {
    case INK_INVALID:
    case INK_UNSUPPORTED:
        return "invalid_value";
    case INK_NOT_FOUND:
        return "not_found";
    case INK_BUSY:
        return "overloaded";
    case INK_CANCELLED:
        return "cancelled";
    case INK_TIMEOUT:
        return "deadline";
    default:
        return "internal";
    }
}

static const struct error_word *find(const char *word)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].word, word) == 0)
            return &words[i];
    }
    return NULL;
}

const struct error_word *error_word_of(const struct ink_err *err)
{
    const struct error_word *w = find(err->reason);

    if (!w)
        w = find(word_of_status(err->code));
    return w ? w : &words[0];
}
