#ifndef ENGINE_LANE_H
#define ENGINE_LANE_H

#include "engine/engine.h"
#include "engine/kv_pool.h"
#include "engine/plan.h"
#include "engine/sampler.h"
#include "engine/source_store.h"
#include "model/model.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The inside of a lane: one model and what runs on it. Everything but the part under `lock` belongs to the
 * engine thread.
 *
 *   queue --admit--> run: source NONE -> TAKEN -> ENCODING -> READY        (blocks taken, encoder passes)
 *                         each sequence PENDING -> RUNNING -> DONE         (a slot and blocks while RUNNING)
 *                                          ^----- redraw -----'
 *
 * Source blocks that are given up while READY go to the store, where the next run with the same source finds them.
 *
 * A run whose sequences are all DONE waits for its reader: it is closed, or a sequence is redrawn. While it waits, its source blocks
 * can be taken from it when others need them; a redraw then encodes again. A sequence
 * gets the blocks of all it may grow to when it starts, so nothing that runs ever has to give way.
 */

enum source_state { SOURCE_NONE, SOURCE_TAKEN, SOURCE_ENCODING, SOURCE_READY };
enum seq_state { SEQ_PENDING, SEQ_RUNNING, SEQ_DONE };

struct seq {
    enum seq_state state;
    int attempt;
    int n_done; /* tokens drawn or scored in this attempt */
    int slot;   /* while RUNNING */
};

/* An admitted job. Runs form a list, oldest first. */
struct run {
    struct run *next;
    struct ink_job *job; /* one reference */
    const struct ink_job_spec *spec;
    enum source_state source;
    int32_t *source_blocks; /* [n_source_blocks], numbers valid from TAKEN on */
    int n_source_blocks;
    int n_pending, n_running;
    bool was_encoded; /* at least once */
    bool dropped;     /* the job has ended, but the encoder still reads its source */
    bool touched;     /* has new tokens in this step */
    bool timed;       /* counted in job_ms */
    int64_t admitted_ns;
    struct seq seqs[]; /* [spec->n_seqs] */
};

/* A place in the decoder batch. */
struct slot {
    struct run *run; /* NULL: free */
    int seq;
    int n_blocks;
    int32_t *blocks; /* room for the longest target */
    uint64_t served;
};

struct lane_head {
    bool ready;
    const int32_t *ids;
    int n;
    int32_t *banned; /* indexes of banned entries; room for one more */
    int n_banned;
};

struct ink_lane {
    struct ink_engine *engine;
    struct ink_model *model;
    const struct ink_model_info *info;
    struct bell *bell; /* borrowed from the engine */

    struct kv_pool *kv;
    struct source_store *sources;
    struct sampler *sampler;
    struct lane_head heads[INK_HEAD_MAX];
    int n_heads;
    int32_t *banned;
    int n_banned;

    struct run *runs;   /* oldest first */
    struct slot *slots; /* [n_slots] */
    int n_slots, n_slots_used;
    int n_live; /* sequences PENDING or RUNNING, over all runs */
    uint64_t step;

    struct run **encoding; /* [max_items] the batch under way */
    struct ink_encode_item *items;
    int max_encode_tokens, max_items, n_encoding, n_encoding_tokens, n_layers_left;
    double ns_per_unit; /* measured cost of a token in an encoder layer */

    struct plan_seq *plan_seqs;  /* [n_slots] */
    struct plan_share *shares;   /* [n_slots] */
    int *plan_slots;             /* [n_slots] slot of each planned sequence */
    struct ink_decode_row *rows; /* [max_rows] */
    struct ink_token *top;       /* [INK_JOB_TOP_MAX] */

    struct ink_job *
        *passing;  /* [n_queue] scratch: jobs on their way out of the queue, or told their place */
    double job_ms; /* how long a job takes from admission to its last token: moving average */
    bool has_job_ms;               /* measured; a guess before */
    int64_t announced_ns;          /* when queue positions were last announced */
    struct ink_engine_stats stats; /* the engine thread's own copy */

    pthread_mutex_t lock;   /* guards what is below; never held together with a job's lock */
    struct ink_job **queue; /* [n_queue] oldest first */
    int n_queue, queue_len;
    uint64_t n_submitted, n_refused;
    bool stopping;
    double shared_job_ms; /* copies for other threads */
    int shared_running;
    struct ink_engine_stats shared_stats;
};

struct ink_lane *lane_new(struct ink_engine *e, struct ink_model *model,
                          const struct ink_lane_options *options, struct bell *bell);
void lane_free(struct ink_lane *lane);

/* One step; whether there is more to do at once. */
bool lane_step(struct ink_lane *lane);
/* When the next deadline of anything held falls due: ink_clock_ns(), INT64_MAX for never. */
int64_t lane_next_deadline(struct ink_lane *lane);
/* Ends everything. */
void lane_stop(struct ink_lane *lane);

/* --- lane.c, for the other files of the lane --- */

/* Ends a run's job, frees its slots and blocks. The run is gone, unless the encoder still reads it. */
void lane_end_run(struct ink_lane *lane, struct run *run, const struct ink_err *result);
void lane_free_slot(struct ink_lane *lane, int slot, enum seq_state state);
void lane_give_source(struct ink_lane *lane, struct run *run);

/* --- admit.c --- */

/* Starts what waits and fits, oldest first, then takes new jobs from the queue. */
void lane_admit(struct ink_lane *lane);
/* A job without sequences: it gets memory and the encoder when nobody else wants them, and then ends. */
static inline bool run_is_ahead(const struct run *run)
{
    return run->spec->n_seqs == 0;
}
/* Blocks for the source; false when there is no room without touching what is in use. */
bool lane_take_source(struct ink_lane *lane, struct run *run);
/* Starts sequences whose source is encoded; false when one of them has to wait for memory. */
bool lane_start_pending(struct ink_lane *lane);

/* --- encode.c --- */

/* Begins a batch when there is none, and advances it by a slice; whether encoder work is left. */
bool lane_encode(struct ink_lane *lane);

/* --- decode.c --- */

/* One step for the running sequences; whether there are any left. */
bool lane_decode(struct ink_lane *lane);

#endif
