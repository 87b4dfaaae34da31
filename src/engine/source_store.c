/* A short list, the least recently kept first. */
#include "engine/source_store.h"

#include "base/alloc.h"
#include "engine/kv_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct kept {
    int32_t *ids; /* owned: n ids, then n_blocks block numbers */
    int n, n_blocks;
};

struct source_store {
    struct kv_pool *pool;
    int n, n_blocks, max_blocks;
    struct kept kept[SOURCE_STORE_MAX];
};

struct source_store *source_store_new(struct kv_pool *pool, int max_blocks)
{
    struct source_store *s = ink_zalloc(sizeof(*s));

    s->pool = pool;
    s->max_blocks = max_blocks;
    return s;
}

void source_store_free(struct source_store *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++)
        free(s->kept[i].ids);
    free(s);
}

static int find(const struct source_store *s, const int32_t *ids, int n)
{
    for (int i = 0; i < s->n; i++) {
        if (s->kept[i].n == n && memcmp(s->kept[i].ids, ids, (size_t)n * sizeof(*ids)) == 0)
            return i;
    }
    return -1;
}

static void forget(struct source_store *s, int i)
{
    free(s->kept[i].ids);
    s->n_blocks -= s->kept[i].n_blocks;
    s->n--;
    memmove(&s->kept[i], &s->kept[i + 1], (size_t)(s->n - i) * sizeof(s->kept[0]));
}

bool source_store_drop(struct source_store *s)
{
    if (s->n == 0)
        return false;
    kv_pool_give(s->pool, s->kept[0].ids + s->kept[0].n, s->kept[0].n_blocks);
    forget(s, 0);
    return true;
}

void source_store_keep(struct source_store *s, const int32_t *ids, int n, const int32_t *blocks,
                       int n_blocks)
{
    assert(n > 0 && n_blocks > 0);
    int same = find(s, ids, n);

    /* Two jobs had encoded it; one copy is enough. */
    if (same >= 0) {
        kv_pool_give(s->pool, s->kept[same].ids + n, s->kept[same].n_blocks);
        forget(s, same);
    }
    if (n_blocks > s->max_blocks) {
        kv_pool_give(s->pool, blocks, n_blocks);
        return;
    }
    while (s->n == SOURCE_STORE_MAX || s->n_blocks + n_blocks > s->max_blocks)
        (void)source_store_drop(s);

    struct kept *k = &s->kept[s->n++];

    *k = (struct kept){ .n = n, .n_blocks = n_blocks };
    k->ids = ink_alloc((size_t)(n + n_blocks) * sizeof(*k->ids));
    memcpy(k->ids, ids, (size_t)n * sizeof(*ids));
    memcpy(k->ids + n, blocks, (size_t)n_blocks * sizeof(*blocks));
    s->n_blocks += n_blocks;
}

bool source_store_take(struct source_store *s, const int32_t *ids, int n, int32_t *blocks)
{
    int i = find(s, ids, n);

    if (i < 0)
        return false;
    memcpy(blocks, s->kept[i].ids + n, (size_t)s->kept[i].n_blocks * sizeof(*blocks));
    forget(s, i);
    return true;
}

int source_store_n_blocks(const struct source_store *s)
{
    return s->n_blocks;
}
