#ifndef TASK_SCORE_H
#define TASK_SCORE_H

#include "base/slice.h"
#include "base/status.h"
#include "task/task.h"

#include <stdbool.h>
#include <stdint.h>

struct ink_catalog;

/* How probable a target is, given a source: see CONTRACT.md, `score`. Everything is borrowed for the call. */
struct ink_score_request {
    const char *model;                      /* NULL: the first that can score */
    struct ink_slice source, target;        /* UTF-8, tokenized as the reference does */
    const int32_t *source_ids, *target_ids; /* instead of text, used exactly as given */
    int n_source_ids, n_target_ids;         /* -1: not given */
    int n_top;                              /* best alternatives per target token: 0..20 */
    bool (*is_unwanted)(
        void *arg); /* asked now and then: the caller does not wait any more. NULL: it does */
    void *unwanted_arg;
};

struct ink_score_result {
    const char *model; /* borrowed from the catalog */
    int32_t *source_ids;
    int n_source;
    struct ink_token_detail *target; /* n_target entries */
    int n_target;
    double sum_logprob;
};

/*
 * Runs to the end, or to INK_CANCELLED soon after it is unwanted; blocking. Release the result with
 * ink_score_release().
 */
INK_NODISCARD enum ink_status ink_score(struct ink_catalog *catalog,
                                        const struct ink_score_request *rq,
                                        struct ink_score_result *out, struct ink_err *err);
void ink_score_release(struct ink_score_result *r);

#endif
