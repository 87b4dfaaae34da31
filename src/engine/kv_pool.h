#ifndef ENGINE_KV_POOL_H
#define ENGINE_KV_POOL_H

#include "base/status.h"

#include <stdint.h>

/*
 * Hands out KV-cache blocks. A block is room for `block_tokens` tokens in
 * every layer; a sequence owns a list of blocks and gives all of them back
 * when it ends. The pool knows numbers only: the memory belongs to the model.
 *
 * Not thread-safe: only the engine thread touches it.
 */
struct kv_pool;

struct kv_pool *kv_pool_new(int n_blocks, int block_tokens);
void kv_pool_free(struct kv_pool *pool); /* NULL is fine */

/*
 * Reserves the blocks for `n_tokens` tokens and writes their ids to `ids`,
 * which has room for kv_pool_blocks_for(pool, n_tokens) entries. All or
 * nothing: on INK_BUSY the pool is as it was before.
 */
INK_NODISCARD enum ink_status kv_pool_take(struct kv_pool *pool, int n_tokens, int32_t *ids);
void kv_pool_give(struct kv_pool *pool, const int32_t *ids, int n);

int kv_pool_blocks_for(const struct kv_pool *pool, int n_tokens);
int kv_pool_n_free(const struct kv_pool *pool);
int kv_pool_n_blocks(const struct kv_pool *pool);

#endif
