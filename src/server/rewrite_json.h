#ifndef SERVER_REWRITE_JSON_H
#define SERVER_REWRITE_JSON_H

#include "base/status.h"
#include "server/fields.h"
#include "task/rewrite.h"

#include <jansson.h>
#include <stdbool.h>

/*
 * Reads a rewrite request out of a JSON object: the body of POST /v1/rewrite, or one line of the command's
 * --jsonl. Every known field is checked for type and range; unknown fields are ignored; null means the default.
 */
enum ink_cache_mode { INK_CACHE_AUTO, INK_CACHE_REFRESH, INK_CACHE_OFF };

enum { INK_REWRITE_TIMEOUT_MS = 30000, INK_LINGER_MS_MAX = 120000 };

struct ink_rewrite_call {
    struct ink_rewrite_request rq; /* strings borrowed from the JSON object */
    bool stream;
    enum ink_cache_mode cache;
    int linger_ms;

    /* As they were read; rq has them too. */
    struct field_ids source_ids; /* owned */
    int64_t seed;                /* -1: not given */
    const json_t *stop;          /* NULL: not given */
};

/*
 * The tables behind it, into struct ink_rewrite_call: what to rewrite, and how. For other bodies that begin
 * with one.
 */
extern const struct fields rewrite_text_fields, rewrite_option_fields;
extern const char *const rewrite_long_input_words[]; /* of enum ink_long_input; ends in NULL */
/* Of a body that begins with one and was read by body_read(): the last step. */
void ink_rewrite_call_finish(struct ink_rewrite_call *call);

/* The contract's defaults, with the default deadline of 30 s. */
void ink_rewrite_call_init(struct ink_rewrite_call *call);
void ink_rewrite_call_release(struct ink_rewrite_call *call);

/*
 * Overrides what `obj` has of `call`, which was initialized and may hold other defaults (the command's
 * options). The object must live as long as `call` is used. With `need_text`, a missing "text" is
 * INK_INVALID; an empty or blank one always is. INK_INVALID names field, value and range.
 */
INK_NODISCARD enum ink_status ink_rewrite_call_read(struct ink_rewrite_call *call,
                                                    const json_t *obj, bool need_text,
                                                    struct ink_err *err);

/*
 * The request object of one line of JSON Lines: an object as it is, of a string {"text": it}. A new reference. INK_INVALID for
 * anything else.
 */
INK_NODISCARD enum ink_status ink_rewrite_line(struct ink_slice line, json_t **object,
                                               struct ink_err *err);

/* "auto", "refresh", "off". */
INK_NODISCARD enum ink_status ink_cache_mode_parse(const char *word, enum ink_cache_mode *out,
                                                   struct ink_err *err);

#endif
