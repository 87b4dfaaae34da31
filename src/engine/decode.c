/*
 * One decoder step: rows from the plan, logits from the model, tokens from the sampler, to the jobs.
 */
#include "engine/lane.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/trace.h"

#include <assert.h>

/* A run's sequence behind a slot. */
static struct seq *seq_of(const struct slot *s)
{
    return &s->run->seqs[s->seq];
}

static int plan(struct ink_lane *lane)
{
    int n = 0;

    for (int i = 0; i < lane->n_slots; i++) {
        const struct slot *s = &lane->slots[i];

        if (!s->run)
            continue;
        const struct ink_target *targets = s->run->spec->targets;

        lane->plan_slots[n] = i;
        lane->plan_seqs[n++] = (struct plan_seq){
            .n_left = targets ? targets[s->seq].n - seq_of(s)->n_done : 1,
            .served = s->served,
        };
    }
    return n > 0 ? plan_rows(lane->plan_seqs, n, lane->info->max_rows, lane->shares) : 0;
}

/* The decoder's input at position `pos`: the token before it. */
static int32_t input_at(const struct ink_lane *lane, const struct slot *s, int pos)
{
    if (pos == 0)
        return lane->info->decoder_start;
    if (s->run->spec->targets)
        return s->run->spec->targets[s->seq].ids[pos - 1];
    return job_tokens(s->run->job, s->seq)[pos - 1].id;
}

static int fill_rows(struct ink_lane *lane, int n_shares)
{
    int n = 0;

    for (int i = 0; i < n_shares; i++) {
        struct slot *s = &lane->slots[lane->plan_slots[lane->shares[i].seq]];

        s->served = lane->step;
        for (int k = 0; k < lane->shares[i].n_rows; k++) {
            int pos = seq_of(s)->n_done + k;

            lane->rows[n++] = (struct ink_decode_row){
                .token = input_at(lane, s, pos),
                .pos = pos,
                .blocks = s->blocks,
                .source_blocks = s->run->source_blocks,
                .n_source = s->run->spec->n_source,
                .head = s->run->spec->head,
            };
        }
    }
    return n;
}

/* A head's tokens, and which of its entries are banned; looked up once. */
static struct lane_head *head_of(struct ink_lane *lane, int head)
{
    struct lane_head *h = &lane->heads[head];

    if (h->ready)
        return h;
    h->n = lane->info->n_vocab;
    h->ids = head == INK_HEAD_FULL ? NULL : ink_model_head_ids(lane->model, head, &h->n);
    h->banned = ink_alloc(((size_t)lane->n_banned + 1) * sizeof(*h->banned));
    for (int i = 0; i < lane->n_banned; i++) {
        int at = sampler_row_find(h->ids, h->n, lane->banned[i]);

        if (at >= 0)
            h->banned[h->n_banned++] = at;
    }
    assert(h->n_banned < h->n);
    h->ready = true;
    return h;
}

/* One row's logits become one more token of its sequence. */
static enum ink_status take_token(struct ink_lane *lane, struct slot *s, const float *logits)
{
    struct run *run = s->run;
    struct seq *q = seq_of(s);
    const struct ink_job_spec *spec = run->spec;
    struct lane_head *h = head_of(lane, spec->head);
    int n_banned = spec->with_banned ? 0 : h->n_banned;

    if (spec->no_end) {
        int at = sampler_row_find(h->ids, h->n, spec->eos);

        if (at >= 0)
            h->banned[n_banned++] = at;
    }
    const struct sampler_row row = {
        .logits = logits,
        .n = h->n,
        .ids = h->ids,
        .banned = h->banned,
        .n_banned = n_banned,
    };
    enum ink_seq_state state = INK_SEQ_ACTIVE;
    struct ink_token token;
    enum ink_status st;

    if (spec->targets) {
        st = sampler_score(lane->sampler, &row, spec->targets[s->seq].ids[q->n_done], lane->top,
                           spec->n_top, &token);
        if (q->n_done + 1 == spec->targets[s->seq].n)
            state = INK_SEQ_STOP;
    } else {
        const struct random_place place = {
            .candidate = (uint32_t)s->seq,
            .attempt = (uint32_t)q->attempt,
            .position = (uint32_t)q->n_done,
        };

        struct ink_sampling how = spec->sampling;

        how.temperature = ink_sampling_temperature(&how, q->attempt);
        st = sampler_draw(lane->sampler, &row, &how, &place, job_tokens(run->job, s->seq),
                          q->n_done, lane->top, spec->n_top, &token);
        if (st == INK_OK && token.id == spec->eos)
            state = INK_SEQ_STOP;
        else if (q->n_done + 1 == spec->max_new)
            state = INK_SEQ_LENGTH;
    }
    if (st != INK_OK)
        return st;
    job_push(run->job, s->seq, q->attempt, &token, lane->top, state);
    lane->stats.tokens_output++;
    q->n_done++;
    run->touched = true;
    if (state != INK_SEQ_ACTIVE)
        lane_free_slot(lane, q->slot, SEQ_DONE);
    return INK_OK;
}

static void take_tokens(struct ink_lane *lane, int n_shares)
{
    int row = 0;

    for (int i = 0; i < n_shares; i++) {
        struct slot *s = &lane->slots[lane->plan_slots[lane->shares[i].seq]];

        for (int k = 0; k < lane->shares[i].n_rows; k++, row++) {
            if (!s->run) /* the job has failed at another row */
                continue;
            if (take_token(lane, s, lane->rows[row].logits) != INK_OK) {
                struct ink_err err;

                ink_err_set(
                    &err, INK_DEVICE,
                    "the model's output is not a number: its weights overflow in the type they "
                    "are stored or computed in");
                lane_end_run(lane, s->run, &err);
            }
        }
    }
}

/* Tells the readers, and times the jobs that have all their tokens for the first time. */
static void announce(struct ink_lane *lane)
{
    for (struct run *run = lane->runs, *next; run; run = next) {
        next = run->next;
        if (!run->touched)
            continue;
        run->touched = false;
        if (run->n_pending + run->n_running > 0) {
            job_announce(run->job);
            continue;
        }
        if (!run->timed) {
            double ms = ink_clock_ms_since(run->admitted_ns);

            run->timed = true;
            lane->job_ms = lane->has_job_ms ? 0.9 * lane->job_ms + 0.1 * ms : ms;
            lane->has_job_ms = true;
        }
        if (job_is_closed(run->job))
            lane_end_run(lane, run, &(struct ink_err){ .code = INK_OK });
        else
            job_announce(run->job);
    }
}

static void fail_all(struct ink_lane *lane, int n_shares, const struct ink_err *err)
{
    for (int i = 0; i < n_shares; i++) {
        struct slot *s = &lane->slots[lane->plan_slots[lane->shares[i].seq]];

        if (s->run)
            lane_end_run(lane, s->run, err);
    }
}

bool lane_decode(struct ink_lane *lane)
{
    int n_shares = plan(lane);
    struct ink_err err = { 0 };

    if (n_shares == 0)
        return false;
    lane->step++;

    int n_rows = fill_rows(lane, n_shares);
    int64_t start = ink_clock_ns();
    enum ink_status st = ink_model_decode(lane->model, lane->rows, n_rows, &err);
    int64_t computed = ink_clock_ns();

    lane->stats.steps++;
    lane->stats.rows += (uint64_t)n_rows;
    lane->stats.rows_class[ink_stats_rows_class(n_rows)]++;
    lane->stats.decode_ms += (double)(computed - start) / 1e6;
    if (st != INK_OK) {
        fail_all(lane, n_shares, &err);
        return lane->n_slots_used > 0;
    }
    take_tokens(lane, n_shares);

    const int64_t drawn = ink_clock_ns();
    ink_trace_span(INK_TRACE_ENGINE, "decode", start, computed, "rows", n_rows);
    ink_trace_span(INK_TRACE_ENGINE, "sample", computed, drawn, "rows", n_rows);
    lane->stats.sample_ms += (double)(drawn - computed) / 1e6;
    announce(lane);
    return lane->n_slots_used > 0 || lane->n_live > 0;
}
