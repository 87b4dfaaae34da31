/*
 * int8 weights × two int8 terms with the byte dot product of AVX-512 VNNI (vpdpbusd).
 *
 * The instruction multiplies unsigned by signed bytes, so a term travels as t + 128, and 128 times the
 * channel's sum of weights (kept in the matrix) is taken off at the end. A panel is 16 channels, one vector of
 * int32 sums; four inputs side by side make the group that one lane adds. The sums are exact up to
 * I8_MAX_IN inputs, in any order.
 *
 * The four vector operations stand at the top, so that a test can put plain C in their place and check all the
 * rest on processors without VNNI (tests/unit/model/test_i8_vnni_plain.c).
 */
#include "model/i8_kernel.h"

#if defined(__x86_64__) || defined(I8_VNNI_PLAIN)

#include <math.h>
#include <string.h>

enum { PANEL = 16, GROUP = 4, OFFSET = 128, ROWS_MAX = 4, PANELS_MAX = 3 };

#ifndef I8_VNNI_PLAIN

#include <immintrin.h>

#ifdef __clang__ /* does not know the width as an attribute, and would drop all of it */
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vnni")))
#else
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vnni,prefer-vector-width=512")))
#endif
#define INLINE static inline __attribute__((always_inline)) TARGET
#ifdef __clang__ /* wants the target before inlining gives it, and needs no such help */
#define KEEP(v) ((void)0)
#else
#define KEEP(v) __asm__ volatile("" : "+v"(v)) /* see i8_avx2.c */
#endif

typedef __m512i vec;

INLINE vec vec_zero(void)
{
    return _mm512_setzero_si512();
}

INLINE vec vec_load(const void *p)
{
    return _mm512_load_si512(p);
}

INLINE vec vec_repeat(int32_t four_bytes)
{
    return _mm512_set1_epi32(four_bytes);
}

INLINE vec vec_dot(vec sum, vec u, vec s)
{
    return _mm512_dpbusd_epi32(sum, u, s);
}

INLINE void vec_store(int32_t out[PANEL], vec v)
{
    _mm512_storeu_si512(out, v);
}

static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vnni");
}

#endif

TARGET static void quantize(const float *x, int n_in, bool one_term, uint8_t *out)
{
    uint8_t *t1 = out + I8_ROW_HEAD;
    uint8_t *t2 = t1 + i8_padded(n_in);
    float top = 0.0f;

    for (int i = 0; i < n_in; i++) {
        float a = fabsf(x[i]);

        top = a > top ? a : top;
    }
    float sx = top / I8_LEVELS;
    float inv = top > 0.0f ? (float)(I8_STEP * I8_LEVELS) / top : 0.0f;

    memcpy(out, &sx, sizeof(sx));
    for (int i = 0; i < n_in; i++) {
        int q = (int)lrintf(x[i] * inv);
        /* To the nearest multiple of the step, so that the rest fits a byte; shifted to be positive for the division. */
        int hi = (q + I8_STEP * (I8_LEVELS + 1) + I8_LEVELS) / I8_STEP - (I8_LEVELS + 1);
        int lo = q - hi * I8_STEP;

        if (one_term) {
            hi = (int)lrintf(x[i] * inv / I8_STEP);
            lo = 0;
        }
        t1[i] = (uint8_t)(hi + OFFSET);
        t2[i] = (uint8_t)(lo + OFFSET);
    }
    memset(t1 + n_in, OFFSET, (size_t)(i8_padded(n_in) - n_in));
    memset(t2 + n_in, OFFSET, (size_t)(i8_padded(n_in) - n_in));
}

/* R rows × P panels, T terms; all three are constants at each call, so the sums are registers. */
INLINE void tile(const int R, const int P, const int T, const struct i8_matrix *m, int panel,
                 const uint8_t *rows, size_t row_stride, float *y, size_t y_stride)
{
    const size_t panel_bytes = (size_t)PANEL * (size_t)m->n_in_padded;
    const int8_t *w = m->panels + (size_t)panel * panel_bytes;
    const uint8_t *x = rows + I8_ROW_HEAD;
    vec acc[ROWS_MAX][PANELS_MAX][2];

#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 3
        for (int p = 0; p < P; p++)
#pragma GCC unroll 2
            for (int t = 0; t < T; t++)
                acc[r][p][t] = vec_zero();

    for (int k = 0; k < m->n_in; k += GROUP) {
        vec ws[PANELS_MAX];

#pragma GCC unroll 3
        for (int p = 0; p < P; p++)
            ws[p] = vec_load(w + (size_t)p * panel_bytes + (size_t)k * PANEL);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++)
#pragma GCC unroll 2
            for (int t = 0; t < T; t++) {
                int32_t four;

                memcpy(&four, x + (size_t)r * row_stride + (size_t)t * (size_t)m->n_in_padded + k,
                       sizeof(four));
                vec xs = vec_repeat(four);
#pragma GCC unroll 3
                for (int p = 0; p < P; p++) {
                    acc[r][p][t] = vec_dot(acc[r][p][t], xs, ws[p]);
                    KEEP(acc[r][p][t]);
                }
            }
    }

#pragma GCC unroll 4
    for (int r = 0; r < R; r++) {
        float sx;

        memcpy(&sx, rows + (size_t)r * row_stride, sizeof(sx));
#pragma GCC unroll 3
        for (int p = 0; p < P; p++) {
            int c = (panel + p) * PANEL;
            int n = m->n_out - c < PANEL ? m->n_out - c : PANEL;
            float *to = y + (size_t)r * y_stride + c;
            int32_t sum[2][PANEL] = { { 0 } };

            vec_store(sum[0], acc[r][p][0]);
            if (T == 2)
                vec_store(sum[1], acc[r][p][1]);
            for (int i = 0; i < n; i++) {
                int32_t back = OFFSET * m->sum[c + i];
                float s1 = (float)(sum[0][i] - back);
                float s2 = T == 2 ? (float)(sum[1][i] - back) : 0.0f;

                to[i] = (s1 * I8_STEP + s2) * (sx * m->scale[c + i]);
            }
        }
    }
}

INLINE void all_rows(const int P, const int T, const struct i8_matrix *m, int panel,
                     const uint8_t *rows, size_t row_stride, int n_rows, float *y, size_t y_stride)
{
    for (; n_rows >= ROWS_MAX; n_rows -= ROWS_MAX) {
        tile(ROWS_MAX, P, T, m, panel, rows, row_stride, y, y_stride);
        rows += ROWS_MAX * row_stride;
        y += ROWS_MAX * y_stride;
    }
    if (n_rows == 3)
        tile(3, P, T, m, panel, rows, row_stride, y, y_stride);
    else if (n_rows == 2)
        tile(2, P, T, m, panel, rows, row_stride, y, y_stride);
    else if (n_rows == 1)
        tile(1, P, T, m, panel, rows, row_stride, y, y_stride);
}

TARGET static void multiply(const struct i8_matrix *m, int panel_from, int panel_to,
                            const uint8_t *rows, size_t row_stride, int n_rows, bool one_term,
                            float *y, size_t y_stride)
{
    int panel = panel_from;

    while (panel < panel_to) {
        int group = panel_to - panel >= PANELS_MAX ? PANELS_MAX : 1;

        if (group == PANELS_MAX && one_term)
            all_rows(PANELS_MAX, 1, m, panel, rows, row_stride, n_rows, y, y_stride);
        else if (group == PANELS_MAX)
            all_rows(PANELS_MAX, 2, m, panel, rows, row_stride, n_rows, y, y_stride);
        else if (one_term)
            all_rows(1, 1, m, panel, rows, row_stride, n_rows, y, y_stride);
        else
            all_rows(1, 2, m, panel, rows, row_stride, n_rows, y, y_stride);
        panel += group;
    }
}

const struct i8_kernel i8_avx512_vnni = {
    .name = "avx512-vnni",
    .panel = PANEL,
    .group = GROUP,
    .supported = supported,
    .quantize = quantize,
    .multiply = multiply,
};

#endif
