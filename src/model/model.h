#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/status.h"
#include "model/model_file.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A loaded model: weights, KV memory and graphs on one device.
 *
 * Who drives it decides what is computed when; the model knows tokens, positions
 * and block numbers, never requests. All calls but ink_model_open() and
 * ink_model_info() come from one thread, the engine's.
 *
 * KV memory is a pool of blocks, each room for `block_tokens` tokens in every decoder
 * layer (keys and values). A decoding sequence lists the blocks of its own
 * tokens; an encoded source lists blocks too, which hold the decoder's
 * cross-attention keys and values of the source tokens. Block numbers are given out by
 * the caller (engine/kv_pool.h).
 */
struct ink_model;

enum ink_compute {
    INK_COMPUTE_AUTO,    /* as stored in the file */
    INK_COMPUTE_EXACT,   /* f32 activations and accumulation, whatever the weights' type */
    INK_COMPUTE_I8,      /* int8 weights per channel, activations as two int8 terms (16 bits) */
    INK_COMPUTE_I8_FAST, /* the same with one int8 term: less exact, never a default */
};

struct ink_model_options { /* zero means default */
    enum ink_compute compute;
    int n_threads;         /* all processors */
    int max_rows;          /* rows of one ink_model_decode(): 64 */
    int max_encode_tokens; /* tokens of one encoder batch, all sources together: 2048 */
    int n_blocks;          /* KV blocks: 512 */
};

enum { INK_KV_BLOCK_TOKENS = 16 };

struct ink_model_info {
    const char *arch;    /* "t5", ... */
    const char *name;    /* general.name, or the file's name without .gguf */
    const char *type;    /* ink_model_file_type() */
    const char *device;  /* "cpu", ... */
    const char *compute; /* for a person: "i8 (avx2)", "f32", ... */
    bool has_encoder;
    int n_vocab; /* rows of the full output head; may exceed the tokenizer's pieces */
    int n_encoder_layers, n_decoder_layers;
    int d_model;
    int32_t decoder_start; /* first decoder input token; -1 for decoder-only models */
    int max_source_tokens; /* what the encoder accepts of one source (also <= max_encode_tokens) */
    int max_target_tokens; /* longest sequence the decoder accepts */
    int max_rows, n_blocks;
    int64_t bytes_weights, bytes_packed, bytes_kv, bytes_graph; /* memory, by kind */
    double load_ms, pack_ms;
};

/*
 * Maps, checks and packs the weights, reserves KV and graph memory, and runs one
 * warm-up step. Keeps `file` borrowed: it must outlive the model. INK_UNSUPPORTED for an unknown architecture,
 * INK_CORRUPT for a missing tensor or a wrong shape (both named).
 */
INK_NODISCARD enum ink_status ink_model_open(const struct ink_model_file *file,
                                             const struct ink_model_options *options,
                                             struct ink_model **out, struct ink_err *err);
void ink_model_close(struct ink_model *m); /* NULL is fine */
const struct ink_model_info *ink_model_info(const struct ink_model *m);

/*
 * Output heads. Head 0 is the full vocabulary. A further one has only the rows of
 * `ids` (ascending, distinct), gathered into memory of its own, and costs accordingly less per step.
 * Logit i of head h belongs to token ink_model_head_ids(m, h)[i]; NULL for head 0, where i is the token.
 */
enum { INK_HEAD_FULL = 0, INK_HEAD_MAX = 8 };
INK_NODISCARD enum ink_status ink_model_add_head(struct ink_model *m, const int32_t *ids, int n,
                                                 int *head, struct ink_err *err);
const int32_t *ink_model_head_ids(const struct ink_model *m, int head, int *n);

/* One source text for the encoder. Borrowed until the batch is done. */
struct ink_encode_item {
    const int32_t *tokens;
    int n_tokens;          /* 1..max_source_tokens */
    const int32_t *blocks; /* ceil(n_tokens / INK_KV_BLOCK_TOKENS) block numbers */
};

/*
 * Encodes a batch of sources, whose lengths may differ (nothing is padded), in
 * slices: begin, then advance by some encoder layers at a time until `*done`.
 * Advancing past the last layer also projects the cross-attention keys and values
 * into the items' blocks. One batch at a time; decode calls may come between slices.
 * The result for one source does not depend on the others in the batch.
 */
INK_NODISCARD enum ink_status ink_model_encode_begin(struct ink_model *m,
                                                     const struct ink_encode_item *items,
                                                     int n_items, struct ink_err *err);
INK_NODISCARD enum ink_status ink_model_encode_advance(struct ink_model *m, int n_layers,
                                                       bool *done, struct ink_err *err);
void ink_model_encode_abort(
    struct ink_model *m); /* forgets a batch under way; fine if there is none */

/*
 * One row of a decoder step: `token` at position `pos` of a sequence. Rows of one call may belong to
 * different sequences, or be consecutive positions of the same one (in ascending order).
 */
struct ink_decode_row {
    int32_t token;
    int pos; /* from 0 */
    const int32_t
        *blocks; /* the sequence's own KV blocks; entry pos / INK_KV_BLOCK_TOKENS exists */
    const int32_t *source_blocks; /* of the encoded source; NULL for decoder-only models */
    int n_source;                 /* its tokens */
    int head;                     /* which output head; -1: no logits wanted */
    const float
        *logits; /* out: [n of head], natural scale, valid until the next call on the model */
};

/*
 * Computes one step: appends each row's keys and values to its blocks, then its logits. A row's
 * result does not depend on the other rows of the call (for types other than q4_k and the like; see README).
 */
INK_NODISCARD enum ink_status ink_model_decode(struct ink_model *m, struct ink_decode_row *rows,
                                               int n_rows, struct ink_err *err);

#endif
