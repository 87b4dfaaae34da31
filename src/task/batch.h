#ifndef TASK_BATCH_H
#define TASK_BATCH_H

#include <stdint.h>

/*
 * The seed of text `index` in a batch that was given `seed`, below 2^53: text 0 uses the batch's own, the others
 * one that depends on both. The same for the command line and for HTTP, so a batch gives the same texts either way, and
 * the seed that an answer reports repeats that text alone.
 */
uint64_t ink_batch_seed(uint64_t seed, uint64_t index);

#endif
