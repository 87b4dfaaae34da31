#ifndef TASK_TASK_H
#define TASK_TASK_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What a user asked for, from the moment the request is understood until the
 * last piece of answer has been read. Front ends (HTTP, command line) start
 * one with ink_rewrite_start() or ink_score_start(), then pull events.
 * One reader at a time; the waker may be called from any thread.
 */
struct ink_task;

enum ink_task_event_kind {
    INK_TASK_QUEUED,    /* place in the queue and expected wait */
    INK_TASK_TEXT,      /* more text of candidate `index` */
    INK_TASK_RESET,     /* candidate `index` so far is replaced by `text`; `reason` says why */
    INK_TASK_CANDIDATE, /* candidate `index` is complete: see `candidate` */
    INK_TASK_IDLE,      /* nothing within the time-out: send a keep-alive and ask again */
    INK_TASK_DONE,      /* complete: the result is final */
};

/* One alternative or chosen token, with its natural-log probability at temperature 1. */
struct ink_token_prob {
    int32_t id;
    float logprob;
};

struct ink_token_detail {
    struct ink_token_prob chosen;
    const struct ink_token_prob *top; /* best first */
    int n_top;
};

struct ink_candidate {
    int index;
    struct ink_slice text;     /* whole UTF-8 */
    const char *finish_reason; /* "stop", "length", "cancelled", "error" */
    double score;              /* mean logprob per emitted token, the end token included */
    int n_tokens;              /* emitted, the end token included */
    int n_attempts;            /* 1 + redraws */
    const struct ink_token_detail
        *tokens;          /* n_tokens entries when details were asked for, else NULL */
    struct ink_err error; /* code INK_OK, or why this candidate failed */
};

struct ink_task_timings { /* milliseconds; the stages sum to total_ms */
    double queue_ms, tokenize_ms, encode_ms, first_token_ms, decode_ms, other_ms, total_ms;
};

struct ink_task_usage {
    int tokens_input, tokens_output;
};

enum { INK_WARNINGS_MAX = 8 };

/* What all answers have in common; strings are valid until ink_task_free(). */
struct ink_task_result {
    char id[40];
    const char *model;
    const char *device;
    const char *cache;        /* "miss", "hit", "shared", "off" */
    const char *source_cache; /* of the source's encoding: "miss", "hit", "off" */
    uint64_t seed;
    struct ink_task_usage usage;
    struct ink_task_timings timings;
    int truncated_from, truncated_to; /* tokens; 0, 0: not truncated */
    const char *warnings[INK_WARNINGS_MAX];
    int n_warnings;
    const struct ink_candidate *candidates;
    int n_candidates;
};

struct ink_task_event {
    enum ink_task_event_kind kind;
    int index;                             /* which candidate */
    struct ink_slice text;                 /* whole UTF-8 characters; valid until the next call */
    const char *reason;                    /* RESET: "duplicate", "empty" */
    int position, wait_ms;                 /* QUEUED */
    const struct ink_candidate *candidate; /* CANDIDATE; valid until ink_task_free() */
};

/*
 * Waits up to `timeout_ms` (0: not at all) for the next event. Any status other than
 * INK_OK ends the task, and no further event follows. After INK_TASK_DONE the result is complete.
 */
INK_NODISCARD enum ink_status ink_task_next(struct ink_task *task, int timeout_ms,
                                            struct ink_task_event *ev, struct ink_err *err);

/* Pulls events until the end: for callers that want only the result. */
INK_NODISCARD enum ink_status ink_task_wait(struct ink_task *task, struct ink_err *err);

/* After INK_TASK_DONE (or a failed end: what there is). Borrowed from the task. */
const struct ink_task_result *ink_task_result(const struct ink_task *task);

/* For a reader that must not block: `wake(arg)` after every change, until set to NULL or the task is freed. Short. */
void ink_task_set_waker(struct ink_task *task, void (*wake)(void *arg), void *arg);
bool ink_task_has_event(struct ink_task *task); /* ink_task_next(task, 0, ...) would not say IDLE */

/* From any thread (Ctrl-C, a lost client): the task ends soon with INK_CANCELLED. */
void ink_task_cancel(struct ink_task *task);

/* Cancels the task if it still runs; its waker is never called again. NULL is fine. */
void ink_task_free(struct ink_task *task);

#endif
