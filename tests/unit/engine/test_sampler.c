#include "unit.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "engine/sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAX = 250112, DRAWS = 100000 };

static float logits[N_MAX];
static double expected[N_MAX];
static const struct ink_sampling plain = {
    .temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 11
};

static float uniform(unsigned *r)
{
    *r = *r * 1664525 + 1013904223;
    return (float)(*r >> 8) / (float)(1 << 24);
}

/* Bell-shaped values of the given spread, like the logits of an untrained model; some are equal. */
static void fill(int n, float spread, unsigned r)
{
    for (int i = 0; i < n; i++)
        logits[i] = (uniform(&r) + uniform(&r) + uniform(&r) + uniform(&r) - 2) * 1.73f * spread;
    for (int i = 10; i + 10 < n; i += 10)
        logits[i] = logits[i - 10];
}

/* --- the definition, written plainly: sort everything --- */

static int by_logit(const void *a, const void *b)
{
    int i = *(const int *)a, j = *(const int *)b;

    if (logits[i] != logits[j])
        return logits[i] > logits[j] ? -1 : 1;
    return i - j;
}

static void define(int n, const struct ink_sampling *how)
{
    int *order = ink_alloc((size_t)n * sizeof(*order));
    double sum = 0, above = 0;
    int kept = n;

    for (int i = 0; i < n; i++)
        order[i] = i;
    qsort(order, (size_t)n, sizeof(*order), by_logit);
    for (int i = 0; i < n; i++)
        expected[i] =
            exp(((double)logits[i] - (double)logits[order[0]]) / (double)how->temperature);
    if (how->top_k > 0 && how->top_k < n) {
        kept = how->top_k;
        while (kept < n && logits[order[kept]] == logits[order[how->top_k - 1]])
            kept++;
    }
    for (int i = 0; i < kept; i++)
        sum += expected[order[i]];
    for (int i = 0; i < kept; i++) {
        if (above >= (double)how->top_p * sum) {
            kept = i;
            break;
        }
        above += expected[order[i]];
    }
    while (kept > 1 && expected[order[kept - 1]] < (double)how->min_p)
        kept--;
    for (int i = kept; i < n; i++)
        expected[order[i]] = 0;
    sum = 0;
    for (int i = 0; i < n; i++)
        sum += expected[i];
    for (int i = 0; i < n; i++)
        expected[i] /= sum;
    free(order);
}

/*
 * Draws and compares with the definition. Cells expected fewer than 5 times are pooled. The statistic, made a
 * standard normal by Wilson and Hilferty's cube root, must stay below 4: the seeds are fixed, so this is no lottery.
 */
static double compare(struct sampler *s, int n, const struct ink_sampling *how)
{
    int *count = ink_zalloc((size_t)n * sizeof(*count));
    const struct sampler_row row = { .logits = logits, .n = n };
    double chi2 = 0, rest_expected = 0, rest_count = 0;
    int cells = 0;

    define(n, how);
    for (uint32_t i = 0; i < DRAWS; i++) {
        const struct random_place place = { i % 16, i / 16 % 4, i / 64, 0 };
        struct ink_token t;

        assert_int_equal(sampler_draw(s, &row, how, &place, NULL, 0, NULL, 0, &t), INK_OK);
        assert_true(t.id >= 0 && t.id < n);
        if (expected[t.id] == 0)
            fail_msg("token %d was drawn, though the filters exclude it", t.id);
        count[t.id]++;
    }
    for (int i = 0; i < n; i++) {
        double e = expected[i] * DRAWS;

        if (e < 5) {
            rest_expected += e;
            rest_count += count[i];
            continue;
        }
        chi2 += (count[i] - e) * (count[i] - e) / e;
        cells++;
    }
    if (rest_expected >= 5) {
        chi2 += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
        cells++;
    }
    free(count);
    if (cells < 2)
        return 0;
    double k = cells - 1;
    return (cbrt(chi2 / k) - (1 - 2 / (9 * k))) / sqrt(2 / (9 * k));
}

static void draws_follow_the_exact_distribution(void **state)
{
    static const struct {
        const char *name;
        struct ink_sampling how;
    } rows[] = {
        { "plain", { .temperature = 1, .top_p = 1, .repetition_penalty = 1 } },
        { "temperature 0.5", { .temperature = 0.5f, .top_p = 1, .repetition_penalty = 1 } },
        { "temperature 1.7", { .temperature = 1.7f, .top_p = 1, .repetition_penalty = 1 } },
        { "top-k 1", { .temperature = 1, .top_k = 1, .top_p = 1, .repetition_penalty = 1 } },
        { "top-k 7", { .temperature = 1, .top_k = 7, .top_p = 1, .repetition_penalty = 1 } },
        { "top-k 40", { .temperature = 0.8f, .top_k = 40, .top_p = 1, .repetition_penalty = 1 } },
        { "top-p 0.02", { .temperature = 1.5f, .top_p = 0.02f, .repetition_penalty = 1 } },
        { "top-p 0.3", { .temperature = 1, .top_p = 0.3f, .repetition_penalty = 1 } },
        { "top-p 0.9", { .temperature = 0.85f, .top_p = 0.9f, .repetition_penalty = 1 } },
        { "top-p 0.999", { .temperature = 1, .top_p = 0.999f, .repetition_penalty = 1 } },
        { "top-p and min-p",
          { .temperature = 1, .top_p = 0.6f, .min_p = 0.1f, .repetition_penalty = 1 } },
        { "min-p 0.05", { .temperature = 1, .top_p = 1, .min_p = 0.05f, .repetition_penalty = 1 } },
        { "all",
          { .temperature = 1.2f,
            .top_k = 60,
            .top_p = 0.95f,
            .min_p = 0.02f,
            .repetition_penalty = 1 } },
    };
    struct sampler *s = sampler_new(N_MAX);
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_sampling how = rows[i].how;
        const float spread = (float[]){ 1.5f, 0.3f, 4 }[i % 3];

        how.seed = 1000 + i;
        fill(160, spread, (unsigned)i + 1);
        double z = compare(s, 160, &how);
        if (z > 4)
            fail_msg("%s: %.2f standard deviations from the exact distribution", rows[i].name, z);
    }
    sampler_free(s);
}

/* The support of the filters, over many shapes of row: draws at fine steps of the random number meet its both ends. */
static void filters_keep_exactly_what_the_definition_keeps(void **state)
{
    struct sampler *s = sampler_new(N_MAX);
    unsigned r = 3;
    (void)state;

    for (int round = 0; round < 160; round++) {
        int n = 1 + (int)(uniform(&r) * 300);
        struct ink_sampling how = plain;
        const struct sampler_row row = { .logits = logits, .n = n };
        double lost = 0;
        int *hit = ink_zalloc((size_t)n * sizeof(*hit));

        fill(n, uniform(&r) * 20, (unsigned)round);
        how.temperature = 0.1f + uniform(&r) * 2;
        if (round & 1)
            how.top_k = 1 + (int)(uniform(&r) * (float)n);
        if (round & 2)
            how.top_p = 0.01f + 0.98f * uniform(&r);
        if (round & 4)
            how.min_p = uniform(&r);
        define(n, &how);
        for (uint32_t i = 0; i < 2000; i++) {
            struct ink_token t;

            how.seed = i;
            assert_int_equal(
                sampler_draw(s, &row, &how, &(struct random_place){ 0 }, NULL, 0, NULL, 0, &t),
                INK_OK);
            if (expected[t.id] == 0)
                fail_msg("round %d: token %d of %d is excluded, and was drawn", round, t.id, n);
            hit[t.id]++;
        }
        for (int i = 0; i < n; i++)
            lost += hit[i] ? 0 : expected[i];
        /* What was never met in 2000 draws is unlikely. */
        assert_true(lost < 0.25);
        for (int i = 0; i < n; i++)
            assert_true(hit[i] || expected[i] < 0.01);
        free(hit);
    }
    sampler_free(s);
}

static void a_long_row_is_drawn_from_as_exactly(void **state)
{
    struct sampler *s = sampler_new(N_MAX);
    struct ink_sampling how = { .temperature = 0.85f, .top_p = 0.9f, .repetition_penalty = 1 };
    const struct sampler_row row = { .logits = logits, .n = 32000 };
    (void)state;

    /* The most favoured 200 tokens must come as often as they should; the others are too rare one by one. */
    fill(32000, 1.0f, 9);
    define(32000, &how);
    double p = 0, hits = 0;
    enum { N = 20000 };
    for (int i = 0; i < 32000; i++)
        p += logits[i] > 2 ? expected[i] : 0;
    for (uint32_t i = 0; i < N; i++) {
        struct ink_token t;

        assert_int_equal(sampler_draw(s, &row, &how, &(struct random_place){ .position = i }, NULL,
                                      0, NULL, 0, &t),
                         INK_OK);
        assert_true(expected[t.id] > 0);
        hits += logits[t.id] > 2;
    }
    assert_true(fabs(hits - p * N) < 4 * sqrt(p * (1 - p) * N));
    sampler_free(s);
}

static void greedy_takes_the_lowest_id_among_equals(void **state)
{
    struct sampler *s = sampler_new(1000);
    struct ink_sampling how = plain;
    struct ink_token t;
    (void)state;

    how.temperature = 0;
    for (int n = 1; n < 1000; n += 37) {
        fill(n, 2, (unsigned)n);
        logits[n / 2] = 50;
        logits[n - 1] = 50;
        assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = n }, &how,
                                      &(struct random_place){ 0 }, NULL, 0, NULL, 0, &t),
                         INK_OK);
        assert_int_equal(t.id, n / 2);
    }
    sampler_free(s);
}

static void banned_entries_are_never_drawn_nor_counted(void **state)
{
    struct sampler *s = sampler_new(100);
    const int32_t banned[] = { 0, 50, 99 };
    const struct sampler_row row = { .logits = logits, .n = 100, .banned = banned, .n_banned = 3 };
    struct ink_token t, top[20];
    double sum = 0;
    (void)state;

    fill(100, 1, 5);
    logits[0] = logits[50] = logits[99] = 40;
    for (uint32_t i = 0; i < 2000; i++) {
        assert_int_equal(sampler_draw(s, &row, &plain, &(struct random_place){ .position = i },
                                      NULL, 0, top, 20, &t),
                         INK_OK);
        assert_true(t.id != 0 && t.id != 50 && t.id != 99);
        for (int k = 0; k < 20; k++)
            assert_true(top[k].id != 0 && top[k].id != 50 && top[k].id != 99);
    }
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sampler_score(s, &row, i, NULL, 0, &t), INK_OK);
        sum += exp((double)t.logprob);
    }
    assert_true(fabs(sum - 1) < 1e-5);
    sampler_free(s);
}

static void logprob_is_the_models_own(void **state)
{
    struct sampler *s = sampler_new(5000);
    const struct ink_sampling bent = {
        .temperature = 0.3f, .top_k = 5, .top_p = 0.5f, .repetition_penalty = 3
    };
    const struct ink_token history[] = { { 7, 0 }, { 8, 0 } };
    struct ink_token t, top[3];
    (void)state;

    fill(5000, 2, 4);
    logits[7] = 9; /* penalized to 3 */
    logits[8] = 8.5f;
    logits[9] = 8;
    double z = 0;
    for (int i = 0; i < 5000; i++)
        z += exp((double)logits[i]);
    assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = 5000 }, &bent,
                                  &(struct random_place){ 0 }, history, 2, top, 3, &t),
                     INK_OK);
    assert_int_equal(t.id, 9);
    assert_true(fabs((double)t.logprob - (8 - log(z))) < 1e-5);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(top[i].id, 7 + i);
        assert_true(fabs((double)top[i].logprob - ((double)logits[7 + i] - log(z))) < 1e-5);
    }
    sampler_free(s);
}

static void penalty_divides_above_zero_and_multiplies_below_once(void **state)
{
    struct sampler *s = sampler_new(100);
    struct ink_sampling how = plain;
    const struct ink_token twice[] = { { 1, 0 }, { 1, 0 }, { 2, 0 }, { 500, 0 } };
    struct ink_token t;
    (void)state;

    how.temperature = 0;
    how.repetition_penalty = 2;
    for (int i = 0; i < 10; i++)
        logits[i] = -5;
    logits[1] = 3;      /* 1.5: dividing twice would give 0.75 */
    logits[2] = -0.25f; /* -0.5 */
    logits[3] = 1;
    assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = 10 }, &how,
                                  &(struct random_place){ 0 }, twice, 4, NULL, 0, &t),
                     INK_OK);
    assert_int_equal(t.id, 1);
    logits[3] = 1.6f;
    assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = 10 }, &how,
                                  &(struct random_place){ 0 }, twice, 4, NULL, 0, &t),
                     INK_OK);
    assert_int_equal(t.id, 3);
    logits[1] = -1; /* -2 */
    logits[3] = -5;
    logits[4] = -0.4f;
    assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = 10 }, &how,
                                  &(struct random_place){ 0 }, twice, 4, NULL, 0, &t),
                     INK_OK);
    assert_int_equal(t.id, 4);
    sampler_free(s);
}

static void a_smaller_head_names_its_own_tokens(void **state)
{
    struct sampler *s = sampler_new(100);
    const int32_t ids[] = { 3, 10, 11, 99 };
    const struct sampler_row row = { .logits = logits, .n = 4, .ids = ids };
    struct ink_sampling how = plain;
    struct ink_token t, top[6];
    (void)state;

    how.temperature = 0;
    memcpy(logits, (float[]){ 1, 2, 4, 3 }, 4 * sizeof(float));
    assert_int_equal(sampler_draw(s, &row, &how, &(struct random_place){ 0 }, NULL, 0, top, 6, &t),
                     INK_OK);
    assert_int_equal(t.id, 11);
    assert_int_equal(top[1].id, 99);
    assert_int_equal(top[3].id, 3);
    assert_int_equal(top[4].id, -1);
    assert_int_equal(sampler_score(s, &row, 12, NULL, 0, &t), INK_OK);
    assert_true(t.logprob == -INFINITY);
    assert_int_equal(sampler_row_find(ids, 4, 99), 3);
    assert_int_equal(sampler_row_find(ids, 4, 100), -1);
    sampler_free(s);
}

static void a_row_that_is_not_finite_is_an_error(void **state)
{
    struct sampler *s = sampler_new(100);
    struct ink_token t;
    (void)state;

    fill(100, 1, 1);
    logits[70] = NAN;
    assert_int_equal(sampler_draw(s, &(struct sampler_row){ .logits = logits, .n = 100 }, &plain,
                                  &(struct random_place){ 0 }, NULL, 0, NULL, 0, &t),
                     INK_DEVICE);
    sampler_free(s);
}

static void extreme_settings_work(void **state)
{
    struct sampler *s = sampler_new(1000);
    const struct sampler_row row = { .logits = logits, .n = 1000 };
    struct ink_token t;
    (void)state;

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 1000; i++)
            logits[i] = round == 0   ? 0
                        : round == 1 ? (float)-i * 1e4f
                        : round == 2 ? 3e38f
                                     : (float)i * 1e-6f;
        for (int k = 0; k < 6; k++) {
            struct ink_sampling how = { .temperature = (float[]){ 1e-9f, 1e-3f, 1, 5, 5, 1 }[k],
                                        .top_k = (int[]){ 0, 3, 999, 0, 1000, 0 }[k],
                                        .top_p =
                                            (float[]){ 1, 0.5f, 1e-6f, 0.9999999f, 1, 1e-9f }[k],
                                        .min_p = (float[]){ 0, 1, 0.5f, 0, 1, 1e-30f }[k],
                                        .repetition_penalty = 1 };

            for (uint32_t i = 0; i < 50; i++) {
                assert_int_equal(sampler_draw(s, &row, &how,
                                              &(struct random_place){ .position = i }, NULL, 0,
                                              NULL, 0, &t),
                                 INK_OK);
                assert_true(t.id >= 0 && t.id < 1000);
            }
        }
    }
    sampler_free(s);
}

/* Prints the figure; the bound is far above it, for slow machines and sanitizers. */
static void a_step_of_150_rows_is_fast(void **state)
{
    struct sampler *s = sampler_new(32000);
    const struct sampler_row row = { .logits = logits, .n = 32000 };
    struct ink_sampling how = { .temperature = 0.85f, .top_p = 0.9f, .repetition_penalty = 1 };
    static const float spreads[] = { 1, 6 };
    struct ink_token t;
    (void)state;

    for (int k = 0; k < 2; k++) {
        fill(32000, spreads[k], 1);
        int64_t start = ink_clock_ns();
        for (uint32_t i = 0; i < 150; i++) {
            assert_int_equal(sampler_draw(s, &row, &how, &(struct random_place){ .position = i },
                                          NULL, 0, NULL, 0, &t),
                             INK_OK);
        }
        double ms = ink_clock_ms_since(start);
        printf("150 rows of 32,000 logits with spread %g: %.1f ms\n", (double)spreads[k], ms);
        assert_true(ms < 1000);
    }
    sampler_free(s);
}

static void each_redraw_is_bolder_and_greedy_stays_greedy(void **state)
{
    const struct ink_sampling warm = { .temperature = 0.8f }, greedy = { .temperature = 0 };
    (void)state;

    assert_true(ink_sampling_temperature(&warm, 0) == 0.8f);
    for (int i = 1; i <= 3; i++)
        assert_true(ink_sampling_temperature(&warm, i) > ink_sampling_temperature(&warm, i - 1));
    assert_true(ink_sampling_temperature(&warm, 100) == ink_sampling_temperature(&warm, 3));
    assert_true(ink_sampling_temperature(&greedy, 3) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_redraw_is_bolder_and_greedy_stays_greedy),
        cmocka_unit_test(draws_follow_the_exact_distribution),
        cmocka_unit_test(filters_keep_exactly_what_the_definition_keeps),
        cmocka_unit_test(a_long_row_is_drawn_from_as_exactly),
        cmocka_unit_test(greedy_takes_the_lowest_id_among_equals),
        cmocka_unit_test(banned_entries_are_never_drawn_nor_counted),
        cmocka_unit_test(logprob_is_the_models_own),
        cmocka_unit_test(penalty_divides_above_zero_and_multiplies_below_once),
        cmocka_unit_test(a_smaller_head_names_its_own_tokens),
        cmocka_unit_test(a_row_that_is_not_finite_is_an_error),
        cmocka_unit_test(extreme_settings_work),
        cmocka_unit_test(a_step_of_150_rows_is_fast),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
