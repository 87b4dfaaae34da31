#ifndef TOKEN_TOKENIZER_H
#define TOKEN_TOKENIZER_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Text to token ids and back, one interface over the kinds of vocabulary.
 *
 * A tokenizer is immutable once made: any number of threads may use one. It is
 * built from a struct ink_vocab, which the model file carries, and copies what
 * it needs.
 */
struct ink_tokenizer;

enum ink_vocab_kind {
    INK_VOCAB_UNIGRAM, /* SentencePiece unigram: T5, mT5, umT5 */
};

/* Same numbers as SentencePiece's piece types and GGUF's tokenizer.ggml.token_type. */
enum ink_piece_type {
    INK_PIECE_NORMAL = 1,
    INK_PIECE_UNKNOWN = 2,
    INK_PIECE_CONTROL = 3,
    INK_PIECE_USER_DEFINED = 4,
    INK_PIECE_UNUSED = 5,
    INK_PIECE_BYTE = 6,
};

struct ink_piece {
    struct ink_slice text; /* the vocabulary's own spelling, e.g. "▁这", "<0xE4>" */
    float score;           /* log-probability for unigram */
    int32_t type;          /* enum ink_piece_type */
};

/*
 * What a vocabulary consists of, whatever file it came from. Everything is borrowed.
 * Ids are indexes into `pieces`.
 */
struct ink_vocab {
    enum ink_vocab_kind kind;
    const struct ink_piece *pieces;
    int32_t n_pieces;
    int32_t bos, eos, unk, pad; /* -1: none */
    /*
     * The compiled normalization table of SentencePiece ("precompiled_charsmap"); empty for the identity.
     * Layout: u32 LE size of the trie in bytes, the double-array trie (u32 LE units), NUL-terminated replacements.
     */
    struct ink_slice charsmap;
    bool add_dummy_prefix;         /* "▁" before the text */
    bool remove_extra_whitespaces; /* trim, and runs of spaces become one */
    bool escape_whitespaces;       /* space becomes "▁"; always true in the vocabularies served */
    bool byte_fallback;            /* unknown characters become byte pieces */
    int32_t n_extra_ids; /* `<extra_id_0>` ... known to the text side but missing from `pieces` */
};

/* Checks the vocabulary (every table bound, every special id) and builds the look-up structures. */
INK_NODISCARD enum ink_status ink_tokenizer_new(const struct ink_vocab *vocab,
                                                struct ink_tokenizer **out, struct ink_err *err);
void ink_tokenizer_free(struct ink_tokenizer *t); /* NULL is fine */

/* Token ids in growing memory: init with { 0 }, release with free(ids). */
struct ink_tokens {
    int32_t *ids;
    size_t n, cap;
};

struct ink_encode_options {
    bool specials; /* recognize special pieces such as </s> and <extra_id_0> written in the text */
    bool add_special;  /* add what the reference adds: mT5's final </s> */
    size_t max_tokens; /* INK_INVALID, reason "input_too_long", beyond it; 0: no limit */
};

/*
 * Appends the ids of `text` to `out`. INK_INVALID, with the byte offset, when
 * `text` is not valid UTF-8. Time is linear in the length of the text.
 */
INK_NODISCARD enum ink_status ink_tokenizer_encode(const struct ink_tokenizer *t,
                                                   struct ink_slice text,
                                                   const struct ink_encode_options *options,
                                                   struct ink_tokens *out, struct ink_err *err);

/*
 * Text of `n` ids, as SentencePiece decodes them: control pieces and added `<extra_id_N>` are left out, the unknown piece
 * becomes " ⁇ ". With `keep_special` all of them are spelled out. Ids outside the vocabulary are INK_INVALID. The
 * result is valid UTF-8 (byte pieces that do not form a character become U+FFFD, as the reference does). Caller frees
 * `*out`.
 */
INK_NODISCARD enum ink_status ink_tokenizer_decode(const struct ink_tokenizer *t,
                                                   const int32_t *ids, size_t n, bool keep_special,
                                                   char **out, size_t *len, struct ink_err *err);

/* The vocabulary's own spelling; borrowed. Rows of padding beyond the vocabulary have an empty piece. */
struct ink_slice ink_tokenizer_piece(const struct ink_tokenizer *t, int32_t id);
int32_t ink_tokenizer_n_pieces(const struct ink_tokenizer *t);
int32_t ink_tokenizer_piece_type(const struct ink_tokenizer *t,
                                 int32_t id);                         /* 0 outside the vocabulary */
float ink_tokenizer_score(const struct ink_tokenizer *t, int32_t id); /* 0 outside the vocabulary */
int32_t ink_tokenizer_find(const struct ink_tokenizer *t, struct ink_slice piece); /* -1: none */
int32_t ink_tokenizer_eos(const struct ink_tokenizer *t);
int32_t ink_tokenizer_pad(const struct ink_tokenizer *t);
int32_t ink_tokenizer_unk(const struct ink_tokenizer *t);
/* What must never be drawn when answering a person: pad, unknown, bos, control pieces, <extra_id_N>; not eos. */
bool ink_tokenizer_is_special(const struct ink_tokenizer *t, int32_t id);

/* SHA-256 of everything that decides ids and text: for cache keys. */
void ink_tokenizer_digest(const struct ink_tokenizer *t, uint8_t out[32]);

#endif
