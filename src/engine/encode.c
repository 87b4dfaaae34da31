/*
 * The encoder's share of a step.
 *
 * Sources that wait are encoded together, in slices of some layers between decoder steps; how many layers and how many
 * tokens follows from the measured cost (plan.c). One batch at a time. A source is read by the model until its batch is done, so a job that ends meanwhile
 * leaves its run behind as `dropped`.
 */
#include "engine/lane.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/trace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct plan_encode plan_input(const struct ink_lane *lane)
{
    return (struct plan_encode){
        .ns_per_unit = lane->ns_per_unit,
        .n_tokens = lane->n_encoding_tokens,
        .n_layers_left = lane->n_layers_left,
        .n_running = lane->n_slots_used,
        .n_waiting = lane->n_live - lane->n_slots_used,
        .ahead = lane->n_encoding > 0 && run_is_ahead(lane->encoding[0]),
    };
}

/* The runs of the batch leave it: encoded, or with `result` as their end. */
static void leave_batch(struct ink_lane *lane, enum source_state state,
                        const struct ink_err *result)
{
    int n = lane->n_encoding;

    lane->n_encoding = 0;
    for (int i = 0; i < n; i++) {
        struct run *run = lane->encoding[i];

        run->source = state;
        if (run->dropped) {
            struct run **p = &lane->runs;

            while (*p != run)
                p = &(*p)->next;
            *p = run->next;
            lane_give_source(lane, run);
            ink_job_unref(run->job);
            free(run->source_blocks);
            free(run);
        } else if (result) {
            lane_end_run(lane, run, result);
        }
    }
}

static void finish(struct ink_lane *lane)
{
    lane->stats.encoder_batches++;
    for (int i = 0; i < lane->n_encoding; i++) {
        struct run *run = lane->encoding[i];

        lane->stats.encoder_passes++;
        lane->stats.encoder_repeats += run->was_encoded;
        lane->stats.tokens_source += (uint64_t)run->spec->n_source;
        run->was_encoded = true;
        if (!run->dropped)
            job_encode_ends(run->job);
    }
    leave_batch(lane, SOURCE_READY, NULL);
    for (struct run *run = lane->runs, *next; run; run = next) {
        next = run->next;
        if (run_is_ahead(run) && run->source == SOURCE_READY)
            lane_end_run(lane, run, &(struct ink_err){ .code = INK_OK });
    }
}

static bool is_wanted(const struct run *run)
{
    return run->source == SOURCE_TAKEN && run->n_pending > 0;
}

/* Sources that were encoded before and kept need no encoder. */
static void adopt_kept(struct ink_lane *lane)
{
    for (struct run *run = lane->runs, *next; run; run = next) {
        const struct ink_job_spec *spec = run->spec;
        int32_t *own = run->source_blocks;

        next = run->next;
        if (spec->fresh || run->dropped || source_store_n_blocks(lane->sources) == 0)
            continue;
        if (run_is_ahead(run) ? run->source != SOURCE_NONE : !is_wanted(run))
            continue;

        int32_t *kept = ink_alloc((size_t)run->n_source_blocks * sizeof(*kept));

        if (!source_store_take(lane->sources, spec->source, spec->n_source, kept)) {
            free(kept);
            continue;
        }
        lane_give_source(lane, run);
        free(own);
        run->source_blocks = kept;
        run->source = SOURCE_READY;
        run->was_encoded = true;
        lane->stats.encoder_reuses++;
        job_encode_kept(run->job);
        if (run_is_ahead(run))
            lane_end_run(lane, run, &(struct ink_err){ .code = INK_OK });
    }
}

static void add_to_batch(struct ink_lane *lane, struct run *run)
{
    lane->items[lane->n_encoding] = (struct ink_encode_item){
        .tokens = run->spec->source,
        .n_tokens = run->spec->n_source,
        .blocks = run->source_blocks,
    };
    lane->encoding[lane->n_encoding++] = run;
    lane->n_encoding_tokens += run->spec->n_source;
    run->source = SOURCE_ENCODING;
    job_encode_begins(run->job);
}

/* With nothing else to do: the newest of those that may need it soon, alone. */
static void begin_ahead(struct ink_lane *lane)
{
    struct run *newest = NULL;

    if (lane->n_slots_used > 0)
        return;
    for (struct run *run = lane->runs; run; run = run->next) {
        if (run_is_ahead(run) && !run->dropped)
            newest = run;
    }
    if (newest && (newest->source == SOURCE_TAKEN || lane_take_source(lane, newest)))
        add_to_batch(lane, newest);
}

static void begin(struct ink_lane *lane)
{
    struct plan_encode input = plan_input(lane);
    int max_tokens = plan_encode_tokens(&input, lane->max_encode_tokens);
    struct ink_err err = { 0 };

    lane->n_encoding_tokens = 0;
    for (struct run *run = lane->runs; run && lane->n_encoding < lane->max_items; run = run->next) {
        if (!is_wanted(run))
            continue;
        if (lane->n_encoding > 0 && lane->n_encoding_tokens + run->spec->n_source > max_tokens)
            break;
        add_to_batch(lane, run);
    }
    if (lane->n_encoding == 0)
        begin_ahead(lane);
    if (lane->n_encoding == 0)
        return;
    lane->n_layers_left = lane->info->n_encoder_layers;
    if (ink_model_encode_begin(lane->model, lane->items, lane->n_encoding, &err) != INK_OK)
        leave_batch(lane, SOURCE_TAKEN, &err);
}

static bool all_dropped(const struct ink_lane *lane)
{
    for (int i = 0; i < lane->n_encoding; i++) {
        if (!lane->encoding[i]->dropped)
            return false;
    }
    return true;
}

static void advance(struct ink_lane *lane)
{
    struct plan_encode input = plan_input(lane);
    int n_layers = plan_encode_layers(&input);
    struct ink_err err = { 0 };
    bool done = false;
    int64_t start = ink_clock_ns();

    if (ink_model_encode_advance(lane->model, n_layers, &done, &err) != INK_OK) {
        ink_model_encode_abort(lane->model);
        leave_batch(lane, SOURCE_TAKEN, &err);
        return;
    }
    double ns = (double)(ink_clock_ns() - start);
    double per_unit = ns / n_layers / lane->n_encoding_tokens;

    ink_trace_span(INK_TRACE_ENGINE, run_is_ahead(lane->encoding[0]) ? "encode ahead" : "encode",
                   start, start + (int64_t)ns, "layers", n_layers);
    lane->stats.encode_ms += ns / 1e6;
    lane->ns_per_unit = lane->ns_per_unit > 0 ? 0.8 * lane->ns_per_unit + 0.2 * per_unit : per_unit;
    lane->n_layers_left = lane->n_layers_left > n_layers ? lane->n_layers_left - n_layers : 1;
    if (done)
        finish(lane);
}

/* A source encoded ahead gives way to one that is wanted now, unless it is the same. */
static bool is_in_the_way(const struct ink_lane *lane)
{
    const struct ink_job_spec *ahead = lane->encoding[0]->spec;
    bool wanted = false;

    if (!run_is_ahead(lane->encoding[0]))
        return false;
    for (const struct run *run = lane->runs; run; run = run->next) {
        if (!is_wanted(run))
            continue;
        if (!run->spec->fresh && run->spec->n_source == ahead->n_source &&
            memcmp(run->spec->source, ahead->source,
                   (size_t)ahead->n_source * sizeof(*ahead->source)) == 0)
            return false;
        wanted = true;
    }
    return wanted;
}

bool lane_encode(struct ink_lane *lane)
{
    if (lane->n_encoding > 0 && (all_dropped(lane) || is_in_the_way(lane))) {
        ink_model_encode_abort(lane->model);
        leave_batch(lane, SOURCE_TAKEN, NULL);
    }
    adopt_kept(lane);
    if (lane->n_encoding == 0)
        begin(lane);
    const bool began = lane->n_encoding > 0;
    if (began)
        advance(lane);
    if (lane->n_encoding > 0)
        return true;
    for (const struct run *run = lane->runs; run; run = run->next) {
        if (run->n_pending > 0 || (run_is_ahead(run) && began))
            return true;
    }
    return false;
}
