/* Philox4x32-10: ten rounds of two 32 x 32 -> 64 bit products over a 128-bit counter. */
#include "engine/random.h"

enum { N_ROUNDS = 10 };

static const uint32_t multiplier[2] = { 0xD2511F53, 0xCD9E8D57 };
static const uint32_t key_step[2] = { 0x9E3779B9, 0xBB67AE85 };

void random_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];

    for (int i = 0; i < N_ROUNDS; i++) {
        uint64_t p0 = (uint64_t)multiplier[0] * c0;
        uint64_t p1 = (uint64_t)multiplier[1] * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += key_step[0];
        k1 += key_step[1];
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

double random_uniform(uint64_t seed, const struct random_place *place)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { place->position, place->candidate, place->attempt, place->try };
    uint32_t r[4];

    random_philox(key, counter, r);
    uint64_t bits = ((uint64_t)r[0] << 32 | r[1]) >> 11;
    return (double)bits * 0x1p-53;
}
