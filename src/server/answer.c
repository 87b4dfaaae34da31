/*
 * Results as JSON. Jansson keeps the order in which keys are set, and the order
 * here is the contract's.
 */
#include "server/answer.h"

#include "server/error_words.h"
#include "task/catalog.h"
#include "task/score.h"
#include "task/task.h"
#include "task/tokenize.h"

#include <math.h>
#include <string.h>

/* Takes the reference to `value`. Keys are ours and values never NULL, so only memory could fail. */
static void put(json_t *object, const char *key, json_t *value)
{
    (void)json_object_set_new(object, key, value); /* a missing key shows in the answer */
}

/* Pieces and texts are valid UTF-8 by their makers' promise; should one not be, the answer still is. */
static json_t *text_of(struct ink_slice s)
{
    json_t *value = json_stringn(s.ptr ? s.ptr : "", s.len);

    return value ? value : json_string("\xef\xbf\xbd");
}

/* JSON has no infinities: what is impossible becomes the lowest finite float. */
static json_t *real(double v)
{
    if (isnan(v))
        return json_null();
    if (isinf(v))
        return json_real(v < 0 ? -3.4e38 : 3.4e38);
    return json_real(v);
}

static json_t *ms(double v)
{
    return real(round(v * 1000) / 1000);
}

static json_t *token(const struct ink_served *served, const struct ink_token_prob *p)
{
    json_t *o = json_object();

    put(o, "id", json_integer(p->id));
    put(o, "piece", text_of(ink_token_piece(served, p->id)));
    put(o, "logprob", real((double)p->logprob));
    return o;
}

static json_t *token_details(const struct ink_served *served, const struct ink_token_detail *d,
                             int n, bool always_top)
{
    json_t *tokens = json_array();

    for (int i = 0; i < n; i++) {
        json_t *one = token(served, &d[i].chosen);

        if (always_top || d[i].n_top > 0) {
            json_t *top = json_array();

            for (int k = 0; k < d[i].n_top; k++)
                (void)json_array_append_new(top, token(served, &d[i].top[k]));
            put(one, "top", top);
        }
        (void)json_array_append_new(tokens, one);
    }
    return tokens;
}

json_t *ink_answer_error(const struct ink_err *err)
{
    const struct error_word *w = error_word_of(err);
    json_t *o = json_object();

    put(o, "message", text_of(ink_slice_of(err->text)));
    put(o, "type", json_string(w->type));
    put(o, "param", err->param[0] ? text_of(ink_slice_of(err->param)) : json_null());
    put(o, "code", json_string(w->word));
    return o;
}

json_t *ink_answer_failed(const struct ink_err *err)
{
    json_t *o = json_object();

    put(o, "error", ink_answer_error(err));
    return o;
}

json_t *ink_answer_numbered(int64_t index, json_t *answer)
{
    json_t *o = json_object();

    put(o, "index", json_integer(index));
    (void)json_object_update(o, answer);
    json_decref(answer);
    return o;
}

json_t *ink_answer_candidate(const struct ink_served *served, const struct ink_candidate *c,
                             bool details)
{
    bool failed = c->error.code != INK_OK;
    json_t *o = json_object();

    put(o, "index", json_integer(c->index));
    put(o, "text", failed ? json_string("") : text_of(c->text));
    put(o, "finish_reason", json_string(c->finish_reason ? c->finish_reason : "error"));
    put(o, "score", failed && c->n_tokens == 0 ? json_null() : real(c->score));
    if (failed)
        put(o, "error", ink_answer_error(&c->error));
    if (details && c->tokens)
        put(o, "tokens", token_details(served, c->tokens, c->n_tokens, true));
    return o;
}

json_t *ink_answer_timings(const struct ink_task_timings *t)
{
    json_t *o = json_object();

    put(o, "queue_ms", ms(t->queue_ms));
    put(o, "tokenize_ms", ms(t->tokenize_ms));
    put(o, "encode_ms", ms(t->encode_ms));
    put(o, "first_token_ms", ms(t->first_token_ms));
    put(o, "decode_ms", ms(t->decode_ms));
    put(o, "other_ms", ms(t->other_ms));
    put(o, "total_ms", ms(t->total_ms));
    return o;
}

json_t *ink_answer_usage(long long tokens_input, long long tokens_output)
{
    json_t *o = json_object();

    put(o, "input_tokens", json_integer(tokens_input));
    put(o, "output_tokens", json_integer(tokens_output));
    return o;
}

json_t *ink_answer_texts(const struct ink_task *task)
{
    const struct ink_task_result *r = task ? ink_task_result(task) : NULL;
    json_t *texts = json_array();

    for (int i = 0; r && i < r->n_candidates; i++) {
        if (r->candidates[i].error.code == INK_OK)
            (void)json_array_append_new(texts, text_of(r->candidates[i].text));
    }
    return texts;
}

static json_t *truncation(const struct ink_task_result *r)
{
    if (r->truncated_from == 0)
        return json_null();

    json_t *o = json_object();
    put(o, "from", json_integer(r->truncated_from));
    put(o, "to", json_integer(r->truncated_to));
    put(o, "unit", json_string("tokens"));
    return o;
}

json_t *ink_answer_rewrite(const struct ink_served *served, const struct ink_task_result *r,
                           bool details)
{
    json_t *o = json_object();
    json_t *rewrites = json_array();
    json_t *warnings = json_array();

    for (int i = 0; i < r->n_candidates; i++)
        (void)json_array_append_new(rewrites,
                                    ink_answer_candidate(served, &r->candidates[i], details));
    for (int i = 0; i < r->n_warnings; i++)
        (void)json_array_append_new(warnings, text_of(ink_slice_of(r->warnings[i])));

    put(o, "id", json_string(r->id));
    put(o, "model", text_of(ink_slice_of(r->model)));
    put(o, "rewrites", rewrites);
    put(o, "seed", json_integer((json_int_t)r->seed));
    put(o, "usage", ink_answer_usage(r->usage.tokens_input, r->usage.tokens_output));
    put(o, "timings", ink_answer_timings(&r->timings));
    put(o, "cache", json_string(r->cache));
    put(o, "source_cache", json_string(r->source_cache));
    put(o, "device", text_of(ink_slice_of(r->device)));
    put(o, "truncated", truncation(r));
    put(o, "warnings", warnings);
    return o;
}

static json_t *ids_array(const int32_t *ids, size_t n)
{
    json_t *a = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(a, json_integer(ids[i]));
    return a;
}

json_t *ink_answer_score(const struct ink_served *served, const struct ink_score_result *r)
{
    json_t *o = json_object();

    put(o, "model", text_of(ink_slice_of(r->model)));
    put(o, "source_ids", ids_array(r->source_ids, (size_t)r->n_source));
    put(o, "target", token_details(served, r->target, r->n_target, false));
    put(o, "sum_logprob", real(r->sum_logprob));
    return o;
}

json_t *ink_answer_tokens(const struct ink_served *served, const int32_t *ids, size_t n)
{
    json_t *o = json_object();
    json_t *pieces = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(pieces, text_of(ink_token_piece(served, ids[i])));
    put(o, "model", text_of(ink_slice_of(ink_served_name(served))));
    put(o, "ids", ids_array(ids, n));
    put(o, "pieces", pieces);
    return o;
}

json_t *ink_answer_text(const struct ink_served *served, struct ink_slice text)
{
    json_t *o = json_object();

    put(o, "model", text_of(ink_slice_of(ink_served_name(served))));
    put(o, "text", text_of(text));
    return o;
}

json_t *ink_answer_model(const struct ink_served *served)
{
    static const struct {
        unsigned bit;
        const char *word;
    } capabilities[] = {
        { INK_CAN_REWRITE, "rewrite" }, { INK_CAN_CLASSIFY, "classify" }, { INK_CAN_CHAT, "chat" },
        { INK_CAN_ASK, "ask" },         { INK_CAN_SCORE, "score" },
    };
    const struct ink_model_info *info = ink_served_info(served);
    json_t *can = json_array();
    json_t *o = json_object();

    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
        if (ink_served_capabilities(served) & capabilities[i].bit)
            (void)json_array_append_new(can, json_string(capabilities[i].word));
    }
    put(o, "id", text_of(ink_slice_of(ink_served_name(served))));
    put(o, "object", json_string("model"));
    put(o, "created", json_integer(ink_served_created(served)));
    put(o, "owned_by", json_string("inkstone"));
    put(o, "capabilities", can);
    put(o, "type", text_of(ink_slice_of(info->type)));
    put(o, "context", json_integer(ink_served_max_source(served)));
    put(o, "max_output", json_integer(ink_served_max_target(served)));
    put(o, "demo", json_boolean(ink_served_is_demo(served)));
    put(o, "device", text_of(ink_slice_of(info->device)));
    return o;
}
