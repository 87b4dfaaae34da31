#ifndef CONVERT_IMPORT_H
#define CONVERT_IMPORT_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A Hugging Face checkpoint folder of the T5 family (T5, T5 v1.1, mT5, umT5) becomes one GGUF file: configuration,
 * tokenizer and weights. The same folder and type give the same bytes.
 *
 * Written are the keys and tensor names of llama.cpp's converter, and these of our own:
 *   t5.attention.relative_max_distance  u32
 *   t5.feed_forward_activation          "relu" or, gated, "gelu_tanh"
 *   t5.logit_scale                      f32: the decoder's output is multiplied by it before the head
 *   inkstone.family                     "t5", "mt5" or "umt5"
 *   inkstone.tokenizer.byte_fallback    bool
 *   inkstone.weights_sha256             64 hexadecimal digits: source weights, sizes and target type
 *   inkstone.i8_version                 u32, 1; only for the type i8
 *   inkstone.prompt                     rewriting template, from the folder's inkstone.json {"prompt"}
 *   inkstone.demo                       bool, from inkstone.json {"demo"}
 * Type i8: a matrix NAME has int8 elements, one scale per row in NAME_scale (f32); w = q * scale. The embedding is
 * q8_0. Norms and position biases are f32 in every type. Without output.weight the head is the embedding.
 */

/* In the order of INK_IMPORT_TYPES. */
enum ink_import_type {
    INK_IMPORT_I8,
    INK_IMPORT_F32,
    INK_IMPORT_F16,
    INK_IMPORT_BF16,
    INK_IMPORT_Q8_0,
    INK_IMPORT_Q4_0,
    INK_IMPORT_Q4_K,
    INK_IMPORT_Q5_K,
    INK_IMPORT_Q6_K,
};

#define INK_IMPORT_TYPES "i8|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k"

struct ink_import_options { /* zero means default */
    enum ink_import_type type;
    int n_threads; /* all processors */
    const atomic_bool
        *cancel; /* looked at often; INK_CANCELLED when it becomes true; may be NULL */
    /* Called on the importing thread: bytes read of how many, and the tensor's name. May be NULL. */
    void (*progress)(void *arg, int64_t done, int64_t total, const char *what);
    void *progress_arg;
};

enum { INK_IMPORT_NOTES = 4 };

struct ink_import_report {
    char family[8];              /* "mt5" */
    const char *type;            /* "i8" */
    int64_t bytes_in, bytes_out; /* of the weights read; of the file written */
    int64_t n_weights;           /* elements */
    int n_tensors;               /* of the model, scales not counted */
    int n_fallback_q8_0,
        n_fallback_f16; /* matrices whose rows do not divide into the type's blocks */
    int n_unused;       /* tensors of the checkpoint that the model has no use for */
    int32_t n_pieces;   /* of the vocabulary, without padding */
    bool own_head;
    double seconds;
    int n_notes; /* what the user should know */
    char notes[INK_IMPORT_NOTES][200];
};

/*
 * Writes `out`, whole or not at all. Errors name the file and the tensor, key or field. `report` may be NULL.
 * Needs memory for a few pieces of a tensor (some 50 MB), whatever the model's size.
 */
INK_NODISCARD enum ink_status ink_import(const char *dir, const char *out,
                                         const struct ink_import_options *options,
                                         struct ink_import_report *report, struct ink_err *err);

#endif
