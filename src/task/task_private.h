#ifndef TASK_TASK_PRIVATE_H
#define TASK_TASK_PRIVATE_H

#include "engine/job.h"
#include "task/candidate.h"
#include "task/rewrite.h"
#include "task/served.h"
#include "task/task.h"

#include <stdbool.h>
#include <stdint.h>

/* A task from the inside of this room: made by rewrite.c, run by task.c. */
struct ink_task {
    const struct ink_served *served;
    struct ink_job *job; /* one reference */

    struct candidate_rules rules;
    struct ink_slice stops[INK_STOP_MAX]; /* owned copies */
    bool greedy;                          /* drawing again would give the same */
    bool allow_same;
    struct ink_tokens
        source_key; /* the source text's ids, for comparing; n 0: nothing is compared */

    int n;
    struct candidate *candidates;    /* [n] */
    struct ink_candidate *described; /* [n], filled as candidates are decided */

    int64_t start_ns;
    double tokenize_ms;
    uint64_t seen;     /* version of the job that was last looked at */
    bool job_over;     /* seen, but there may have been text to tell first */
    int told_position; /* place in the queue last told; -1: none yet */
    bool ended;        /* the last event was returned */
    struct ink_task_result result;
    char warnings[INK_WARNINGS_MAX][160];
};

enum { TASK_MAX_REDRAWS = 3 };

/* `n` candidates, not initialized; the caller adds the rules and the job, or frees it. */
struct ink_task *task_new(const struct ink_served *served, int n);
/* Adds a warning to the result; silently none beyond INK_WARNINGS_MAX. */
void task_warn(struct ink_task *task, const char *fmt, ...) INK_PRINTF(2, 3);

#endif
