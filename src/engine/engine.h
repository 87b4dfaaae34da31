#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/status.h"
#include "engine/job.h"
#include "engine/stats.h"

#include <stdbool.h>
#include <stdint.h>

struct ink_model;

/*
 * The thread that owns a device: it alone computes with the models on it. Each model is a lane with its own queue,
 * KV memory and batch; lanes take turns, a step each.
 *
 * In a step a lane hears its readers, admits what fits, encodes a slice, decodes one batch of rows from
 * all its jobs, and draws their tokens. A job's candidates join and leave the batch one by one.
 */
struct ink_engine;
struct ink_lane;

/* Starts the thread. */
INK_NODISCARD enum ink_status ink_engine_start(struct ink_engine **out, struct ink_err *err);
/* Ends every job with INK_CANCELLED, waits for the thread, frees the lanes (not their models). NULL is fine. */
void ink_engine_stop(struct ink_engine *e);

struct ink_lane_options {  /* zero means default */
    int n_parallel;        /* sequences decoded together: what the model has room for */
    int n_queue;           /* jobs waiting: 256 */
    int max_encode_tokens; /* as the model was opened with: 2048 */
    int n_heads;           /* output heads of the model, the full one included: 1 */
    const int32_t *banned; /* tokens never drawn; copied */
    int n_banned;
};

/*
 * Gives a model to the engine: from here on only the engine thread calls it, so output heads are added before. The model
 * must live until ink_engine_stop().
 */
INK_NODISCARD enum ink_status ink_engine_add(struct ink_engine *e, struct ink_model *model,
                                             const struct ink_lane_options *options,
                                             struct ink_lane **out, struct ink_err *err);

/*
 * Queues a job; the engine takes a reference of its own. Any thread; never waits. INK_INVALID: the job can never fit, with the
 * numbers. INK_BUSY (reason "overloaded"): the queue is full. INK_CANCELLED: the engine is stopping. A refused job is
 * of no further use.
 */
INK_NODISCARD enum ink_status ink_lane_submit(struct ink_lane *lane, struct ink_job *job,
                                              struct ink_err *err);

/* When a refused job is worth another try: whole seconds, from the measured rate; 1..60. Any thread. */
int ink_lane_retry_s(struct ink_lane *lane);

/* A consistent snapshot, at most one step old. Any thread. */
void ink_lane_stats(struct ink_lane *lane, struct ink_engine_stats *out);

#endif
