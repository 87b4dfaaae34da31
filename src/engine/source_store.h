#ifndef ENGINE_SOURCE_STORE_H
#define ENGINE_SOURCE_STORE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Encoded sources that no job is using: their KV blocks stay filled until somebody needs the memory, so the next job
 * with the same source starts without the encoder. A source that is encoded ahead of its job, and one that is drawn from
 * again, are the same thing to it.
 *
 * The store owns the block numbers it holds, as parts of the pool it was made for. An encoding depends on its source alone,
 * so using a kept one changes no output. Not thread-safe: only the engine thread touches it.
 */
struct kv_pool;
struct source_store;

enum { SOURCE_STORE_MAX = 64 };

/* Holds at most `max_blocks` blocks, so that the memory of an idle server stays small. */
struct source_store *source_store_new(struct kv_pool *pool, int max_blocks);
void source_store_free(struct source_store *s); /* its blocks are not given back; NULL is fine */

/*
 * Takes over the `n_blocks` blocks of an encoded source. The least recently kept ones give way when there are too many; one that is too
 * large alone goes back to the pool.
 */
void source_store_keep(struct source_store *s, const int32_t *ids, int n, const int32_t *blocks,
                       int n_blocks);
/* Hands the blocks of this source to the caller, into `blocks`; false when it isn't here. */
bool source_store_take(struct source_store *s, const int32_t *ids, int n, int32_t *blocks);
/* Gives the blocks of the least recently kept source back to the pool; false when there is none. */
bool source_store_drop(struct source_store *s);
/* Blocks held; all of them could be had by dropping. */
int source_store_n_blocks(const struct source_store *s);

#endif
