#include "unit.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/stats.h"
#include "task/fake_catalog.h"
#include "token/tokenizer.h"

#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct fake_answer many[] = {
    { "甲乙丙丁", 1 }, { "乙丙丁戊", 1 },       { "丙丁戊己。", 1 }, { "丁戊己庚辛", 1 },
    { "戊己庚", 1 },   { "己庚辛壬癸甲", 1 },   { "庚辛", 1 },       { "辛壬癸", 1 },
    { "壬癸甲乙", 1 }, { "癸甲乙丙丁戊己", 1 }, { "一二三", 1 },     { "二三四五六七八九", 1 },
    { "三四五六", 1 }, { "四五六", 1 },         { NULL, 0 },
};
static const struct fake_answer one[] = { { "甲乙丙丁", 1 }, { NULL, 0 } };

static struct ink_rewrite_request request(const char *text)
{
    struct ink_rewrite_request rq;

    ink_rewrite_defaults(&rq);
    rq.text = ink_slice_of(text);
    rq.has_seed = true;
    rq.seed = 7;
    rq.top_p = 1;
    rq.temperature = 1;
    return rq;
}

static struct ink_task *start(struct ink_catalog *c, const struct ink_rewrite_request *rq)
{
    struct ink_task *task;
    struct ink_err err;

    if (ink_rewrite_start(c, rq, &task, &err) != INK_OK)
        fail_msg("start: %s", err.text);
    return task;
}

static struct ink_engine_stats stats(struct ink_catalog *c)
{
    struct ink_engine_stats st;

    ink_served_stats(ink_catalog_model(c, 0), &st);
    return st;
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* --- answers --- */

static void a_rewrite_gives_distinct_candidates_and_a_full_result(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("这家餐厅的味道非常好");
    struct ink_task *task = start(c, &rq);
    struct fake_stream s;
    (void)state;

    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_OK);
    assert_int_equal(s.n_candidates, 3);
    const struct ink_task_result *r = ink_task_result(task);
    assert_int_equal(r->n_candidates, 3);
    assert_string_equal(r->model, "fake");
    assert_string_equal(r->device, "cpu");
    assert_string_equal(r->cache, "miss");
    assert_int_equal(r->seed, 7);
    assert_true(strlen(r->id) > 10);
    assert_int_equal(r->usage.tokens_input, 12); /* the prefix, ten characters, the end */
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        const struct ink_candidate *k = &r->candidates[i];

        assert_int_equal(k->error.code, INK_OK);
        assert_string_equal(k->finish_reason, "stop");
        assert_int_equal((size_t)k->n_tokens, ink_utf8_count(k->text.ptr, k->text.len) + 1);
        assert_null(k->tokens);
        /* One of 14 answers: all tokens but the first, which has the weight of its answers, are nearly certain. */
        assert_true(fabs(k->score * k->n_tokens - log(1.0 / 14)) < 0.7);
        sum += k->n_tokens;
        for (int j = 0; j < i; j++)
            assert_false(k->text.len == r->candidates[j].text.len &&
                         memcmp(k->text.ptr, r->candidates[j].text.ptr, k->text.len) == 0);
    }
    assert_int_equal(r->usage.tokens_output, sum);
    assert_int_equal(stats(c).encoder_passes, 1);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void stage_times_sum_to_the_total(void **state)
{
    fake_model_options = (struct fake_options){ .layer_us = 2000, .decode_us = 1000 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天天气很好");
    struct ink_task *task = start(c, &rq);
    struct fake_stream s;
    (void)state;

    fake_read_all(task, &s);
    const struct ink_task_timings *t = &ink_task_result(task)->timings;
    double sum = t->queue_ms + t->tokenize_ms + t->encode_ms + t->first_token_ms + t->decode_ms +
                 t->other_ms;
    assert_true(fabs(sum - t->total_ms) <= 0.02 * t->total_ms);
    assert_true(t->encode_ms >= 8 && t->first_token_ms >= 1 && t->decode_ms >= 2);
    assert_true(t->other_ms < 0.5 * t->total_ms);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void a_prepared_text_is_not_encoded_again(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天天气很好");
    struct ink_task *task;
    struct ink_err err;
    struct fake_stream s;
    (void)state;

    assert_int_equal(ink_rewrite_prepare(c, &rq, &task, &err), INK_OK);
    assert_int_equal(ink_task_wait(task, &err), INK_OK);
    assert_int_equal(ink_task_result(task)->usage.tokens_input, 8);
    assert_int_equal(ink_task_result(task)->n_candidates, 0);
    assert_string_equal(ink_task_result(task)->source_cache, "miss");
    ink_task_free(task);

    static const char *const words[] = { "hit", "off", "hit" };
    for (int i = 0; i < 3; i++) {
        rq.fresh = i == 1;
        task = start(c, &rq);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_OK);
        assert_string_equal(ink_task_result(task)->source_cache, words[i]);
        ink_task_free(task);
    }
    assert_int_equal(stats(c).encoder_passes, 2);

    rq.text = ink_slice_of("  ");
    assert_int_equal(ink_rewrite_prepare(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.param, "text");
    ink_catalog_free(c);
}

static void a_prepared_text_may_be_given_up(void **state)
{
    fake_model_options = (struct fake_options){ .layer_us = 50000 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天天气很好");
    struct ink_task *task;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_rewrite_prepare(c, &rq, &task, &err), INK_OK);
    nap_ms(20);
    ink_task_free(task);
    for (int64_t end = ink_clock_ms() + 5000; stats(c).jobs_cancelled != 1 && ink_clock_ms() < end;)
        nap_ms(5);
    assert_int_equal(stats(c).jobs_cancelled, 1);
    ink_catalog_free(c);
}

static void a_seed_repeats_whatever_else_runs(void **state)
{
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .n_parallel = 24 }, many);
    struct ink_rewrite_request rq = request("今天天气很好"), other = request("明天有雨");
    struct fake_stream alone, crowd;
    (void)state;

    rq.n = 5;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &alone);
    assert_int_equal(alone.status, INK_OK);
    ink_task_free(task);
    for (int round = 0; round < 5; round++) {
        struct ink_task *tasks[20];

        for (int i = 0; i < 20; i++) {
            other.seed = (uint64_t)(round * 20 + i);
            other.n = 1 + i % 6;
            tasks[i] = start(c, i == 10 ? &rq : &other);
        }
        fake_read_all(tasks[10], &crowd);
        for (int i = 0; i < 5; i++)
            assert_string_equal(alone.text[i], crowd.text[i]);
        for (int i = 0; i < 20; i++)
            ink_task_free(tasks[i]);
    }
    ink_catalog_free(c);
}

static void without_a_seed_one_is_drawn_and_repeats_the_answer(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天天气很好");
    struct fake_stream a, b;
    uint64_t seeds[8];
    (void)state;

    for (int i = 0; i < 8; i++) {
        rq.has_seed = false;
        struct ink_task *task = start(c, &rq);
        fake_read_all(task, &a);
        seeds[i] = ink_task_result(task)->seed;
        assert_true(seeds[i] < (uint64_t)1 << 53);
        ink_task_free(task);
        for (int k = 0; k < i; k++)
            assert_true(seeds[k] != seeds[i]);

        rq.has_seed = true;
        rq.seed = seeds[i];
        task = start(c, &rq);
        fake_read_all(task, &b);
        ink_task_free(task);
        for (int k = 0; k < 3; k++)
            assert_string_equal(a.text[k], b.text[k]);
    }
    ink_catalog_free(c);
}

/* --- redrawing --- */

static void duplicates_are_redrawn_then_reported(void **state)
{
    static const struct fake_answer two[] = { { "甲乙", 1 }, { "丙丁", 1 }, { NULL, 0 } };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, two);
    int n_reset = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 40; seed++) {
        struct ink_rewrite_request rq = request("今天天气很好");
        struct fake_stream s;

        rq.seed = seed;
        struct ink_task *task = start(c, &rq);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_OK);
        const struct ink_task_result *r = ink_task_result(task);
        assert_string_equal(r->candidates[0].finish_reason, "stop");
        int failed = 0;
        for (int i = 0; i < 3; i++) {
            const struct ink_candidate *k = &r->candidates[i];

            n_reset += s.n_resets[i];
            if (k->error.code == INK_OK) {
                assert_int_equal(k->n_attempts, 1 + s.n_resets[i]);
                continue;
            }
            failed++;
            assert_true(i > 0);
            assert_int_equal(k->n_attempts, 4);
            assert_int_equal(k->text.len, 0);
            assert_int_equal(k->n_tokens, 0);
            assert_string_equal(k->finish_reason, "error");
            assert_string_equal(k->error.reason, "duplicate");
        }
        assert_true(failed >= 1);
        assert_int_equal(r->n_warnings, 1);
        ink_task_free(task);
    }
    assert_true(n_reset > 40);
    assert_int_equal(stats(c).encoder_passes, 1); /* 40 times the same source */
    assert_int_equal(stats(c).encoder_reuses, 39);
    ink_catalog_free(c);
}

/* The outcome must not depend on which candidate was ready first, nor on how fast anything is. */
static void redrawing_does_not_depend_on_timing(void **state)
{
    static const struct fake_answer few[] = { { "甲", 3 }, { "甲乙丙丁戊己庚辛", 2 }, { "丙丁", 2 },
                                              { "", 1 },   { "戊己庚辛壬癸", 1 },     { NULL, 0 } };
    char first[30][6][64];
    (void)state;

    for (int k = 0; k < 3; k++) {
        fake_model_options =
            (struct fake_options){ .decode_us = k * 300, .max_rows = k == 2 ? 2 : 0 };
        struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, few);

        for (uint64_t seed = 0; seed < 30; seed++) {
            struct ink_rewrite_request rq = request("今天天气很好");
            struct fake_stream s;

            rq.seed = seed;
            rq.n = 6;
            struct ink_task *task = start(c, &rq);
            if (k == 1)
                nap_ms(3); /* the reader comes late: all are complete */
            fake_read_all(task, &s);
            assert_int_equal(s.status, INK_OK);
            for (int i = 0; i < 6; i++) {
                if (k == 0)
                    (void)snprintf(first[seed][i], sizeof(first[seed][i]), "%s", s.text[i]);
                assert_string_equal(first[seed][i], s.text[i]);
            }
            ink_task_free(task);
        }
        ink_catalog_free(c);
    }
}

static void the_source_itself_is_no_answer_unless_allowed(void **state)
{
    static const struct fake_answer same[] = {
        { "今天好", 6 }, { " 今天好", 2 }, { "明天好", 1 }, { NULL, 0 }
    };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, same);
    int n_ok = 0, n_same = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 40; seed++) {
        struct ink_rewrite_request rq = request("  今天好 ");
        struct fake_stream s;

        rq.n = 1;
        rq.seed = seed;
        struct ink_task *task = start(c, &rq);
        fake_read_all(task, &s);
        if (s.status == INK_OK) {
            assert_string_equal(s.text[0], "明天好");
            n_ok++;
        } else {
            assert_int_equal(s.status, INK_INVALID);
            assert_string_equal(s.err.reason, "no_usable_output");
            assert_string_equal(ink_task_result(task)->candidates[0].error.reason,
                                "same_as_source");
        }
        ink_task_free(task);

        rq.allow_same = true;
        task = start(c, &rq);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_OK);
        n_same += strcmp(s.text[0], "今天好") == 0;
        ink_task_free(task);
    }
    assert_true(n_ok > 5);
    assert_true(n_same > 20);
    ink_catalog_free(c);
}

static void an_empty_answer_is_drawn_again_then_an_error(void **state)
{
    static const struct fake_answer some[] = { { "", 2 }, { "  ", 1 }, { "甲", 2 }, { NULL, 0 } };
    static const struct fake_answer none[] = { { "", 1 }, { NULL, 0 } };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, some);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    int n_reset = 0, n_ok = 0;
    (void)state;

    rq.n = 1;
    for (uint64_t seed = 0; seed < 30; seed++) {
        rq.seed = seed;
        struct ink_task *task = start(c, &rq);
        fake_read_all(task, &s);
        n_reset += s.n_resets[0];
        n_ok += s.status == INK_OK && strcmp(s.text[0], "甲") == 0;
        ink_task_free(task);
    }
    assert_true(n_reset > 5 && n_ok > 20);
    ink_catalog_free(c);

    c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, none);
    rq.n = 2;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_INVALID);
    assert_string_equal(s.err.reason, "no_usable_output");
    assert_int_equal(s.n_candidates, 2);
    assert_int_equal(s.n_resets[0], 3);
    assert_string_equal(ink_task_result(task)->candidates[1].error.reason, "empty");
    ink_task_free(task);
    ink_catalog_free(c);
}

static void temperature_0_computes_one_candidate_and_says_so(void **state)
{
    static const struct fake_answer likely[] = { { "甲乙", 1 }, { "丙丁戊", 2 }, { NULL, 0 } };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, likely);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_counts counts;
    struct fake_stream s;
    (void)state;

    rq.temperature = 0;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_OK);
    assert_string_equal(s.text[0], "丙丁戊");
    assert_int_equal(s.n_candidates, 3);
    for (int i = 1; i < 3; i++)
        assert_string_equal(ink_task_result(task)->candidates[i].error.reason, "duplicate");
    ink_task_free(task);
    fake_model_counts(fake_catalog_model(), &counts);
    assert_int_equal(counts.most_rows, 1);

    /* Nothing else can be drawn: the greedy answer is the source. */
    rq = request("丙丁戊");
    rq.temperature = 0;
    rq.n = 1;
    task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_INVALID);
    assert_string_equal(s.text[0],
                        ""); /* what was shown, if the reader was quick enough, is taken back */
    assert_true(s.n_resets[0] <= 1);
    assert_int_equal(ink_task_result(task)->candidates[0].n_attempts, 1);
    ink_task_free(task);
    ink_catalog_free(c);
}

/* --- stop strings, limits, bytes --- */

static void no_part_of_a_stop_string_is_ever_shown(void **state)
{
    static const struct fake_answer a[] = { { "甲乙丙丁戊", 1 }, { NULL, 0 } };
    static const struct {
        const char *stop, *text;
        int n_tokens;
        const char *finish;
    } rows[] = {
        { "丙丁", "甲乙", 4, "stop" },       { "丙己", "甲乙丙丁戊", 6, "stop" },
        { "戊己", "甲乙丙丁戊", 6, "stop" }, { "乙丙丁", "甲", 4, "stop" },
        { "戊", "甲乙丙丁", 5, "stop" },
    };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, a);
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_rewrite_request rq = request("今天好");
        struct ink_task_event ev;
        struct fake_stream s = { 0 };

        rq.n = 1;
        rq.n_stop = 1;
        rq.stop[0] = ink_slice_of(rows[i].stop);
        struct ink_task *task = start(c, &rq);
        while (!s.done) {
            assert_int_equal(ink_task_next(task, 10000, &ev, &s.err), INK_OK);
            fake_take(&s, &ev);
            /* What is shown is always a beginning of the final text. */
            assert_int_equal(strncmp(rows[i].text, s.text[0], strlen(s.text[0])), 0);
        }
        const struct ink_candidate *k = &ink_task_result(task)->candidates[0];
        assert_string_equal(s.text[0], rows[i].text);
        assert_int_equal(k->n_tokens, rows[i].n_tokens);
        assert_string_equal(k->finish_reason, rows[i].finish);
        ink_task_free(task);
    }

    /* A stop string at the very beginning leaves nothing. */
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    rq.n = 1;
    rq.n_stop = 2;
    rq.stop[0] = ink_slice_of("辛");
    rq.stop[1] = ink_slice_of("甲乙");
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_INVALID);
    assert_string_equal(ink_task_result(task)->candidates[0].error.reason, "empty");
    ink_task_free(task);
    ink_catalog_free(c);
}

static void the_limit_is_a_finish_reason(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, one);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    rq.n = 1;
    rq.max_tokens = 3;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_string_equal(s.text[0], "甲乙丙");
    assert_string_equal(ink_task_result(task)->candidates[0].finish_reason, "length");
    assert_int_equal(ink_task_result(task)->usage.tokens_output, 3);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void a_fixed_length_never_draws_the_end(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    rq.fixed_length = true;
    rq.max_tokens = 20;
    rq.details = true;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_OK);
    for (int i = 0; i < 3; i++) {
        const struct ink_candidate *k = &ink_task_result(task)->candidates[i];

        assert_int_equal(k->n_tokens, 20);
        assert_string_equal(k->finish_reason, "length");
        for (int j = 0; j < 20; j++)
            assert_true(k->tokens[j].chosen.id > 2);
    }
    ink_task_free(task);
    ink_catalog_free(c);
}

static void characters_made_of_bytes_are_shown_whole(void **state)
{
    /* U+1F600, then a byte that never becomes a character, then white space that is dropped at the end. */
    static const struct fake_answer bytes[] = { { "甲{b F0}{b 9F}{b 98}{b 80}乙{b E4}  ", 1 },
                                                { NULL, 0 } };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, bytes);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    rq.n = 1;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_string_equal(s.text[0], "甲\xf0\x9f\x98\x80乙\xef\xbf\xbd");
    ink_task_free(task);
    ink_catalog_free(c);
}

static void specials_are_never_drawn(void **state)
{
    static const struct fake_answer sentinel[] = {
        { "{X0}甲{X1}", 1000 }, { "甲乙", 1 }, { "乙", 1 }, { "丙", 1 }, { NULL, 0 }
    };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, sentinel);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    rq.details = true;
    rq.n_top = 10;
    rq.scripts = "all";
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_OK);
    int32_t n_pieces = ink_tokenizer_n_pieces(ink_served_tokenizer(ink_catalog_model(c, 0)));
    for (int i = 0; i < 3; i++) {
        const struct ink_candidate *k = &ink_task_result(task)->candidates[i];

        assert_null(strstr(s.text[i], "extra"));
        for (int j = 0; j < k->n_tokens; j++) {
            for (int t = 0; t < k->tokens[j].n_top; t++) {
                int32_t id = k->tokens[j].top[t].id;

                assert_true(id == 1 || (id > 2 && id < n_pieces - 3));
            }
        }
    }
    ink_task_free(task);
    ink_catalog_free(c);
}

static void details_hold_what_the_score_is_made_of(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    rq.details = true;
    rq.n_top = 4;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    for (int i = 0; i < 3; i++) {
        const struct ink_candidate *k = &ink_task_result(task)->candidates[i];
        double sum = 0;

        assert_non_null(k->tokens);
        for (int j = 0; j < k->n_tokens; j++) {
            const struct ink_token_detail *t = &k->tokens[j];

            sum += (double)t->chosen.logprob;
            assert_int_equal(t->n_top, 4);
            for (int n = 1; n < 4; n++)
                assert_true(t->top[n - 1].logprob >= t->top[n].logprob);
        }
        assert_int_equal(k->tokens[k->n_tokens - 1].chosen.id, 1);
        assert_true(fabs(sum / k->n_tokens - k->score) < 1e-9);
    }
    ink_task_free(task);
    ink_catalog_free(c);
}

/* --- which vocabulary --- */

static void chinese_text_is_answered_in_the_chinese_vocabulary(void **state)
{
    static const struct fake_answer kana[] = { { "あ", 1000 }, { "甲", 1 }, { NULL, 0 } };
    static const struct {
        const char *text, *scripts, *answer;
    } rows[] = { { "今天好", NULL, "甲" },
                 { "今天好", "zh", "甲" },
                 { "今天好", "all", "あ" },
                 { "abc def", NULL, "あ" },
                 { "abc def", "zh", "甲" } };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, kana);
    struct ink_err err;
    struct ink_task *task;
    (void)state;

    assert_true(ink_served_head_rows(ink_catalog_model(c, 0)) > 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_rewrite_request rq = request(rows[i].text);
        struct fake_stream s;

        rq.n = 1;
        rq.temperature = 0;
        rq.scripts = rows[i].scripts;
        task = start(c, &rq);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_OK);
        assert_string_equal(s.text[0], rows[i].answer);
        ink_task_free(task);
    }
    struct ink_rewrite_request rq = request("今天好");
    rq.scripts = "kana";
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.param, "scripts");
    rq.scripts = "klingon";
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    ink_catalog_free(c);
}

/* --- input --- */

static void what_is_wrong_is_named(void **state)
{
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .max_target_tokens = 100 }, one);
    static const struct {
        const char *param;
        size_t offset;
        double number;
        int kind; /* 0 int, 1 double */
        int64_t integer;
    } rows[] = {
#define INT_ROW(field, value) { #field, offsetof(struct ink_rewrite_request, field), 0, 0, value }
#define NUMBER_ROW(field, value)                                         \
    {                                                                    \
#field, offsetof(struct ink_rewrite_request, field), value, 1, 0 \
    }
        INT_ROW(n, 0),
        INT_ROW(n, 17),
        INT_ROW(max_tokens, 0),
        INT_ROW(max_tokens, 101),
        INT_ROW(top_k, -1),
        INT_ROW(timeout_ms, -1),
        INT_ROW(n_top, 21),
        NUMBER_ROW(temperature, -0.1),
        NUMBER_ROW(temperature, 5.1),
        NUMBER_ROW(temperature, NAN),
        NUMBER_ROW(top_p, 0),
        NUMBER_ROW(top_p, 1.1),
        NUMBER_ROW(min_p, -1),
        NUMBER_ROW(min_p, 2),
        NUMBER_ROW(repetition_penalty, 0),
        NUMBER_ROW(repetition_penalty, 11),
    };
    struct ink_rewrite_request rq;
    struct ink_task *task;
    struct ink_err err;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rq = request("今天好");
        char *at = (char *)&rq + rows[i].offset;

        if (rows[i].kind)
            memcpy(at, &rows[i].number, sizeof(double));
        else
            memcpy(at, &(int){ (int)rows[i].integer }, sizeof(int));
        if (ink_rewrite_start(c, &rq, &task, &err) != INK_INVALID)
            fail_msg("%s was accepted", rows[i].param);
        assert_string_equal(err.param, rows[i].param);
        assert_string_equal(err.reason, "invalid_value");
        assert_non_null(strstr(err.text, rows[i].param));
    }

    static const struct {
        const char *text;
        size_t len;
    } bad[] = { { "", 0 },     { " \t\n", 3 }, { "\xe3\x80\x80", 3 },
                { "a\0b", 3 }, { "a\xff", 2 }, { "\xe4\xbd", 2 } };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        rq = request("");
        rq.text = (struct ink_slice){ bad[i].text, bad[i].len };
        assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
        assert_string_equal(err.param, "text");
        assert_string_equal(err.reason, "invalid_value");
    }
    rq = request("今天好");
    rq.seed = (uint64_t)1 << 53;
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.param, "seed");
    rq = request("今天好");
    rq.n_stop = 1;
    rq.stop[0] = (struct ink_slice){ "", 0 };
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.param, "stop");
    rq = request("今天好");
    rq.model = "nobody";
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_NOT_FOUND);
    assert_string_equal(err.param, "model");
    assert_non_null(strstr(err.text, "fake"));
    ink_catalog_free(c);
}

static void long_input_is_refused_or_cut_at_a_sentence(void **state)
{
    /* The prefix and the end take two tokens; a character is one. */
    static const struct {
        const char *text;
        int to;
    } rows[] = {
        { "今天好。明天好。昨天好。后天好。今天好", 18 }, /* four sentences of four, and two */
        { "今天好，明天好，昨天好，后天好，今天好今天好", 18 }, /* clauses */
        { "今天好今天好今天好今天好今天好今天好今天好", 20 },   /* characters */
        { "今天好。明天好明天好明天好明天好明天好明天好", 6 },  /* the only sentence end */
    };
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .max_source_tokens = 20 }, one);
    struct ink_task *task;
    struct ink_err err;
    struct fake_stream s;
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_rewrite_request rq = request(rows[i].text);
        int n = (int)ink_utf8_count(rows[i].text, strlen(rows[i].text)) + 2;
        char number[32];

        assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
        assert_string_equal(err.param, "text");
        assert_string_equal(err.reason, "input_too_long");
        (void)snprintf(number, sizeof(number), "%d tokens", n);
        assert_non_null(strstr(err.text, number));
        assert_non_null(strstr(err.text, "limit is 20"));

        rq.n = 1;
        rq.on_long_input = INK_LONG_TRUNCATE;
        task = start(c, &rq);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_OK);
        assert_int_equal(ink_task_result(task)->truncated_from, n);
        assert_int_equal(ink_task_result(task)->truncated_to, rows[i].to);
        assert_int_equal(ink_task_result(task)->usage.tokens_input, rows[i].to);
        ink_task_free(task);
    }
    /* What fits is not cut. */
    struct ink_rewrite_request rq = request("今天好。明天好。昨天好。后天好。今天");
    rq.on_long_input = INK_LONG_TRUNCATE;
    rq.n = 1;
    task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(ink_task_result(task)->truncated_from, 0);
    ink_task_free(task);
    ink_catalog_free(c);

    /* The template alone is over the limit. */
    c = fake_catalog_new(
        &(struct ink_catalog_options){ .max_source_tokens = 4, .prompt = "今天好：{text}。" }, one);
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.reason, "input_too_long");
    ink_catalog_free(c);
}

static void a_template_surrounds_the_text(void **state)
{
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .prompt = "请：{text}。" }, one);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(ink_task_result(task)->usage.tokens_input, 8);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void source_ids_are_used_as_given(void **state)
{
    fake_model_options = (struct fake_options){ .logits = fake_logits_echo };
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .prompt = "请：{text}。" }, one);
    struct ink_rewrite_request rq = request("");
    const int32_t ids[] = { 8, 5, 9 }, wrong[] = { 8, 100000 };
    struct fake_stream s;
    struct ink_task *task;
    struct ink_err err;
    (void)state;

    rq.source_ids = ids;
    rq.n_source_ids = 3;
    rq.n = 1;
    rq.details = true;
    task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_OK);
    const struct ink_candidate *k = &ink_task_result(task)->candidates[0];
    assert_int_equal(k->n_tokens, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(k->tokens[i].chosen.id, ids[i]);
    ink_task_free(task);
    rq.source_ids = wrong;
    rq.n_source_ids = 2;
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    assert_string_equal(err.param, "source_ids");
    rq.n_source_ids = 0;
    assert_int_equal(ink_rewrite_start(c, &rq, &task, &err), INK_INVALID);
    ink_catalog_free(c);
}

/* --- ending early --- */

static void cancelling_ends_the_task_at_every_stage(void **state)
{
    (void)state;
    for (int stage = 0; stage < 3; stage++) {
        fake_model_options = (struct fake_options){ .logits = fake_logits_endless,
                                                    .layer_us = stage == 1 ? 20000 : 0,
                                                    .decode_us = 2000 };
        struct ink_catalog *c =
            fake_catalog_new(&(struct ink_catalog_options){ .n_parallel = 1 }, one);
        struct ink_rewrite_request rq = request("今天好");
        struct ink_task *first = NULL;
        struct fake_stream s;

        rq.max_tokens = 250;
        if (stage == 0) { /* the queue: one place, taken; and many ahead */
            rq.n = 16;
            first = start(c, &rq);
        }
        rq.n = 2;
        struct ink_task *task = start(c, &rq);
        nap_ms(stage == 1 ? 10 : 30);
        ink_task_cancel(task);
        fake_read_all(task, &s);
        assert_int_equal(s.status, INK_CANCELLED);
        for (int i = 0; i < 2; i++)
            assert_string_equal(ink_task_result(task)->candidates[i].finish_reason, "cancelled");
        ink_task_free(task);
        ink_task_free(first);
        int64_t end = ink_clock_ms() + 5000;
        while (stats(c).blocks_free != stats(c).blocks_total && ink_clock_ms() < end)
            nap_ms(1);
        assert_int_equal(stats(c).blocks_free, stats(c).blocks_total);
        assert_int_equal(stats(c).jobs_running, 0);
        ink_catalog_free(c);
    }
}

/* A reader that asks has_event() before each look, as one that must not wait does, misses nothing. */
static void text_that_comes_with_the_end_does_not_hide_it(void **state)
{
    fake_model_options = (struct fake_options){ .decode_us = 2000 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天天气很好");
    struct ink_task *task;
    struct ink_task_event ev;
    struct ink_err err;
    enum ink_status st = INK_OK;
    (void)state;

    rq.timeout_ms = 7; /* some tokens, but not all */
    task = start(c, &rq);
    for (int64_t end = ink_clock_ms() + 5000; stats(c).jobs_running > 0 && ink_clock_ms() < end;)
        nap_ms(5);
    nap_ms(20);
    while (st == INK_OK && ink_task_has_event(task)) {
        st = ink_task_next(task, 0, &ev, &err);
        assert_int_not_equal(ev.kind, INK_TASK_IDLE);
    }
    assert_int_equal(st, INK_TIMEOUT);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void a_deadline_ends_the_task(void **state)
{
    fake_model_options = (struct fake_options){ .logits = fake_logits_endless, .decode_us = 2000 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, one);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    int64_t before = ink_clock_ms();
    (void)state;

    rq.max_tokens = 250;
    rq.timeout_ms = 50;
    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_TIMEOUT);
    assert_string_equal(s.err.reason, "deadline");
    assert_in_range(ink_clock_ms() - before, 50, 400);
    ink_task_free(task);
    ink_catalog_free(c);
}

static void a_full_queue_refuses(void **state)
{
    fake_model_options = (struct fake_options){ .logits = fake_logits_endless, .decode_us = 2000 };
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .n_parallel = 1, .n_queue = 2 }, one);
    struct ink_rewrite_request rq = request("今天好");
    struct ink_task *tasks[64];
    struct ink_task_event ev;
    struct ink_err err;
    int n = 0;
    (void)state;

    rq.max_tokens = 250;
    rq.n = 16;
    while (ink_rewrite_start(c, &rq, &tasks[n], &err) == INK_OK) {
        nap_ms(2);
        assert_true(++n < 64);
    }
    assert_int_equal(err.code, INK_BUSY);
    assert_string_equal(err.reason, "overloaded");
    assert_non_null(strstr(err.text, "try again in "));
    /* The last one that was taken is told its place. */
    assert_int_equal(ink_task_next(tasks[n - 1], 1000, &ev, &err), INK_OK);
    assert_int_equal(ev.kind, INK_TASK_QUEUED);
    assert_int_equal(ev.position, 1);
    assert_true(ev.wait_ms > 0);
    for (int i = 0; i < n; i++)
        ink_task_free(tasks[i]);
    ink_catalog_free(c);
}

static void a_broken_model_fails_the_task(void **state)
{
    fake_model_options = (struct fake_options){ .fail_decode = 3 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, many);
    struct ink_rewrite_request rq = request("今天好");
    struct fake_stream s;
    (void)state;

    struct ink_task *task = start(c, &rq);
    fake_read_all(task, &s);
    assert_int_equal(s.status, INK_DEVICE);
    ink_task_free(task);
    ink_catalog_free(c);
}

/* --- not blocking --- */

static void wake(void *arg)
{
    sem_post(arg);
}

/* Reads as a server does: never waits in the task, sleeps until it is woken. */
static void a_waker_is_enough_to_read_everything(void **state)
{
    static const struct fake_answer few[] = {
        { "甲", 3 }, { "甲乙丙丁戊己庚辛", 2 }, { "丙丁", 2 }, { "", 1 }, { NULL, 0 }
    };
    fake_model_options = (struct fake_options){ .decode_us = 200 };
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, few);
    (void)state;

    for (uint64_t seed = 0; seed < 30; seed++) {
        struct ink_rewrite_request rq = request("今天好");
        struct fake_stream s = { 0 };
        struct ink_task_event ev;
        sem_t woken;

        sem_init(&woken, 0, 0);
        rq.seed = seed;
        struct ink_task *task = start(c, &rq);
        ink_task_set_waker(task, wake, &woken);
        while (!s.done) {
            assert_int_equal(ink_task_next(task, 0, &ev, &s.err), INK_OK);
            fake_take(&s, &ev);
            if (ev.kind != INK_TASK_IDLE || ink_task_has_event(task))
                continue;
            struct timespec limit;
            clock_gettime(CLOCK_REALTIME, &limit);
            limit.tv_sec += 5;
            assert_int_equal(sem_timedwait(&woken, &limit), 0);
        }
        assert_int_equal(s.n_candidates, 3);
        ink_task_free(task);
        sem_destroy(&woken);
    }
    ink_catalog_free(c);
}

static void a_task_may_be_freed_at_any_time(void **state)
{
    fake_model_options = (struct fake_options){ .decode_us = 100, .layer_us = 100 };
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .n_parallel = 8 }, many);
    struct ink_rewrite_request rq = request("今天好");
    struct ink_task_event ev;
    sem_t woken;
    (void)state;

    sem_init(&woken, 0, 0);
    for (int i = 0; i < 60; i++) {
        struct ink_task *task = start(c, &rq);

        ink_task_set_waker(task, wake, &woken);
        for (int k = 0; k < i % 7; k++)
            (void)!ink_task_next(task, 1, &ev, NULL);
        ink_task_free(task);
    }
    int64_t end = ink_clock_ms() + 5000;
    while (stats(c).jobs_running + stats(c).queue_length > 0 && ink_clock_ms() < end)
        nap_ms(1);
    assert_int_equal(stats(c).blocks_free, stats(c).blocks_total);
    ink_catalog_free(c);
    sem_destroy(&woken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rewrite_gives_distinct_candidates_and_a_full_result),
        cmocka_unit_test(a_prepared_text_is_not_encoded_again),
        cmocka_unit_test(a_prepared_text_may_be_given_up),
        cmocka_unit_test(stage_times_sum_to_the_total),
        cmocka_unit_test(a_seed_repeats_whatever_else_runs),
        cmocka_unit_test(without_a_seed_one_is_drawn_and_repeats_the_answer),
        cmocka_unit_test(duplicates_are_redrawn_then_reported),
        cmocka_unit_test(redrawing_does_not_depend_on_timing),
        cmocka_unit_test(the_source_itself_is_no_answer_unless_allowed),
        cmocka_unit_test(an_empty_answer_is_drawn_again_then_an_error),
        cmocka_unit_test(temperature_0_computes_one_candidate_and_says_so),
        cmocka_unit_test(no_part_of_a_stop_string_is_ever_shown),
        cmocka_unit_test(the_limit_is_a_finish_reason),
        cmocka_unit_test(a_fixed_length_never_draws_the_end),
        cmocka_unit_test(characters_made_of_bytes_are_shown_whole),
        cmocka_unit_test(specials_are_never_drawn),
        cmocka_unit_test(details_hold_what_the_score_is_made_of),
        cmocka_unit_test(chinese_text_is_answered_in_the_chinese_vocabulary),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(long_input_is_refused_or_cut_at_a_sentence),
        cmocka_unit_test(a_template_surrounds_the_text),
        cmocka_unit_test(source_ids_are_used_as_given),
        cmocka_unit_test(cancelling_ends_the_task_at_every_stage),
        cmocka_unit_test(text_that_comes_with_the_end_does_not_hide_it),
        cmocka_unit_test(a_deadline_ends_the_task),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(a_broken_model_fails_the_task),
        cmocka_unit_test(a_waker_is_enough_to_read_everything),
        cmocka_unit_test(a_task_may_be_freed_at_any_time),
    };
    return cmocka_run_group_tests_name("rewrite", tests, NULL, NULL);
}
