#ifndef MODEL_LAYERS_H
#define MODEL_LAYERS_H

#include "base/status.h"
#include "model/graph.h"
#include "model/linear.h"
#include "model/weights.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The parts of a transformer layer as graph nodes. Every one works row by row in a fixed order, so that a token's
 * result does not depend on the batch it is in. E: width, I: heads × head dimension, F: feed-forward
 * width, N: rows of this step. Parameters that are pointers are borrowed until the graph has been computed.
 */

/* Rows of the token embedding: f32 [E, N]. */
struct ggml_tensor *layer_embed(struct graph *g, const struct weight *table, const int32_t *tokens,
                                int n);

/* Rows that are already in memory, [width, n] floats without gaps. */
struct ggml_tensor *layer_input(struct graph *g, float *data, int width, int n);

/*
 * sum = x + delta (x alone when delta is NULL), normed = rms_norm(sum) * weight. With `pick`,
 * only those `n_pick` rows.
 */
struct layer_norm {
    struct ggml_tensor *sum; /* [E, N] */
    struct act normed;       /* [E, N] */
};
struct layer_norm layer_add_norm(struct graph *g, struct ggml_tensor *x, struct ggml_tensor *delta,
                                 const float *weight, float eps, const int32_t *pick, int n_pick);

enum layer_activation { LAYER_RELU, LAYER_GELU_GATE };
/* relu: [F, N] from [F, N]; gelu_gate: [F, N] from [2F, N], gate first. */
struct act layer_activate(struct graph *g, struct ggml_tensor *x, enum layer_activation kind);

/*
 * Keys and values in blocks of KEY_BLOCK tokens. One block of one layer: keys [heads][D][KEY_BLOCK], the dimension
 * outermost so that a query meets KEY_BLOCK keys at once; values [heads][KEY_BLOCK][D padded to 8].
 */
struct kv_memory {
    float *k, *v; /* owned; untouched pages cost nothing */
    int n_blocks, n_layers, n_heads, d, d_padded;
    size_t bytes;
};
INK_NODISCARD enum ink_status kv_memory_init(struct kv_memory *kv, int n_blocks, int n_layers,
                                             int n_heads, int d, struct ink_err *err);
void kv_memory_release(struct kv_memory *kv);

/* Where one row's keys and values go. */
struct kv_slot {
    int32_t block, offset;
};
/*
 * Stores keys and values of `layer` from columns [k_column, k_column + I) and [v_column, v_column + I) of x. The result is
 * a node without content that attention over these blocks must depend on.
 */
struct ggml_tensor *layer_kv_store(struct graph *g, struct kv_memory *kv, int layer,
                                   struct ggml_tensor *x, int k_column, int v_column,
                                   const struct kv_slot *slots);

/* What one row attends to. */
struct attend_row {
    const int32_t *blocks; /* ceil(n_keys / KEY_BLOCK) block numbers */
    int n_keys;            /* >= 1 */
    int bias_from;         /* key j gets bias[head][bias_from + j] */
};
/* Position bias of one layer kind: [heads][n], or bias NULL for none. */
struct position_bias {
    float *bias;
    int n;
};
/*
 * softmax(scale * q k^T + bias) v for every row and head; q is columns [0, I) of x. Returns [I, N].
 * `stored` is the result of layer_kv_store() for these keys, or NULL when they are from an earlier graph.
 */
struct ggml_tensor *layer_attend(struct graph *g, const struct kv_memory *kv, int layer,
                                 struct ggml_tensor *x, struct ggml_tensor *stored, float scale,
                                 const struct attend_row *rows, const struct position_bias *bias);

#endif
