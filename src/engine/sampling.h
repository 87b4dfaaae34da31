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

/*
 * The temperature of a redraw: one that failed because it repeated something is likely to do so again, so each
 * further attempt is a little bolder. Greedy stays greedy.
 */
static inline float ink_sampling_temperature(const struct ink_sampling *how, int attempt)
{
    static const float bolder[] = { 1.0f, 1.25f, 1.6f, 2.0f };
    enum { N = sizeof(bolder) / sizeof(bolder[0]) };

    return how->temperature * bolder[attempt < N ? attempt : N - 1];
}

#endif
