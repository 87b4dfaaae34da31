/*
 * The VNNI kernel's packing, tiling and corrections on any processor: its four vector operations are
 * replaced by plain C that does what the instructions are documented to do.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define I8_VNNI_PLAIN
#define TARGET
#define INLINE  static inline
#define KEEP(v) (void)(v)

typedef struct {
    uint8_t b[64];
} vec;

static vec vec_zero(void)
{
    return (vec){ { 0 } };
}

static vec vec_load(const void *p)
{
    vec v;

    assert_int_equal((uintptr_t)p % 64, 0); /* the real load demands it */
    memcpy(v.b, p, sizeof(v.b));
    return v;
}

static vec vec_repeat(int32_t four_bytes)
{
    vec v;

    for (int i = 0; i < 16; i++)
        memcpy(v.b + 4 * i, &four_bytes, 4);
    return v;
}

/* vpdpbusd: per 32-bit lane, the sum of four products of an unsigned and a signed byte is added. */
static vec vec_dot(vec sum, vec u, vec s)
{
    for (int i = 0; i < 16; i++) {
        int32_t lane;

        memcpy(&lane, sum.b + 4 * i, 4);
        for (int j = 0; j < 4; j++)
            lane += (int32_t)u.b[4 * i + j] * (int8_t)s.b[4 * i + j];
        memcpy(sum.b + 4 * i, &lane, 4);
    }
    return sum;
}

static void vec_store(int32_t *out, vec v)
{
    memcpy(out, v.b, sizeof(v.b));
}

static bool supported(void)
{
    return true;
}

#define i8_avx512_vnni plain_vnni
#include "model/i8_vnni.c"
#undef i8_avx512_vnni

static void sums_are_exact_on_extreme_and_ordinary_values(void **state)
{
    (void)state;
    assert_true(i8_kernel_is_exact(&plain_vnni));
}

/* Both kernels compute the same integers, so only the final rounding may differ. */
static void outputs_equal_the_generic_kernels(void **state)
{
    enum { N_IN = 200, N_OUT = 50, N_ROWS = 5 };
    struct i8_matrix *a = i8_matrix_new(&plain_vnni, N_IN, N_OUT);
    struct i8_matrix *b = i8_matrix_new(&i8_generic, N_IN, N_OUT);
    size_t stride = i8_row_bytes(N_IN);
    static _Alignas(64) uint8_t rows[2][N_ROWS * (I8_ROW_HEAD + 2 * 256)];
    static float y[2][N_ROWS * N_OUT];
    (void)state;

    for (int c = 0; c < N_OUT; c++) {
        float w[N_IN];
        int8_t q[N_IN];

        for (int k = 0; k < N_IN; k++)
            w[k] = (float)((c * 31 + k * 17) % 101 - 50) / 37.0f;
        float scale = i8_round_channel(w, N_IN, q);
        i8_matrix_set(a, c, q, scale);
        i8_matrix_set(b, c, q, scale);
    }
    for (int one_term = 0; one_term < 2; one_term++) {
        for (int r = 0; r < N_ROWS; r++) {
            float x[N_IN];

            for (int k = 0; k < N_IN; k++)
                x[k] = (float)((r * 7 + k * 13) % 97 - 48) / 11.0f;
            plain_vnni.quantize(x, N_IN, one_term, rows[0] + (size_t)r * stride);
            i8_generic.quantize(x, N_IN, one_term, rows[1] + (size_t)r * stride);
        }
        plain_vnni.multiply(a, 0, a->n_panels, rows[0], stride, N_ROWS, one_term, y[0], N_OUT);
        i8_generic.multiply(b, 0, b->n_panels, rows[1], stride, N_ROWS, one_term, y[1], N_OUT);
        for (int i = 0; i < N_ROWS * N_OUT; i++)
            assert_true(fabsf(y[0][i] - y[1][i]) <= 1e-6f * N_IN); /* |w x| is about 1 */
    }
    i8_matrix_free(a);
    i8_matrix_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_on_extreme_and_ordinary_values),
        cmocka_unit_test(outputs_equal_the_generic_kernels),
    };
    return cmocka_run_group_tests_name("i8_vnni_plain", tests, NULL, NULL);
}
