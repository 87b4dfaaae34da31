#ifndef MODEL_VECTOR_H
#define MODEL_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/*
 * The float arithmetic of our graph operators, in the widest form the processor has. Every function works on one
 * row or one head in a fixed order of additions, so a row's result does not depend on what else is computed.
 * Pure; any thread.
 */
enum { KEY_BLOCK = 16 }; /* keys side by side; equals INK_KV_BLOCK_TOKENS */

struct vector_ops {
    const char *name;
    /* y = x / sqrt(mean(x^2) + eps) * w          (T5 layer norm: no mean subtracted, no bias) */
    void (*rms_norm)(const float *x, const float *w, float eps, int n, float *y);
    void (*add)(const float *a, const float *b, int n, float *y);
    /* y = max(gate, 0) */
    void (*relu)(const float *gate, int n, float *y);
    /* y = gelu_tanh(gate) * up, gelu_tanh(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    void (*gelu_gate)(const float *gate, const float *up, int n, float *y);
    /* s[j] = sum_d q[d] * k[d * KEY_BLOCK + j]: one block of keys, head dimension outermost */
    void (*key_scores)(const float *q, const float *k, int d, float *s);
    /* Scores to weights, in place: s = exp(s - max s); returns their sum. Entries [n, n_padded) become 0. */
    float (*soften)(float *s, int n, int n_padded);
    /* y[d] += sum_j p[j] * v[j * d_padded + d] over n keys; d_padded is a multiple of 8 */
    void (*add_values)(const float *p, const float *v, int n, int d_padded, float *y);
    /*
     * y[r * y_stride + c] = sum_k w[c][k] * x[r][k] for up to 4 weight rows, given as pointers.
     * Sums run in 8 lanes, k ascending, then pairwise: the same for any n_rows and n_w.
     */
    void (*dot_rows)(const float *const *w, int n_w, const float *x, size_t x_stride, int n_rows,
                     int n, float *y, size_t y_stride);
};

/* By what the processor supports; INK_CPU=plain in the environment means plain C. */
const struct vector_ops *vector_best(void);
const struct vector_ops *vector_plain(void);

#endif
