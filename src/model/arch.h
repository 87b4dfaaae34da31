#ifndef MODEL_ARCH_H
#define MODEL_ARCH_H

#include "base/status.h"
#include "model/graph.h"
#include "model/layers.h"
#include "model/model.h"

/*
 * What an architecture provides. Adding one: write model/X.c with a table like this, add it to registry.c, its
 * tensor names to convert/names.c, and golden values to tests/golden/. No other file changes.
 */
struct arch; /* an architecture's own loaded state */

/* What loading needs beyond the file. */
struct arch_load {
    const struct ink_model_file *file;
    const struct ink_model_options *options; /* defaults filled in */
    enum linear_compute compute;
    const struct i8_kernel *kernel;
    int n_threads;
};

struct arch_ops {
    const char *name; /* general.architecture */
    /*
     * Reads numbers, binds and packs tensors (all checks happen here), and fills the architecture's part of `info`.
     */
    enum ink_status (*load)(const struct arch_load *load, struct arch **out,
                            struct ink_model_info *info, struct ink_err *err);
    void (*free)(struct arch *a);
    /* Numbers of the KV memory: heads, head dimension; layers is info.n_decoder_layers. */
    void (*kv_shape)(const struct arch *a, int *n_heads, int *d);
    /* Whether any linear layer quantizes its activations, and bytes packed so far. */
    bool (*uses_i8)(const struct arch *a);
    int64_t (*packed_bytes)(const struct arch *a);

    /* Output head over `ids` (NULL: all); a head is made once and lives with the architecture. */
    enum ink_status (*make_head)(struct arch *a, const int32_t *ids, int n, struct linear *out,
                                 struct ink_err *err);

    /*
     * One slice of the encoder, layers [from, to): x [E, N] in, x out. `rows` says for each token what it attends to
     * within `scratch`, where this slice's keys and values go (`slots`).
     */
    struct ggml_tensor *(*encode)(struct arch *a, struct graph *g, struct ggml_tensor *x, int from,
                                  int to, struct kv_memory *scratch, const struct kv_slot *slots,
                                  const struct attend_row *rows);
    /* The encoder's end: final norm, then cross-attention keys and values of every decoder layer into `kv`. */
    void (*encode_finish)(struct arch *a, struct graph *g, struct ggml_tensor *x,
                          struct kv_memory *kv, const struct kv_slot *slots);
    struct ggml_tensor *(*embed)(struct arch *a, struct graph *g, const int32_t *tokens, int n);
    /* Decoder layers over one row a token; returns the residual stream before the final norm. */
    struct ggml_tensor *(*decode)(struct arch *a, struct graph *g, struct ggml_tensor *x,
                                  struct kv_memory *kv, const struct kv_slot *slots,
                                  const struct attend_row *self, const struct attend_row *cross);
    /* Final norm of the picked rows and one head over them: [n of head, n_pick]. */
    struct ggml_tensor *(*logits)(struct arch *a, struct graph *g, struct ggml_tensor *x,
                                  const struct linear *head, const int32_t *pick, int n_pick);
    /* Index into the position bias for a query at `pos` over keys from 0; the encoder's and the decoder's. */
    int (*encoder_bias_from)(const struct arch *a, int pos);
    int (*decoder_bias_from)(const struct arch *a, int pos);
};

/* NULL when unknown; then `known` lists the names there are. */
const struct arch_ops *arch_find(const char *name, char *known, size_t known_size);

extern const struct arch_ops t5_ops;

#endif
