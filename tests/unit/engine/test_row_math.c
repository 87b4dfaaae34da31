#include "unit.h"

#include "engine/row_math.h"

#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum { N = 1024, N_BLOCKS = N / ROW_BLOCK };

static alignas(64) float x[N], w[N], w2[N], copy[N];
static float max[N_BLOCKS], max2[N_BLOCKS], sum[N_BLOCKS], sum2[N_BLOCKS];

static void fill(float scale)
{
    unsigned r = 7;

    for (int i = 0; i < N; i++) {
        r = r * 1664525 + 1013904223;
        x[i] = ((float)(r >> 8) / (float)(1 << 24) - 1.0f) * scale;
    }
    x[17] = 0;
    x[N - 1] = -INFINITY;
}

static void exp_is_right_to_float_precision(void **state)
{
    const struct row_math *m = row_math_best();
    double worst = 0;
    (void)state;

    for (int k = 1; k <= 86; k++) {
        fill((float)k);
        for (int b = 0; b < N_BLOCKS; b++)
            x[b * ROW_BLOCK + 1] = -1; /* no block is skipped */
        m->block_max(x, N_BLOCKS, max);
        m->weights(x, max, N_BLOCKS, 0.0f, 1.0f, w, sum);
        for (int i = 0; i < N - 1; i++) {
            double want = exp((double)x[i]);
            double e = fabs((double)w[i] - want) / want;

            worst = e > worst ? e : worst;
        }
        assert_true(w[N - 1] == 0.0f);
        assert_true(w[17] == 1.0f);
    }
    printf("exp: largest relative error %.2g\n", worst);
    assert_true(worst < 1.5e-7);
}

static void what_is_far_below_counts_as_nothing(void **state)
{
    const struct row_math *m = row_math_best();
    (void)state;

    for (int i = 0; i < N; i++)
        x[i] = -1000;
    x[3] = 0;
    x[4] = -88;
    x[ROW_BLOCK] = -31;
    m->block_max(x, N_BLOCKS, max);
    m->block_sum(x, max, N_BLOCKS, 0.0f, 1.0f, sum);
    assert_true(sum[0] == 1.0f);
    for (int b = 1; b < N_BLOCKS; b++)
        assert_true(sum[b] == 0.0f);
}

static void all_implementations_give_the_same_bits(void **state)
{
    const struct row_math *a = row_math_portable(), *b = row_math_best();
    (void)state;

    for (int k = 1; k < 100; k++) {
        fill((float)k);
        a->block_max(x, N_BLOCKS, max);
        b->block_max(x, N_BLOCKS, max2);
        assert_memory_equal(max, max2, sizeof(max));
        memset(w, 0, sizeof(w));
        memset(w2, 0, sizeof(w2));
        a->weights(x, max, N_BLOCKS, 0.0f, 1.3f, w, sum);
        b->weights(x, max, N_BLOCKS, 0.0f, 1.3f, w2, sum2);
        assert_memory_equal(w, w2, sizeof(w));
        assert_memory_equal(sum, sum2, sizeof(sum));
        b->block_sum(x, max, N_BLOCKS, 0.0f, 1.3f, sum2);
        assert_memory_equal(sum, sum2, sizeof(sum));
        for (int i = 0; i < N; i += 101) {
            int n_a, n_b;
            double above_a = a->above(x, w, max, sum, N_BLOCKS, x[i], &n_a);
            double above_b = b->above(x, w, max, sum, N_BLOCKS, x[i], &n_b), plain = 0;
            int equal = 0;

            assert_true(above_a == above_b && n_a == n_b);
            for (int j = 0; j < N; j++) {
                bool counts = sum[j / ROW_BLOCK] > 0;

                plain += counts && x[j] > x[i] ? (double)w[j] : 0;
                equal += counts && x[j] == x[i];
            }
            assert_true(fabs(plain - above_a) < 1e-5 * plain + 1e-12);
            assert_int_equal(equal, n_a);
        }
        a->cut(x, max, N_BLOCKS, -0.25f * (float)k, w, sum);
        b->cut(x, max, N_BLOCKS, -0.25f * (float)k, w2, sum2);
        assert_memory_equal(w, w2, sizeof(w));
        assert_memory_equal(sum, sum2, sizeof(sum));
    }
}

static void loading_copies_pads_and_notices_what_is_not_finite(void **state)
{
    const struct row_math *both[] = { row_math_portable(), row_math_best() };
    const float bad[] = { NAN, INFINITY, -INFINITY };
    (void)state;

    for (int k = 0; k < 2; k++) {
        fill(10);
        x[N - 1] = 1;
        for (int n = 1; n < 200; n += n < 70 ? 1 : 13) {
            int n_blocks = (n + ROW_BLOCK - 1) / ROW_BLOCK;

            assert_true(both[k]->load(x, n, copy, max));
            assert_memory_equal(x, copy, (size_t)n * sizeof(float));
            for (int i = n; i < n_blocks * ROW_BLOCK; i++)
                assert_true(copy[i] == -INFINITY);
            both[k]->block_max(copy, n_blocks, max2);
            assert_memory_equal(max, max2, (size_t)n_blocks * sizeof(float));
            for (int j = 0; j < 3; j++) {
                for (int at = 0; at < n; at++) {
                    float was = x[at];

                    x[at] = bad[j];
                    assert_false(both[k]->load(x, n, copy, max));
                    x[at] = was;
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_right_to_float_precision),
        cmocka_unit_test(what_is_far_below_counts_as_nothing),
        cmocka_unit_test(all_implementations_give_the_same_bits),
        cmocka_unit_test(loading_copies_pads_and_notices_what_is_not_finite),
    };
    return cmocka_run_group_tests_name("row_math", tests, NULL, NULL);
}
