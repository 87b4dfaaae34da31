#ifndef CONVERT_NAMES_H
#define CONVERT_NAMES_H

#include "convert/config.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The tensors of a T5-family model: what Hugging Face calls them, what llama.cpp's GGUF calls them, and the shape that
 * the configuration demands.
 */

enum tensor_kind {
    TENSOR_EMBEDDING, /* rows are looked up; also the output head when that is tied */
    TENSOR_OUTPUT,    /* the output head of its own */
    TENSOR_LINEAR,    /* a matrix that rows are multiplied with */
    TENSOR_SMALL,     /* norms and position biases: always f32 */
};

enum { TENSOR_NAME_LEN = 64 }; /* what ggml keeps of a name, with its NUL */

struct tensor_spec {
    char source[96];            /* "encoder.block.0.layer.0.SelfAttention.q.weight" */
    char name[TENSOR_NAME_LEN]; /* "enc.blk.0.attn_q.weight" */
    enum tensor_kind kind;
    int n_dims;       /* 1 or 2 */
    int64_t shape[2]; /* outermost first: {out, in} */
};

/* All tensors of the model in the order they are written; caller frees. */
struct tensor_spec *names_list(const struct t5_config *config, int *n);

/* Whether the model does not need this tensor of a checkpoint: a copy of the embedding, or what no one reads. */
bool names_is_unused(const char *source);

#endif
