#ifndef MODEL_LINEAR_H
#define MODEL_LINEAR_H

#include "base/status.h"
#include "model/graph.h"
#include "model/weights.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * One linear layer, y = W x, in one of three ways:
 *
 *   i8      int8 weights packed at load, 16-bit activations: see i8_kernel.h
 *   float   weights read row by row as floats from any type, f32 activations and sums
 *   ggml    ggml's own products, for the block-quantized types
 *
 * Up to three matrices with the same input (query, key and value; gate and up) are one layer whose outputs
 * lie side by side.
 */
struct i8_matrix;

enum { LINEAR_PARTS_MAX = 3 };

enum linear_kind { LINEAR_I8, LINEAR_FLOAT, LINEAR_GGML };

struct linear {
    enum linear_kind kind;
    int n_in, n_out; /* all parts together */
    int n_parts;
    struct weight part[LINEAR_PARTS_MAX];
    struct i8_matrix *packed; /* LINEAR_I8; owned */
    void *gathered;           /* the kept rows of a single part and their scales, or NULL; owned */
};

enum linear_compute { LINEAR_AS_STORED, LINEAR_ALL_FLOAT, LINEAR_ALL_I8 };

/* Which way a weight goes. */
enum linear_kind linear_kind_of(const struct weight *w, enum linear_compute compute);

/*
 * Makes a layer of `n_parts` bound weights. An i8 layer is packed by `n_threads` threads and the
 * bytes in `file` are dropped from memory (NULL: the weights are the caller's own). `rows`
 * (ascending, or NULL for all) keeps only some output channels of a single part, copied side by
 * side in whatever type they have. INK_NO_MEMORY is possible.
 */
INK_NODISCARD enum ink_status linear_init(struct linear *l, const struct weight *parts, int n_parts,
                                          enum linear_compute compute,
                                          const struct i8_kernel *kernel, const int32_t *rows,
                                          int n_rows, int n_threads,
                                          const struct ink_model_file *file, struct ink_err *err);
void linear_release(struct linear *l);
int64_t linear_packed_bytes(const struct linear *l);

/*
 * An activation [n, N] on its way into linear layers: as floats, and quantized once for all
 * layers that read it.
 */
struct act {
    struct ggml_tensor *rows; /* f32 [n, N]; rows may be apart */
    struct ggml_tensor
        *quantized; /* rows of i8_row_bytes(n) in an f32 tensor, or NULL until needed */
};

struct act act_of(struct ggml_tensor *rows);

/* f32 [n_out, N] */
struct ggml_tensor *linear_apply(struct graph *g, const struct linear *l, struct act *x);

#endif
