/*
 * A double array whose nodes are single 64-bit words:
 *
 *     bits 0..7   the byte that leads here       bits 9..31   id + 1 of the key that ends here; 0: none
 *     bit  8      the slot is in use             bits 32..63  base: the child by byte c is nodes[base ^ c]
 *
 * A base belongs to one parent only, so a slot's own byte is enough to tell
 * whether it really is that parent's child. The children of a node lie in one
 * block of 256 slots, and the first block holds the root alone: a leaf has base
 * 0 and finds nothing there. So every index is inside the table by construction.
 *
 * The build sorts and places at once, level by level (the upper levels, which
 * every walk crosses, end up side by side). A level's keys are grouped by their
 * next byte; which bases of a block fit a set of bytes is computed for all 256 at
 * once with bit operations.
 */
#include "token/trie.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,
    TRIES = 16, /* blocks looked at for a node with several children */
    FAILS = 24, /* a block that refused so many is left to single children */
    SMALL = 24, /* groups up to this size are sorted by insertion */
};

struct block {
    uint64_t free[4];       /* slots without a node */
    uint64_t free_bases[4]; /* bases without a parent */
    int fails;
};

/* Keys order[lo, hi) share their first `depth` bytes; `slot` is the node of that prefix. */
struct group {
    uint32_t lo, hi, depth, slot;
};

struct builder {
    const struct trie_key *keys;
    uint32_t *order, *spare; /* a permutation of the keys, and room to rearrange it */
    struct group *queue;
    size_t n_queue, cap_queue;

    uint64_t *nodes;
    struct block *blocks;
    size_t n_blocks, cap_blocks;
    size_t first_single; /* blocks before it have no room for a single child */
    uint32_t *open;      /* blocks for nodes with several children */
    size_t n_open, cap_open;

    const char *what;
    struct ink_err *err;
};

static enum ink_status no_memory(struct builder *b)
{
    return ink_err_set(b->err, INK_NO_MEMORY, "%s index: out of memory", b->what);
}

/* The set { x ^ by : x in `set` } of numbers below 64. */
static uint64_t xor_set64(uint64_t set, unsigned by)
{
    static const uint64_t low[] = { 0x5555555555555555U, 0x3333333333333333U, 0x0f0f0f0f0f0f0f0fU,
                                    0x00ff00ff00ff00ffU, 0x0000ffff0000ffffU, 0x00000000ffffffffU };

    for (unsigned i = 0; i < 6; i++)
        if (by >> i & 1)
            set = (set & low[i]) << (1U << i) | (set >> (1U << i) & low[i]);
    return set;
}

static enum ink_status add_block(struct builder *b)
{
    if (b->n_blocks == b->cap_blocks) {
        size_t cap = b->cap_blocks ? b->cap_blocks * 2 : 64;
        struct block *blocks = ink_try_realloc(b->blocks, cap, sizeof(*blocks));

        if (!blocks)
            return no_memory(b);
        b->blocks = blocks;
        uint64_t *nodes = ink_try_realloc(b->nodes, cap * BLOCK, sizeof(*nodes));
        if (!nodes)
            return no_memory(b);
        b->nodes = nodes;
        b->cap_blocks = cap;
    }
    memset(&b->blocks[b->n_blocks], 0xff, sizeof(b->blocks[0]));
    b->blocks[b->n_blocks].fails = 0;
    memset(b->nodes + b->n_blocks * BLOCK, 0, BLOCK * sizeof(b->nodes[0]));
    b->n_blocks++;
    return INK_OK;
}

/* A base in `block` that is free and whose slots for all the bytes are free, or -1. */
static int base_in_block(const struct block *block, const unsigned char *bytes, size_t n)
{
    uint64_t fit[4];

    memcpy(fit, block->free_bases, sizeof(fit));
    for (size_t i = 0; i < n; i++) {
        uint64_t any = 0;

        for (unsigned w = 0; w < 4; w++) {
            fit[w] &= xor_set64(block->free[w ^ bytes[i] >> 6], bytes[i] & 63U);
            any |= fit[w];
        }
        if (!any)
            return -1;
    }
    for (int w = 0; w < 4; w++)
        if (fit[w])
            return w * 64 + __builtin_ctzll(fit[w]);
    return -1;
}

static enum ink_status open_block(struct builder *b)
{
    if (b->n_open == b->cap_open) {
        size_t cap = b->cap_open ? b->cap_open * 2 : 64;
        uint32_t *open = ink_try_realloc(b->open, cap, sizeof(*open));

        if (!open)
            return no_memory(b);
        b->open = open;
        b->cap_open = cap;
    }
    enum ink_status st = add_block(b);
    if (st == INK_OK)
        b->open[b->n_open++] = (uint32_t)(b->n_blocks - 1);
    return st;
}

/* Finds the base for a node with these child bytes. */
static enum ink_status find_base(struct builder *b, const unsigned char *bytes, size_t n,
                                 uint32_t *base)
{
    if (n == 1) {
        for (; b->first_single < b->n_blocks; b->first_single++) {
            int at = base_in_block(&b->blocks[b->first_single], bytes, 1);

            if (at >= 0) {
                *base = (uint32_t)(b->first_single * BLOCK) + (uint32_t)at;
                return INK_OK;
            }
        }
        enum ink_status st = open_block(b);
        if (st != INK_OK)
            return st;
        *base = (uint32_t)(b->first_single * BLOCK);
        return INK_OK;
    }
    size_t tries = 0;
    for (size_t i = b->n_open; i-- > 0 && tries < TRIES; tries++) {
        struct block *block = &b->blocks[b->open[i]];
        int at = base_in_block(block, bytes, n);

        if (at >= 0) {
            *base = b->open[i] * BLOCK + (uint32_t)at;
            return INK_OK;
        }
        if (++block->fails >= FAILS)
            b->open[i] = b->open[--b->n_open];
    }
    enum ink_status st = open_block(b);
    if (st != INK_OK)
        return st;
    *base = (uint32_t)((b->n_blocks - 1) * BLOCK);
    return INK_OK;
}

static void take(uint64_t *set, uint32_t bit)
{
    set[bit / 64] &= ~(1ULL << bit % 64);
}

static unsigned char byte_at(const struct builder *b, uint32_t key, uint32_t depth)
{
    return (unsigned char)b->keys[key].text.ptr[depth];
}

/* Puts order[lo, hi) into the order of the byte at `depth`, which all of them have. */
static void sort_by_byte(struct builder *b, uint32_t lo, uint32_t hi, uint32_t depth)
{
    if (hi - lo <= SMALL) {
        for (uint32_t i = lo + 1; i < hi; i++) {
            uint32_t key = b->order[i], j = i;
            unsigned char c = byte_at(b, key, depth);

            for (; j > lo && byte_at(b, b->order[j - 1], depth) > c; j--)
                b->order[j] = b->order[j - 1];
            b->order[j] = key;
        }
        return;
    }
    uint32_t start[257] = { 0 };
    for (uint32_t i = lo; i < hi; i++)
        start[byte_at(b, b->order[i], depth) + 1]++;
    for (size_t c = 1; c < 257; c++)
        start[c] += start[c - 1];
    for (uint32_t i = lo; i < hi; i++)
        b->spare[start[byte_at(b, b->order[i], depth)]++] = b->order[i];
    memcpy(b->order + lo, b->spare, (hi - lo) * sizeof(b->order[0]));
}

static enum ink_status push(struct builder *b, struct group g)
{
    if (b->n_queue == b->cap_queue) {
        size_t cap = b->cap_queue ? b->cap_queue * 2 : 1024;
        struct group *queue = ink_try_realloc(b->queue, cap, sizeof(*queue));

        if (!queue)
            return no_memory(b);
        b->queue = queue;
        b->cap_queue = cap;
    }
    b->queue[b->n_queue++] = g;
    return INK_OK;
}

/* Moves the key that ends at this node, if there is one, to the front and gives its id to the node. */
static enum ink_status place_id(struct builder *b, struct group *g)
{
    uint32_t front = g->lo;

    for (uint32_t i = g->lo; i < g->hi; i++) {
        uint32_t key = b->order[i];

        if (b->keys[key].text.len > g->depth)
            continue;
        if (front > g->lo)
            return ink_err_set(b->err, INK_CORRUPT, "%s %d and %s %d are both \"%.*s\"", b->what,
                               (int)b->keys[b->order[g->lo]].id, b->what, (int)b->keys[key].id,
                               (int)(g->depth < 80 ? g->depth : 80), b->keys[key].text.ptr);
        b->order[i] = b->order[front];
        b->order[front++] = key;
        b->nodes[g->slot] |= ((uint64_t)b->keys[key].id + 1) << 9;
    }
    g->lo = front;
    return INK_OK;
}

/* Gives the node of `g` its id and its children, which join the queue. */
static enum ink_status place(struct builder *b, struct group g)
{
    unsigned char bytes[256];
    size_t n = 0;
    uint32_t base = 0;
    enum ink_status st = place_id(b, &g);

    if (st != INK_OK || g.lo == g.hi)
        return st;
    sort_by_byte(b, g.lo, g.hi, g.depth);
    for (uint32_t i = g.lo; i < g.hi; i++) {
        unsigned char c = byte_at(b, b->order[i], g.depth);

        if (n == 0 || bytes[n - 1] != c)
            bytes[n++] = c;
    }
    st = find_base(b, bytes, n, &base);
    if (st != INK_OK)
        return st;

    struct block *block = &b->blocks[base / BLOCK];
    b->nodes[g.slot] |= (uint64_t)base << 32;
    take(block->free_bases, base % BLOCK);
    uint32_t lo = g.lo;
    for (size_t i = 0; i < n && st == INK_OK; i++) {
        uint32_t hi = lo, slot = base ^ bytes[i];

        while (hi < g.hi && byte_at(b, b->order[hi], g.depth) == bytes[i])
            hi++;
        take(block->free, slot % BLOCK);
        b->nodes[slot] = 0x100U | bytes[i];
        st = push(b, (struct group){ lo, hi, g.depth + 1, slot });
        lo = hi;
    }
    return st;
}

static enum ink_status build(struct builder *b, size_t n)
{
    enum ink_status st = add_block(b);

    if (st != INK_OK)
        return st;
    memset(b->blocks[0].free, 0, sizeof(b->blocks[0].free));
    memset(b->blocks[0].free_bases, 0, sizeof(b->blocks[0].free_bases));
    b->order = ink_try_alloc(n + 1, sizeof(*b->order));
    b->spare = ink_try_alloc(n + 1, sizeof(*b->spare));
    if (!b->order || !b->spare)
        return no_memory(b);
    for (size_t i = 0; i < n; i++) {
        if (b->keys[i].text.len == 0)
            return ink_err_set(b->err, INK_CORRUPT, "%s %d is empty", b->what, (int)b->keys[i].id);
        b->order[i] = (uint32_t)i;
    }
    st = push(b, (struct group){ 0, (uint32_t)n, 0, 0 });
    for (size_t i = 0; i < b->n_queue && st == INK_OK; i++)
        st = place(b, b->queue[i]);
    return st;
}

enum ink_status trie_build(struct trie *t, const struct trie_key *keys, size_t n, const char *what,
                           struct ink_err *err)
{
    struct builder b = { .keys = keys, .what = what, .err = err };
    enum ink_status st = build(&b, n);

    free(b.order);
    free(b.spare);
    free(b.queue);
    free(b.blocks);
    free(b.open);
    if (st != INK_OK) {
        free(b.nodes);
        return st;
    }
    uint64_t *fitted = ink_try_realloc(b.nodes, b.n_blocks * BLOCK, sizeof(*fitted));
    t->nodes = fitted ? fitted : b.nodes;
    t->n_nodes = b.n_blocks * BLOCK;
    return INK_OK;
}

void trie_release(struct trie *t)
{
    free(t->nodes);
    *t = (struct trie){ 0 };
}

int32_t trie_find(const struct trie *t, struct ink_slice key)
{
    uint64_t node = trie_root(t);

    for (size_t i = 0; i < key.len; i++)
        if (!trie_step(t, &node, (unsigned char)key.ptr[i]))
            return -1;
    return trie_id(node);
}

size_t trie_longest(const struct trie *t, struct ink_slice text, int32_t *id)
{
    uint64_t node = trie_root(t);
    size_t longest = 0;

    for (size_t i = 0; i < text.len && trie_step(t, &node, (unsigned char)text.ptr[i]); i++) {
        if (trie_id(node) >= 0) {
            longest = i + 1;
            *id = trie_id(node);
        }
    }
    return longest;
}
