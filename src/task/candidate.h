#ifndef TASK_CANDIDATE_H
#define TASK_CANDIDATE_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/job.h"
#include "task/task.h"
#include "token/detokenize.h"
#include "token/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One candidate on its way from tokens to text: what has arrived, what of it may be shown, what was shown.
 *
 *   ACTIVE --end token, limit, stop string--> COMPLETE --accepted--> ACCEPTED
 *      ^------------- redrawn -------------------'  '---refused-----> FAILED
 *
 * Shown text never changes but by a reset. White space at both ends of the text, and what could become a stop string,
 * are held back; a stop string and all behind it never belong to the text.
 */
enum candidate_state { CANDIDATE_ACTIVE, CANDIDATE_COMPLETE, CANDIDATE_ACCEPTED, CANDIDATE_FAILED };

struct candidate_rules { /* shared by all candidates of a task; borrowed */
    const struct ink_tokenizer *tokenizer;
    const struct ink_slice *stops;
    int n_stops;
    int max_tokens, n_top;
    bool details;
};

struct candidate {
    const struct candidate_rules *rules;
    int index;
    enum candidate_state state;
    int attempt;

    struct ink_detokenizer *detokenizer;
    struct ink_buf raw; /* all text of this attempt, stop string included */
    size_t checked;     /* up to here no stop string begins */
    size_t begin, end;  /* what of `raw` is the text so far, as far as it may be shown */
    size_t sent;        /* up to here it was shown */
    bool stopped;       /* by a stop string */

    struct ink_token *tokens; /* [max_tokens] */
    struct ink_token *tops;   /* [max_tokens][n_top] with details, else NULL */
    int n_tokens;
    const char *finish_reason;

    bool resets; /* a reset has to be told before more text */
    const char *reset_reason;
    bool announced;        /* its CANDIDATE event was returned */
    struct ink_tokens key; /* COMPLETE: the text's ids, for comparing */
    struct ink_err error;  /* FAILED */

    /* ACCEPTED or FAILED, for the result: */
    struct ink_token_detail *detail;
    struct ink_token_prob *detail_tops;
};

void candidate_init(struct candidate *c, const struct candidate_rules *rules, int index);
void candidate_release(struct candidate *c);

/*
 * Takes the tokens that the job has for it. When the attempt is over the state becomes COMPLETE; `*halt` tells that a
 * stop string ended it before the engine did.
 */
INK_NODISCARD enum ink_status candidate_pull(struct candidate *c, struct ink_job *job, bool *halt,
                                             struct ink_err *err);

/* Text that may be shown and was not. */
struct ink_slice candidate_unsent(const struct candidate *c);
struct ink_slice candidate_text(const struct candidate *c);

/* COMPLETE -> ACTIVE, empty; `reason` is for the reset event. */
void candidate_restart(struct candidate *c, const char *reason);
void candidate_accept(struct candidate *c);
/* Its text is withdrawn. */
void candidate_fail(struct candidate *c, const struct ink_err *error, const char *reason);

/* As the result shows it; borrowed from the candidate. */
void candidate_describe(const struct candidate *c, struct ink_candidate *out);

#endif
