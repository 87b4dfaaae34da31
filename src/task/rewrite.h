#ifndef TASK_REWRITE_H
#define TASK_REWRITE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct ink_catalog;
struct ink_served;
struct ink_task;

enum ink_long_input { INK_LONG_REJECT, INK_LONG_TRUNCATE };

enum { INK_REWRITE_N_MAX = 16, INK_STOP_MAX = 8, INK_TOP_MAX = 20 };

/*
 * One text to rewrite. Fill with ink_rewrite_defaults(), then set what differs. Everything is copied by
 * ink_rewrite_start().
 */
struct ink_rewrite_request {
    struct ink_slice text;     /* UTF-8; ignored when source_ids is given */
    const int32_t *source_ids; /* raw encoder input: no template, nothing added */
    int n_source_ids;
    const char *model;         /* NULL: the first that can rewrite */
    int n;                     /* candidates, 1..16 */
    double temperature;        /* 0 is greedy; 0..5 */
    double top_p;              /* 0 < top_p <= 1 */
    double min_p;              /* 0..1 */
    double repetition_penalty; /* 0.1..10; 1: none */
    int top_k;                 /* 0: off */
    int max_tokens;            /* per candidate, the end token included */
    bool has_seed;
    uint64_t seed; /* 0..2^53-1; drawn and reported when not given */
    struct ink_slice stop[INK_STOP_MAX];
    int n_stop;
    bool details;        /* keep per-token probabilities */
    int n_top;           /* alternatives per token with details */
    bool allow_same;     /* a candidate may equal the source */
    bool fixed_length;   /* the end token is never drawn, so all have max_tokens; for benchmarks */
    const char *scripts; /* NULL: Chinese head when the text is Chinese; else see token/script.h */
    enum ink_long_input on_long_input;
    bool fresh; /* runs the encoder even if this source's encoding is still there, and keeps none */
    int timeout_ms; /* from admission; 0: none */
};

void ink_rewrite_defaults(struct ink_rewrite_request *rq);

/*
 * Checks every field but the text (or source_ids), as ink_rewrite_start() does; `*served` is the model it would use. For
 * many texts with the same options.
 */
INK_NODISCARD enum ink_status ink_rewrite_check(struct ink_catalog *catalog,
                                                const struct ink_rewrite_request *rq,
                                                struct ink_served **served, struct ink_err *err);

/*
 * Checks every field (INK_INVALID with param), tokenizes, and submits. INK_BUSY (reason "overloaded"): the queue is full;
 * `retry_s` in the text. The caller owns *out and pulls events: see task/task.h. A failed candidate has an error of its
 * own; when all fail, the task ends with INK_INVALID, reason "no_usable_output".
 */
INK_NODISCARD enum ink_status ink_rewrite_start(struct ink_catalog *catalog,
                                                const struct ink_rewrite_request *rq,
                                                struct ink_task **out, struct ink_err *err);

/*
 * Encodes the text ahead of a request for it: in idle time, and given up when somebody else has work. The task has no
 * candidates; it is done when the encoding is there. Of `rq` only text, model, on_long_input and timeout_ms matter.
 * Errors as ink_rewrite_start(); INK_BUSY also later, when there was no time for it.
 */
INK_NODISCARD enum ink_status ink_rewrite_prepare(struct ink_catalog *catalog,
                                                  const struct ink_rewrite_request *rq,
                                                  struct ink_task **out, struct ink_err *err);

#endif
