/* Free block numbers as a stack. */
#include "engine/kv_pool.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>

struct kv_pool {
    int n_blocks;
    int block_tokens;
    int n_free;
    int32_t *free_ids; /* a stack: [0, n_free) are free, top is last */
};

struct kv_pool *kv_pool_new(int n_blocks, int block_tokens)
{
    assert(n_blocks > 0 && block_tokens > 0);

    struct kv_pool *pool = ink_alloc(sizeof(*pool));

    pool->n_blocks = n_blocks;
    pool->block_tokens = block_tokens;
    pool->n_free = n_blocks;
    pool->free_ids = ink_alloc((size_t)n_blocks * sizeof(*pool->free_ids));

    /* Lowest ids on top: a lightly loaded server stays in few, warm blocks. */
    for (int i = 0; i < n_blocks; i++)
        pool->free_ids[i] = n_blocks - 1 - i;
    return pool;
}

void kv_pool_free(struct kv_pool *pool)
{
    if (!pool)
        return;
    free(pool->free_ids);
    free(pool);
}

int kv_pool_blocks_for(const struct kv_pool *pool, int n_tokens)
{
    return (n_tokens + pool->block_tokens - 1) / pool->block_tokens;
}

int kv_pool_n_free(const struct kv_pool *pool)
{
    return pool->n_free;
}

int kv_pool_n_blocks(const struct kv_pool *pool)
{
    return pool->n_blocks;
}

enum ink_status kv_pool_take(struct kv_pool *pool, int n_tokens, int32_t *ids)
{
    int n = kv_pool_blocks_for(pool, n_tokens);

    if (n > pool->n_free)
        return INK_BUSY;
    for (int i = 0; i < n; i++)
        ids[i] = pool->free_ids[--pool->n_free];
    return INK_OK;
}

void kv_pool_give(struct kv_pool *pool, const int32_t *ids, int n)
{
    assert(pool->n_free + n <= pool->n_blocks);
    for (int i = n - 1; i >= 0; i--)
        pool->free_ids[pool->n_free++] = ids[i];
}
