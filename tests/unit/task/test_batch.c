/* Many texts as a stream of tasks: order, bounds, failures in place; and the seeds of its texts. */
#include "unit.h"

#include "task/batch.h"

#include "base/clock.h"
#include "engine/stats.h"
#include "task/fake_catalog.h"
#include "task/task.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct fake_answer one[] = { { "甲乙丙丁", 1 }, { NULL, 0 } };

struct bench {
    struct ink_catalog *catalog;
    struct ink_batch_pool *pool;
    atomic_int n_woken;
};

static void wake(void *arg)
{
    atomic_fetch_add(&((struct bench *)arg)->n_woken, 1);
}

static struct bench bench_new(int n_parallel, int n_queue)
{
    struct bench b = { 0 };

    b.catalog = fake_catalog_new(
        &(struct ink_catalog_options){ .n_parallel = n_parallel, .n_queue = n_queue }, one);
    b.pool = ink_batch_pool_new(b.catalog);
    return b;
}

static void bench_free(struct bench *b)
{
    ink_batch_pool_free(b->pool);
    ink_catalog_free(b->catalog);
}

static struct ink_rewrite_request request(const char *text, int n)
{
    struct ink_rewrite_request rq;

    ink_rewrite_defaults(&rq);
    rq.text = ink_slice_of(text);
    rq.n = n;
    rq.max_tokens = 8;
    rq.allow_same = true;
    return rq;
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
}

/* Adds `n` texts as they are wanted, takes all, and checks what holds for every batch. */
static void run(struct ink_batch *b, int n, bool ordered, int bad_every)
{
    static bool seen[4096];
    int64_t end_ms = ink_clock_ms() + 60000;
    int n_taken = 0;

    memset(seen, 0, sizeof(seen));
    while (n_taken < n) {
        struct ink_batch_text text;

        assert_true(ink_clock_ms() < end_ms);
        while (ink_batch_n_added(b) < n && ink_batch_wants(b)) {
            int i = (int)ink_batch_n_added(b);
            struct ink_rewrite_request rq =
                request(bad_every && i % bad_every == 0 ? " " : "一二三", 1);

            if (ink_batch_add(b, &rq, (void *)(uintptr_t)(i + 1)) != INK_OK)
                break;
        }
        ink_batch_pull(b);
        while (ink_batch_take(b, &text)) {
            bool bad = bad_every && text.index % bad_every == 0;

            assert_true(text.index >= 0 && text.index < n && !seen[text.index]);
            seen[text.index] = true;
            if (ordered)
                assert_int_equal(text.index, n_taken);
            assert_int_equal((uintptr_t)text.tag, text.index + 1);
            assert_true(bad == (text.task == NULL));
            if (bad)
                assert_int_equal(text.err.code, INK_INVALID);
            else
                assert_int_equal(ink_task_result(text.task)->n_candidates, 1);
            ink_task_free(text.task);
            n_taken++;
        }
        nap();
    }
    assert_int_equal(ink_batch_n_open(b), 0);
    assert_int_equal(ink_batch_n_running(b), 0);
}

static void every_text_is_taken_once_and_in_order_when_asked(void **state)
{
    struct bench bench = bench_new(4, 0);
    (void)state;

    for (int ordered = 0; ordered < 2; ordered++) {
        struct ink_batch *b = ink_batch_new(bench.pool, ordered, wake, &bench);

        run(b, 300, ordered, 0);
        run(b, 0, ordered, 0);
        ink_batch_free(b);
    }
    assert_true(atomic_load(&bench.n_woken) > 0);
    bench_free(&bench);
}

static void a_bad_text_fails_in_its_place(void **state)
{
    struct bench bench = bench_new(4, 0);
    (void)state;

    for (int ordered = 0; ordered < 2; ordered++) {
        struct ink_batch *b = ink_batch_new(bench.pool, ordered, wake, &bench);

        run(b, 200, ordered, 3);
        ink_batch_free(b);
    }
    bench_free(&bench);
}

/* What runs together is bounded, and so is what is finished and not taken. */
static void it_wants_no_more_than_it_can_use(void **state)
{
    struct bench bench = bench_new(4, 0);
    struct ink_batch *b = ink_batch_new(bench.pool, false, wake, &bench);
    struct ink_rewrite_request rq = request("一二三", 2);
    int64_t end_ms = ink_clock_ms() + 60000;
    struct ink_batch_text text;
    int n = 0;
    (void)state;

    while (ink_batch_wants(b)) { /* nothing is pulled: all that was added counts as running */
        assert_int_equal(ink_batch_add(b, &rq, NULL), INK_OK);
        assert_true(++n < 100);
    }
    /* Two sequences a text: the first was admitted without knowing; then four places and four texts more. */
    assert_int_equal(n, 6);

    while (ink_clock_ms() < end_ms && n < 1000) {
        int before = n;

        ink_batch_pull(b);
        while (ink_batch_wants(b) && n < 1000) {
            if (ink_batch_add(b, &rq, NULL) == INK_OK)
                n++;
        }
        if (n == before && ink_batch_n_running(b) == 0)
            break; /* full of finished texts */
        nap();
    }
    assert_true(n < 100);
    assert_true(ink_batch_take(b, &text));
    ink_task_free(text.task);
    ink_batch_free(b);
    bench_free(&bench);
}

/* Batches of one thread share what the model can do. */
static void batches_share_a_models_places(void **state)
{
    struct bench bench = bench_new(4, 0);
    struct ink_batch *all[5];
    struct ink_rewrite_request rq = request("一二三", 1);
    int n = 0, n_running = 0;
    (void)state;

    for (int i = 0; i < 5; i++)
        all[i] = ink_batch_new(bench.pool, false, wake, &bench);
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < 5; i++) {
            if (!ink_batch_wants(all[i]))
                continue;
            assert_int_equal(ink_batch_add(all[i], &rq, NULL), INK_OK);
            any = true;
            n++;
        }
    }
    assert_int_equal(n, 8);
    for (int i = 0; i < 5; i++)
        n_running += ink_batch_n_running(all[i]);
    assert_int_equal(n_running, 8);
    ink_batch_free(all[0]); /* gives back what it had */
    assert_true(ink_batch_wants(all[1]));
    for (int i = 1; i < 5; i++)
        ink_batch_free(all[i]);
    bench_free(&bench);
}

/* A full queue is no error of a text: it waits, and then runs. */
static void a_full_queue_is_waited_for(void **state)
{
    struct bench bench = bench_new(8, 1);
    struct ink_batch *b = ink_batch_new(bench.pool, true, wake, &bench);
    (void)state;

    run(b, 200, true, 0);
    assert_int_equal(ink_batch_retry_ms(b) >= -1, 1);
    ink_batch_free(b);
    bench_free(&bench);
}

static void freeing_or_cancelling_ends_what_runs(void **state)
{
    struct bench bench;
    struct ink_batch *b;
    struct ink_rewrite_request rq = request("一二三", 1);
    struct ink_batch_text text;
    int64_t end_ms;
    (void)state;

    fake_model_options.decode_us = 200000; /* long enough to be in the middle of it */
    bench = bench_new(4, 0);
    b = ink_batch_new(bench.pool, true, wake, &bench);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ink_batch_add(b, &rq, NULL), INK_OK);
    ink_batch_add_finished(b, &(struct ink_err){ .code = INK_OK }, &bench);
    ink_batch_cancel(b);
    end_ms = ink_clock_ms() + 60000;
    for (int i = 0; i < 4;) {
        assert_true(ink_clock_ms() < end_ms);
        ink_batch_pull(b);
        if (!ink_batch_take(b, &text)) {
            nap();
            continue;
        }
        assert_int_equal(text.index, i);
        assert_null(text.task);
        assert_int_equal(text.err.code, i < 3 ? INK_CANCELLED : INK_OK);
        assert_ptr_equal(text.tag, i < 3 ? NULL : &bench);
        i++;
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(ink_batch_add(b, &rq, NULL), INK_OK);
    ink_batch_free(b);
    bench_free(&bench);
}

static void a_model_that_is_not_there_is_the_texts_error(void **state)
{
    struct bench bench = bench_new(4, 0);
    struct ink_batch *b = ink_batch_new(bench.pool, true, wake, &bench);
    struct ink_rewrite_request rq = request("一二三", 1);
    struct ink_batch_text text;
    (void)state;

    rq.model = "nobody";
    assert_int_equal(ink_batch_add(b, &rq, NULL), INK_OK);
    assert_true(ink_batch_take(b, &text));
    assert_int_equal(text.err.code, INK_NOT_FOUND);
    assert_string_equal(text.err.reason, "model_not_found");
    ink_batch_free(b);
    bench_free(&bench);
}

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
        cmocka_unit_test(every_text_is_taken_once_and_in_order_when_asked),
        cmocka_unit_test(a_bad_text_fails_in_its_place),
        cmocka_unit_test(it_wants_no_more_than_it_can_use),
        cmocka_unit_test(batches_share_a_models_places),
        cmocka_unit_test(a_full_queue_is_waited_for),
        cmocka_unit_test(freeing_or_cancelling_ends_what_runs),
        cmocka_unit_test(a_model_that_is_not_there_is_the_texts_error),
        cmocka_unit_test(the_first_text_has_the_seed_of_the_batch),
        cmocka_unit_test(seeds_are_distinct_and_fit_into_a_json_number),
    };
    return cmocka_run_group_tests_name("batch", tests, NULL, NULL);
}
