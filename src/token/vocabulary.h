#ifndef TOKEN_VOCABULARY_H
#define TOKEN_VOCABULARY_H

#include "token/normalize.h"
#include "token/tokenizer.h"
#include "token/trie.h"
#include "token/unigram.h"

/*
 * What a tokenizer consists of, for the files of this room.
 *
 * Ids [0, n_pieces) are the vocabulary's own; `<extra_id_N>` that the text side adds follow, the highest N
 * first: id n_pieces + n_extra_ids - 1 - N.
 */
struct ink_tokenizer {
    enum ink_vocab_kind kind;
    int32_t n_pieces, n_extra_ids;
    int32_t bos, eos, unk, pad;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, byte_fallback;

    /* By id, extra ids included; owned. */
    char *text;        /* all spellings, one after the other */
    uint32_t *text_at; /* n_pieces + n_extra_ids + 1 offsets into `text` */
    float *scores;
    uint8_t *types;            /* enum ink_piece_type */
    struct ink_slice charsmap; /* owned; for the digest */

    struct trie
        reserved; /* pieces that text never yields by itself: control, unknown, byte, extra ids */
    struct trie unused;       /* pieces of type unused */
    struct trie written;      /* what is recognized in text when specials are asked for */
    bool starts_written[256]; /* some of those start with this byte */

    struct normalizer normalizer;
    struct unigram unigram;
};

#endif
