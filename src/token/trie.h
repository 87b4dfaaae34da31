#ifndef TOKEN_TRIE_H
#define TOKEN_TRIE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A map from byte strings to ids that is walked one byte at a time.
 *
 * Immutable after trie_build(). A walk costs one memory access a byte and can
 * not leave the table whatever the bytes are.
 */
struct trie {
    uint64_t *nodes; /* owned; the root is nodes[0] */
    size_t n_nodes;
};

struct trie_key {
    struct ink_slice text; /* borrowed during the build */
    int32_t id;            /* 0 <= id < TRIE_MAX_ID */
};

enum { TRIE_MAX_ID = (1 << 23) - 2 };

/*
 * Builds the map of `n` keys in any order; n may be 0. INK_CORRUPT when a key is empty or twice
 * there. On an error `t` needs no release. `what` names the keys in messages ("piece").
 */
INK_NODISCARD enum ink_status trie_build(struct trie *t, const struct trie_key *keys, size_t n,
                                         const char *what, struct ink_err *err);
void trie_release(struct trie *t);

/* Where a walk stands: start with trie_root(). */
static inline uint64_t trie_root(const struct trie *t)
{
    return t->nodes[0];
}

/* One byte further; false when no key goes on like this, and then `*node` is as it was. */
static inline bool trie_step(const struct trie *t, uint64_t *node, unsigned char byte)
{
    uint64_t next = t->nodes[(*node >> 32) ^ byte];

    if ((next & 0x1ff) != (0x100U | byte))
        return false;
    *node = next;
    return true;
}

/* The id of the key that ends here, or -1. */
static inline int32_t trie_id(uint64_t node)
{
    return (int32_t)(node >> 9 & 0x7fffff) - 1;
}

/* The id of exactly this key, or -1. */
int32_t trie_find(const struct trie *t, struct ink_slice key);

/* Length of the longest key at the start of `text`, 0 if none; its id goes to `*id`. */
size_t trie_longest(const struct trie *t, struct ink_slice text, int32_t *id);

#endif
