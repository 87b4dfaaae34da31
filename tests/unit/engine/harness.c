#include "engine/harness.h"

#include "base/clock.h"
#include "base/hash.h"
#include "unit.h"

#include <string.h>
#include <time.h>

enum { LONG_MS = 10000 };

void bench_start(struct bench *b, const struct fake_options *fake,
                 const struct ink_lane_options *lane)
{
    b->model = fake_model_new(fake);
    assert_int_equal(ink_engine_start(&b->engine, NULL), INK_OK);
    assert_int_equal(ink_engine_add(b->engine, b->model, lane, &b->lane, NULL), INK_OK);
}

void bench_stop(struct bench *b)
{
    ink_engine_stop(b->engine);
    ink_model_close(b->model);
}

struct ink_job_spec bench_spec(int variant, int n_source, int n_seqs, int max_new)
{
    static int32_t source[8][256];
    static int next;
    int32_t *s = source[next++ % 8]; /* tests build a few specs at a time, from one thread */

    for (int i = 0; i < n_source; i++)
        s[i] = 3 + (variant * 7 + i * 5) % 50;
    return (struct ink_job_spec){
        .source = s,
        .n_source = n_source,
        .n_seqs = n_seqs,
        .max_new = max_new,
        .eos = FAKE_EOS,
        .sampling = { .temperature = 0.9f,
                      .top_p = 0.95f,
                      .repetition_penalty = 1,
                      .seed = (uint64_t)variant },
    };
}

struct ink_job *bench_submit(struct bench *b, const struct ink_job_spec *spec)
{
    struct ink_job *job = ink_job_new(spec);
    struct ink_err err;

    if (ink_lane_submit(b->lane, job, &err) != INK_OK)
        fail_msg("submit: %s", err.text);
    return job;
}

static bool has_ended(struct ink_job *job)
{
    struct ink_job_status st;

    ink_job_status(job, &st);
    return st.stage == INK_JOB_ENDED;
}

static bool all_done(struct ink_job *job)
{
    for (int i = 0; i < job_spec(job)->n_seqs; i++) {
        struct ink_seq_view view;

        (void)ink_job_read(job, i, 0, NULL, NULL, 0, &view);
        if (view.state == INK_SEQ_ACTIVE)
            return false;
    }
    return true;
}

bool bench_wait(struct ink_job *job)
{
    int64_t end = ink_clock_ms() + LONG_MS;

    for (;;) {
        uint64_t seen = ink_job_version(job);

        if (has_ended(job) || all_done(job))
            return true;
        if (ink_clock_ms() > end)
            return false;
        (void)ink_job_wait(job, seen, 1000);
    }
}

enum ink_status bench_end(struct ink_job *job)
{
    int64_t end = ink_clock_ms() + LONG_MS;
    struct ink_job_status st;

    for (;;) {
        uint64_t seen = ink_job_version(job);

        ink_job_status(job, &st);
        if (st.stage == INK_JOB_ENDED)
            return st.result.code;
        if (ink_clock_ms() > end)
            fail_msg("the job does not end");
        (void)ink_job_wait(job, seen, 1000);
    }
}

uint64_t bench_digest(struct ink_job *job)
{
    struct ink_token out[256];
    uint64_t h = 0;

    for (int i = 0; i < job_spec(job)->n_seqs; i++) {
        struct ink_seq_view view;
        int n = ink_job_read(job, i, 0, out, NULL, 256, &view);
        uint64_t part[3] = { h, (uint64_t)view.state, ink_hash64(out, (size_t)n * sizeof(out[0])) };

        h = ink_hash64(part, sizeof(part));
    }
    return h;
}

bool bench_quiet(struct bench *b)
{
    int64_t end = ink_clock_ms() + LONG_MS;
    struct ink_engine_stats st;

    for (;;) {
        ink_lane_stats(b->lane, &st);
        if (st.queue_length == 0 && st.jobs_running == 0 && st.blocks_free == st.blocks_total)
            return true;
        if (ink_clock_ms() > end)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
}
