#include "unit.h"

#include "engine/kv_pool.h"

static void take_rounds_up_to_whole_blocks(void **state)
{
    static const struct {
        int n_tokens, n_blocks;
    } rows[] = { { 0, 0 }, { 1, 1 }, { 15, 1 }, { 16, 1 }, { 17, 2 }, { 64, 4 } };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kv_pool *pool = kv_pool_new(4, 16);
        int32_t ids[4];

        assert_int_equal(kv_pool_take(pool, rows[i].n_tokens, ids), INK_OK);
        assert_int_equal(kv_pool_n_free(pool), 4 - rows[i].n_blocks);
        kv_pool_free(pool);
    }
}

static void take_is_all_or_nothing(void **state)
{
    struct kv_pool *pool = kv_pool_new(4, 16);
    int32_t ids[8];
    (void)state;

    assert_int_equal(kv_pool_take(pool, 48, ids), INK_OK);
    assert_int_equal(kv_pool_take(pool, 32, ids + 3), INK_BUSY);
    assert_int_equal(kv_pool_n_free(pool), 1);
    kv_pool_give(pool, ids, 3);
    assert_int_equal(kv_pool_n_free(pool), 4);
    kv_pool_free(pool);
}

static void no_block_is_given_out_twice(void **state)
{
    enum { N = 50 };
    struct kv_pool *pool = kv_pool_new(N, 16);
    int owner[N] = { 0 };
    int32_t ids[8][8];
    int n[8] = { 0 };
    unsigned r = 1;
    (void)state;

    for (int round = 0; round < 2000; round++) {
        int who = (int)((r = r * 1103515245 + 12345) >> 16) % 8;

        for (int i = 0; i < n[who]; i++)
            owner[ids[who][i]]--;
        kv_pool_give(pool, ids[who], n[who]);
        n[who] = 0;
        int want = (int)((r = r * 1103515245 + 12345) >> 16) % 9;

        if (kv_pool_take(pool, want * 16, ids[who]) != INK_OK)
            continue;
        n[who] = want;
        for (int i = 0; i < want; i++)
            assert_int_equal(++owner[ids[who][i]], 1);
    }
    kv_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_rounds_up_to_whole_blocks),
        cmocka_unit_test(take_is_all_or_nothing),
        cmocka_unit_test(no_block_is_given_out_twice),
    };
    return cmocka_run_group_tests_name("kv_pool", tests, NULL, NULL);
}
