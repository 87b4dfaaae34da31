/* Linear layers in each of their ways, through a graph, against plain arithmetic. */
#include "unit.h"

#include "model/graph.h"
#include "model/i8_kernel.h"
#include "model/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_IN = 96, N_OUT = 70, ROWS = 48 };

static float w[2][N_OUT][N_IN];
static float x[ROWS][N_IN];
static struct device *device;
static struct graph graph;

static struct weight float_weight(int i)
{
    return (struct weight){
        .info = { .name = "w",
                  .type = "f32",
                  .n_dims = 2,
                  .ne = { N_IN, N_OUT, 1, 1 },
                  .data = w[i],
                  .size = sizeof(w[i]) },
        .n_in = N_IN,
        .n_out = N_OUT,
    };
}

static int set_up(void **state)
{
    struct ink_err err;
    unsigned seed = 1;
    (void)state;

    for (size_t i = 0; i < sizeof(w) / sizeof(float); i++)
        ((float *)w)[i] = (float)((seed = seed * 1664525U + 1013904223U) >> 16) / 32768.0f - 1.0f;
    for (size_t i = 0; i < sizeof(x) / sizeof(float); i++)
        ((float *)x)[i] = (float)((seed = seed * 1664525U + 1013904223U) >> 16) / 8192.0f - 4.0f;
    if (device_open(2, &device, &err) != INK_OK)
        return -1;
    graph_init(&graph, device);
    graph.i8 = i8_kernel_best();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    graph_release(&graph);
    device_close(device);
    return 0;
}

/* y [n_rows][l->n_out] */
static void apply(const struct linear *l, const float *from, int n_rows, float *y)
{
    struct ink_err err;

    graph_begin(&graph);
    struct ggml_tensor *in = ggml_new_tensor_2d(graph.ctx, GGML_TYPE_F32, N_IN, n_rows);
    in->data = (void *)from;
    struct act a = act_of(in);
    struct ggml_tensor *out = linear_apply(&graph, l, &a);
    graph_output(&graph, out);
    assert_int_equal(graph_compute(&graph, &err), INK_OK);
    memcpy(y, out->data, (size_t)n_rows * (size_t)l->n_out * sizeof(*y));
}

static double exact(const float *weights, const float *row)
{
    double sum = 0.0;

    for (int k = 0; k < N_IN; k++)
        sum += (double)weights[k] * row[k];
    return sum;
}

static void make(struct linear *l, const struct weight *parts, int n, enum linear_compute how,
                 const int32_t *rows, int n_rows)
{
    struct ink_err err;

    assert_int_equal(linear_init(l, parts, n, how, i8_kernel_best(), rows, n_rows, 2, NULL, &err),
                     INK_OK);
}

static void float_layers_equal_plain_sums(void **state)
{
    struct weight parts[] = { float_weight(0), float_weight(1) };
    static float y[ROWS][2 * N_OUT];
    struct linear l;
    (void)state;

    make(&l, parts, 2, LINEAR_AS_STORED, NULL, 0);
    assert_int_equal(l.kind, LINEAR_FLOAT);
    apply(&l, x[0], ROWS, y[0]);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 2 * N_OUT; c++)
            assert_true(fabs(y[r][c] - exact(w[c / N_OUT][c % N_OUT], x[r])) < 1e-4);
    linear_release(&l);
}

/* Weights lose up to half a step of max/127 each, activations 1/254 of that: the error stays near 0.3 %. */
static void int8_layers_are_close(void **state)
{
    struct weight parts[] = { float_weight(0), float_weight(1) };
    static float y[ROWS][2 * N_OUT];
    double error = 0.0, size = 0.0;
    struct linear l;
    (void)state;

    make(&l, parts, 2, LINEAR_ALL_I8, NULL, 0);
    apply(&l, x[0], ROWS, y[0]);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < 2 * N_OUT; c++) {
            double want = exact(w[c / N_OUT][c % N_OUT], x[r]);

            error += (y[r][c] - want) * (y[r][c] - want);
            size += want * want;
        }
    assert_true(sqrt(error / size) < 0.006);
    assert_true(error > 0.0); /* it really is the int8 way */
    linear_release(&l);
}

static void a_row_is_the_same_alone_and_among_others(void **state)
{
    static const enum linear_compute ways[] = { LINEAR_ALL_FLOAT, LINEAR_ALL_I8 };
    static float all[ROWS][N_OUT], few[3][N_OUT];
    struct weight part = float_weight(0);
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct linear l;

        make(&l, &part, 1, ways[i], NULL, 0);
        apply(&l, x[0], ROWS, all[0]);
        for (int n = 1; n <= 3; n++)
            for (int r = 0; r + n <= ROWS; r += 5) {
                apply(&l, x[r], n, few[0]);
                assert_memory_equal(few, all[r], (size_t)n * sizeof(all[0]));
            }
        linear_release(&l);
    }
}

static void a_gathered_head_has_the_rows_it_was_given(void **state)
{
    static const enum linear_compute ways[] = { LINEAR_ALL_FLOAT, LINEAR_ALL_I8 };
    static const int32_t rows[] = { 0, 3, 4, 17, 69 };
    static float all[ROWS][N_OUT], some[ROWS][5];
    struct weight part = float_weight(1);
    (void)state;

    for (int i = 0; i < 2; i++) {
        struct linear full, head;

        make(&full, &part, 1, ways[i], NULL, 0);
        make(&head, &part, 1, ways[i], rows, 5);
        apply(&full, x[0], ROWS, all[0]);
        apply(&head, x[0], ROWS, some[0]);
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < 5; c++)
                assert_true(some[r][c] == all[r][rows[c]]);
        linear_release(&full);
        linear_release(&head);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_layers_equal_plain_sums),
        cmocka_unit_test(int8_layers_are_close),
        cmocka_unit_test(a_row_is_the_same_alone_and_among_others),
        cmocka_unit_test(a_gathered_head_has_the_rows_it_was_given),
    };
    return cmocka_run_group_tests_name("linear", tests, set_up, tear_down);
}
