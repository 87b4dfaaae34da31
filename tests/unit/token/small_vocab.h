#ifndef TEST_SMALL_VOCAB_H
#define TEST_SMALL_VOCAB_H

#include "token/tokenizer.h"

/*
 * A made-up vocabulary of a few pieces: <unk>, <pad>, </s>, then what the test adds. Scores fall with the order of
 * adding unless given.
 */
struct small_vocab {
    struct ink_piece pieces[600];
    struct ink_vocab vocab;
    char bytes[256][8];
};

enum { SMALL_UNK = 0, SMALL_PAD = 1, SMALL_EOS = 2, SMALL_FIRST = 3 };

/* Spaces as in mT5: a prefix, extra ones removed, U+2581. */
void small_vocab_init(struct small_vocab *v);
int32_t small_vocab_add(struct small_vocab *v, const char *piece, float score, int32_t type);
/* All 256 byte pieces, and byte fallback on; returns the id of <0x00>. */
int32_t small_vocab_add_bytes(struct small_vocab *v);
/* Fails the running test when the vocabulary is refused. The caller frees it. */
struct ink_tokenizer *small_vocab_tokenizer(const struct small_vocab *v);

/* Encodes `text` and writes the pieces joined by spaces to `out` ("▁a <0xE4> </s>"). */
void small_pieces(const struct ink_tokenizer *t, struct ink_slice text,
                  struct ink_encode_options options, char *out, size_t cap);

/* A charsmap whose entries are single bytes below 0x80 -> replacement; in growing memory, the caller frees it. */
struct small_entry {
    unsigned char from;
    const char *to;
};
struct ink_slice small_charsmap(const struct small_entry *entries, size_t n);

#endif
