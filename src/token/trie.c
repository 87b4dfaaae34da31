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
 * The build sorts the keys and then goes down level by level, so that it reads them from front to back again and
 * again, and the upper levels, which every walk crosses, end up side by side. Which bases of a block fit a set of
 * bytes is computed for all 256 at once with bit operations.
 */
#include "token/trie.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256,
    TRIES = 16, /* blocks looked at for a node with several children */
    FAILS = 24, /* a block that refused so many is left to single children */
};

struct block {
    uint64_t free[4];       /* slots without a node */
    uint64_t free_bases[4]; /* bases without a parent */
    int fails;
};

/* A key while it is sorted: its first 8 bytes as a number, and the rest of it. */
struct item {
    uint64_t head;
    const unsigned char *text;
    uint32_t len;
    int32_t id;
};

/* Items [lo, hi) share their first `depth` bytes; `slot` is the node of that prefix. */
struct group {
    uint32_t lo, hi, depth, slot;
};

struct builder {
    struct item *items;  /* sorted */
    unsigned char *text; /* of all items, in their order */
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

/* The same for a single byte, which is nine nodes in ten: takes the first free slot that will do. */
static int base_for_one(const struct block *block, unsigned char byte)
{
    for (int w = 0; w < 4; w++) {
        for (uint64_t set = block->free[w]; set; set &= set - 1) {
            int base = (w * 64 + __builtin_ctzll(set)) ^ byte;

            if (block->free_bases[base / 64] >> (base % 64) & 1)
                return base;
        }
    }
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
            int at = base_for_one(&b->blocks[b->first_single], bytes[0]);

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

static int by_text(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    if (order != 0)
        return order;
    return x->len < y->len ? -1 : x->len > y->len;
}

/* Sorts by `head`, one byte of it at a time from the last; `spare` has room for n items. */
static struct item *sort_by_head(struct item *items, struct item *spare, size_t n)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t start[257] = { 0 };

        for (size_t i = 0; i < n; i++)
            start[(items[i].head >> shift & 0xff) + 1]++;
        for (size_t c = 1; c < 257; c++)
            start[c] += start[c - 1];
        for (size_t i = 0; i < n; i++)
            spare[start[items[i].head >> shift & 0xff]++] = items[i];
        struct item *sorted = spare;
        spare = items;
        items = sorted;
    }
    return items;
}

/* Fills b->items and b->text. */
static enum ink_status sort_keys(struct builder *b, const struct trie_key *keys, size_t n)
{
    struct item *items = ink_try_alloc(n + 1, 2 * sizeof(*items));
    size_t bytes = 0;

    b->items = items;
    if (!items)
        return no_memory(b);
    for (size_t i = 0; i < n; i++) {
        struct ink_slice s = keys[i].text;

        if (s.len == 0)
            return ink_err_set(b->err, INK_CORRUPT, "%s %d is empty", b->what, (int)keys[i].id);
        if (s.len >= INT32_MAX)
            return ink_err_set(b->err, INK_CORRUPT, "%s %d is too long", b->what, (int)keys[i].id);
        items[i] = (struct item){ .text = (const unsigned char *)s.ptr,
                                  .len = (uint32_t)s.len,
                                  .id = keys[i].id };
        for (size_t k = 0; k < 8; k++)
            items[i].head = items[i].head << 8 | (k < s.len ? items[i].text[k] : 0);
        bytes += s.len;
    }
    /* An even number of passes: the result is where the items were. */
    (void)sort_by_head(items, items + n, n);
    for (size_t lo = 0, hi; lo < n; lo = hi) {
        for (hi = lo + 1; hi < n && items[hi].head == items[lo].head; hi++)
            continue;
        if (hi - lo > 1)
            qsort(items + lo, hi - lo, sizeof(*items), by_text);
    }

    b->text = ink_try_alloc(bytes + 1, 1);
    if (!b->text)
        return no_memory(b);
    unsigned char *at = b->text;
    for (size_t i = 0; i < n; i++) {
        memcpy(at, items[i].text, items[i].len);
        items[i].text = at;
        at += items[i].len;
    }
    return INK_OK;
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

/* Gives the node of `g` its id and its children, which join the queue. */
static enum ink_status place(struct builder *b, struct group g)
{
    const struct item *items = b->items;
    unsigned char bytes[256];
    uint32_t ends[256], base = 0;
    size_t n = 0;

    if (g.lo < g.hi && items[g.lo].len == g.depth) {
        b->nodes[g.slot] |= ((uint64_t)items[g.lo].id + 1) << 9;
        g.lo++;
    }
    if (g.lo == g.hi)
        return INK_OK;
    if (items[g.lo].len == g.depth)
        return ink_err_set(b->err, INK_CORRUPT, "%s %d and %s %d are both \"%.*s\"", b->what,
                           (int)items[g.lo - 1].id, b->what, (int)items[g.lo].id,
                           (int)(g.depth < 80 ? g.depth : 80), (const char *)items[g.lo].text);
    for (uint32_t i = g.lo; i < g.hi; i++) {
        unsigned char c = items[i].text[g.depth];

        if (n == 0 || bytes[n - 1] != c)
            bytes[n++] = c;
        ends[n - 1] = i + 1;
    }
    enum ink_status st = find_base(b, bytes, n, &base);
    if (st != INK_OK)
        return st;

    struct block *block = &b->blocks[base / BLOCK];
    b->nodes[g.slot] |= (uint64_t)base << 32;
    take(block->free_bases, base % BLOCK);
    for (size_t i = 0; i < n && st == INK_OK; i++) {
        uint32_t slot = base ^ bytes[i];

        take(block->free, slot % BLOCK);
        b->nodes[slot] = 0x100U | bytes[i];
        st = push(b, (struct group){ i == 0 ? g.lo : ends[i - 1], ends[i], g.depth + 1, slot });
    }
    return st;
}

static enum ink_status build(struct builder *b, const struct trie_key *keys, size_t n)
{
    enum ink_status st = n < UINT32_MAX ? add_block(b) : no_memory(b);

    if (st != INK_OK)
        return st;
    memset(b->blocks[0].free, 0, sizeof(b->blocks[0].free));
    memset(b->blocks[0].free_bases, 0, sizeof(b->blocks[0].free_bases));
    st = sort_keys(b, keys, n);
    if (st == INK_OK)
        st = push(b, (struct group){ 0, (uint32_t)n, 0, 0 });
    for (size_t i = 0; i < b->n_queue && st == INK_OK; i++)
        st = place(b, b->queue[i]);
    return st;
}

enum ink_status trie_build(struct trie *t, const struct trie_key *keys, size_t n, const char *what,
                           struct ink_err *err)
{
    struct builder b = { .what = what, .err = err };
    enum ink_status st = build(&b, keys, n);

    free(b.items);
    free(b.text);
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
