/* The vector operators against plain double arithmetic, in every form this processor can run. */
#include "unit.h"

#include "model/vector.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { N_MAX = 100 };

/* Ordinary values of both signs, the same at every run. */
static float value(int i)
{
    return (float)((i * 2654435761U >> 8) % 20001U) / 2500.0f - 4.0f;
}

static void fill(float *x, int n, int seed)
{
    for (int i = 0; i < n; i++)
        x[i] = value(i + 1000 * seed);
}

static const struct vector_ops *form(int i)
{
    return i == 0 ? vector_plain() : vector_best();
}

static void rms_norm_divides_by_the_root_mean_square(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int n = 1; n <= N_MAX; n += 7) {
            float x[N_MAX], w[N_MAX], y[N_MAX];
            double sum = 0.0;

            fill(x, n, 1);
            fill(w, n, 2);
            for (int i = 0; i < n; i++)
                sum += (double)x[i] * x[i];
            form(f)->rms_norm(x, w, 1e-6f, n, y);
            for (int i = 0; i < n; i++)
                assert_true(fabs(y[i] - x[i] / sqrt(sum / n + 1e-6) * w[i]) < 1e-5);
        }
}

static void gelu_gate_is_the_tanh_form_times_up(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float g[N_MAX], u[N_MAX], y[N_MAX];

        for (int i = 0; i < N_MAX; i++) {
            g[i] = (float)(i - 50) / 4.0f; /* -12.5 .. 12.25: both tails */
            u[i] = value(i);
        }
        for (int n = N_MAX - 9; n <= N_MAX; n++) {
            form(f)->gelu_gate(g, u, n, y);
            for (int i = 0; i < n; i++) {
                double x = g[i];
                double want = 0.5 * x *
                              (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x))) *
                              u[i];

                assert_true(fabs(y[i] - want) < 2e-6 * fmax(1.0, fabs(want)));
            }
        }
    }
}

/* Activations of fp16-trained checkpoints reach hundreds of thousands: no overflow on the way through e^x. */
static void gelu_gate_of_huge_values_is_finite(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float g[8] = { 1e5f, -1e5f, 1e12f, -1e12f, 88.0f, -88.0f, 0.0f, -0.0f };
        float u[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
        float y[8];

        form(f)->gelu_gate(g, u, 8, y);
        for (int i = 0; i < 8; i++)
            assert_true(fabsf(y[i] - (g[i] > 0 ? g[i] : 0.0f)) <= 1e-6f * fabsf(g[i]));
    }
}

static void softened_scores_are_a_softmax(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int n = 1; n <= 48; n++) {
            float s[48], x[48];
            int padded = (n + KEY_BLOCK - 1) / KEY_BLOCK * KEY_BLOCK;
            double top = -INFINITY, total = 0.0;

            fill(x, n, n);
            for (int i = 0; i < n; i++)
                x[i] = i % 5 == 0 ? x[i] * 20.0f : x[i]; /* wide spread, so that some vanish */
            memcpy(s, x, sizeof(x));
            for (int i = n; i < padded; i++)
                s[i] = NAN; /* what lies there must not matter */
            for (int i = 0; i < n; i++)
                top = fmax(top, x[i]);
            for (int i = 0; i < n; i++)
                total += exp(x[i] - top);
            float sum = form(f)->soften(s, n, padded);
            assert_true(fabs(sum - total) < 1e-6 * total);
            for (int i = 0; i < n; i++)
                assert_true(fabs(s[i] - exp(x[i] - top)) < 1e-6);
            for (int i = n; i < padded; i++)
                assert_true(s[i] == 0.0f);
        }
}

static void attention_parts_equal_plain_sums(void **state)
{
    enum { D = 24 };
    static float q[D], k[D * KEY_BLOCK], v[KEY_BLOCK * D], s[KEY_BLOCK], y[D];
    (void)state;

    for (int f = 0; f < 2; f++) {
        fill(q, D, 3);
        fill(k, D * KEY_BLOCK, 4);
        fill(v, KEY_BLOCK * D, 5);
        form(f)->key_scores(q, k, D, s);
        for (int j = 0; j < KEY_BLOCK; j++) {
            double want = 0.0;

            for (int d = 0; d < D; d++)
                want += (double)q[d] * k[d * KEY_BLOCK + j];
            assert_true(fabs(s[j] - want) < 1e-4);
        }
        memset(y, 0, sizeof(y));
        form(f)->add_values(s, v, KEY_BLOCK - 3, D, y);
        for (int d = 0; d < D; d++) {
            double want = 0.0;

            for (int j = 0; j < KEY_BLOCK - 3; j++)
                want += (double)s[j] * v[j * D + d];
            assert_true(fabs(y[d] - want) < 1e-2);
        }
    }
}

static void dots_do_not_depend_on_how_many_rows_there_are(void **state)
{
    enum { N = 91, ROWS = 5 };
    static float w[4][N], x[ROWS][N], all[ROWS][4], one[4];
    const float *const ws[4] = { w[0], w[1], w[2], w[3] };
    (void)state;

    for (int f = 0; f < 2; f++) {
        fill(w[0], 4 * N, 6);
        fill(x[0], ROWS * N, 7);
        form(f)->dot_rows(ws, 4, x[0], N, ROWS, N, all[0], 4);
        for (int r = 0; r < ROWS; r++) {
            form(f)->dot_rows(ws, 4, x[r], N, 1, N, one, 4);
            assert_memory_equal(one, all[r], sizeof(one));
            for (int c = 0; c < 4; c++) {
                double want = 0.0;

                for (int k = 0; k < N; k++)
                    want += (double)w[c][k] * x[r][k];
                assert_true(fabs(all[r][c] - want) < 1e-3);
                form(f)->dot_rows(ws + c, 1, x[r], N, 1, N, one, 1);
                assert_true(one[0] == all[r][c]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rms_norm_divides_by_the_root_mean_square),
        cmocka_unit_test(gelu_gate_is_the_tanh_form_times_up),
        cmocka_unit_test(gelu_gate_of_huge_values_is_finite),
        cmocka_unit_test(softened_scores_are_a_softmax),
        cmocka_unit_test(attention_parts_equal_plain_sums),
        cmocka_unit_test(dots_do_not_depend_on_how_many_rows_there_are),
    };
    return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
