#ifndef UNIT_ENGINE_HARNESS_H
#define UNIT_ENGINE_HARNESS_H

#include "engine/engine.h"
#include "engine/fake_model.h"

/* An engine with one fake model, and short ways to run jobs on it. */
struct bench {
    struct ink_engine *engine;
    struct ink_lane *lane;
    struct ink_model *model;
};

void bench_start(struct bench *b, const struct fake_options *fake,
                 const struct ink_lane_options *lane);
/* Stops the engine and checks that nothing was leaked: no job counted as running. */
void bench_stop(struct bench *b);

/* A plausible request: sources differ with `variant`, n sequences, sampling with seed = variant. */
struct ink_job_spec bench_spec(int variant, int n_source, int n_seqs, int max_new);

/* New and submitted. */
struct ink_job *bench_submit(struct bench *b, const struct ink_job_spec *spec);
/* Waits (10 s at most) until all sequences have ended or the job has; false when time is over. */
bool bench_wait(struct ink_job *job);
/* Waits until the job has ended and returns how. */
enum ink_status bench_end(struct ink_job *job);
/* Digest of all tokens and log-probabilities of a job. */
uint64_t bench_digest(struct ink_job *job);
/* Waits until no job runs and all blocks are back; false when that takes over 10 s. */
bool bench_quiet(struct bench *b);

#endif
