#ifndef UNIT_ENGINE_FAKE_MODEL_H
#define UNIT_ENGINE_FAKE_MODEL_H

#include "model/model.h"

/*
 * A model without weights: it stores tokens where a real one stores keys and values, and its logits are any function
 * of source and history. So whatever the engine does wrong with blocks, positions or order changes the output.
 */

/* `history` starts with the decoder's start token. Writes n_vocab logits. */
typedef void fake_logits_fn(const int32_t *source, int n_source, const int32_t *history,
                            int n_history, float *logits, int n_vocab);

/* Pseudo-random logits that depend on all tokens; the end token (1) grows likelier with each step. */
fake_logits_fn fake_logits_mixed;
/* Repeats the source token by token, then the end token; sure of itself. */
fake_logits_fn fake_logits_echo;
/* As mixed, but never ends. */
fake_logits_fn fake_logits_endless;

struct fake_options {             /* zero means default */
    int n_vocab;                  /* 64 */
    int n_blocks;                 /* 64 */
    int max_rows;                 /* 8 */
    int max_source;               /* 256 */
    int max_target;               /* 256 */
    int n_layers;                 /* 4 */
    fake_logits_fn *logits;       /* mixed */
    int decode_us, layer_us;      /* how long a step, and an encoder layer, takes: 0 */
    int fail_decode, fail_encode; /* fail at this call, counted from 1 */
};

enum { FAKE_START = 0, FAKE_EOS = 1, FAKE_UNK = 2 };

/* Released with ink_model_close(). */
struct ink_model *fake_model_new(const struct fake_options *options);

/* Counts so far; any thread. */
struct fake_counts {
    int encoded, batches, aborted, layers, steps, rows, most_rows, most_encoded_together;
};
void fake_model_counts(struct ink_model *m, struct fake_counts *out);

#endif
