#ifndef TOKEN_NORMALIZE_H
#define TOKEN_NORMALIZE_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "token/trie.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * SentencePiece's text normalization: the model's own table of replacements
 * (NFKC and more, compiled into a trie), and the rules for spaces.
 *
 * Immutable once made; any thread. The table comes from a file, so nothing in it
 * is trusted: see normalize.c.
 */
struct normalizer {
    uint32_t *units; /* the table's trie; NULL: no table */
    size_t n_units;
    char *replacements; /* NUL-terminated strings, one after the other */
    size_t replacements_len;
    size_t longest_replacement; /* bytes */
    struct trie verbatim;       /* pieces that pass as they are: the user-defined ones */
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
    uint64_t *untouched;       /* bit cp: no entry starts with this character of the basic plane */
    bool starts_verbatim[256]; /* some verbatim piece starts with this byte */
    /* An ASCII character that becomes itself: always, or at least before another ASCII character. */
    bool plain[128], plain_before_ascii[128];
};

struct normalizer_options {
    struct ink_slice charsmap; /* see struct ink_vocab; copied */
    const struct trie_key *verbatim;
    size_t n_verbatim;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
};

INK_NODISCARD enum ink_status normalizer_init(struct normalizer *z,
                                              const struct normalizer_options *o,
                                              struct ink_err *err);
void normalizer_release(struct normalizer *z); /* a zeroed one is fine */

/* The most bytes that `len` bytes of text can become. */
size_t normalizer_max_output(const struct normalizer *z, size_t len);

/* Appends the normal form of `text`, which is valid UTF-8, to `out`. INK_NO_MEMORY at the ceiling of `out`. */
INK_NODISCARD enum ink_status normalizer_run(const struct normalizer *z, struct ink_slice text,
                                             struct ink_buf *out);

#endif
