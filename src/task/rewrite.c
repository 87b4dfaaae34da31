/*
 * From a request to a running task: every field checked, the text put into the template and cut to the model's
 * limit if that is wished, the output head chosen, the job queued.
 */
#include "task/rewrite.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/trace.h"
#include "base/utf8.h"
#include "task/catalog.h"
#include "task/task_private.h"
#include "task/text_limits.h"
#include "token/script.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    DEFAULT_N = 3,
    DEFAULT_MAX_TOKENS = 64,
    MAX_TEXT_BYTES =
        1 << 20, /* beyond any model's limit; bounds the work of finding out by how much */
    MAX_STOP_BYTES = 512,
};

static const uint64_t max_seed = ((uint64_t)1 << 53) - 1;
static const char text_slot[] = "{text}";

void ink_rewrite_defaults(struct ink_rewrite_request *rq)
{
    *rq = (struct ink_rewrite_request){
        .n = DEFAULT_N,
        .temperature = 0.85,
        .top_p = 0.9,
        .repetition_penalty = 1,
        .max_tokens = DEFAULT_MAX_TOKENS,
    };
}

/* --- checks --- */

static enum ink_status check_int(const char *name, int64_t value, int64_t min, int64_t max,
                                 struct ink_err *err)
{
    if (value >= min && value <= max)
        return INK_OK;
    return ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: %lld is not in %lld..%lld",
                         name, (long long)value, (long long)min, (long long)max);
}

static enum ink_status check_number(const char *name, double value, double min, double max,
                                    struct ink_err *err)
{
    if (value >= min && value <= max) /* false for NaN */
        return INK_OK;
    return ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: %g is not in %g..%g", name,
                         value, min, max);
}

static enum ink_status check_stops(const struct ink_rewrite_request *rq, struct ink_err *err)
{
    enum ink_status st = check_int("stop", rq->n_stop, 0, INK_STOP_MAX, err);

    for (int i = 0; i < rq->n_stop && st == INK_OK; i++) {
        struct ink_slice s = rq->stop[i];

        if (s.len < 1 || s.len > MAX_STOP_BYTES || !ink_utf8_is_valid(s.ptr, s.len))
            st = ink_err_param(err, INK_INVALID, "stop", "invalid_value",
                               "stop: string %d must be 1..%d bytes of UTF-8", i, MAX_STOP_BYTES);
    }
    return st;
}

static enum ink_status check_fields(const struct ink_rewrite_request *rq,
                                    const struct ink_served *served, struct ink_err *err)
{
    enum ink_status st;

    if ((st = check_int("n", rq->n, 1, INK_REWRITE_N_MAX, err)) != INK_OK ||
        (st = check_number("temperature", rq->temperature, 0, 5, err)) != INK_OK ||
        (st = check_number("top_p", rq->top_p, 0, 1, err)) != INK_OK ||
        (st = check_number("min_p", rq->min_p, 0, 1, err)) != INK_OK ||
        (st = check_number("repetition_penalty", rq->repetition_penalty, 0.1, 10, err)) != INK_OK ||
        (st = check_int("top_k", rq->top_k, 0, INT32_MAX, err)) != INK_OK ||
        (st = check_int("max_tokens", rq->max_tokens, 1, served->max_target, err)) != INK_OK ||
        (st = check_int("timeout_ms", rq->timeout_ms, 0, INT32_MAX, err)) != INK_OK ||
        (st = check_int("n_top", rq->n_top, 0, INK_TOP_MAX, err)) != INK_OK)
        return st;
    if (!((float)rq->top_p > 0))
        return ink_err_param(err, INK_INVALID, "top_p", "invalid_value",
                             "top_p: %g is not above 0 and at most 1", rq->top_p);
    if (rq->has_seed && rq->seed > max_seed)
        return ink_err_param(err, INK_INVALID, "seed", "invalid_value",
                             "seed: %llu is not in 0..%llu", (unsigned long long)rq->seed,
                             (unsigned long long)max_seed);
    return check_stops(rq, err);
}

static enum ink_status check_text(struct ink_slice text, struct ink_err *err)
{
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);
    const char *nul = text.len > 0 ? memchr(text.ptr, '\0', text.len) : NULL;

    if (valid < text.len)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: not valid UTF-8 at byte %zu of %zu", valid, text.len);
    if (nul)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: a NUL character at byte %zu", (size_t)(nul - text.ptr));
    if (text_blank_prefix(text) == text.len)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: empty; write what to rewrite");
    return INK_OK;
}

/* --- the source --- */

struct source {
    struct ink_tokens tokens;
    int n_before; /* tokens before truncation; 0: not truncated */
};

static enum ink_status encode_prompt(const struct ink_served *served, struct ink_slice text,
                                     struct ink_tokens *out, struct ink_err *err)
{
    /* Special pieces are not recognized: what a user writes is text. */
    static const struct ink_encode_options options = { .add_special = true };
    const char *slot = strstr(served->prompt, text_slot);
    struct ink_buf prompt;
    enum ink_status st;

    ink_buf_init(&prompt, MAX_TEXT_BYTES + strlen(served->prompt));
    st = ink_buf_add(&prompt, served->prompt, (size_t)(slot - served->prompt));
    if (st == INK_OK)
        st = ink_buf_add(&prompt, text.ptr, text.len);
    if (st == INK_OK)
        st = ink_buf_adds(&prompt, slot + strlen(text_slot));
    if (st != INK_OK)
        st = ink_err_param(err, INK_INVALID, "text", "input_too_long",
                           "text: %zu bytes; at most %d", text.len, MAX_TEXT_BYTES);
    out->n = 0;
    if (st == INK_OK)
        st = ink_tokenizer_encode(served->tokenizer, ink_buf_slice(&prompt), &options, out, err);
    ink_buf_release(&prompt);
    return st;
}

static enum ink_status too_long(size_t n_tokens, int max, struct ink_err *err)
{
    return ink_err_param(
        err, INK_INVALID, "text", "input_too_long",
        "text: %zu tokens with the prompt; the limit is %d (on_long_input \"truncate\" cuts at a "
        "sentence end)",
        n_tokens, max);
}

/*
 * The longest prefix, in whole characters, whose prompt fits. A longer text nearly always has more tokens, so halving finds it;
 * the answer itself is always one that was tried and fits. 0 when not even the template does.
 */
static enum ink_status longest_fit(const struct ink_served *served, struct ink_slice text,
                                   struct ink_tokens *scratch, size_t *len, struct ink_err *err)
{
    size_t fits = 0, too_much = text.len;

    for (;;) {
        size_t mid = text_last_cut(text, fits + (too_much - fits) / 2, TEXT_CUT_CHARACTER);
        enum ink_status st;

        if (mid <= fits) {
            /* The middle is inside a character: the next whole one decides. */
            uint32_t cp;

            mid = fits + ink_utf8_decode(text.ptr + fits, text.len - fits, &cp);
            if (mid >= too_much)
                break;
        }
        st = encode_prompt(served, (struct ink_slice){ text.ptr, mid }, scratch, err);
        if (st != INK_OK)
            return st;
        if (scratch->n <= (size_t)served->max_source)
            fits = mid;
        else
            too_much = mid;
    }
    *len = fits;
    return INK_OK;
}

/* Cuts `*text` at the last sentence end that fits, else clause, else character. */
static enum ink_status truncate_text(const struct ink_served *served, struct ink_slice *text,
                                     struct ink_tokens *out, struct ink_err *err)
{
    size_t fit, n_before = out->n;
    enum ink_status st = longest_fit(served, *text, out, &fit, err);

    if (st != INK_OK)
        return st;
    for (int kind = TEXT_CUT_SENTENCE; kind <= TEXT_CUT_CHARACTER; kind++) {
        size_t max = fit, len;

        while ((len = text_last_cut(*text, max, (enum text_cut)kind)) > 0) {
            struct ink_slice part = { text->ptr, len };

            if (text_blank_prefix(part) == len)
                break;
            st = encode_prompt(served, part, out, err);
            if (st != INK_OK)
                return st;
            if (out->n <= (size_t)served->max_source) {
                *text = part;
                return INK_OK;
            }
            max = len - 1; /* a shorter text of more tokens: rare, but possible */
        }
    }
    return too_long(n_before, served->max_source, err);
}

static enum ink_status source_from_text(const struct ink_served *served,
                                        const struct ink_rewrite_request *rq,
                                        struct ink_slice *text, struct source *out,
                                        struct ink_err *err)
{
    enum ink_status st = check_text(*text, err);

    if (st == INK_OK)
        st = encode_prompt(served, *text, &out->tokens, err);
    if (st != INK_OK || out->tokens.n <= (size_t)served->max_source)
        return st;
    if (rq->on_long_input != INK_LONG_TRUNCATE)
        return too_long(out->tokens.n, served->max_source, err);
    out->n_before = (int)out->tokens.n;
    return truncate_text(served, text, &out->tokens, err);
}

static enum ink_status source_from_ids(const struct ink_served *served,
                                       const struct ink_rewrite_request *rq, struct source *out,
                                       struct ink_err *err)
{
    int n = rq->n_source_ids;

    if (n < 1)
        return ink_err_param(err, INK_INVALID, "source_ids", "invalid_value", "source_ids: empty");
    if (n > served->max_source)
        return ink_err_param(err, INK_INVALID, "source_ids", "input_too_long",
                             "source_ids: %d tokens; the limit is %d", n, served->max_source);
    for (int i = 0; i < n; i++) {
        if (rq->source_ids[i] < 0 || rq->source_ids[i] >= served->info.n_vocab)
            return ink_err_param(err, INK_INVALID, "source_ids", "invalid_value",
                                 "source_ids[%d]: %d is not in 0..%d", i, (int)rq->source_ids[i],
                                 served->info.n_vocab - 1);
    }
    out->tokens.ids = ink_alloc((size_t)n * sizeof(int32_t));
    memcpy(out->tokens.ids, rq->source_ids, (size_t)n * sizeof(int32_t));
    out->tokens.n = out->tokens.cap = (size_t)n;
    return INK_OK;
}

/* --- the head --- */

static enum ink_status choose_head(const struct ink_served *served,
                                   const struct ink_rewrite_request *rq, int *head,
                                   struct ink_err *err)
{
    unsigned scripts = INK_SCRIPT_ALL;
    enum ink_status st = INK_OK;

    *head = INK_HEAD_FULL;
    if (rq->scripts)
        st = ink_script_parse(rq->scripts, &scripts, err);
    else if (!rq->source_ids && served->head_zh_rows > 0 && ink_script_is_chinese(rq->text))
        scripts = INK_SCRIPT_ZH;
    if (st != INK_OK || scripts == INK_SCRIPT_ALL)
        return st;
    if (scripts != INK_SCRIPT_ZH || served->head_zh_rows == 0)
        return ink_err_param(err, INK_INVALID, "scripts", "invalid_value",
                             "scripts: \"%.40s\" is not offered by %.60s; there is: all%s",
                             rq->scripts, served->name, served->head_zh_rows > 0 ? ", zh" : "");
    *head = served->head_zh;
    return INK_OK;
}

/* --- the task --- */

static uint64_t random_bits(void)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
        bits = (uint64_t)ink_clock_ns() *
               0x9E3779B97F4A7C15u; /* no entropy yet: early in the machine's life */
    return bits;
}

static void set_rules(struct ink_task *task, const struct ink_rewrite_request *rq)
{
    for (int i = 0; i < rq->n_stop; i++)
        task->stops[i] =
            (struct ink_slice){ ink_strndup(rq->stop[i].ptr, rq->stop[i].len), rq->stop[i].len };
    task->rules = (struct candidate_rules){
        .tokenizer = task->served->tokenizer,
        .stops = task->stops,
        .n_stops = rq->n_stop,
        .max_tokens = rq->max_tokens,
        .n_top = rq->details ? rq->n_top : 0,
        .details = rq->details,
    };
    task->greedy = rq->temperature == 0;
    task->allow_same = rq->allow_same || rq->source_ids;
    for (int i = 0; i < task->n; i++)
        candidate_init(&task->candidates[i], &task->rules, i);
}

/* At temperature 0 only the first candidate is computed: the others could only repeat it. */
static void fail_repetitions(struct ink_task *task)
{
    for (int i = 1; i < task->n; i++) {
        struct ink_err error;

        ink_err_param(
            &error, INK_INVALID, "", "duplicate",
            "candidate %d: temperature 0 has one answer only, candidate 0; raise it for more", i);
        candidate_fail(&task->candidates[i], &error, "duplicate");
        candidate_describe(&task->candidates[i], &task->described[i]);
    }
}

static struct ink_job *make_job(const struct ink_task *task, const struct ink_rewrite_request *rq,
                                const struct ink_tokens *source, int head)
{
    return ink_job_new(&(struct ink_job_spec){
        .source = source->ids,
        .n_source = (int)source->n,
        .n_seqs = task->greedy ? 1 : task->n,
        .max_new = rq->max_tokens,
        .head = head,
        .eos = ink_tokenizer_eos(task->served->tokenizer),
        .no_end = rq->fixed_length,
        .fresh = rq->fresh,
        .keep_open = true,
        .n_top = task->rules.n_top,
        .sampling = { .temperature = (float)rq->temperature,
                      .top_k = rq->top_k,
                      .top_p = (float)rq->top_p,
                      .min_p = (float)rq->min_p,
                      .repetition_penalty = (float)rq->repetition_penalty,
                      .seed = task->result.seed },
        .timeout_ms = rq->timeout_ms,
    });
}

static void describe_source(struct ink_task *task, const struct source *source)
{
    task->result.usage.tokens_input = (int)source->tokens.n;
    if (source->n_before > 0) {
        task->result.truncated_from = source->n_before;
        task->result.truncated_to = (int)source->tokens.n;
    }
}

static enum ink_status compare_with_source(struct ink_task *task, struct ink_slice text,
                                           struct ink_err *err)
{
    static const struct ink_encode_options plain = { 0 };

    if (task->allow_same)
        return INK_OK;
    return ink_tokenizer_encode(task->served->tokenizer, text, &plain, &task->source_key, err);
}

enum ink_status ink_rewrite_check(struct ink_catalog *catalog, const struct ink_rewrite_request *rq,
                                  struct ink_served **served, struct ink_err *err)
{
    enum ink_status st = ink_catalog_find(catalog, rq->model, INK_CAN_REWRITE, served, err);
    int head;

    if (st == INK_OK)
        st = check_fields(rq, *served, err);
    return st == INK_OK && rq->scripts ? choose_head(*served, rq, &head, err) : st;
}

enum ink_status ink_rewrite_start(struct ink_catalog *catalog, const struct ink_rewrite_request *rq,
                                  struct ink_task **out, struct ink_err *err)
{
    int64_t start_ns = ink_clock_ns(), tokenize_ns;
    struct ink_served *served;
    struct source source = { 0 };
    struct ink_slice text = rq->text;
    struct ink_task *task = NULL;
    int head;
    enum ink_status st = ink_rewrite_check(catalog, rq, &served, err);

    if (st != INK_OK)
        return st;
    tokenize_ns = ink_clock_ns();
    st = rq->source_ids ? source_from_ids(served, rq, &source, err)
                        : source_from_text(served, rq, &text, &source, err);
    if (st == INK_OK)
        st = choose_head(served, rq, &head, err);
    if (st != INK_OK)
        goto out;

    task = task_new(served, rq->n);
    task->start_ns = start_ns;
    ink_trace_begin(task);
    set_rules(task, rq);
    if (!rq->source_ids && (st = compare_with_source(task, text, err)) != INK_OK)
        goto out;
    task->tokenize_ms = ink_clock_ms_since(tokenize_ns);
    task->result.seed = rq->has_seed ? rq->seed : random_bits() & max_seed;
    if (rq->fresh)
        task->result.source_cache = "off";
    describe_source(task, &source);
    (void)snprintf(task->result.id, sizeof(task->result.id), "rw-%016llx",
                   (unsigned long long)random_bits());
    if (task->greedy)
        fail_repetitions(task);

    task->job = make_job(task, rq, &source.tokens, head);
    st = ink_lane_submit(served->lane, task->job, err);
    if (st == INK_OK) {
        *out = task;
        task = NULL;
    }
out:
    ink_task_free(task);
    free(source.tokens.ids);
    return st;
}

enum ink_status ink_rewrite_prepare(struct ink_catalog *catalog,
                                    const struct ink_rewrite_request *rq, struct ink_task **out,
                                    struct ink_err *err)
{
    const int64_t start_ns = ink_clock_ns();
    struct ink_served *served;
    struct source source = { 0 };
    struct ink_slice text = rq->text;
    enum ink_status st = ink_catalog_find(catalog, rq->model, INK_CAN_REWRITE, &served, err);

    if (st != INK_OK)
        return st;
    st = source_from_text(served, rq, &text, &source, err);
    if (st == INK_OK) {
        struct ink_task *task = task_new(served, 0);

        task->start_ns = start_ns;
        task->tokenize_ms = ink_clock_ms_since(start_ns);
        describe_source(task, &source);
        task->job = ink_job_new(&(struct ink_job_spec){ .source = source.tokens.ids,
                                                        .n_source = (int)source.tokens.n,
                                                        .max_new = 1,
                                                        .timeout_ms = rq->timeout_ms });
        st = ink_lane_submit(served->lane, task->job, err);
        if (st == INK_OK)
            *out = task;
        else
            ink_task_free(task);
    }
    free(source.tokens.ids);
    return st;
}
