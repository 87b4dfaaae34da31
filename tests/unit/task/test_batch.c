/* Seeds of the texts of a batch. */
#include "unit.h"

#include "task/batch.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void the_first_text_has_the_seed_of_the_batch(void **state)
{
    (void)state;
    assert_int_equal(ink_batch_seed(0, 0), 0);
    assert_int_equal(ink_batch_seed(9007199254740991u, 0), 9007199254740991u);
}

/* Nearby seeds and indexes, the way people choose them, share no text's seed. */
static void seeds_are_distinct_and_fit_into_a_json_number(void **state)
{
    enum { SEEDS = 50, TEXTS = 2000 };
    static uint64_t all[SEEDS * TEXTS];
    (void)state;

    for (uint64_t s = 0; s < SEEDS; s++) {
        for (uint64_t i = 0; i < TEXTS; i++) {
            uint64_t seed = ink_batch_seed(s, i);

            assert_true(seed < (uint64_t)1 << 53);
            all[s * TEXTS + i] = seed;
        }
    }
    qsort(all, SEEDS * TEXTS, sizeof(all[0]), by_value);
    for (size_t i = 1; i < SEEDS * TEXTS; i++)
        assert_true(all[i - 1] != all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_text_has_the_seed_of_the_batch),
        cmocka_unit_test(seeds_are_distinct_and_fit_into_a_json_number),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
