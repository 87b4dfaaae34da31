#ifndef ENGINE_SAMPLING_H
#define ENGINE_SAMPLING_H

#include <stdint.h>

/* A token that was chosen or could have been, with its natural-log probability at temperature 1. */
struct ink_token {
    int32_t id;
    float logprob;
};

/*
 * How a token is drawn. The filters apply in this order, each to what the one before has left:
 * repetition penalty, temperature, top-k, top-p, min-p. See sampler.h for what each one means.
 */
struct ink_sampling {
    float temperature;        /* 0: greedy, and nothing below but the penalty matters */
    int top_k;                /* 0: off */
    float top_p;              /* 1: off */
    float min_p;              /* 0: off */
    float repetition_penalty; /* 1: off */
    uint64_t seed;
};

#endif
