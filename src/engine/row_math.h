#ifndef ENGINE_ROW_MATH_H
#define ENGINE_ROW_MATH_H

#include <stdbool.h>

/*
 * The passes over a row of logits, in blocks of ROW_BLOCK values. Rows are padded to whole blocks
 * with -infinity and aligned to 64 bytes.
 *
 * All implementations do the same operations in the same order, eight lanes at a time, so the
 * result does not depend on which one the processor can run. Pure.
 */
enum { ROW_BLOCK = 64 };

struct row_math {
    const char *name;
    /*
     * Copies n values (any n >= 1) to x, fills up the last block, and finds the largest value of each block. False
     * when a value is infinite or not a number.
     */
    bool (*load)(const float *src, int n, float *x, float *block_max);
    /* block_max[b] = the largest value of block b. */
    void (*block_max)(const float *x, int n_blocks, float *block_max);
    /*
     * block_sum[b] = sum of exp((x - shift) * scale) over block b, where no term exceeds 1. A block whose largest term
     * is below exp(-30) counts as 0: all such blocks of the longest row together are below 1e-6 of the sum.
     */
    void (*block_sum)(const float *x, const float *block_max, int n_blocks, float shift,
                      float scale, float *block_sum);
    /* The same, and w[i] = the terms; w is not written in blocks whose sum is 0. */
    void (*weights)(const float *x, const float *block_max, int n_blocks, float shift, float scale,
                    float *w, float *block_sum);
    /* The sum of w where x > value, and how many x equal it; blocks whose sum is 0 are left out. */
    double (*above)(const float *x, const float *w, const float *block_max, const float *block_sum,
                    int n_blocks, float value, int *n_equal);
    /* w[i] = 0 where x[i] < cut, and the sums of what is left. */
    void (*cut)(const float *x, const float *block_max, int n_blocks, float cut, float *w,
                float *block_sum);
};

/* The fastest one that this processor runs. */
const struct row_math *row_math_best(void);
/* The one that every processor runs: for tests. */
const struct row_math *row_math_portable(void);

#endif
