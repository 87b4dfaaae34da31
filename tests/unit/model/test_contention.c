/* The number of compute threads follows what the processors give. */
#include "unit.h"

#include "model/contention.h"

enum { MS = 1000000 };

/* A machine: thread i runs share[i] of the time while it is in use. */
struct machine {
    struct contention c;
    int64_t now_ns;
    double share[4];
};

/* Graphs of 12 ms of work for `ms` milliseconds; returns the most threads that were used on the way. */
static int run(struct machine *m, int ms)
{
    const int64_t end = m->now_ns + (int64_t)ms * MS;
    int most = 0;

    while (m->now_ns < end) {
        const int n = m->c.n_now;
        double slowest = 1.0;
        int64_t ran[4];

        most = n > most ? n : most;
        for (int i = 0; i < n; i++)
            slowest = m->share[i] < slowest ? m->share[i] : slowest;
        const int64_t wall = (int64_t)(24.0 / n / slowest * MS);
        for (int i = 0; i < n; i++)
            ran[i] = (int64_t)(m->share[i] * (double)wall);
        m->now_ns += wall;
        contention_observe(&m->c, m->now_ns, wall, ran);
    }
    return most;
}

static struct machine machine(int n_threads)
{
    struct machine m = { .share = { 0.98, 0.97, 0.98, 0.97 } };

    contention_init(&m.c, n_threads);
    return m;
}

static void test_quiet_machine_keeps_all(void **state)
{
    struct machine m = machine(2);
    (void)state;

    run(&m, 10000);
    assert_int_equal(m.c.n_now, 2);
    m.share[1] = 0.85; /* io threads on a busy server: not worth a thread */
    run(&m, 10000);
    assert_int_equal(m.c.n_now, 2);
}

static void test_gives_up_a_kept_thread_within_a_window(void **state)
{
    struct machine m = machine(2);
    (void)state;

    m.share[1] = 0.5;
    run(&m, 100);
    assert_int_equal(m.c.n_now, 1);
}

static void test_gives_up_only_the_kept(void **state)
{
    struct machine m = machine(4);
    (void)state;

    m.share[3] = 0.5;
    run(&m, 100);
    assert_int_equal(m.c.n_now, 3);
    m.share[1] = m.share[2] = 0.3;
    run(&m, 200);
    assert_int_equal(m.c.n_now, 1);
}

static void test_comes_back_when_the_neighbour_leaves(void **state)
{
    struct machine m = machine(2);
    (void)state;

    m.share[1] = 0.5;
    run(&m, 100);
    assert_int_equal(m.c.n_now, 1);
    m.share[1] = 0.98;
    run(&m, 700);
    assert_int_equal(m.c.n_now, 2);
}

static void test_retries_grow_rare(void **state)
{
    struct machine m = machine(2);
    int64_t with_all = 0;
    (void)state;

    m.share[1] = 0.5;
    run(&m, 60000);
    for (int i = 0; i < 6000; i++) {
        if (m.c.n_now == 2)
            with_all++;
        run(&m, 1);
    }
    /* One failed window each 16 s. */
    assert_true(with_all <= 50);

    /* A calm second forgives. */
    m.share[1] = 0.98;
    run(&m, 20000);
    assert_int_equal(m.c.n_now, 2);
    m.share[1] = 0.5;
    run(&m, 100);
    m.share[1] = 0.98;
    run(&m, 700);
    assert_int_equal(m.c.n_now, 2);
}

static void test_does_not_retry_while_even_one_is_kept_waiting(void **state)
{
    struct machine m = machine(2);
    (void)state;

    m.share[0] = m.share[1] = 0.5;
    run(&m, 100);
    assert_int_equal(m.c.n_now, 1);
    assert_int_equal(run(&m, 60000), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quiet_machine_keeps_all),
        cmocka_unit_test(test_gives_up_a_kept_thread_within_a_window),
        cmocka_unit_test(test_gives_up_only_the_kept),
        cmocka_unit_test(test_comes_back_when_the_neighbour_leaves),
        cmocka_unit_test(test_retries_grow_rare),
        cmocka_unit_test(test_does_not_retry_while_even_one_is_kept_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
