#include "unit.h"

#include "task/fake_catalog.h"
#include "task/score.h"
#include "token/tokenizer.h"

#include <math.h>
#include <string.h>

static const struct fake_answer answers[] = { { "甲乙", 1 }, { "甲丙丁", 3 }, { NULL, 0 } };

static struct ink_score_request request(const char *source, const char *target)
{
    return (struct ink_score_request){ .source = ink_slice_of(source),
                                       .target = ink_slice_of(target),
                                       .n_source_ids = -1,
                                       .n_target_ids = -1 };
}

static void text_is_tokenized_as_the_reference_does(void **state)
{
    struct ink_catalog *c =
        fake_catalog_new(&(struct ink_catalog_options){ .prompt = "请：{text}。" }, answers);
    struct ink_score_request rq = request("今天<extra_id_0>", "甲乙");
    struct ink_score_result r;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_score(c, &rq, &r, &err), INK_OK);
    assert_string_equal(r.model, "fake");
    /* No template; the end token last; the special piece is one token: prefix, two characters, it, the end. */
    assert_int_equal(r.n_source, 5);
    assert_int_equal(r.source_ids[4], 1);
    assert_int_equal(r.source_ids[3],
                     ink_tokenizer_find(ink_served_tokenizer(ink_catalog_model(c, 0)),
                                        ink_slice_of("<extra_id_0>")));
    /* The prefix, two characters, and the end that is appended. */
    assert_int_equal(r.n_target, 4);
    assert_int_equal(r.target[3].chosen.id, 1);
    assert_int_equal(r.target[0].n_top, 0);
    double sum = 0;
    for (int i = 0; i < r.n_target; i++)
        sum += (double)r.target[i].chosen.logprob;
    assert_true(fabs(sum - r.sum_logprob) < 1e-6);
    ink_score_release(&r);
    ink_catalog_free(c);
}

static void ids_are_used_as_given_and_scored_over_the_full_vocabulary(void **state)
{
    struct ink_catalog *c = fake_catalog_new(&(struct ink_catalog_options){ 0 }, answers);
    const struct ink_tokenizer *t = ink_served_tokenizer(ink_catalog_model(c, 0));
    int32_t target[] = { ink_tokenizer_find(t, ink_slice_of("甲")),
                         ink_tokenizer_find(t, ink_slice_of("乙")), 1 };
    const int32_t source[] = { 5 };
    struct ink_score_request rq = request("", "");
    struct ink_score_result r;
    struct ink_err err;
    (void)state;

    rq.source_ids = source;
    rq.n_source_ids = 1;
    rq.target_ids = target;
    rq.n_target_ids = 3;
    rq.n_top = 2;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_OK);
    assert_int_equal(r.n_source, 1);
    assert_int_equal(r.n_target, 3); /* nothing appended */
    assert_true(fabs((double)r.target[0].chosen.logprob) < 1e-4);
    assert_true(fabs((double)r.target[1].chosen.logprob - log(0.25)) < 1e-4);
    assert_int_equal(r.target[1].n_top, 2);
    assert_int_equal(r.target[1].top[0].id, ink_tokenizer_find(t, ink_slice_of("丙")));
    assert_true(fabs((double)r.target[1].top[0].logprob - log(0.75)) < 1e-4);
    assert_true(fabs((double)r.target[2].chosen.logprob) < 1e-4);
    assert_true(fabs(r.sum_logprob - log(0.25)) < 1e-3);
    ink_score_release(&r);

    /* What is never drawn can be scored: a special, and a row beyond the vocabulary. */
    target[0] = ink_tokenizer_find(t, ink_slice_of("<extra_id_1>"));
    target[1] = ink_served_info(ink_catalog_model(c, 0))->n_vocab - 1;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_OK);
    assert_true(isfinite(r.sum_logprob) && r.sum_logprob < -50);
    ink_score_release(&r);
    ink_catalog_free(c);
}

static void what_is_wrong_is_named(void **state)
{
    struct ink_catalog *c = fake_catalog_new(
        &(struct ink_catalog_options){ .max_source_tokens = 10, .max_target_tokens = 10 }, answers);
    const int32_t bad[] = { 1, -1 }, large[] = { 100000 };
    struct ink_score_result r;
    struct ink_score_request rq;
    struct ink_err err;
    (void)state;

    rq = request("a\xff", "甲");
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    assert_string_equal(err.param, "source");
    rq = request("甲", "今天好今天好今天好今天好");
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    assert_string_equal(err.param, "target");
    assert_string_equal(err.reason, "input_too_long");
    rq = request("今天好今天好今天好", "甲");
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    assert_string_equal(err.param, "source");
    rq = request("甲", "甲");
    rq.source_ids = bad;
    rq.n_source_ids = 2;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    rq.n_source_ids = 0;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    rq = request("甲", "甲");
    rq.target_ids = large;
    rq.n_target_ids = 1;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    assert_string_equal(err.param, "target_ids");
    rq = request("甲", "甲");
    rq.n_top = 21;
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_INVALID);
    rq = request("甲", "甲");
    rq.model = "nobody";
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_NOT_FOUND);
    /* An empty target is its end token alone. */
    rq = request("甲", "");
    assert_int_equal(ink_score(c, &rq, &r, &err), INK_OK);
    assert_int_equal(r.n_target, 1);
    ink_score_release(&r);
    ink_catalog_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_tokenized_as_the_reference_does),
        cmocka_unit_test(ids_are_used_as_given_and_scored_over_the_full_vocabulary),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
