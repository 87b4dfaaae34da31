/*
 * Vector passes over logits.
 *
 * Written once with the compiler's vector types, eight floats wide, and compiled twice: for the
 * base instruction set and for AVX2. Without contraction to fused multiply-add (ISO C mode never
 * contracts) both give the same bits.
 */
#include "engine/row_math.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 8 };

typedef float vec __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(LANES * sizeof(int32_t))));

#define INLINE static inline __attribute__((always_inline))

/*
 * Vectors go in and out of these helpers through pointers: by value they would be part of an ABI that differs between the
 * two instruction sets. All of them are inlined.
 */
INLINE void load(const float *p, vec *v)
{
    memcpy(v, p, sizeof(*v));
}

INLINE void store(float *p, const vec *v)
{
    memcpy(p, v, sizeof(*v));
}

/* v where the mask is set, 0 elsewhere. */
INLINE void keep(const ivec *mask, vec *v)
{
    *v = (vec)(*mask & (ivec)*v);
}

/* Always in the same order: part of the promise that all implementations agree. */
INLINE float sum_of(const vec *p)
{
    vec v = *p;

    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

INLINE float max_of(const vec *p)
{
    float m = (*p)[0];

    for (int i = 1; i < LANES; i++)
        m = (*p)[i] > m ? (*p)[i] : m;
    return m;
}

/* Below this, exp() is smaller than the smallest normal float: counted as 0. */
#define EXP_MIN (-87.0f)
/* A block without any term above exp() of this is not worth computing. */
#define BLOCK_MIN (-30.0f)

/*
 * exp(x) for x <= 0, 0 below EXP_MIN. x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor series up to
 * r^7, whose rest is below 1e-8; 2^n by the exponent bits. Relative error 1.3e-7 at most (measured).
 */
INLINE void exp_of(vec *v)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    const ivec in_range = *v > EXP_MIN;
    const vec zero = { 0 };
    vec x = *v, t, n, r, y;

    keep(&in_range, &x);
    t = x * 1.44269504088896341f + round;
    n = t - round;
    /* ln 2 in two parts: the first has few bits, so that n times it is exact. */
    r = x - n * 0.693359375f + n * 2.12194440054690583e-4f;

    y = zero + 1.0f / 5040;
    y = y * r + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;

    ivec bits = ((ivec)t - (ivec)(zero + round) + 127) << 23;
    *v = y * (vec)bits;
    keep(&in_range, v);
}

/* m = the larger of m and v, lane by lane. */
INLINE void grow(vec *m, const vec *v)
{
    ivec larger = *v > *m;

    *m = (vec)((larger & (ivec)*v) | (~larger & (ivec)*m));
}

INLINE void block_max_body(const float *x, int n_blocks, float *block_max)
{
    for (int b = 0; b < n_blocks; b++, x += ROW_BLOCK) {
        vec v, m;

        load(x, &m);
        for (int i = LANES; i < ROW_BLOCK; i += LANES) {
            load(x + i, &v);
            grow(&m, &v);
        }
        block_max[b] = max_of(&m);
    }
}

INLINE bool load_body(const float *src, int n, float *x, float *block_max)
{
    vec v, bad = { 0 };
    float bad_tail = 0;
    int n_whole = n / ROW_BLOCK;

    /* v * 0 is 0 for every finite v and not a number for all others. */
    for (int b = 0; b < n_whole; b++, src += ROW_BLOCK, x += ROW_BLOCK) {
        vec m;

        load(src, &m);
        for (int i = 0; i < ROW_BLOCK; i += LANES) {
            load(src + i, &v);
            bad += v * 0.0f;
            grow(&m, &v);
            store(x + i, &v);
        }
        block_max[b] = max_of(&m);
    }
    n -= n_whole * ROW_BLOCK;
    if (n > 0) {
        for (int i = 0; i < ROW_BLOCK; i++) {
            x[i] = i < n ? src[i] : -INFINITY;
            bad_tail += i < n ? src[i] * 0.0f : 0;
        }
        block_max_body(x, 1, &block_max[n_whole]);
    }
    return sum_of(&bad) + bad_tail == 0.0f;
}

/* `w` is NULL when only the sums are wanted; a constant in every caller. */
INLINE void weights_body(const float *x, const float *block_max, int n_blocks, float shift,
                         float scale, float *w, float *block_sum)
{
    for (int b = 0; b < n_blocks; b++, x += ROW_BLOCK) {
        vec e, sum = { 0 };

        if (!((block_max[b] - shift) * scale > BLOCK_MIN)) {
            block_sum[b] = 0;
            continue; /* nobody looks at the weights of a block without a sum */
        }
        for (int i = 0; i < ROW_BLOCK; i += LANES) {
            load(x + i, &e);
            e = (e - shift) * scale;
            exp_of(&e);
            if (w)
                store(w + (size_t)b * ROW_BLOCK + i, &e);
            sum += e;
        }
        block_sum[b] = sum_of(&sum);
    }
}

INLINE void cut_body(const float *x, const float *block_max, int n_blocks, float cut, float *w,
                     float *block_sum)
{
    for (int b = 0; b < n_blocks; b++, x += ROW_BLOCK, w += ROW_BLOCK) {
        vec v, e, sum = { 0 };

        if (block_max[b] < cut || block_sum[b] == 0) {
            block_sum[b] = 0;
            continue;
        }
        for (int i = 0; i < ROW_BLOCK; i += LANES) {
            load(x + i, &v);
            load(w + i, &e);
            ivec in = v >= cut;
            keep(&in, &e);
            store(w + i, &e);
            sum += e;
        }
        block_sum[b] = sum_of(&sum);
    }
}

INLINE double above_body(const float *x, const float *w, const float *block_max,
                         const float *block_sum, int n_blocks, float value, int *n_equal)
{
    double total = 0;
    ivec equal = { 0 };

    for (int b = 0; b < n_blocks; b++, x += ROW_BLOCK, w += ROW_BLOCK) {
        vec v, e, sum = { 0 };

        if (block_max[b] < value || block_sum[b] == 0)
            continue;
        for (int i = 0; i < ROW_BLOCK; i += LANES) {
            load(x + i, &v);
            load(w + i, &e);
            ivec more = v > value;
            keep(&more, &e);
            sum += e;
            equal -= v == value; /* a true lane is -1 */
        }
        total += (double)sum_of(&sum);
    }
    *n_equal = 0;
    for (int i = 0; i < LANES; i++)
        *n_equal += equal[i];
    return total;
}

#define IMPLEMENT(suffix, attribute)                                                               \
    attribute static bool load_##suffix(const float *src, int n, float *x, float *block_max)       \
    {                                                                                              \
        return load_body(src, n, x, block_max);                                                    \
    }                                                                                              \
    attribute static void block_max_##suffix(const float *x, int n_blocks, float *block_max)       \
    {                                                                                              \
        block_max_body(x, n_blocks, block_max);                                                    \
    }                                                                                              \
    attribute static void block_sum_##suffix(const float *x, const float *block_max, int n_blocks, \
                                             float shift, float scale, float *block_sum)           \
    {                                                                                              \
        weights_body(x, block_max, n_blocks, shift, scale, NULL, block_sum);                       \
    }                                                                                              \
    attribute static void weights_##suffix(const float *x, const float *block_max, int n_blocks,   \
                                           float shift, float scale, float *w, float *block_sum)   \
    {                                                                                              \
        weights_body(x, block_max, n_blocks, shift, scale, w, block_sum);                          \
    }                                                                                              \
    attribute static double above_##suffix(const float *x, const float *w, const float *block_max, \
                                           const float *block_sum, int n_blocks, float value,      \
                                           int *n_equal)                                           \
    {                                                                                              \
        return above_body(x, w, block_max, block_sum, n_blocks, value, n_equal);                   \
    }                                                                                              \
    attribute static void cut_##suffix(const float *x, const float *block_max, int n_blocks,       \
                                       float cut, float *w, float *block_sum)                      \
    {                                                                                              \
        cut_body(x, block_max, n_blocks, cut, w, block_sum);                                       \
    }                                                                                              \
    static const struct row_math math_##suffix = {                                                 \
        #suffix,          load_##suffix,  block_max_##suffix, block_sum_##suffix,                  \
        weights_##suffix, above_##suffix, cut_##suffix                                             \
    }

IMPLEMENT(portable, );

const struct row_math *row_math_portable(void)
{
    return &math_portable;
}

#if defined(__x86_64__)
IMPLEMENT(avx2, __attribute__((target("avx2"))));

const struct row_math *row_math_best(void)
{
    return __builtin_cpu_supports("avx2") ? &math_avx2 : &math_portable;
}
#else
const struct row_math *row_math_best(void)
{
    return &math_portable;
}
#endif
