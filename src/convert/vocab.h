#ifndef CONVERT_VOCAB_H
#define CONVERT_VOCAB_H

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A unigram vocabulary on its way into a GGUF file, wherever it was read from. All text lives in `arena`.
 */

/* SentencePiece's numbers, which GGUF's tokenizer.ggml.token_type shares. */
enum piece_type {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN = 2,
    PIECE_CONTROL = 3,
    PIECE_USER_DEFINED = 4,
    PIECE_UNUSED = 5,
    PIECE_BYTE = 6,
};

struct piece {
    const char *text; /* NUL-terminated UTF-8, no NUL inside */
    float score;
    int32_t type; /* enum piece_type */
};

enum { VOCAB_MAX_PIECES = 1 << 20, VOCAB_MAX_PIECE_BYTES = 1024, VOCAB_MAX_CHARSMAP = 16 << 20 };

struct vocab {
    struct ink_arena *arena;
    struct piece *pieces; /* owned */
    int32_t n_pieces, cap_pieces;
    int32_t bos, eos, unk, pad; /* -1: none */
    struct ink_slice charsmap;  /* empty: identity */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, byte_fallback;
    int32_t n_own; /* pieces of the vocabulary itself; added ones and padding follow */
};

void vocab_init(struct vocab *v);
void vocab_release(struct vocab *v);

/* Appends a piece; text is copied. INK_CORRUPT (without the file's name) when it is too long, not UTF-8 or one too many. */
INK_NODISCARD enum ink_status vocab_add(struct vocab *v, struct ink_slice text, float score,
                                        int32_t type, struct ink_err *err);
/* Fills positions up to `id` with unused pieces if needed, then makes `id` this added token. */
INK_NODISCARD enum ink_status vocab_put(struct vocab *v, int64_t id, struct ink_slice text,
                                        int32_t type, struct ink_err *err);
/* Unused pieces up to `n` in all. */
INK_NODISCARD enum ink_status vocab_pad(struct vocab *v, int64_t n, struct ink_err *err);

int32_t vocab_find(const struct vocab *v, const char *text); /* linear; -1: none */

/*
 * The vocabulary of a Hugging Face folder: spiece.model or tokenizer.model, else a tokenizer.json of the Unigram kind;
 * then the tokens its other files add; then padding up to `n_rows`, the rows of the embedding.
 * `default_extra_ids`: how many <extra_id_N> follow the vocabulary when no file says so (T5: 100).
 */
INK_NODISCARD enum ink_status vocab_load(struct vocab *v, const char *dir, int64_t n_rows,
                                         int default_extra_ids, struct ink_err *err);

#endif
