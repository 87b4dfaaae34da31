/*
 * A thousand random jobs from several threads: all stages, all ways to end, few places and little memory. Most useful under the thread
 * sanitizer; here it checks that every answer is the one that its seed gives, and that nothing is left behind.
 */
#include "unit.h"

#include "base/clock.h"
#include "base/thread.h"
#include "engine/stats.h"
#include "task/fake_catalog.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_THREADS = 5, JOBS_EACH = 200, N_SEEDS = 40 };

static const struct fake_answer answers[] = {
    { "甲乙丙丁", 2 }, { "乙丙丁戊", 1 },     { "丙丁戊己。", 1 },         { "", 1 },
    { "庚辛", 3 },     { "己庚辛壬癸甲", 1 }, { "一二三四五六七八九", 1 }, { "今天好", 1 },
    { "三", 1 },       { NULL, 0 },
};

static struct ink_catalog *catalog;
static char expected[N_SEEDS][6][64];
static atomic_int n_done, n_failed, n_cancelled, n_expired, n_busy, n_wrong;

static struct ink_rewrite_request request_for(uint64_t seed)
{
    struct ink_rewrite_request rq;

    ink_rewrite_defaults(&rq);
    rq.text = ink_slice_of(seed % 3 ? "今天好" : "这家餐厅的味道非常好，服务也很周到。");
    rq.n = 1 + (int)(seed % 6);
    rq.has_seed = true;
    rq.seed = seed;
    rq.details = seed % 5 == 0;
    rq.n_top = 3;
    rq.max_tokens = 20 + (int)(seed % 40);
    return rq;
}

static void wake(void *arg)
{
    sem_post(arg);
}

static void check(const struct ink_task *task, uint64_t seed)
{
    const struct ink_task_result *r = ink_task_result(task);

    for (int i = 0; i < r->n_candidates; i++) {
        struct ink_slice text = r->candidates[i].text;

        if (strlen(expected[seed][i]) != text.len ||
            memcmp(expected[seed][i], text.ptr, text.len) != 0)
            atomic_fetch_add(&n_wrong, 1);
    }
}

/* Reads with a waker, or by waiting; leaves after `patience` events. */
static enum ink_status read_some(struct ink_task *task, bool with_waker, int patience)
{
    struct ink_task_event ev = { .kind = INK_TASK_IDLE };
    enum ink_status st = INK_OK;
    sem_t woken;

    sem_init(&woken, 0, 0);
    if (with_waker)
        ink_task_set_waker(task, wake, &woken);
    while (patience-- > 0 && st == INK_OK && ev.kind != INK_TASK_DONE) {
        st = ink_task_next(task, with_waker ? 0 : 1000, &ev, NULL);
        if (with_waker && st == INK_OK && ev.kind == INK_TASK_IDLE && !ink_task_has_event(task)) {
            struct timespec limit;

            clock_gettime(CLOCK_REALTIME, &limit);
            limit.tv_sec += 1;
            (void)sem_timedwait(&woken, &limit);
        }
    }
    if (with_waker)
        ink_task_set_waker(task, NULL, NULL);
    sem_destroy(&woken);
    return st != INK_OK ? st : ev.kind == INK_TASK_DONE ? INK_OK : INK_CANCELLED;
}

static void *client(void *arg)
{
    unsigned r = (unsigned)(size_t)arg * 7919 + 1;

    for (int i = 0; i < JOBS_EACH; i++) {
        r = r * 1664525 + 1013904223;
        uint64_t seed = (r >> 8) % N_SEEDS;
        int fate = (int)(r >> 20) % 8;
        struct ink_rewrite_request rq = request_for(seed);
        struct ink_task *task;
        enum ink_status st;

        if (fate == 0)
            rq.timeout_ms = 1 + (int)(r >> 28);
        st = ink_rewrite_start(catalog, &rq, &task, NULL);
        if (st == INK_BUSY) {
            atomic_fetch_add(&n_busy, 1);
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
            continue;
        }
        if (fate == 1)
            ink_task_cancel(task);
        st = read_some(task, r >> 31, fate == 2 ? (int)(r >> 12) % 6 : 100000);
        if (st == INK_OK || st == INK_INVALID) {
            check(task, seed);
            atomic_fetch_add(st == INK_OK ? &n_done : &n_failed, 1);
        } else {
            atomic_fetch_add(st == INK_TIMEOUT ? &n_expired : &n_cancelled, 1);
        }
        ink_task_free(task);
    }
    return NULL;
}

static void find_expected(void)
{
    catalog = fake_catalog_new(&(struct ink_catalog_options){ 0 }, answers);
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct ink_rewrite_request rq = request_for(seed);
        struct ink_task *task;

        assert_int_equal(ink_rewrite_start(catalog, &rq, &task, NULL), INK_OK);
        (void)!ink_task_wait(task, NULL);
        const struct ink_task_result *res = ink_task_result(task);
        for (int i = 0; i < res->n_candidates; i++)
            (void)snprintf(expected[seed][i], sizeof(expected[seed][i]), "%.*s",
                           (int)res->candidates[i].text.len, res->candidates[i].text.ptr);
        ink_task_free(task);
    }
    ink_catalog_free(catalog);
}

static void a_thousand_random_jobs_end_as_they_should(void **state)
{
    pthread_t threads[N_THREADS];
    struct ink_engine_stats st;
    (void)state;

    find_expected();
    /* Seven places, memory for about three jobs. */
    fake_model_options =
        (struct fake_options){ .n_blocks = 26, .layer_us = 20, .decode_us = 20, .max_rows = 7 };
    catalog = fake_catalog_new(
        &(struct ink_catalog_options){
            .n_parallel = 7, .n_queue = 4, .max_source_tokens = 64, .max_target_tokens = 64 },
        answers);
    for (size_t i = 0; i < N_THREADS; i++)
        assert_int_equal(ink_thread_start(&threads[i], "client", client, (void *)i), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    int64_t end = ink_clock_ms() + 5000;
    do {
        ink_served_stats(ink_catalog_model(catalog, 0), &st);
    } while (st.jobs_running + st.queue_length > 0 && ink_clock_ms() < end);
    printf(
        "%d done, %d without a usable answer, %d cancelled, %d expired, %d refused; %llu redraws, %llu encoded again\n",
        n_done, n_failed, n_cancelled, n_expired, n_busy, (unsigned long long)st.redraws,
        (unsigned long long)st.encoder_repeats);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n_done + n_failed + n_cancelled + n_expired + n_busy, N_THREADS * JOBS_EACH);
    assert_true(n_done > 300);
    assert_true(n_cancelled > 50);
    assert_int_equal(st.jobs_running, 0);
    assert_int_equal(st.blocks_free, st.blocks_total);
    assert_int_equal(st.jobs_submitted,
                     st.jobs_finished + st.jobs_cancelled + st.jobs_expired + st.jobs_failed);
    ink_catalog_free(catalog);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_random_jobs_end_as_they_should),
    };
    return cmocka_run_group_tests_name("stress", tests, NULL, NULL);
}
