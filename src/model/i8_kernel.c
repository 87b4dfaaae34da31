/*
 * Chooses the int8 kernel, packs weights for it, and holds the plain C version
 * that all others must equal.
 *
 * Nothing is believed about a processor: before a kernel is used it multiplies extreme and ordinary values,
 * and the result is compared with 64-bit integer arithmetic. Some processors' byte products
 * saturate where others' do not, and an emulator may be wrong in its own way.
 */
#include "model/i8_kernel.h"

#include "base/alloc.h"
#include "base/log.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool always(void)
{
    return true;
}

static void generic_quantize(const float *x, int n_in, bool one_term, uint8_t *out)
{
    int16_t *v = (int16_t *)(void *)(out + I8_ROW_HEAD);
    float top = 0.0f;

    for (int i = 0; i < n_in; i++)
        top = fmaxf(top, fabsf(x[i]));
    float sx = top / I8_LEVELS;
    float inv = top > 0.0f ? (float)(I8_STEP * I8_LEVELS) / top : 0.0f;

    memcpy(out, &sx, sizeof(sx));
    for (int i = 0; i < n_in; i++) {
        v[i] = (int16_t)(one_term ? lrintf(x[i] * inv / I8_STEP) * I8_STEP : lrintf(x[i] * inv));
    }
    memset(v + n_in, 0, (size_t)(i8_padded(n_in) - n_in) * sizeof(*v));
}

static void generic_multiply(const struct i8_matrix *m, int panel_from, int panel_to,
                             const uint8_t *rows, size_t row_stride, int n_rows, bool one_term,
                             float *y, size_t y_stride)
{
    const int panel = m->kernel->panel, group = m->kernel->group;
    (void)one_term; /* the row was quantized so */

    for (int c = panel_from * panel; c < panel_to * panel && c < m->n_out; c++) {
        const int8_t *w = m->panels + (size_t)(c / panel) * (size_t)(panel * m->n_in_padded) +
                          (size_t)(c % panel * group);

        for (int r = 0; r < n_rows; r++) {
            const uint8_t *row = rows + (size_t)r * row_stride;
            const int16_t *v = (const int16_t *)(const void *)(row + I8_ROW_HEAD);
            int64_t sum = 0;
            float sx;

            memcpy(&sx, row, sizeof(sx));
            for (int k = 0; k < m->n_in; k++)
                sum += v[k] * w[k / group * panel * group + k % group];
            y[(size_t)r * y_stride + (size_t)c] = (float)sum * sx * m->scale[c];
        }
    }
}

const struct i8_kernel i8_generic = {
    .name = "generic",
    .panel = 8,
    .group = 2,
    .supported = always,
    .quantize = generic_quantize,
    .multiply = generic_multiply,
};

struct i8_matrix *i8_matrix_new(const struct i8_kernel *k, int n_in, int n_out)
{
    assert(n_in > 0 && n_in <= I8_MAX_IN && n_out > 0);

    struct i8_matrix *m = ink_zalloc(sizeof(*m));
    m->kernel = k;
    m->n_in = n_in;
    m->n_out = n_out;
    m->n_panels = (n_out + k->panel - 1) / k->panel;
    m->n_in_padded = i8_padded(n_in);
    size_t channels = (size_t)m->n_panels * (size_t)k->panel;
    m->panels = ink_try_alloc_aligned(channels * (size_t)m->n_in_padded);
    m->scale = ink_try_alloc_aligned(channels * sizeof(*m->scale));
    m->sum = ink_try_alloc_aligned(channels * sizeof(*m->sum));
    if (!m->panels || !m->scale || !m->sum) {
        i8_matrix_free(m);
        return NULL;
    }
    return m;
}

void i8_matrix_free(struct i8_matrix *m)
{
    if (!m)
        return;
    free(m->panels);
    free(m->scale);
    free(m->sum);
    free(m);
}

size_t i8_matrix_bytes(const struct i8_matrix *m)
{
    size_t channels = (size_t)m->n_panels * (size_t)m->kernel->panel;

    return channels * ((size_t)m->n_in_padded + sizeof(*m->scale) + sizeof(*m->sum));
}

void i8_matrix_set(struct i8_matrix *m, int channel, const int8_t *w, float scale)
{
    const int panel = m->kernel->panel, group = m->kernel->group;
    int8_t *out = m->panels + (size_t)(channel / panel) * (size_t)panel * (size_t)m->n_in_padded +
                  (size_t)(channel % panel * group);
    int32_t sum = 0;

    assert(channel >= 0 && channel < m->n_out);
    for (int k = 0; k < m->n_in; k += group) {
        for (int g = 0; g < group && k + g < m->n_in; g++) {
            out[g] = w[k + g];
            sum += w[k + g];
        }
        out += panel * group;
    }
    m->sum[channel] = sum;
    m->scale[channel] = scale / I8_STEP;
}

float i8_round_channel(const float *w, int n_in, int8_t *out)
{
    float top = 0.0f;

    for (int k = 0; k < n_in; k++)
        top = fmaxf(top, fabsf(w[k]));
    float inv = top > 0.0f ? I8_LEVELS / top : 0.0f;
    for (int k = 0; k < n_in; k++)
        out[k] = (int8_t)lrintf(w[k] * inv);
    return top / I8_LEVELS;
}

/* Small whole numbers from a fixed sequence, and the extremes that make narrow sums overflow. */
static int test_value(unsigned i, int pattern)
{
    switch (pattern) {
    case 0:
        return I8_LEVELS;
    case 1:
        return -I8_LEVELS;
    case 2:
        return i % 2 ? I8_LEVELS : -I8_LEVELS;
    default:
        return (int)(i * 2654435761U >> 24) % 255 - 127;
    }
}

bool i8_kernel_is_exact(const struct i8_kernel *k)
{
    enum { N_IN = 1100, N_OUT = 70, N_ROWS = 7, PATTERNS = 4 };
    bool exact = true;

    struct i8_matrix *m = i8_matrix_new(k, N_IN, N_OUT);
    int8_t *w = ink_alloc(N_IN * N_OUT);
    float *x = ink_alloc(N_IN * N_ROWS * sizeof(*x));
    float *y = ink_alloc(N_OUT * N_ROWS * sizeof(*y));
    size_t stride = i8_row_bytes(N_IN);
    uint8_t *rows = ink_try_alloc_aligned(stride * N_ROWS);

    if (!m || !rows)
        exact = false;
    for (int pw = 0; exact && pw < PATTERNS; pw++) {
        for (int c = 0; c < N_OUT; c++) {
            for (int i = 0; i < N_IN; i++)
                w[c * N_IN + i] = (int8_t)test_value((unsigned)(c * N_IN + i), pw);
            i8_matrix_set(m, c, w + c * N_IN, I8_STEP);
        }
        for (int px = 0; px < PATTERNS; px++) {
            /* The first value fixes the scale at 1/254, so that X is known without rounding. */
            for (int r = 0; r < N_ROWS; r++) {
                for (int i = 0; i < N_IN; i++)
                    x[r * N_IN + i] = (float)test_value((unsigned)(r * N_IN + i + 1), px);
                x[r * N_IN] = I8_LEVELS;
                k->quantize(x + r * N_IN, N_IN, false, rows + (size_t)r * stride);
            }
            k->multiply(m, 0, m->n_panels, rows, stride, N_ROWS, false, y, N_OUT);
            for (int r = 0; r < N_ROWS; r++)
                for (int c = 0; c < N_OUT; c++) {
                    int64_t want = 0;

                    for (int i = 0; i < N_IN; i++)
                        want += (int64_t)x[r * N_IN + i] * w[c * N_IN + i];
                    double got = y[r * N_OUT + c] / I8_STEP;
                    /* The integer sum is exact; what is left is its conversion to float. */
                    if (fabs(got - (double)want) > 1e-6 * fabs((double)want) + 0.5)
                        exact = false;
                }
        }
    }
    free(rows);
    free(y);
    free(x);
    free(w);
    i8_matrix_free(m);
    return exact;
}

static const struct i8_kernel *const kernels[] = {
/* best first */
#if defined(__x86_64__)
    &i8_avx512_vnni,
    &i8_avx2,
#endif
    &i8_generic,
};

enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

const struct i8_kernel *i8_kernel_named(const char *name)
{
    for (int i = 0; i < N_KERNELS; i++)
        if (strcmp(kernels[i]->name, name) == 0)
            return kernels[i];
    return NULL;
}

const struct i8_kernel *i8_kernel_best(void)
{
    const char *limit = getenv("INK_CPU");

    for (int i = 0; i < N_KERNELS; i++) {
        const struct i8_kernel *k = kernels[i];

        if (limit && strcmp(limit, "plain") == 0)
            break;
        if (!k->supported() || (limit && strcmp(limit, "avx2") == 0 && k == &i8_avx512_vnni))
            continue;
        if (i8_kernel_is_exact(k))
            return k;
        ink_log(INK_LOG_WARN, "int8 kernel %s gives wrong sums on this processor and is not used",
                k->name);
    }
    return &i8_generic;
}
