#ifndef MODEL_I8_KERNEL_H
#define MODEL_I8_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Products of int8 weights with activations of 16 bits: the arithmetic of the `i8` type.
 *
 * A weight matrix W [n_out][n_in] has one scale per output channel:  W = w * sw[n_out], w in -127..127.
 * An activation row x [n_in] has one scale and two int8 terms, the value and its remainder:
 *
 *     x = sx * (t1 + t2 / 254),    t1, t2 in -127..127,    sx = max|x| / 127
 *
 * which is the same as one integer X = 254 * t1 + t2 of 16 bits. A processor with dot-product instructions for
 * bytes (VNNI) works on the two terms, one without (AVX2) on X; the integer sums are exact
 * in both, so an output never depends on what else is in the batch:
 *
 *     y[r][c] = (sum_k X[r][k] * w[c][k]) * sx[r] / 254 * sw[c]
 *
 * Weights are packed once into panels of `panel` channels, `group` inputs side by side per channel:
 * [n_out / panel][n_in / group][panel][group], zero-padded. All functions are pure and thread-safe.
 */
enum {
    I8_LEVELS = 127,
    I8_STEP = 2 * I8_LEVELS, /* the second term's unit is 1/254 of the first one's */
    I8_MAX_IN = 32768,       /* keeps every int32 sum of byte products exact */
    I8_ROW_HEAD = 64, /* bytes before a quantized row's data: its scale (float), then padding */
};

struct i8_matrix;

struct i8_kernel {
    const char *name; /* "avx2", "avx512-vnni", "generic" */
    int panel, group;
    bool (*supported)(void); /* by this processor */
    /* Quantizes one row: out is i8_row_bytes(n_in) long; `one_term` drops t2. */
    void (*quantize)(const float *x, int n_in, bool one_term, uint8_t *out);
    /*
     * Output channels [panel_from * panel, panel_to * panel) of all rows: y[r * y_stride + channel].
     * Channels at or beyond n_out are not written.
     */
    void (*multiply)(const struct i8_matrix *m, int panel_from, int panel_to, const uint8_t *rows,
                     size_t row_stride, int n_rows, bool one_term, float *y, size_t y_stride);
};

struct i8_matrix {
    const struct i8_kernel *kernel;
    int n_in, n_out, n_panels;
    int n_in_padded; /* to a multiple of I8_IN_ALIGN */
    int8_t *panels;  /* owned */
    float *scale;    /* [n_panels * panel], sw / 254; owned */
    int32_t
        *sum; /* [n_panels * panel], sum of w over n_in: what unsigned activations must give back */
};

enum { I8_IN_ALIGN = 64 };

static inline int i8_padded(int n_in)
{
    return (n_in + I8_IN_ALIGN - 1) / I8_IN_ALIGN * I8_IN_ALIGN;
}

static inline size_t i8_row_bytes(int n_in)
{
    return I8_ROW_HEAD + 2 * (size_t)i8_padded(n_in);
}

/* The best kernel this processor runs correctly: each candidate is compared with plain C on extreme values first. */
const struct i8_kernel *i8_kernel_best(void);
/* By name, or NULL; for tests and for comparing. INK_CPU=plain or INK_CPU=avx2 in the environment holds the choice down. */
const struct i8_kernel *i8_kernel_named(const char *name);
bool i8_kernel_is_exact(const struct i8_kernel *k);

/* NULL when memory is out. Fill all rows with i8_matrix_set(), in any order and from any thread (disjoint panels). */
struct i8_matrix *i8_matrix_new(const struct i8_kernel *k, int n_in, int n_out);
void i8_matrix_free(struct i8_matrix *m);
void i8_matrix_set(struct i8_matrix *m, int channel, const int8_t *w, float scale);
/* Rounds one channel of float weights to int8: scale = max|w| / 127. */
float i8_round_channel(const float *w, int n_in, int8_t *out);
size_t i8_matrix_bytes(const struct i8_matrix *m);

extern const struct i8_kernel i8_generic, i8_avx2, i8_avx512_vnni;

#endif
