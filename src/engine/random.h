#ifndef ENGINE_RANDOM_H
#define ENGINE_RANDOM_H

#include <stdint.h>

/*
 * Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random
 * Numbers: As Easy as 1, 2, 3", 2011). A number depends on its key and counter alone, so a draw does
 * not depend on what else was drawn, or when. Pure.
 */
void random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

/* Where in an answer a number is used: one number for each combination. */
struct random_place {
    uint32_t candidate, attempt, position;
    uint32_t try; /* drawings for the same token, one after the other */
};

/* Uniform in [0, 1), 53 bits. */
double random_uniform(uint64_t seed, const struct random_place *place);

#endif
