/*
 * Each operator is written once, on vectors of 8 floats in the compiler's own notation, and compiled
 * for each instruction set that is worth it: a function with a `target` attribute takes the shared body in.
 * This file is compiled with contraction of a * b + c allowed, which is where fused multiply-adds come from.
 */
#include "model/vector.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BODY static inline __attribute__((always_inline))

typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));

/* Through pointers: a vector passed by value would depend on the caller's instruction set. */
#define LOAD(v, p)  memcpy(&(v), (p), sizeof(v))
#define STORE(p, v) memcpy((p), &(v), sizeof(v))
#define SPLAT(x)    ((v8){ (x), (x), (x), (x), (x), (x), (x), (x) })

BODY float sum8(const v8 *v)
{
    return ((*v)[0] + (*v)[4]) + ((*v)[2] + (*v)[6]) + (((*v)[1] + (*v)[5]) + ((*v)[3] + (*v)[7]));
}

/*
 * e^x within 2 units in the last place for -87 <= x <= 88; 0 below. Cody-Waite reduction
 * x = n ln 2 + r with |r| <= ln 2 / 2, the Taylor polynomial of degree 7 in r, and 2^n through the exponent bits.
 */
BODY void exp8(v8 *x)
{
    const v8 magic = SPLAT(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
    v8 v = *x;
    v8i keep = v >= SPLAT(-87.0f); /* all ones where the result is not 0 */
    v8i over = v > SPLAT(88.0f);
    v8 top = SPLAT(88.0f), n, r, p, scale;
    v8i bits, topbits;

    memcpy(&bits, &v, sizeof(bits));
    memcpy(&topbits, &top, sizeof(topbits));
    bits = ((bits & ~over) | (topbits & over)) & keep;
    memcpy(&v, &bits, sizeof(v));

    n = v * SPLAT(1.44269504f) + magic;
    memcpy(&bits, &n, sizeof(bits));
    bits = (bits << 23) + 0x3f800000; /* the magic number's own bits leave with the shift */
    memcpy(&scale, &bits, sizeof(scale));
    n -= magic;
    r = v - n * SPLAT(0.693359375f);
    r = r - n * SPLAT(-2.12194440e-4f);

    p = r * SPLAT(1.0f / 5040) + SPLAT(1.0f / 720);
    p = p * r + SPLAT(1.0f / 120);
    p = p * r + SPLAT(1.0f / 24);
    p = p * r + SPLAT(1.0f / 6);
    p = p * r + SPLAT(0.5f);
    p = p * r + SPLAT(1.0f);
    p = p * r + SPLAT(1.0f);
    p = p * scale;
    memcpy(&bits, &p, sizeof(bits));
    bits &= keep;
    memcpy(x, &bits, sizeof(*x));
}

BODY void rms_norm(const float *x, const float *w, float eps, int n, float *y)
{
    v8 acc = SPLAT(0.0f);
    float rest = 0.0f;
    int i = 0;

    for (; i + 8 <= n; i += 8) {
        v8 v;

        LOAD(v, x + i);
        acc += v * v;
    }
    for (; i < n; i++)
        rest += x[i] * x[i];
    float scale = 1.0f / sqrtf((sum8(&acc) + rest) / (float)n + eps);

    for (i = 0; i + 8 <= n; i += 8) {
        v8 v, m;

        LOAD(v, x + i);
        LOAD(m, w + i);
        v = v * SPLAT(scale) * m;
        STORE(y + i, v);
    }
    for (; i < n; i++)
        y[i] = x[i] * scale * w[i];
}

BODY void add(const float *a, const float *b, int n, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

BODY void relu(const float *gate, int n, float *y)
{
    for (int i = 0; i < n; i++)
        y[i] = gate[i] > 0.0f ? gate[i] : 0.0f;
}

/* gelu_tanh(x) = x / (1 + e^(-2u)), u = sqrt(2/pi) (x + 0.044715 x^3) */
BODY void gelu8(v8 *x)
{
    v8 v = *x;
    v8 e = (v + SPLAT(0.044715f) * v * v * v) * SPLAT(-2.0f * 0.7978845608f);

    exp8(&e);
    *x = v / (SPLAT(1.0f) + e);
}

BODY void gelu_gate(const float *gate, const float *up, int n, float *y)
{
    v8 g, u;
    int i = 0;

    for (; i + 8 <= n; i += 8) {
        LOAD(g, gate + i);
        LOAD(u, up + i);
        gelu8(&g);
        g = g * u;
        STORE(y + i, g);
    }
    if (i < n) {
        size_t rest = (size_t)(n - i) * sizeof(float);

        g = u = SPLAT(0.0f);
        memcpy(&g, gate + i, rest);
        memcpy(&u, up + i, rest);
        gelu8(&g);
        g = g * u;
        memcpy(y + i, &g, rest);
    }
}

BODY void key_scores(const float *q, const float *k, int d, float *s)
{
    v8 a0 = SPLAT(0.0f), a1 = a0, b0 = a0, b1 = a0, k0, k1;
    int i = 0;

    for (; i + 2 <= d; i += 2) {
        LOAD(k0, k + i * KEY_BLOCK);
        LOAD(k1, k + i * KEY_BLOCK + 8);
        a0 += SPLAT(q[i]) * k0;
        a1 += SPLAT(q[i]) * k1;
        LOAD(k0, k + (i + 1) * KEY_BLOCK);
        LOAD(k1, k + (i + 1) * KEY_BLOCK + 8);
        b0 += SPLAT(q[i + 1]) * k0;
        b1 += SPLAT(q[i + 1]) * k1;
    }
    if (i < d) {
        LOAD(k0, k + i * KEY_BLOCK);
        LOAD(k1, k + i * KEY_BLOCK + 8);
        a0 += SPLAT(q[i]) * k0;
        a1 += SPLAT(q[i]) * k1;
    }
    a0 += b0;
    a1 += b1;
    STORE(s, a0);
    STORE(s + 8, a1);
}

BODY float soften(float *s, int n, int n_padded)
{
    v8 acc = SPLAT(0.0f), v;
    float top = -INFINITY;

    for (int i = 0; i < n; i++)
        top = s[i] > top ? s[i] : top;
    for (int i = n; i < n_padded; i++)
        s[i] = -INFINITY;
    for (int i = 0; i < n_padded; i += 8) {
        LOAD(v, s + i);
        v -= SPLAT(top);
        exp8(&v);
        acc += v;
        STORE(s + i, v);
    }
    return sum8(&acc);
}

BODY void add_values(const float *p, const float *v, int n, int d_padded, float *y)
{
    int d = 0;

    for (; d + 32 <= d_padded; d += 32) {
        v8 a0, a1, a2, a3;

        LOAD(a0, y + d);
        LOAD(a1, y + d + 8);
        LOAD(a2, y + d + 16);
        LOAD(a3, y + d + 24);
        for (int j = 0; j < n; j++) {
            const float *row = v + (size_t)j * (size_t)d_padded + d;
            v8 w = SPLAT(p[j]), t;

            LOAD(t, row);
            a0 += w * t;
            LOAD(t, row + 8);
            a1 += w * t;
            LOAD(t, row + 16);
            a2 += w * t;
            LOAD(t, row + 24);
            a3 += w * t;
        }
        STORE(y + d, a0);
        STORE(y + d + 8, a1);
        STORE(y + d + 16, a2);
        STORE(y + d + 24, a3);
    }
    for (; d < d_padded; d += 8) {
        v8 a, t;

        LOAD(a, y + d);
        for (int j = 0; j < n; j++) {
            LOAD(t, v + (size_t)j * (size_t)d_padded + d);
            a += SPLAT(p[j]) * t;
        }
        STORE(y + d, a);
    }
}

/* R activation rows × C weight rows, both constants at each call. */
BODY void dot_tile(const int R, const int C, const float *const *w, const float *x, size_t x_stride,
                   int n, float *y, size_t y_stride)
{
    v8 acc[2][4];
    float rest[2][4] = { { 0 } };
    int k = 0;

#pragma GCC unroll 2
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int c = 0; c < C; c++)
            acc[r][c] = SPLAT(0.0f);
    for (; k + 8 <= n; k += 8) {
        v8 xs[2];

#pragma GCC unroll 2
        for (int r = 0; r < R; r++)
            LOAD(xs[r], x + (size_t)r * x_stride + k);
#pragma GCC unroll 4
        for (int c = 0; c < C; c++) {
            v8 ws;

            LOAD(ws, w[c] + k);
#pragma GCC unroll 2
            for (int r = 0; r < R; r++)
                acc[r][c] += ws * xs[r];
        }
    }
    for (; k < n; k++)
        for (int r = 0; r < R; r++)
            for (int c = 0; c < C; c++)
                rest[r][c] += w[c][k] * x[(size_t)r * x_stride + (size_t)k];
#pragma GCC unroll 2
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int c = 0; c < C; c++)
            y[(size_t)r * y_stride + (size_t)c] = sum8(&acc[r][c]) + rest[r][c];
}

BODY void dot_rows(const float *const *w, int n_w, const float *x, size_t x_stride, int n_rows,
                   int n, float *y, size_t y_stride)
{
    int r = 0;

    if (n_w == 4) {
        for (; r + 2 <= n_rows; r += 2)
            dot_tile(2, 4, w, x + (size_t)r * x_stride, x_stride, n, y + (size_t)r * y_stride,
                     y_stride);
        if (r < n_rows)
            dot_tile(1, 4, w, x + (size_t)r * x_stride, x_stride, n, y + (size_t)r * y_stride,
                     y_stride);
        return;
    }
    for (; r < n_rows; r++)
        for (int c = 0; c < n_w; c++)
            dot_tile(1, 1, w + c, x + (size_t)r * x_stride, x_stride, n,
                     y + (size_t)r * y_stride + c, y_stride);
}

#define INSTANCE(NAME, TARGET)                                                                     \
    TARGET static void rms_norm_##NAME(const float *x, const float *w, float eps, int n, float *y) \
    {                                                                                              \
        rms_norm(x, w, eps, n, y);                                                                 \
    }                                                                                              \
    TARGET static void add_##NAME(const float *a, const float *b, int n, float *y)                 \
    {                                                                                              \
        add(a, b, n, y);                                                                           \
    }                                                                                              \
    TARGET static void relu_##NAME(const float *gate, int n, float *y)                             \
    {                                                                                              \
        relu(gate, n, y);                                                                          \
    }                                                                                              \
    TARGET static void gelu_gate_##NAME(const float *gate, const float *up, int n, float *y)       \
    {                                                                                              \
        gelu_gate(gate, up, n, y);                                                                 \
    }                                                                                              \
    TARGET static void key_scores_##NAME(const float *q, const float *k, int d, float *s)          \
    {                                                                                              \
        key_scores(q, k, d, s);                                                                    \
    }                                                                                              \
    TARGET static float soften_##NAME(float *s, int n, int n_padded)                               \
    {                                                                                              \
        return soften(s, n, n_padded);                                                             \
    }                                                                                              \
    TARGET static void add_values_##NAME(const float *p, const float *v, int n, int d_padded,      \
                                         float *y)                                                 \
    {                                                                                              \
        add_values(p, v, n, d_padded, y);                                                          \
    }                                                                                              \
    TARGET static void dot_rows_##NAME(const float *const *w, int n_w, const float *x,             \
                                       size_t x_stride, int n_rows, int n, float *y,               \
                                       size_t y_stride)                                            \
    {                                                                                              \
        dot_rows(w, n_w, x, x_stride, n_rows, n, y, y_stride);                                     \
    }                                                                                              \
    static const struct vector_ops ops_##NAME = {                                                  \
        .name = #NAME,                                                                             \
        .rms_norm = rms_norm_##NAME,                                                               \
        .add = add_##NAME,                                                                         \
        .relu = relu_##NAME,                                                                       \
        .gelu_gate = gelu_gate_##NAME,                                                             \
        .key_scores = key_scores_##NAME,                                                           \
        .soften = soften_##NAME,                                                                   \
        .add_values = add_values_##NAME,                                                           \
        .dot_rows = dot_rows_##NAME,                                                               \
    };

INSTANCE(plain, )

#if defined(__x86_64__)
INSTANCE(avx2, __attribute__((target("avx2,fma"))))
#endif

const struct vector_ops *vector_plain(void)
{
    return &ops_plain;
}

const struct vector_ops *vector_best(void)
{
#if defined(__x86_64__)
    const char *limit = getenv("INK_CPU");

    if (!(limit && strcmp(limit, "plain") == 0) && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        return &ops_avx2;
#endif
    return &ops_plain;
}
