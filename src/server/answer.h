#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Results as JSON, in the fields' order of the contract. The command line prints the same documents as the HTTP
 * routes send. Every function returns a new reference, never NULL.
 */
struct ink_served;
struct ink_task;
struct ink_task_result;
struct ink_task_timings;
struct ink_candidate;
struct ink_score_result;

/*
 * R: a finished rewrite. With `details`, each candidate has its tokens with their pieces.
 */
json_t *ink_answer_rewrite(const struct ink_served *served, const struct ink_task_result *result,
                           bool details);

/* C: one candidate of it. */
json_t *ink_answer_candidate(const struct ink_served *served, const struct ink_candidate *c,
                             bool details);

/* {"model","source_ids","target":[{"id","piece","logprob"(,"top")}],"sum_logprob"} */
json_t *ink_answer_score(const struct ink_served *served, const struct ink_score_result *result);

/* {"model","ids","pieces"} */
json_t *ink_answer_tokens(const struct ink_served *served, const int32_t *ids, size_t n);

/* {"model","text"} for decoded ids. */
json_t *ink_answer_text(const struct ink_served *served, struct ink_slice text);

/* One entry of /v1/models. */
json_t *ink_answer_model(const struct ink_served *served);

/* {"message","type","param","code"}: what stands under "error" in an answer. */
json_t *ink_answer_error(const struct ink_err *err);
/* {"error": that} */
json_t *ink_answer_failed(const struct ink_err *err);

/* {"index": i, ...answer}: takes over `answer`. */
json_t *ink_answer_numbered(int64_t index, json_t *answer);

/* The texts of the candidates of a finished rewrite that are usable; of NULL none. */
json_t *ink_answer_texts(const struct ink_task *task);

/* What R has under these names. */
json_t *ink_answer_usage(long long tokens_input, long long tokens_output);
json_t *ink_answer_timings(const struct ink_task_timings *t);

#endif
