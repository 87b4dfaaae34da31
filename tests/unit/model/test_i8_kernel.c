/* Every int8 kernel this processor has must give the integers that plain C gives. */
#include "unit.h"

#include "base/alloc.h"
#include "model/i8_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "avx512-vnni", "avx2", "generic" };

static void supported_kernels_are_exact(void **state)
{
    int n = 0;
    (void)state;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct i8_kernel *k = i8_kernel_named(names[i]);

        if (!k || !k->supported())
            continue;
        assert_true(i8_kernel_is_exact(k));
        n++;
    }
    assert_true(n >= 1);
}

static void wrong_multiply(const struct i8_matrix *m, int panel_from, int panel_to,
                           const uint8_t *rows, size_t row_stride, int n_rows, bool one_term,
                           float *y, size_t y_stride)
{
    i8_generic.multiply(m, panel_from, panel_to, rows, row_stride, n_rows, one_term, y, y_stride);
    /* What a processor does whose pair sums saturate at 16 bits. */
    for (int r = 0; r < n_rows; r++)
        for (int c = 0; c < m->n_out; c++)
            y[(size_t)r * y_stride + (size_t)c] *= 0.51f;
}

static void a_kernel_whose_sums_saturate_is_found_out(void **state)
{
    struct i8_kernel wrong = i8_generic;
    (void)state;

    wrong.multiply = wrong_multiply;
    assert_false(i8_kernel_is_exact(&wrong));
    assert_true(i8_kernel_is_exact(&i8_generic));
}

/* The row sizes at which the tiles change, and the panel remainders. */
static void every_tile_size_equals_plain_c(void **state)
{
    enum { N_IN = 1537, ROWS_MAX = 14 };
    static const int outs[] = { 1, 7, 8, 17, 24, 41, 95 };
    const size_t stride = i8_row_bytes(N_IN);
    uint8_t *rows = ink_try_alloc_aligned(stride * ROWS_MAX);
    uint8_t *plain_rows = ink_try_alloc_aligned(stride * ROWS_MAX);
    float *x = ink_alloc(N_IN * sizeof(*x));
    int8_t *q = ink_alloc(N_IN);
    static float y[ROWS_MAX * 96], want[ROWS_MAX * 96];
    (void)state;

    const struct i8_kernel *best = i8_kernel_best();
    for (int r = 0; r < ROWS_MAX; r++) {
        for (int i = 0; i < N_IN; i++)
            x[i] = (float)((i * 37 + r * 101) % 211 - 105) / 13.0f;
        best->quantize(x, N_IN, false, rows + (size_t)r * stride);
        i8_generic.quantize(x, N_IN, false, plain_rows + (size_t)r * stride);
    }
    for (size_t o = 0; o < sizeof(outs) / sizeof(outs[0]); o++) {
        struct i8_matrix *a = i8_matrix_new(best, N_IN, outs[o]);
        struct i8_matrix *b = i8_matrix_new(&i8_generic, N_IN, outs[o]);

        for (int c = 0; c < outs[o]; c++) {
            for (int i = 0; i < N_IN; i++)
                q[i] = (int8_t)((i * 29 + c * 53) % 255 - 127);
            i8_matrix_set(a, c, q, 0.01f);
            i8_matrix_set(b, c, q, 0.01f);
        }
        for (int n = 1; n <= ROWS_MAX; n++) {
            memset(y, 0x7f, sizeof(y));
            best->multiply(a, 0, a->n_panels, rows, stride, n, false, y, 96);
            i8_generic.multiply(b, 0, b->n_panels, plain_rows, stride, n, false, want, 96);
            for (int r = 0; r < n; r++)
                for (int c = 0; c < outs[o]; c++)
                    assert_true(fabsf(y[r * 96 + c] - want[r * 96 + c]) < 2e-3f);
            /* Nothing is written beyond the last channel. */
            for (int r = 0; r < n; r++)
                for (int c = outs[o]; c < 96; c++)
                    assert_memory_equal(&y[r * 96 + c], "\x7f\x7f\x7f\x7f", 4);
        }
        i8_matrix_free(a);
        i8_matrix_free(b);
    }
    free(rows);
    free(plain_rows);
    free(x);
    free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(supported_kernels_are_exact),
        cmocka_unit_test(a_kernel_whose_sums_saturate_is_found_out),
        cmocka_unit_test(every_tile_size_equals_plain_c),
    };
    return cmocka_run_group_tests_name("i8_kernel", tests, NULL, NULL);
}
