#include "unit.h"

#include "engine/kv_pool.h"
#include "engine/source_store.h"

static void keep(struct source_store *s, struct kv_pool *pool, int32_t first, int n)
{
    int32_t ids[64], blocks[4];

    for (int i = 0; i < n; i++)
        ids[i] = first + i;
    assert_int_equal(kv_pool_take(pool, n, blocks), INK_OK);
    source_store_keep(s, ids, n, blocks, kv_pool_blocks_for(pool, n));
}

static bool take(struct source_store *s, int32_t first, int n, int32_t *blocks)
{
    int32_t ids[64];

    for (int i = 0; i < n; i++)
        ids[i] = first + i;
    return source_store_take(s, ids, n, blocks);
}

static void finds_what_it_keeps_once(void **state)
{
    struct kv_pool *pool = kv_pool_new(16, 16);
    struct source_store *s = source_store_new(pool, 100);
    int32_t a[4], b[4];
    (void)state;

    keep(s, pool, 100, 20);
    keep(s, pool, 100, 19); /* a prefix is another source */
    keep(s, pool, 101, 20);
    assert_int_equal(source_store_n_blocks(s), 6);
    assert_int_equal(kv_pool_n_free(pool), 10);
    assert_false(take(s, 102, 20, a));
    assert_true(take(s, 100, 20, a));
    assert_false(take(s, 100, 20, b));
    assert_true(take(s, 101, 20, b));
    assert_true(a[0] != b[0] && a[0] != b[1] && a[1] != b[0] && a[1] != b[1]);
    assert_int_equal(source_store_n_blocks(s), 2);
    assert_int_equal(kv_pool_n_free(pool), 10); /* the caller has them now */
    kv_pool_give(pool, a, 2);
    kv_pool_give(pool, b, 2);
    source_store_free(s);
    kv_pool_free(pool);
}

static void the_oldest_goes_first_and_a_second_copy_at_once(void **state)
{
    struct kv_pool *pool = kv_pool_new(16, 16);
    struct source_store *s = source_store_new(pool, 100);
    int32_t blocks[4];
    (void)state;

    keep(s, pool, 100, 5);
    keep(s, pool, 200, 5);
    keep(s, pool, 300, 5);
    keep(s, pool, 100, 5); /* again: now the newest */
    assert_int_equal(source_store_n_blocks(s), 3);
    assert_int_equal(kv_pool_n_free(pool), 13);
    assert_true(source_store_drop(s));
    assert_false(take(s, 200, 5, blocks));
    assert_true(source_store_drop(s));
    assert_false(take(s, 300, 5, blocks));
    assert_true(take(s, 100, 5, blocks));
    kv_pool_give(pool, blocks, 1);
    assert_false(source_store_drop(s));
    assert_int_equal(kv_pool_n_free(pool), 16);
    source_store_free(s);
    kv_pool_free(pool);
}

static void their_number_is_bounded(void **state)
{
    struct kv_pool *pool = kv_pool_new(200, 16);
    struct source_store *s = source_store_new(pool, 100);
    int32_t blocks[4];
    (void)state;

    for (int i = 0; i < SOURCE_STORE_MAX + 10; i++)
        keep(s, pool, 1000 * i, 5);
    assert_int_equal(source_store_n_blocks(s), SOURCE_STORE_MAX);
    assert_int_equal(kv_pool_n_free(pool), 200 - SOURCE_STORE_MAX);
    assert_false(take(s, 9000, 5, blocks));
    assert_true(take(s, 10000, 5, blocks));
    source_store_free(s);
    kv_pool_free(pool);

    pool = kv_pool_new(200, 16);
    s = source_store_new(pool, 5);
    keep(s, pool, 0, 40); /* 3 blocks */
    keep(s, pool, 1000, 20);
    assert_int_equal(source_store_n_blocks(s), 5);
    keep(s, pool, 2000, 5);
    assert_int_equal(source_store_n_blocks(s), 3);
    assert_false(take(s, 0, 40, blocks));
    assert_int_equal(kv_pool_n_free(pool), 197);
    keep(s, pool, 3000, 64); /* 4 */
    assert_int_equal(source_store_n_blocks(s), 5);
    assert_false(take(s, 1000, 20, blocks));
    source_store_free(s);
    kv_pool_free(pool);

    pool = kv_pool_new(200, 16);
    s = source_store_new(pool, 2);
    keep(s, pool, 0, 40);
    assert_int_equal(source_store_n_blocks(s), 0);
    assert_int_equal(kv_pool_n_free(pool), 200);
    source_store_free(s);
    kv_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_it_keeps_once),
        cmocka_unit_test(the_oldest_goes_first_and_a_second_copy_at_once),
        cmocka_unit_test(their_number_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
