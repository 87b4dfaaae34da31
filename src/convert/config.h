#ifndef CONVERT_CONFIG_H
#define CONVERT_CONFIG_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* What config.json says about a T5-family model, checked. */
struct t5_config {
    char family[8]; /* "t5", "mt5", "umt5" */
    int64_t vocab_size, d_model, d_kv, d_ff, n_heads, n_buckets, max_distance;
    int n_encoder_layers, n_decoder_layers;
    int64_t n_positions; /* longest text it was trained on; relative positions allow more */
    double epsilon;
    bool is_gated;
    const char *activation; /* "relu" (never gated) or "gelu_tanh" (always gated); a literal */
    bool bias_per_layer;    /* umT5 */
    int64_t decoder_start, eos, pad; /* -1: not said */
    /*
     * Whether the decoder's output is multiplied by d_model^-0.5 before the head. transformers: the key
     * scale_decoder_outputs, else for T5 and umT5 true unless tie_word_embeddings is false, else (mT5) only in
     * checkpoints of releases before 5 that tie the head.
     */
    bool scale_output;
    bool says_untied;  /* tie_word_embeddings is there and false */
    bool has_own_head; /* set by the importer, from the tensors */
};

/* Reads dir/config.json and, for the start token, dir/generation_config.json. */
INK_NODISCARD enum ink_status config_load(const char *dir, struct t5_config *out,
                                          struct ink_err *err);

#endif
