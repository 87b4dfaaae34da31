/* The log-probability of a given target, as a job whose tokens are given. */
#include "task/score.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "engine/job.h"
#include "task/catalog.h"
#include "task/served.h"

#include <stdlib.h>
#include <string.h>

enum { WANTED_MS = 100 }; /* how often to ask whether the score is still wanted */

/* Ids from text or as given; the caller frees out->ids whatever the status. */
static enum ink_status read_side(const struct ink_served *served, const char *name,
                                 struct ink_slice text, const int32_t *ids, int n_ids, int max,
                                 const struct ink_encode_options *options, struct ink_tokens *out,
                                 struct ink_err *err)
{
    enum ink_status st;

    if (n_ids >= 0) {
        out->ids = ink_try_alloc((size_t)n_ids + 1, sizeof(int32_t));
        if (!out->ids)
            return ink_err_set(err, INK_NO_MEMORY, "no memory for %d ids", n_ids);
        if (n_ids > 0)
            memcpy(out->ids, ids, (size_t)n_ids * sizeof(int32_t));
        out->n = (size_t)n_ids;
        out->cap = (size_t)n_ids + 1;
    } else {
        size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);

        if (valid < text.len)
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: not valid UTF-8 at byte %zu of %zu", name, valid, text.len);
        st = ink_tokenizer_encode(served->tokenizer, text, options, out, err);
        if (st != INK_OK)
            return st;
    }
    for (size_t i = 0; i < out->n; i++) {
        if (out->ids[i] < 0 || out->ids[i] >= served->info.n_vocab)
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: id %d at %zu is not in 0..%d", name, (int)out->ids[i], i,
                                 served->info.n_vocab - 1);
    }
    if (out->n > (size_t)max)
        return ink_err_param(err, INK_INVALID, name, "input_too_long",
                             "%s: %zu tokens; the limit is %d", name, out->n, max);
    return INK_OK;
}

static void push_id(struct ink_tokens *t, int32_t id)
{
    if (t->n == t->cap) {
        t->cap = t->n + 1;
        t->ids = ink_realloc(t->ids, t->cap * sizeof(*t->ids));
    }
    t->ids[t->n++] = id;
}

/* Waits for the job; its own end is the status. One that nobody wants any more is cancelled, which also ends it. */
static enum ink_status wait_for(struct ink_job *job, const struct ink_score_request *rq,
                                struct ink_err *err)
{
    for (;;) {
        uint64_t seen = ink_job_version(job);
        struct ink_job_status st;

        ink_job_status(job, &st);
        if (st.stage == INK_JOB_ENDED) {
            if (st.result.code != INK_OK && err)
                *err = st.result;
            return st.result.code;
        }
        if (rq->is_unwanted && rq->is_unwanted(rq->unwanted_arg))
            ink_job_cancel(job);
        (void)ink_job_wait(job, seen, WANTED_MS);
    }
}

/* One allocation: the details, then all their alternatives. */
static void take_result(struct ink_job *job, int n, int n_top, struct ink_score_result *out)
{
    struct ink_token *tokens = ink_alloc((size_t)n * sizeof(*tokens));
    struct ink_token *tops = ink_alloc(((size_t)n * (size_t)n_top + 1) * sizeof(*tops));
    size_t bytes = (size_t)n * sizeof(struct ink_token_detail);
    struct ink_token_prob *top;
    struct ink_seq_view view;

    (void)ink_job_read(job, 0, 0, tokens, tops, n, &view);
    out->target = ink_alloc(bytes + (size_t)n * (size_t)n_top * sizeof(*top));
    top = (struct ink_token_prob *)(void *)((char *)out->target + bytes);
    out->n_target = n;
    out->sum_logprob = 0;
    for (int i = 0; i < n; i++, top += n_top) {
        int k = 0;

        for (; k < n_top && tops[i * n_top + k].id >= 0; k++)
            top[k] = (struct ink_token_prob){ tops[i * n_top + k].id, tops[i * n_top + k].logprob };
        out->target[i] = (struct ink_token_detail){ .chosen = { tokens[i].id, tokens[i].logprob },
                                                    .top = top,
                                                    .n_top = k };
        out->sum_logprob += (double)tokens[i].logprob;
    }
    free(tokens);
    free(tops);
}

enum ink_status ink_score(struct ink_catalog *catalog, const struct ink_score_request *rq,
                          struct ink_score_result *out, struct ink_err *err)
{
    static const struct ink_encode_options source_options = { .specials = true,
                                                              .add_special = true };
    static const struct ink_encode_options target_options = { .specials = true };
    struct ink_tokens source = { 0 }, target = { 0 };
    struct ink_served *served;
    struct ink_job *job = NULL;
    enum ink_status st = ink_catalog_find(catalog, rq->model, INK_CAN_SCORE, &served, err);

    if (st != INK_OK)
        return st;
    if (rq->n_top < 0 || rq->n_top > INK_JOB_TOP_MAX)
        return ink_err_param(err, INK_INVALID, "n_top", "invalid_value",
                             "n_top: %d is not in 0..%d", rq->n_top, INK_JOB_TOP_MAX);
    st = read_side(served, rq->source_ids ? "source_ids" : "source", rq->source, rq->source_ids,
                   rq->n_source_ids, served->max_source, &source_options, &source, err);
    if (st == INK_OK)
        st = read_side(served, rq->target_ids ? "target_ids" : "target", rq->target, rq->target_ids,
                       rq->n_target_ids, served->max_target - (rq->n_target_ids < 0),
                       &target_options, &target, err);
    if (st != INK_OK)
        goto out;
    if (rq->n_target_ids < 0)
        push_id(&target, ink_tokenizer_eos(served->tokenizer));
    if (source.n == 0 || target.n == 0) {
        const char *name = source.n == 0 ? "source" : "target";

        st = ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: no tokens", name);
        goto out;
    }

    job = ink_job_new(&(struct ink_job_spec){
        .source = source.ids,
        .n_source = (int)source.n,
        .n_seqs = 1,
        .max_new = (int)target.n,
        .head = INK_HEAD_FULL,
        .eos = -1,
        .with_banned = true,
        .n_top = rq->n_top,
        .targets = &(struct ink_target){ target.ids, (int)target.n },
    });
    st = ink_lane_submit(served->lane, job, err);
    if (st == INK_OK)
        st = wait_for(job, rq, err);
    if (st != INK_OK)
        goto out;
    *out = (struct ink_score_result){ .model = served->name,
                                      .source_ids = source.ids,
                                      .n_source = (int)source.n };
    source.ids = NULL;
    take_result(job, (int)target.n, rq->n_top, out);
out:
    ink_job_unref(job);
    free(source.ids);
    free(target.ids);
    return st;
}

void ink_score_release(struct ink_score_result *r)
{
    free(r->source_ids);
    free(r->target);
    *r = (struct ink_score_result){ 0 };
}
