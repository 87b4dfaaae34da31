#include "unit.h"

#include "engine/plan.h"

#include <string.h>

static int total(const struct plan_share *shares, int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        sum += shares[i].n_rows;
    return sum;
}

static void everyone_gets_a_row_when_there_is_room(void **state)
{
    const struct plan_seq seqs[] = { { 1, 5 }, { 1, 5 }, { 1, 0 } };
    struct plan_share shares[3];
    (void)state;

    assert_int_equal(plan_rows(seqs, 3, 8, shares), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(shares[i].seq, i);
        assert_int_equal(shares[i].n_rows, 1);
    }
}

static void who_waited_longest_goes_first(void **state)
{
    const struct plan_seq seqs[] = { { 1, 7 }, { 1, 3 }, { 1, 9 }, { 1, 4 } };
    struct plan_share shares[4];
    (void)state;

    assert_int_equal(plan_rows(seqs, 4, 2, shares), 2);
    assert_int_equal(shares[0].seq, 1);
    assert_int_equal(shares[1].seq, 3);
}

static void nobody_starves_when_rows_are_short(void **state)
{
    enum { N = 10, ROWS = 3 };
    struct plan_seq seqs[N];
    struct plan_share shares[N];
    int served[N] = { 0 };
    (void)state;

    for (int i = 0; i < N; i++)
        seqs[i] = (struct plan_seq){ i % 3 ? 1 : 50, 0 };
    for (uint64_t step = 1; step <= 100; step++) {
        int n = plan_rows(seqs, N, ROWS, shares);

        assert_int_equal(total(shares, n), ROWS);
        for (int i = 0; i < n; i++) {
            seqs[shares[i].seq].served = step;
            served[shares[i].seq]++;
        }
    }
    for (int i = 0; i < N; i++)
        assert_in_range(served[i], 25, 35);
}

static void room_that_is_left_is_shared_by_scored_sequences(void **state)
{
    const struct plan_seq seqs[] = { { 1, 1 }, { 40, 1 }, { 3, 1 }, { 40, 1 } };
    struct plan_share shares[4];
    (void)state;

    assert_int_equal(plan_rows(seqs, 4, 20, shares), 4);
    assert_int_equal(shares[0].n_rows, 1);
    assert_int_equal(shares[2].n_rows, 3);
    assert_in_range(shares[1].n_rows, 7, 9);
    assert_in_range(shares[3].n_rows, 7, 9);
    assert_int_equal(total(shares, 4), 20);

    /* Never more than a sequence can take. */
    assert_int_equal(plan_rows(seqs, 4, 200, shares), 4);
    assert_int_equal(shares[1].n_rows, 40);
    assert_int_equal(shares[3].n_rows, 40);
}

static void random_plans_keep_the_rules(void **state)
{
    unsigned r = 1;
    (void)state;

    for (int round = 0; round < 3000; round++) {
        struct plan_seq seqs[32];
        struct plan_share shares[32];
        int n = 1 + (int)((r = r * 1103515245 + 12345) >> 16) % 32;
        int rows = 1 + (int)((r = r * 1103515245 + 12345) >> 16) % 64;
        int wanted = 0, last = -1;

        for (int i = 0; i < n; i++) {
            seqs[i].n_left = 1 + (int)((r = r * 1103515245 + 12345) >> 16) % 9;
            seqs[i].served = (r = r * 1103515245 + 12345) >> 20;
            wanted += seqs[i].n_left;
        }
        int n_shares = plan_rows(seqs, n, rows, shares);

        assert_int_equal(n_shares, n < rows ? n : rows);
        for (int i = 0; i < n_shares; i++) {
            assert_true(shares[i].seq > last);
            last = shares[i].seq;
            assert_in_range(shares[i].n_rows, 1, seqs[last].n_left);
        }
        assert_int_equal(total(shares, n_shares),
                         n_shares == n ? (wanted < rows ? wanted : rows) : rows);
    }
}

static void encoder_slices_fit_between_steps(void **state)
{
    /* 40 tokens, 12 layers, 60,000 ns each: a layer costs 2.4 ms. */
    struct plan_encode e = {
        .ns_per_unit = 60000, .n_tokens = 40, .n_layers_left = 12, .n_running = 3
    };
    (void)state;

    assert_int_equal(plan_encode_layers(&e), 12); /* 28.8 ms in all */
    e.n_tokens = 400;                             /* 24 ms a layer */
    assert_int_equal(plan_encode_layers(&e), 1);
    e.n_waiting = 9; /* more wait than run */
    assert_int_equal(plan_encode_layers(&e), 2);
    e.n_running = 0;
    assert_int_equal(plan_encode_layers(&e), 8);
    e.n_tokens = 100000;
    assert_int_equal(plan_encode_layers(&e), 1);
    e.n_layers_left = 0;
    e.n_tokens = 1;
    assert_int_equal(plan_encode_layers(&e), 0);
}

static void an_unmeasured_encoder_starts_carefully_beside_streams(void **state)
{
    struct plan_encode e = { .n_tokens = 40, .n_layers_left = 12 };
    (void)state;

    assert_int_equal(plan_encode_layers(&e), 12);
    e.n_running = 1;
    assert_int_equal(plan_encode_layers(&e), 1);
    assert_int_equal(plan_encode_tokens(&e, 2048), 512);
    e.ns_per_unit = 60000;
    assert_int_equal(plan_encode_tokens(&e, 2048), 500);
    e.n_running = 0;
    assert_int_equal(plan_encode_tokens(&e, 2048), 2048);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everyone_gets_a_row_when_there_is_room),
        cmocka_unit_test(who_waited_longest_goes_first),
        cmocka_unit_test(nobody_starves_when_rows_are_short),
        cmocka_unit_test(room_that_is_left_is_shared_by_scored_sequences),
        cmocka_unit_test(random_plans_keep_the_rules),
        cmocka_unit_test(encoder_slices_fit_between_steps),
        cmocka_unit_test(an_unmeasured_encoder_starts_carefully_beside_streams),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
