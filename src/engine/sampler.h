#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include "base/status.h"
#include "engine/random.h"
#include "engine/sampling.h"

#include <stdint.h>

/*
 * From a row of logits to a token.
 *
 * In this order, as transformers' generate() does:
 *   1. banned entries are out;
 *   2. repetition penalty r: for each token that the sequence already has, a logit below 0 is multiplied by
 *      r, another divided by it;
 *   3. temperature: logits are divided by it;
 *   4. top-k: what is below the k-th largest logit is out (ties with it stay);
 *   5. top-p: the smallest set of likeliest tokens whose probability, among what is left, reaches p stays;
 *      between equal logits the lower id goes first;
 *   6. min-p: what is less likely than min_p times the likeliest is out;
 *   7. one of what is left is drawn in proportion to its probability, with random numbers that
 *      belong to (seed, candidate, attempt, position) alone.
 * At temperature 0 the largest logit after step 2 is taken, the lowest id among equals.
 *
 * A token's log-probability is that of the model itself: temperature 1, no penalty, over all entries of the row that are not banned.
 *
 * Pure apart from its scratch memory: one thread at a time. Nothing is allocated after sampler_new().
 */
struct sampler;

struct sampler *sampler_new(int n_max); /* longest row; 1 .. 2^24 */
void sampler_free(struct sampler *s);   /* NULL is fine */

/* One row, borrowed for the call. */
struct sampler_row {
    const float *logits;
    int n;
    const int32_t *ids;    /* token of each entry, ascending; NULL: the entry's own index */
    const int32_t *banned; /* indexes of entries, distinct; at least one entry is not banned */
    int n_banned;
};

/*
 * Draws one token. `history` is what the sequence has so far. Writes the `n_top` likeliest tokens to `top`, best first;
 * fewer where the row has fewer (the rest get id -1). INK_DEVICE: the row holds infinities or NaN.
 */
INK_NODISCARD enum ink_status sampler_draw(struct sampler *s, const struct sampler_row *row,
                                           const struct ink_sampling *how,
                                           const struct random_place *place,
                                           const struct ink_token *history, int n_history,
                                           struct ink_token *top, int n_top, struct ink_token *out);

/* The log-probability of a given token instead of a drawn one; -infinity when the row lacks it. */
INK_NODISCARD enum ink_status sampler_score(struct sampler *s, const struct sampler_row *row,
                                            int32_t id, struct ink_token *top, int n_top,
                                            struct ink_token *out);

/* Index of token `id` in a row, or -1. */
int sampler_row_find(const int32_t *ids, int n, int32_t id);

#endif
