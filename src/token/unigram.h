#ifndef TOKEN_UNIGRAM_H
#define TOKEN_UNIGRAM_H

#include "base/slice.h"
#include "base/status.h"
#include "token/tokenizer.h"
#include "token/trie.h"

#include <stdint.h>

/*
 * SentencePiece's unigram model: of all ways to cut a normalized text into
 * pieces, the one with the greatest sum of scores. Immutable once made; any thread.
 */
struct unigram {
    struct trie pieces; /* what text can consist of: normal and user-defined pieces */
    float *scores;      /* by id; for user-defined pieces what their length earns */
    float unk_score;
    size_t ring_size; /* a power of two greater than the longest piece in characters */
    int32_t unk;
    bool byte_fallback;
    int32_t byte_ids[256]; /* -1: none; all there when `byte_fallback` */
};

/* Reads `vocab`, whose pieces tokenizer.c has checked one by one. */
INK_NODISCARD enum ink_status unigram_init(struct unigram *u, const struct ink_vocab *vocab,
                                           struct ink_err *err);
void unigram_release(struct unigram *u); /* a zeroed one is fine */

/* Appends the ids of a normalized text, which is valid UTF-8. INK_INVALID for a text of 2 GiB or more, INK_NO_MEMORY. */
INK_NODISCARD enum ink_status unigram_encode(const struct unigram *u, struct ink_slice text,
                                             struct ink_tokens *out, struct ink_err *err);

/* The value of a "<0xE4>" piece, or -1. */
int unigram_byte_of(struct ink_slice piece);

#endif
