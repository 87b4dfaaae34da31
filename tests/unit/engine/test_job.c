#include "unit.h"

#include "base/thread.h"
#include "engine/bell.h"
#include "engine/job.h"

#include <pthread.h>
#include <stdatomic.h>

static struct ink_job *make(int n_seqs, int max_new, int n_top, bool keep_open)
{
    const int32_t source[] = { 5, 6, 7 };

    return ink_job_new(&(struct ink_job_spec){
        .source = source,
        .n_source = 3,
        .n_seqs = n_seqs,
        .max_new = max_new,
        .n_top = n_top,
        .keep_open = keep_open,
    });
}

static void the_spec_is_copied(void **state)
{
    int32_t source[] = { 1, 2 }, ids[] = { 9, 8, 7 };
    struct ink_target targets[] = { { ids, 3 }, { ids + 1, 2 } };
    struct ink_job *job = ink_job_new(&(struct ink_job_spec){
        .source = source, .n_source = 2, .n_seqs = 2, .max_new = 3, .targets = targets });
    (void)state;

    source[0] = ids[0] = ids[1] = 0;
    targets[0].n = 0;
    const struct ink_job_spec *spec = job_spec(job);
    assert_int_equal(spec->source[0], 1);
    assert_int_equal(spec->targets[0].n, 3);
    assert_int_equal(spec->targets[0].ids[0], 9);
    assert_int_equal(spec->targets[1].ids[1], 7);
    ink_job_unref(job);
}

static void tokens_are_read_by_cursor(void **state)
{
    struct ink_job *job = make(2, 4, 2, false);
    const struct ink_token top[] = { { 100, -1 }, { 101, -2 } };
    struct ink_token out[4], alt[8];
    struct ink_seq_view view;
    (void)state;

    for (int i = 0; i < 3; i++)
        job_push(job, 1, 0, &(struct ink_token){ 10 + i, -0.5f }, top,
                 i == 2 ? INK_SEQ_STOP : INK_SEQ_ACTIVE);
    assert_int_equal(ink_job_read(job, 0, 0, out, alt, 4, &view), 0);
    assert_int_equal(view.state, INK_SEQ_ACTIVE);
    assert_int_equal(ink_job_read(job, 1, 0, out, NULL, 2, &view), 2);
    assert_int_equal(out[1].id, 11);
    assert_int_equal(ink_job_read(job, 1, 2, out, alt, 4, &view), 1);
    assert_int_equal(out[0].id, 12);
    assert_int_equal(alt[1].id, 101);
    assert_int_equal(view.state, INK_SEQ_STOP);
    assert_int_equal(view.n_tokens, 3);
    assert_int_equal(ink_job_read(job, 1, 3, out, alt, 4, &view), 0);
    ink_job_unref(job);
}

static void a_redraw_starts_over_and_drops_late_tokens(void **state)
{
    struct ink_job *job = make(1, 4, 0, true);
    struct ink_seq_view view;
    struct ink_token out[4];
    (void)state;

    job_push(job, 0, 0, &(struct ink_token){ 1, 0 }, NULL, INK_SEQ_STOP);
    assert_false(job_take_requests(job));
    assert_int_equal(ink_job_redraw(job, 0, NULL), INK_OK);
    assert_true(job_take_requests(job));
    assert_false(job_take_requests(job));
    job_push(job, 0, 0, &(struct ink_token){ 2, 0 }, NULL, INK_SEQ_ACTIVE);
    assert_int_equal(ink_job_read(job, 0, 0, out, NULL, 4, &view), 0);
    assert_int_equal(view.attempt, 1);
    job_push(job, 0, 1, &(struct ink_token){ 3, 0 }, NULL, INK_SEQ_ACTIVE);
    assert_int_equal(ink_job_read(job, 0, 0, out, NULL, 4, &view), 1);
    assert_int_equal(out[0].id, 3);
    ink_job_halt(job, 0);
    job_push(job, 0, 1, &(struct ink_token){ 4, 0 }, NULL, INK_SEQ_ACTIVE);
    assert_int_equal(ink_job_read(job, 0, 1, out, NULL, 4, &view), 0);
    assert_int_equal(view.state, INK_SEQ_HALTED);
    job_end(job, &(struct ink_err){ .code = INK_OK });
    assert_int_equal(ink_job_redraw(job, 0, NULL), INK_TIMEOUT);
    ink_job_unref(job);
}

static void an_ended_job_says_why(void **state)
{
    struct ink_job *job = make(1, 4, 0, true);
    struct ink_err result, err = { 0 };
    struct ink_job_status st;
    (void)state;

    ink_err_set(&result, INK_DEVICE, "the lights went out");
    job_end(job, &result);
    ink_job_status(job, &st);
    assert_int_equal(st.stage, INK_JOB_ENDED);
    assert_int_equal(st.result.code, INK_DEVICE);
    assert_int_equal(ink_job_redraw(job, 0, &err), INK_DEVICE);
    assert_string_equal(err.text, "the lights went out");
    ink_job_unref(job);
}

static void waiting_ends_with_a_change_or_in_time(void **state)
{
    struct ink_job *job = make(1, 4, 0, false);
    uint64_t seen = ink_job_version(job);
    (void)state;

    assert_false(ink_job_wait(job, seen, 0));
    assert_false(ink_job_wait(job, seen, 5));
    job_announce(job);
    assert_true(ink_job_wait(job, seen, 0));
    assert_true(ink_job_wait(job, seen, 10000));
    ink_job_unref(job);
}

static void wanting_something_rings_the_engine(void **state)
{
    struct bell *bell = bell_new();
    struct ink_job *job = make(1, 4, 0, true);
    (void)state;

    job_submit(job, bell, 3, 40);
    ink_job_cancel(job);
    bell_wait(bell, -1); /* would hang */
    assert_true(job_is_cancelled(job));
    assert_false(job_is_closed(job));
    ink_job_close(job);
    bell_wait(bell, -1);
    assert_true(job_is_closed(job));
    ink_job_halt(job, 0);
    bell_wait(bell, -1);
    bell_unref(bell); /* the job holds on to it */
    ink_job_cancel(job);
    ink_job_unref(job);
}

/* --- the waker's promise: after set_waker(NULL) it is never called again --- */

struct listener {
    atomic_bool gone;
    atomic_int calls, late;
};

static void wake(void *arg)
{
    struct listener *l = arg;

    atomic_fetch_add(&l->calls, 1);
    if (atomic_load(&l->gone))
        atomic_fetch_add(&l->late, 1);
}

static void *announce_all_day(void *arg)
{
    for (int i = 0; i < 20000; i++)
        job_announce(arg);
    return NULL;
}

static void a_waker_taken_away_is_never_called_again(void **state)
{
    struct ink_job *job = make(1, 4, 0, false);
    struct listener l = { 0 };
    pthread_t t;
    (void)state;

    assert_int_equal(ink_thread_start(&t, "announcer", announce_all_day, job), 0);
    for (int i = 0; i < 2000; i++) {
        atomic_store(&l.gone, false);
        ink_job_set_waker(job, wake, &l);
        ink_job_set_waker(job, NULL, NULL);
        atomic_store(&l.gone, true);
    }
    pthread_join(t, NULL);
    assert_int_equal(atomic_load(&l.late), 0);

    ink_job_set_waker(job, wake, &l);
    int before = atomic_load(&l.calls);
    atomic_store(&l.gone, false);
    job_announce(job);
    assert_int_equal(atomic_load(&l.calls), before + 1);
    ink_job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spec_is_copied),
        cmocka_unit_test(tokens_are_read_by_cursor),
        cmocka_unit_test(a_redraw_starts_over_and_drops_late_tokens),
        cmocka_unit_test(an_ended_job_says_why),
        cmocka_unit_test(waiting_ends_with_a_change_or_in_time),
        cmocka_unit_test(wanting_something_rings_the_engine),
        cmocka_unit_test(a_waker_taken_away_is_never_called_again),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
