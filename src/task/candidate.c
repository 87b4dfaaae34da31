/* Tokens to text for one candidate. */
#include "task/candidate.h"

#include "base/alloc.h"
#include "task/stop.h"
#include "task/text_limits.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 8 << 20 }; /* far above what max_tokens pieces can spell */

void candidate_init(struct candidate *c, const struct candidate_rules *rules, int index)
{
    size_t n = (size_t)rules->max_tokens;

    *c = (struct candidate){ .rules = rules, .index = index, .finish_reason = "error" };
    c->detokenizer = ink_detokenizer_new(rules->tokenizer);
    ink_buf_init(&c->raw, MAX_TEXT);
    c->tokens = ink_alloc(n * sizeof(*c->tokens));
    if (rules->details && rules->n_top > 0)
        c->tops = ink_alloc(n * (size_t)rules->n_top * sizeof(*c->tops));
}

void candidate_release(struct candidate *c)
{
    ink_detokenizer_free(c->detokenizer);
    ink_buf_release(&c->raw);
    free(c->tokens);
    free(c->tops);
    free(c->key.ids);
    free(c->detail);
    free(c->detail_tops);
}

/* Moves `begin` and `end` on with the raw text; at the end of the attempt nothing is held back but white space. */
static void show(struct candidate *c, bool over)
{
    struct ink_slice raw = ink_buf_slice(&c->raw);

    if (!c->stopped) {
        c->checked = stop_scan(raw, c->checked, c->rules->stops, c->rules->n_stops, &c->stopped);
        if (over && !c->stopped)
            c->checked = raw.len;
    }
    raw.len = c->checked;
    if (c->begin == c->end) /* nothing but white space yet */
        c->begin = c->sent = text_blank_prefix(raw);
    c->end = text_without_blank_end(raw);
    if (c->end < c->begin)
        c->end = c->begin;
}

static enum ink_status add_text(struct candidate *c, struct ink_slice text, struct ink_err *err)
{
    enum ink_status st = ink_buf_add(&c->raw, text.ptr, text.len);

    return st == INK_OK ? st : ink_err_set(err, st, "candidate %d: its text is too long", c->index);
}

static enum ink_status complete(struct candidate *c, const char *reason, struct ink_err *err)
{
    static const struct ink_encode_options plain = { 0 };
    enum ink_status st = INK_OK;

    if (!c->stopped) {
        st = add_text(c, ink_detokenizer_finish(c->detokenizer), err);
        if (st != INK_OK)
            return st;
        show(c, true);
    }
    c->finish_reason = c->stopped ? "stop" : reason;
    c->state = CANDIDATE_COMPLETE;
    c->key.n = 0;
    return ink_tokenizer_encode(c->rules->tokenizer, candidate_text(c), &plain, &c->key, err);
}

/* One token more. A stop string makes it the last one. */
static enum ink_status take(struct candidate *c, int32_t id, struct ink_err *err)
{
    struct ink_slice text;
    enum ink_status st;

    c->n_tokens++;
    if (id == ink_tokenizer_eos(c->rules->tokenizer))
        return INK_OK;
    st = ink_detokenizer_add(c->detokenizer, id, &text, err);
    if (st == INK_OK && text.len > 0) {
        st = add_text(c, text, err);
        if (st == INK_OK)
            show(c, false);
    }
    return st;
}

enum ink_status candidate_pull(struct candidate *c, struct ink_job *job, bool *halt,
                               struct ink_err *err)
{
    struct ink_token *tops =
        c->tops ? c->tops + (size_t)c->n_tokens * (size_t)c->rules->n_top : NULL;
    struct ink_seq_view view;
    enum ink_status st = INK_OK;
    int n, first = c->n_tokens;

    *halt = false;
    if (c->state != CANDIDATE_ACTIVE)
        return INK_OK;
    n = ink_job_read(job, c->index, first, c->tokens + first, tops, c->rules->max_tokens - first,
                     &view);
    assert(view.attempt == c->attempt); /* only the reader redraws */
    for (int i = 0; i < n && st == INK_OK && !c->stopped; i++)
        st = take(c, c->tokens[first + i].id, err);
    if (st != INK_OK)
        return st;
    if (c->stopped) {
        *halt = true;
        return complete(c, "stop", err);
    }
    if (view.state != INK_SEQ_ACTIVE && c->n_tokens == view.n_tokens)
        return complete(c, view.state == INK_SEQ_STOP ? "stop" : "length", err);
    return INK_OK;
}

struct ink_slice candidate_unsent(const struct candidate *c)
{
    return (struct ink_slice){ c->raw.ptr + c->sent, c->end - c->sent };
}

struct ink_slice candidate_text(const struct candidate *c)
{
    return (struct ink_slice){ c->raw.ptr + c->begin, c->end - c->begin };
}

/* Back to nothing; what was shown has to be withdrawn. */
static void clear(struct candidate *c, const char *reason)
{
    ink_detokenizer_clear(c->detokenizer);
    ink_buf_clear(&c->raw);
    c->checked = c->begin = c->end = c->sent = 0;
    c->stopped = false;
    c->n_tokens = 0;
    c->resets = true;
    c->reset_reason = reason;
}

void candidate_restart(struct candidate *c, const char *reason)
{
    assert(c->state == CANDIDATE_COMPLETE);
    clear(c, reason);
    c->attempt++;
    c->state = CANDIDATE_ACTIVE;
}

void candidate_fail(struct candidate *c, const struct ink_err *error, const char *reason)
{
    bool shown = c->resets || c->sent > c->begin;

    clear(c, reason);
    c->resets = shown;
    c->state = CANDIDATE_FAILED;
    c->finish_reason = error->code == INK_CANCELLED ? "cancelled" : "error";
    c->error = *error;
}

static void make_details(struct candidate *c)
{
    size_t n = (size_t)c->n_tokens, n_top = c->tops ? (size_t)c->rules->n_top : 0;

    c->detail = ink_alloc((n ? n : 1) * sizeof(*c->detail));
    c->detail_tops = ink_alloc((n * n_top + 1) * sizeof(*c->detail_tops));
    for (size_t i = 0; i < n; i++) {
        struct ink_token_prob *top = c->detail_tops + i * n_top;
        int k = 0;

        for (; k < (int)n_top && c->tops[i * n_top + (size_t)k].id >= 0; k++)
            top[k] = (struct ink_token_prob){ c->tops[i * n_top + (size_t)k].id,
                                              c->tops[i * n_top + (size_t)k].logprob };
        c->detail[i] = (struct ink_token_detail){
            .chosen = { c->tokens[i].id, c->tokens[i].logprob }, .top = top, .n_top = k
        };
    }
}

void candidate_accept(struct candidate *c)
{
    assert(c->state == CANDIDATE_COMPLETE);
    c->state = CANDIDATE_ACCEPTED;
    if (c->rules->details)
        make_details(c);
}

void candidate_describe(const struct candidate *c, struct ink_candidate *out)
{
    double sum = 0;

    for (int i = 0; i < c->n_tokens; i++)
        sum += (double)c->tokens[i].logprob;
    *out = (struct ink_candidate){
        .index = c->index,
        .text = candidate_text(c),
        .finish_reason = c->finish_reason,
        .score = c->n_tokens > 0 ? sum / c->n_tokens : 0,
        .n_tokens = c->n_tokens,
        .n_attempts = c->attempt + 1,
        .tokens = c->detail,
        .error = c->error,
    };
}
