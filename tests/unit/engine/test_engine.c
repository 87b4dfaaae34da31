#include "unit.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static struct ink_engine_stats stats(struct bench *b)
{
    struct ink_engine_stats st;

    ink_lane_stats(b->lane, &st);
    return st;
}

static void sequences_end_at_the_end_token_or_the_limit(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 5, 1, 10);
    struct ink_seq_view view;
    struct ink_token out[10];
    (void)state;

    bench_start(&b, &(struct fake_options){ .logits = fake_logits_echo },
                &(struct ink_lane_options){ 0 });
    spec.sampling.temperature = 0;
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    assert_int_equal(ink_job_read(job, 0, 0, out, NULL, 10, &view), 6);
    assert_int_equal(view.state, INK_SEQ_STOP);
    for (int i = 0; i < 5; i++)
        assert_int_equal(out[i].id, spec.source[i]);
    assert_int_equal(out[5].id, FAKE_EOS);
    ink_job_unref(job);

    spec.max_new = 3;
    job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    assert_int_equal(ink_job_read(job, 0, 0, out, NULL, 10, &view), 3);
    assert_int_equal(view.state, INK_SEQ_LENGTH);
    ink_job_unref(job);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void the_encoder_runs_once_for_all_candidates(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(2, 20, 5, 40);
    struct fake_counts counts;
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    fake_model_counts(b.model, &counts);
    assert_int_equal(counts.encoded, 1);
    assert_int_equal(counts.most_rows, 5);
    assert_int_equal(stats(&b).encoder_passes, 1);
    assert_int_equal(stats(&b).jobs_finished, 1);
    assert_int_equal(stats(&b).rows, (uint64_t)counts.rows);
    /* Finished sequences leave the batch: fewer rows than 5 in every step. */
    assert_true(counts.rows < 5 * counts.steps);
    ink_job_unref(job);
    bench_stop(&b);
}

static void candidates_differ_and_repeat_with_their_seed(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(3, 12, 5, 30);
    struct ink_token out[5][30];
    uint64_t first = 0;
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    for (int round = 0; round < 3; round++) {
        struct ink_job *job = bench_submit(&b, &spec);

        assert_int_equal(bench_end(job), INK_OK);
        if (round == 0)
            first = bench_digest(job);
        assert_true(bench_digest(job) == first);
        for (int i = 0; i < 5; i++) {
            struct ink_seq_view view;

            memset(out[i], 0, sizeof(out[i]));
            (void)ink_job_read(job, i, 0, out[i], NULL, 30, &view);
            for (int k = 0; k < i; k++)
                assert_memory_not_equal(out[i], out[k], sizeof(out[i]));
        }
        ink_job_unref(job);
    }
    spec.sampling.seed++;
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    assert_true(bench_digest(job) != first);
    ink_job_unref(job);
    bench_stop(&b);
}

static void a_candidate_is_the_same_with_fewer_beside_it(void **state)
{
    struct bench b;
    struct ink_token five[30], one[30];
    struct ink_seq_view v5, v1;
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    struct ink_job_spec spec = bench_spec(3, 12, 5, 30);
    struct ink_job *a = bench_submit(&b, &spec);
    spec.n_seqs = 1;
    struct ink_job *c = bench_submit(&b, &spec);
    assert_int_equal(bench_end(a), INK_OK);
    assert_int_equal(bench_end(c), INK_OK);
    int n5 = ink_job_read(a, 0, 0, five, NULL, 30, &v5);
    int n1 = ink_job_read(c, 0, 0, one, NULL, 30, &v1);
    assert_int_equal(n5, n1);
    assert_memory_equal(five, one, (size_t)n1 * sizeof(one[0]));
    ink_job_unref(a);
    ink_job_unref(c);
    bench_stop(&b);
}

enum { CROWD = 40 };

static struct ink_job_spec crowd_spec(int i)
{
    return bench_spec(i, 1 + i * 13 % 120, 1 + i % 6, 5 + i * 7 % 60);
}

static void every_job_gets_in_a_crowd_what_it_gets_alone(void **state)
{
    /* Ample memory, scarce memory that makes jobs wait, and fewer rows than sequences of one job. */
    static const struct {
        int n_blocks, max_rows, layer_us;
    } rows[] = { { 400, 64, 0 }, { 14, 16, 0 }, { 30, 3, 20 } };
    uint64_t alone[CROWD];
    struct bench b;
    (void)state;

    bench_start(&b, &(struct fake_options){ .n_blocks = 400, .max_rows = 64 },
                &(struct ink_lane_options){ 0 });
    for (int i = 0; i < CROWD; i++) {
        struct ink_job_spec spec = crowd_spec(i);
        struct ink_job *job = bench_submit(&b, &spec);

        assert_int_equal(bench_end(job), INK_OK);
        alone[i] = bench_digest(job);
        ink_job_unref(job);
    }
    bench_stop(&b);

    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct ink_job *jobs[CROWD];

        bench_start(&b,
                    &(struct fake_options){ .n_blocks = rows[k].n_blocks,
                                            .max_rows = rows[k].max_rows,
                                            .layer_us = rows[k].layer_us },
                    &(struct ink_lane_options){ 0 });
        for (int i = 0; i < CROWD; i++) {
            struct ink_job_spec spec = crowd_spec(i);

            jobs[i] = bench_submit(&b, &spec);
        }
        for (int i = 0; i < CROWD; i++) {
            assert_int_equal(bench_end(jobs[i]), INK_OK);
            if (bench_digest(jobs[i]) != alone[i])
                fail_msg("job %d differs with %d blocks and %d rows", i, rows[k].n_blocks,
                         rows[k].max_rows);
            ink_job_unref(jobs[i]);
        }
        assert_true(bench_quiet(&b));
        assert_int_equal(stats(&b).jobs_finished, CROWD);
        bench_stop(&b);
    }
}

static void waiting_sources_are_encoded_together(void **state)
{
    struct bench b;
    struct ink_job *jobs[12];
    struct fake_counts counts;
    (void)state;

    bench_start(&b, &(struct fake_options){ .n_blocks = 200, .max_rows = 32, .layer_us = 2000 },
                &(struct ink_lane_options){ .max_encode_tokens = 256 });
    for (int i = 0; i < 12; i++) {
        struct ink_job_spec spec = bench_spec(i, 40, 1, 10);

        jobs[i] = bench_submit(&b, &spec);
    }
    for (int i = 0; i < 12; i++) {
        assert_int_equal(bench_end(jobs[i]), INK_OK);
        ink_job_unref(jobs[i]);
    }
    fake_model_counts(b.model, &counts);
    assert_int_equal(counts.encoded, 12);
    assert_true(counts.most_encoded_together > 1);
    assert_true(counts.most_encoded_together <= 256 / 40);
    bench_stop(&b);
}

static void a_long_source_does_not_stop_a_running_stream(void **state)
{
    struct bench b;
    struct ink_job_spec stream_spec = bench_spec(1, 3, 1, 250);
    struct ink_job_spec long_spec = bench_spec(2, 200, 1, 4);
    struct ink_seq_view view;
    struct ink_job_status st;
    int before = 0, during = 0;
    (void)state;

    /* A layer takes 4 ms, so that 12 of them exceed the 30 ms budget of one slice. */
    bench_start(
        &b,
        &(struct fake_options){
            .logits = fake_logits_endless, .n_layers = 24, .layer_us = 4000, .decode_us = 200 },
        &(struct ink_lane_options){ 0 });
    struct ink_job *stream = bench_submit(&b, &stream_spec);
    while (ink_job_read(stream, 0, 0, NULL, NULL, 0, &view), view.n_tokens < 5)
        nap_ms(1);
    struct ink_job *other = bench_submit(&b, &long_spec);
    do {
        ink_job_status(other, &st);
        (void)ink_job_read(stream, 0, 0, NULL, NULL, 0, &view);
        if (st.encode_ns == 0)
            before = view.n_tokens;
        during = view.n_tokens;
        nap_ms(1);
    } while (st.encoded_ns == 0);
    /* 24 layers of 4 ms in slices of at most 30 ms: at least three steps of the stream in between. */
    assert_true(during - before >= 3);
    ink_job_cancel(stream);
    assert_int_equal(bench_end(stream), INK_CANCELLED);
    assert_int_equal(bench_end(other), INK_OK);
    ink_job_unref(stream);
    ink_job_unref(other);
    bench_stop(&b);
}

static void a_redraw_is_another_attempt_on_the_same_encoding(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(4, 10, 3, 20);
    struct ink_token first[20], second[20], other[20], again[20];
    struct ink_seq_view v1, v2, vo, va;
    uint64_t digest = 0;
    (void)state;

    spec.keep_open = true;
    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    for (int round = 0; round < 2; round++) {
        struct ink_job *job = bench_submit(&b, &spec);

        assert_true(bench_wait(job));
        int n1 = ink_job_read(job, 1, 0, first, NULL, 20, &v1);
        int no = ink_job_read(job, 2, 0, other, NULL, 20, &vo);
        assert_int_equal(ink_job_redraw(job, 1, NULL), INK_OK);
        assert_true(bench_wait(job));
        int n2 = ink_job_read(job, 1, 0, second, NULL, 20, &v2);
        int na = ink_job_read(job, 2, 0, again, NULL, 20, &va);

        assert_int_equal(v2.attempt, 1);
        assert_true(n1 != n2 || memcmp(first, second, (size_t)n1 * sizeof(first[0])) != 0);
        assert_int_equal(no, na);
        assert_memory_equal(other, again, (size_t)no * sizeof(other[0]));
        if (round == 0)
            digest = bench_digest(job);
        assert_true(bench_digest(job) == digest);
        ink_job_close(job);
        assert_int_equal(bench_end(job), INK_OK);
        ink_job_unref(job);
    }
    assert_int_equal(stats(&b).encoder_passes, 1);
    assert_int_equal(stats(&b).encoder_reuses, 1);
    assert_int_equal(stats(&b).redraws, 2);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void a_kept_source_changes_nothing_but_the_work(void **state)
{
    struct bench b;
    struct ink_job_status st;
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    for (int i = 0; i < 12; i++) {
        struct ink_job_spec spec = bench_spec(i % 4, 10 + i % 4, 3, 20);

        spec.fresh = true;
        struct ink_job *fresh = bench_submit(&b, &spec);
        assert_int_equal(bench_end(fresh), INK_OK);
        ink_job_status(fresh, &st);
        assert_false(st.source_kept);

        spec.fresh = false;
        struct ink_job *job = bench_submit(&b, &spec);
        assert_int_equal(bench_end(job), INK_OK);
        ink_job_status(job, &st);
        assert_int_equal(st.source_kept, i >= 4);
        if (st.source_kept)
            assert_true(st.encode_ns > 0 && st.encoded_ns == st.encode_ns);
        assert_true(bench_digest(job) == bench_digest(fresh));
        ink_job_unref(fresh);
        ink_job_unref(job);
    }
    assert_int_equal(stats(&b).encoder_passes, 16);
    assert_int_equal(stats(&b).encoder_reuses, 8);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void kept_sources_make_room_for_others(void **state)
{
    struct bench b;
    (void)state;

    /* 24 blocks of 16 tokens, three of which may be kept; each job has 3 for its source and 2 for its sequence. */
    bench_start(&b, &(struct fake_options){ .n_blocks = 24 }, &(struct ink_lane_options){ 0 });
    for (int i = 0; i < 10; i++) {
        struct ink_job_spec spec = bench_spec(i, 40, 1, 32);
        struct ink_job *job = bench_submit(&b, &spec);

        assert_int_equal(bench_end(job), INK_OK);
        ink_job_unref(job);
    }
    assert_int_equal(stats(&b).sources_kept_blocks, 3);

    struct ink_job_spec whole = bench_spec(3, 256, 1, 128); /* 16 + 8 */
    struct ink_job *job = bench_submit(&b, &whole);
    assert_int_equal(bench_end(job), INK_OK);
    ink_job_unref(job);
    assert_int_equal(stats(&b).encoder_passes, 11);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static struct ink_job_spec ahead_spec(int variant, int n_source)
{
    struct ink_job_spec spec = bench_spec(variant, n_source, 0, 1);

    spec.timeout_ms = 5000;
    return spec;
}

static void a_source_encoded_ahead_is_found_ready(void **state)
{
    struct bench b;
    struct ink_job_spec ahead = ahead_spec(5, 30), spec = bench_spec(5, 30, 3, 20);
    struct ink_job_status st;
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    for (int round = 0; round < 2; round++) { /* the second time it is there already */
        struct ink_job *job = bench_submit(&b, &ahead);

        assert_int_equal(bench_end(job), INK_OK);
        ink_job_status(job, &st);
        assert_int_equal(st.source_kept, round);
        ink_job_unref(job);
    }
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    ink_job_status(job, &st);
    assert_true(st.source_kept);
    ink_job_unref(job);
    assert_int_equal(stats(&b).encoder_passes, 1);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void encoding_ahead_delays_nobody(void **state)
{
    struct bench b;
    struct ink_job_spec ahead = ahead_spec(1, 200), same = bench_spec(1, 200, 1, 10);
    struct ink_job_spec other = bench_spec(2, 20, 1, 200), third = bench_spec(3, 20, 1, 10);
    struct fake_counts counts;
    struct ink_job_status st;
    (void)state;

    bench_start(&b,
                &(struct fake_options){ .n_blocks = 128,
                                        .n_layers = 40,
                                        .layer_us = 2000,
                                        .decode_us = 2000,
                                        .logits = fake_logits_endless },
                &(struct ink_lane_options){ 0 });

    /* The same source asked for meanwhile waits for this pass; another one ends it. */
    struct ink_job *a = bench_submit(&b, &ahead);
    nap_ms(30);
    struct ink_job *s = bench_submit(&b, &same);
    assert_int_equal(bench_end(s), INK_OK);
    assert_int_equal(bench_end(a), INK_OK);
    fake_model_counts(b.model, &counts);
    assert_int_equal(counts.encoded, 1);
    assert_int_equal(counts.aborted, 0);
    ink_job_unref(a);
    ink_job_unref(s);

    ahead = ahead_spec(7, 200);
    a = bench_submit(&b, &ahead);
    nap_ms(30);
    struct ink_job *o = bench_submit(&b, &other);
    nap_ms(150); /* now it is decoding: nothing is encoded ahead beside it */
    ink_job_status(a, &st);
    assert_int_not_equal(st.stage, INK_JOB_ENDED);
    fake_model_counts(b.model, &counts);
    assert_int_equal(counts.aborted, 1);
    assert_int_equal(counts.encoded, 2);

    /* A stranger's request is served; then there is time for what was asked ahead. */
    struct ink_job *t = bench_submit(&b, &third);
    assert_int_equal(bench_end(t), INK_OK);
    assert_int_equal(bench_end(o), INK_OK);
    assert_int_equal(bench_end(a), INK_OK);
    ink_job_unref(a);
    ink_job_unref(o);
    ink_job_unref(t);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void too_many_ahead_give_way_to_the_newest(void **state)
{
    struct bench b;
    struct ink_job_spec running = bench_spec(1, 10, 1, 200);
    struct ink_job *jobs[20];
    int n_ok = 0;
    (void)state;

    bench_start(&b, &(struct fake_options){ .decode_us = 1000, .logits = fake_logits_endless },
                &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &running);
    for (int i = 0; i < 20; i++) {
        struct ink_job_spec ahead = ahead_spec(20 + i, 30);

        jobs[i] = bench_submit(&b, &ahead);
    }
    ink_job_cancel(jobs[15]);
    assert_int_equal(bench_end(jobs[15]), INK_CANCELLED);
    assert_int_equal(bench_end(job), INK_OK);
    for (int i = 0; i < 20; i++) {
        enum ink_status st = bench_end(jobs[i]);

        assert_true(st == INK_OK || st == INK_BUSY || (st == INK_CANCELLED && i == 15));
        n_ok += st == INK_OK;
        if (i == 19)
            assert_int_equal(st, INK_OK);
        ink_job_unref(jobs[i]);
    }
    assert_true(n_ok >= 7 && n_ok <= 8);
    ink_job_unref(job);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void a_halted_sequence_gives_its_place_up(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(4, 10, 2, 250);
    struct ink_seq_view view;
    (void)state;

    spec.max_new = 100;
    bench_start(&b, &(struct fake_options){ .logits = fake_logits_endless, .decode_us = 500 },
                &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    while (ink_job_read(job, 0, 0, NULL, NULL, 0, &view), view.n_tokens < 3)
        nap_ms(1);
    ink_job_halt(job, 0);
    assert_int_equal(bench_end(job), INK_OK);
    (void)ink_job_read(job, 0, 0, NULL, NULL, 0, &view);
    assert_int_equal(view.state, INK_SEQ_HALTED);
    assert_true(view.n_tokens < 100);
    (void)ink_job_read(job, 1, 0, NULL, NULL, 0, &view);
    assert_int_equal(view.n_tokens, 100);
    ink_job_unref(job);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void idle_jobs_give_up_memory_and_still_can_be_redrawn(void **state)
{
    struct bench b;
    struct ink_job *jobs[6];
    uint64_t digest[6];
    (void)state;

    /* Room for one and a half jobs: 2 source blocks, 2 sequences of 2 blocks. */
    bench_start(&b, &(struct fake_options){ .n_blocks = 9 }, &(struct ink_lane_options){ 0 });
    for (int i = 0; i < 6; i++) {
        struct ink_job_spec spec = bench_spec(i, 32, 2, 32);

        spec.keep_open = true;
        jobs[i] = bench_submit(&b, &spec);
    }
    for (int i = 0; i < 6; i++)
        assert_true(bench_wait(jobs[i]));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++)
            assert_int_equal(ink_job_redraw(jobs[i], i % 2, NULL), INK_OK);
        for (int i = 0; i < 6; i++)
            assert_true(bench_wait(jobs[i]));
    }
    for (int i = 0; i < 6; i++) {
        digest[i] = bench_digest(jobs[i]);
        ink_job_close(jobs[i]);
        assert_int_equal(bench_end(jobs[i]), INK_OK);
        ink_job_unref(jobs[i]);
    }
    assert_true(stats(&b).encoder_repeats > 0);
    assert_true(bench_quiet(&b));
    bench_stop(&b);

    bench_start(&b, &(struct fake_options){ .n_blocks = 100 }, &(struct ink_lane_options){ 0 });
    for (int i = 0; i < 6; i++) {
        struct ink_job_spec spec = bench_spec(i, 32, 2, 32);

        spec.keep_open = true;
        struct ink_job *job = bench_submit(&b, &spec);
        for (int round = 0; round < 2; round++) {
            assert_true(bench_wait(job));
            assert_int_equal(ink_job_redraw(job, i % 2, NULL), INK_OK);
        }
        assert_true(bench_wait(job));
        assert_true(bench_digest(job) == digest[i]);
        ink_job_cancel(job);
        ink_job_unref(job);
    }
    assert_int_equal(stats(&b).encoder_repeats, 0);
    bench_stop(&b);
}

static void scoring_equals_what_drawing_reported(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(6, 15, 1, 60);
    struct ink_token drawn[60], scored[60], top[60 * 5], top2[60 * 5];
    struct ink_seq_view view;
    int32_t ids[60];
    (void)state;

    spec.n_top = 5;
    bench_start(&b, &(struct fake_options){ .max_rows = 8 }, &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    int n = ink_job_read(job, 0, 0, drawn, top, 60, &view);
    ink_job_unref(job);
    assert_true(n > 3);
    for (int i = 0; i < n; i++)
        ids[i] = drawn[i].id;

    struct ink_target target = { ids, n };
    spec.targets = &target;
    struct fake_counts before, after;
    fake_model_counts(b.model, &before);
    job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    fake_model_counts(b.model, &after);
    /* Eight positions a step. */
    assert_int_equal(after.steps - before.steps, (n + 7) / 8);
    assert_int_equal(ink_job_read(job, 0, 0, scored, top2, 60, &view), n);
    assert_int_equal(view.state, INK_SEQ_STOP);
    assert_memory_equal(drawn, scored, (size_t)n * sizeof(drawn[0]));
    assert_memory_equal(top, top2, (size_t)(n * 5) * sizeof(top[0]));
    ink_job_unref(job);
    bench_stop(&b);
}

static void many_targets_share_one_source(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(6, 15, 40, 8);
    struct ink_target targets[40];
    int32_t ids[40][8];
    struct fake_counts counts;
    (void)state;

    for (int i = 0; i < 40; i++) {
        targets[i] = (struct ink_target){ ids[i], 1 + i % 8 };
        for (int k = 0; k < 8; k++)
            ids[i][k] = 3 + (i * 3 + k) % 50;
    }
    spec.targets = targets;
    bench_start(&b, &(struct fake_options){ .max_rows = 7, .n_blocks = 20 },
                &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    for (int i = 0; i < 40; i++) {
        struct ink_seq_view view;
        struct ink_token out[8];

        assert_int_equal(ink_job_read(job, i, 0, out, NULL, 8, &view), 1 + i % 8);
        assert_int_equal(view.state, INK_SEQ_STOP);
        for (int k = 0; k < 1 + i % 8; k++)
            assert_true(isfinite(out[k].logprob) && out[k].logprob < 0);
    }
    fake_model_counts(b.model, &counts);
    assert_int_equal(counts.encoded, 1);
    ink_job_unref(job);
    bench_stop(&b);
}

static void banned_tokens_never_come_but_can_be_scored(void **state)
{
    int32_t banned[20], ids[] = { 3, 30 };
    struct bench b;
    struct ink_job_spec spec = bench_spec(8, 9, 4, 50);
    (void)state;

    for (int i = 0; i < 20; i++)
        banned[i] = 20 + i;
    bench_start(&b, &(struct fake_options){ .logits = fake_logits_endless },
                &(struct ink_lane_options){ .banned = banned, .n_banned = 20 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    for (int i = 0; i < 4; i++) {
        struct ink_seq_view view;
        struct ink_token out[50];
        int n = ink_job_read(job, i, 0, out, NULL, 50, &view);

        assert_int_equal(n, 50);
        for (int k = 0; k < n; k++)
            assert_false(out[k].id >= 20 && out[k].id < 40);
    }
    ink_job_unref(job);

    struct ink_target target = { ids, 2 };
    struct ink_token out[2];
    struct ink_seq_view view;
    spec.n_seqs = 1;
    spec.targets = &target;
    spec.with_banned = true;
    job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    assert_int_equal(ink_job_read(job, 0, 0, out, NULL, 2, &view), 2);
    assert_true(isfinite(out[1].logprob));
    ink_job_unref(job);
    bench_stop(&b);
}

static void a_smaller_head_limits_what_can_be_drawn(void **state)
{
    const int32_t ids[] = { 1, 4, 9, 33 };
    struct ink_job_spec spec = bench_spec(8, 9, 4, 50);
    struct bench b = { .model = fake_model_new(&(struct fake_options){ 0 }) };
    int head;
    (void)state;

    assert_int_equal(ink_model_add_head(b.model, ids, 4, &head, NULL), INK_OK);
    assert_int_equal(ink_engine_start(&b.engine, NULL), INK_OK);
    assert_int_equal(ink_engine_add(b.engine, b.model, &(struct ink_lane_options){ .n_heads = 2 },
                                    &b.lane, NULL),
                     INK_OK);
    spec.head = head;
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    for (int i = 0; i < 4; i++) {
        struct ink_seq_view view;
        struct ink_token out[50];
        int n = ink_job_read(job, i, 0, out, NULL, 50, &view);

        for (int k = 0; k < n; k++)
            assert_true(out[k].id == 1 || out[k].id == 4 || out[k].id == 9 || out[k].id == 33);
    }
    ink_job_unref(job);
    bench_stop(&b);
}

static void cancelling_frees_everything_at_every_stage(void **state)
{
    struct bench b;
    struct ink_job_status st;
    struct ink_seq_view view;
    (void)state;

    bench_start(
        &b,
        &(struct fake_options){
            .logits = fake_logits_endless, .layer_us = 3000, .decode_us = 1000, .n_layers = 100 },
        &(struct ink_lane_options){ .n_parallel = 2 });
    struct ink_job_spec spec = bench_spec(1, 30, 2, 200);
    struct ink_job *running = bench_submit(&b, &spec);
    while (ink_job_read(running, 0, 0, NULL, NULL, 0, &view), view.n_tokens < 1)
        nap_ms(1);

    /* In the encoder. */
    struct ink_job *encoding = bench_submit(&b, &spec);
    do {
        nap_ms(1);
        ink_job_status(encoding, &st);
    } while (st.encode_ns == 0);
    ink_job_cancel(encoding);
    assert_int_equal(bench_end(encoding), INK_CANCELLED);
    ink_job_status(encoding, &st);
    assert_true(st.encoded_ns == 0);

    /* In the queue: the two slots and what may be encoded ahead are taken. */
    struct ink_job *queued[20];
    for (int i = 0; i < 20; i++)
        queued[i] = bench_submit(&b, &spec);
    nap_ms(5);
    ink_job_status(queued[19], &st);
    assert_int_equal(st.stage, INK_JOB_QUEUED);
    ink_job_cancel(queued[19]);
    assert_int_equal(bench_end(queued[19]), INK_CANCELLED);

    /* While decoding. */
    ink_job_cancel(running);
    assert_int_equal(bench_end(running), INK_CANCELLED);
    for (int i = 0; i < 19; i++)
        ink_job_cancel(queued[i]);
    for (int i = 0; i < 19; i++)
        assert_int_equal(bench_end(queued[i]), INK_CANCELLED);
    assert_true(bench_quiet(&b));
    assert_int_equal(stats(&b).jobs_cancelled, 22);
    ink_job_unref(running);
    ink_job_unref(encoding);
    for (int i = 0; i < 20; i++)
        ink_job_unref(queued[i]);

    /* And the engine still works. */
    spec = bench_spec(1, 30, 2, 4);
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    ink_job_unref(job);
    bench_stop(&b);
}

static void a_reader_may_leave_at_any_time(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 30, 3, 200);
    (void)state;

    bench_start(&b, &(struct fake_options){ .decode_us = 100, .layer_us = 200 },
                &(struct ink_lane_options){ 0 });
    for (int i = 0; i < 30; i++) {
        struct ink_job *job = bench_submit(&b, &spec);

        nap_ms(i % 4);
        ink_job_cancel(job);
        ink_job_unref(job);
    }
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void a_deadline_ends_a_job_wherever_it_is(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 30, 2, 200);
    struct ink_job *jobs[12];
    struct ink_job_status st;
    int64_t start = ink_clock_ms();
    (void)state;

    spec.timeout_ms = 60;
    bench_start(
        &b,
        &(struct fake_options){ .logits = fake_logits_endless, .layer_us = 500, .decode_us = 2000 },
        &(struct ink_lane_options){ .n_parallel = 2 });
    for (int i = 0; i < 12; i++)
        jobs[i] = bench_submit(&b, &spec);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(bench_end(jobs[i]), INK_TIMEOUT);
        ink_job_status(jobs[i], &st);
        assert_string_equal(st.result.reason, "deadline");
        ink_job_unref(jobs[i]);
    }
    assert_true(ink_clock_ms() - start < 2000);
    assert_true(bench_quiet(&b));
    assert_int_equal(stats(&b).jobs_expired, 12);
    bench_stop(&b);
}

static void a_finished_job_nobody_closes_ends_well_at_its_deadline(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 30, 1, 4);
    (void)state;

    spec.keep_open = true;
    spec.timeout_ms = 30;
    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    assert_int_equal(ink_job_redraw(job, 0, NULL), INK_TIMEOUT);
    ink_job_unref(job);
    bench_stop(&b);
}

static void a_full_queue_refuses_at_once_and_says_when_to_retry(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 10, 2, 200);
    struct ink_job *jobs[64];
    struct ink_job_status st;
    struct ink_err err;
    int n = 0;
    (void)state;

    bench_start(&b, &(struct fake_options){ .logits = fake_logits_endless, .decode_us = 1000 },
                &(struct ink_lane_options){ .n_parallel = 2, .n_queue = 5 });
    for (;;) {
        struct ink_job *job = ink_job_new(&spec);
        enum ink_status code = ink_lane_submit(b.lane, job, &err);

        if (code != INK_OK) {
            assert_int_equal(code, INK_BUSY);
            assert_string_equal(err.reason, "overloaded");
            ink_job_unref(job);
            break;
        }
        jobs[n++] = job;
        assert_true(n < 64);
        nap_ms(2); /* the engine takes what it can hold */
    }
    assert_in_range(ink_lane_retry_s(b.lane), 1, 60);
    assert_int_equal(stats(&b).queue_length, 5);
    assert_int_equal(stats(&b).jobs_refused, 1);
    assert_int_equal(stats(&b).jobs_submitted, n);
    ink_job_status(jobs[n - 1], &st);
    assert_int_equal(st.stage, INK_JOB_QUEUED);
    assert_int_equal(st.position, 4);

    /* One leaves the queue, the others move up. */
    ink_job_cancel(jobs[n - 5]);
    assert_int_equal(bench_end(jobs[n - 5]), INK_CANCELLED);
    struct ink_job *job = bench_submit(&b, &spec);
    ink_job_cancel(job);
    assert_int_equal(bench_end(job), INK_CANCELLED);
    ink_job_unref(job);
    for (int i = 0; i < n; i++) {
        ink_job_cancel(jobs[i]);
        (void)bench_end(jobs[i]);
        ink_job_unref(jobs[i]);
    }
    bench_stop(&b);
}

static void what_can_never_fit_is_refused_with_the_numbers(void **state)
{
    struct bench b;
    struct ink_err err;
    (void)state;

    bench_start(&b, &(struct fake_options){ .n_blocks = 6, .max_source = 64, .max_target = 64 },
                &(struct ink_lane_options){ 0 });
    struct ink_job_spec spec = bench_spec(1, 64, 1, 48);
    struct ink_job *job = ink_job_new(&spec);
    assert_int_equal(ink_lane_submit(b.lane, job, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "7 blocks"));
    assert_non_null(strstr(err.text, "6 in all"));
    ink_job_unref(job);
    spec = bench_spec(1, 65, 1, 4);
    job = ink_job_new(&spec);
    assert_int_equal(ink_lane_submit(b.lane, job, &err), INK_INVALID);
    ink_job_unref(job);
    spec = bench_spec(1, 60, 1, 65);
    job = ink_job_new(&spec);
    assert_int_equal(ink_lane_submit(b.lane, job, &err), INK_INVALID);
    ink_job_unref(job);
    spec = bench_spec(1, 60, 1, 6);
    spec.head = 1;
    job = ink_job_new(&spec);
    assert_int_equal(ink_lane_submit(b.lane, job, &err), INK_INVALID);
    ink_job_unref(job);
    bench_stop(&b);
}

static void a_broken_device_fails_its_jobs_and_no_others(void **state)
{
    (void)state;

    for (int k = 0; k < 2; k++) {
        struct bench b;
        struct ink_job_spec spec = bench_spec(1, 10, 3, 20);
        struct ink_job_status st;

        bench_start(&b,
                    &(struct fake_options){ .fail_decode = k ? 4 : 0, .fail_encode = k ? 0 : 1 },
                    &(struct ink_lane_options){ 0 });
        struct ink_job *job = bench_submit(&b, &spec);
        assert_int_equal(bench_end(job), INK_DEVICE);
        ink_job_status(job, &st);
        assert_string_equal(st.result.text, k ? "the decoder broke" : "the encoder broke");
        ink_job_unref(job);
        job = bench_submit(&b, &spec);
        assert_int_equal(bench_end(job), INK_OK);
        ink_job_unref(job);
        assert_true(bench_quiet(&b));
        assert_int_equal(stats(&b).jobs_failed, 1);
        bench_stop(&b);
    }
}

static void logits_nan(const int32_t *source, int n_source, const int32_t *history, int n_history,
                       float *logits, int n_vocab)
{
    fake_logits_mixed(source, n_source, history, n_history, logits, n_vocab);
    if (n_history == 3 && source[0] == 3)
        logits[5] = NAN;
}

static void a_number_that_is_none_fails_that_job_only(void **state)
{
    struct bench b;
    struct ink_job_spec good = bench_spec(1, 10, 3, 20), bad = bench_spec(0, 10, 3, 20);
    (void)state;

    bench_start(&b, &(struct fake_options){ .logits = logits_nan },
                &(struct ink_lane_options){ 0 });
    struct ink_job *a = bench_submit(&b, &bad), *c = bench_submit(&b, &good);
    assert_int_equal(bench_end(a), INK_DEVICE);
    assert_int_equal(bench_end(c), INK_OK);
    ink_job_unref(a);
    ink_job_unref(c);
    assert_true(bench_quiet(&b));
    bench_stop(&b);
}

static void stopping_ends_whatever_is_there(void **state)
{
    struct ink_job *jobs[30];
    struct bench b;
    struct ink_job_spec spec = bench_spec(1, 30, 2, 200);
    (void)state;

    for (int round = 0; round < 6; round++) {
        bench_start(&b,
                    &(struct fake_options){
                        .logits = fake_logits_endless, .layer_us = 300, .decode_us = 300 },
                    &(struct ink_lane_options){ .n_parallel = 4 });
        for (int i = 0; i < 30; i++)
            jobs[i] = bench_submit(&b, &spec);
        nap_ms(round * 3);
        bench_stop(&b);
        for (int i = 0; i < 30; i++) {
            assert_int_equal(bench_end(jobs[i]), INK_CANCELLED);
            ink_job_cancel(jobs[i]); /* harmless without an engine */
            ink_job_unref(jobs[i]);
        }
    }
}

static void two_models_share_one_thread(void **state)
{
    struct bench b;
    struct ink_lane *second;
    struct ink_model *echo = fake_model_new(&(struct fake_options){ .logits = fake_logits_echo });
    struct ink_job_spec spec = bench_spec(3, 12, 5, 30);
    struct ink_job *jobs[20];
    (void)state;

    bench_start(&b, &(struct fake_options){ 0 }, &(struct ink_lane_options){ 0 });
    assert_int_equal(ink_engine_add(b.engine, echo, &(struct ink_lane_options){ 0 }, &second, NULL),
                     INK_OK);
    for (int i = 0; i < 20; i++) {
        jobs[i] = ink_job_new(&spec);
        assert_int_equal(ink_lane_submit(i % 2 ? second : b.lane, jobs[i], NULL), INK_OK);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(bench_end(jobs[i]), INK_OK);
        assert_true(bench_digest(jobs[i]) == bench_digest(jobs[i % 2]));
    }
    assert_true(bench_digest(jobs[0]) != bench_digest(jobs[1]));
    for (int i = 0; i < 20; i++)
        ink_job_unref(jobs[i]);
    ink_engine_stop(b.engine);
    ink_model_close(b.model);
    ink_model_close(echo);
}

static void times_are_in_order(void **state)
{
    struct bench b;
    struct ink_job_spec spec = bench_spec(3, 12, 2, 10);
    struct ink_job_status st;
    (void)state;

    bench_start(&b, &(struct fake_options){ .layer_us = 1000, .decode_us = 500 },
                &(struct ink_lane_options){ 0 });
    struct ink_job *job = bench_submit(&b, &spec);
    assert_int_equal(bench_end(job), INK_OK);
    ink_job_status(job, &st);
    assert_true(st.submitted_ns > 0 && st.encode_ns >= st.submitted_ns);
    assert_true(st.encoded_ns - st.encode_ns >= 4000000);
    assert_true(st.first_ns - st.encoded_ns >= 500000);
    assert_true(st.last_ns > st.first_ns);
    ink_job_unref(job);
    bench_stop(&b);
}

static void row_classes_double(void **state)
{
    (void)state;
    assert_int_equal(ink_stats_rows_class(1), 0);
    assert_int_equal(ink_stats_rows_class(2), 1);
    assert_int_equal(ink_stats_rows_class(3), 2);
    assert_int_equal(ink_stats_rows_class(256), 8);
    assert_int_equal(ink_stats_rows_class(257), 9);
    assert_int_equal(ink_stats_rows_class(100000), 9);
    for (int i = 0; i < INK_ROWS_CLASSES - 1; i++) {
        assert_int_equal(ink_stats_rows_class(ink_stats_rows_bound(i)), i);
        assert_int_equal(ink_stats_rows_class(ink_stats_rows_bound(i) + 1), i + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_end_at_the_end_token_or_the_limit),
        cmocka_unit_test(the_encoder_runs_once_for_all_candidates),
        cmocka_unit_test(candidates_differ_and_repeat_with_their_seed),
        cmocka_unit_test(a_candidate_is_the_same_with_fewer_beside_it),
        cmocka_unit_test(every_job_gets_in_a_crowd_what_it_gets_alone),
        cmocka_unit_test(waiting_sources_are_encoded_together),
        cmocka_unit_test(a_long_source_does_not_stop_a_running_stream),
        cmocka_unit_test(a_redraw_is_another_attempt_on_the_same_encoding),
        cmocka_unit_test(a_kept_source_changes_nothing_but_the_work),
        cmocka_unit_test(kept_sources_make_room_for_others),
        cmocka_unit_test(a_source_encoded_ahead_is_found_ready),
        cmocka_unit_test(encoding_ahead_delays_nobody),
        cmocka_unit_test(too_many_ahead_give_way_to_the_newest),
        cmocka_unit_test(a_halted_sequence_gives_its_place_up),
        cmocka_unit_test(idle_jobs_give_up_memory_and_still_can_be_redrawn),
        cmocka_unit_test(scoring_equals_what_drawing_reported),
        cmocka_unit_test(many_targets_share_one_source),
        cmocka_unit_test(banned_tokens_never_come_but_can_be_scored),
        cmocka_unit_test(a_smaller_head_limits_what_can_be_drawn),
        cmocka_unit_test(cancelling_frees_everything_at_every_stage),
        cmocka_unit_test(a_reader_may_leave_at_any_time),
        cmocka_unit_test(a_deadline_ends_a_job_wherever_it_is),
        cmocka_unit_test(a_finished_job_nobody_closes_ends_well_at_its_deadline),
        cmocka_unit_test(a_full_queue_refuses_at_once_and_says_when_to_retry),
        cmocka_unit_test(what_can_never_fit_is_refused_with_the_numbers),
        cmocka_unit_test(a_broken_device_fails_its_jobs_and_no_others),
        cmocka_unit_test(a_number_that_is_none_fails_that_job_only),
        cmocka_unit_test(stopping_ends_whatever_is_there),
        cmocka_unit_test(two_models_share_one_thread),
        cmocka_unit_test(times_are_in_order),
        cmocka_unit_test(row_classes_double),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
