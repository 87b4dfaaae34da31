/* Many texts as one job. */
#include "task/batch.h"

uint64_t ink_batch_seed(uint64_t seed, uint64_t index)
{
    uint64_t x =
        seed + index * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: distinct for distinct indexes */

    if (index == 0)
        return seed;
    /* Two rounds of multiply and shift (the finalizer of SplitMix64): every input bit reaches every output bit. */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x >> 11;
}
