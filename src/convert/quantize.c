/*
 * Rows are handed out in small groups from a shared counter, so that threads finish together; each thread has a buffer
 * for the float values of one group. Every value passes one check: not finite is refused, whatever the target.
 */
#include "convert/quantize.h"

#include "base/alloc.h"
#include "base/thread.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_BYTES = 256 << 10, MAX_THREADS = 64 };

/* The largest finite half, and what still rounds to a finite bfloat16. ggml would turn larger ones into infinity. */
static const float f16_max = 65504.0F, bf16_max = 3.3895e38F;

struct work {
    const struct quantize_job *job;
    int64_t group; /* rows */
    atomic_llong next_row;
    atomic_llong bad_row; /* the lowest, with its kind in the last bit */
};

static void to_float(enum source_type from, const void *src, float *dst, int64_t n)
{
    switch (from) {
    case SOURCE_F32:
        memcpy(dst, src, (size_t)n * sizeof(float));
        break;
    case SOURCE_F16:
        ggml_fp16_to_fp32_row(src, dst, n);
        break;
    case SOURCE_BF16:
        ggml_bf16_to_fp32_row(src, dst, n);
        break;
    case SOURCE_F64:
        for (int64_t i = 0; i < n; i++)
            dst[i] = (float)((const double *)src)[i];
        break;
    case SOURCE_OTHER:
        break;
    }
}

/* The largest magnitude, or infinity when a value is not finite. */
static float max_magnitude(const float *x, int64_t n)
{
    uint32_t max = 0;

    /* Magnitudes of floats are ordered like their bits; NaNs come after infinity. Integers vectorize. */
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof(bits));
        bits &= 0x7fffffffU;
        max = bits > max ? bits : max;
    }
    if (max >= 0x7f800000U)
        return INFINITY;

    float out;

    memcpy(&out, &max, sizeof(out));
    return out;
}

static float quantize_i8_row(const float *x, float amax, int8_t *q, int64_t n)
{
    float scale = amax / 127.0F, inverse = scale > 0.0F ? 1.0F / scale : 0.0F;

    /* A maximum so small that its scale or the inverse leaves the range of floats counts as zero. */
    if (!isfinite(inverse)) {
        scale = 0.0F;
        inverse = 0.0F;
    }
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * inverse;

        v = v > 127.0F ? 127.0F : v < -127.0F ? -127.0F : v;
        q[i] = (int8_t)(v + (v < 0.0F ? -0.5F
                                      : 0.5F)); /* the cast cuts towards zero: round half away */
    }
    return scale;
}

static void note_bad(struct work *w, int64_t row, enum quantize_result kind)
{
    long long mine = (long long)row * 2 + (kind == QUANTIZE_TOO_LARGE),
              seen = atomic_load(&w->bad_row);

    while ((seen < 0 || mine < seen) && !atomic_compare_exchange_weak(&w->bad_row, &seen, mine))
        ;
}

/* The quantized types keep their scales as halves. */
static float largest(enum ggml_type to)
{
    if (to == GGML_TYPE_BF16)
        return bf16_max;
    return to == GGML_TYPE_F16 || ggml_is_quantized(to) ? f16_max : INFINITY;
}

static void convert_rows(struct work *w, int64_t first, int64_t n, float *buffer)
{
    const struct quantize_job *job = w->job;
    int64_t width = job->width;
    size_t row_size = ggml_row_size(job->to, width);
    uint8_t *dst = (uint8_t *)job->dst + (size_t)first * row_size;
    const uint8_t *src =
        (const uint8_t *)job->src + (size_t)(first * width) * source_type_size(job->from);
    float limit = largest(job->to);

    to_float(job->from, src, buffer, n * width);
    for (int64_t r = 0; r < n; r++) {
        float amax = max_magnitude(buffer + r * width, width);

        if (isinf(amax)) {
            note_bad(w, first + r, QUANTIZE_NOT_FINITE);
            return;
        }
        if (amax > limit) {
            note_bad(w, first + r, QUANTIZE_TOO_LARGE);
            return;
        }
        if (job->to == GGML_TYPE_I8)
            job->scales[first + r] =
                quantize_i8_row(buffer + r * width, amax, (int8_t *)dst + r * width, width);
    }
    switch (job->to) {
    case GGML_TYPE_I8:
        break;
    case GGML_TYPE_F32:
        memcpy(dst, buffer, (size_t)n * row_size);
        break;
    case GGML_TYPE_F16:
        ggml_fp32_to_fp16_row(buffer, (ggml_fp16_t *)dst, n * width);
        break;
    case GGML_TYPE_BF16:
        ggml_fp32_to_bf16_row(buffer, (ggml_bf16_t *)dst, n * width);
        break;
    default:
        (void)ggml_quantize_chunk(job->to, buffer, dst, 0, n, width, NULL);
    }
}

static void *run(void *arg)
{
    struct work *w = arg;
    float *buffer = ink_alloc((size_t)(w->group * w->job->width) * sizeof(*buffer));

    while (atomic_load(&w->bad_row) < 0) {
        int64_t first = atomic_fetch_add(&w->next_row, w->group), n = w->job->n_rows - first;

        if (n <= 0)
            break;
        convert_rows(w, first, n < w->group ? n : w->group, buffer);
    }
    free(buffer);
    return NULL;
}

enum quantize_result quantize_rows(const struct quantize_job *job, int64_t *bad_row)
{
    struct work w = { .job = job };
    pthread_t threads[MAX_THREADS];
    int64_t row_bytes = job->width * (int64_t)sizeof(float);
    int n = 0;

    w.group = row_bytes < GROUP_BYTES ? GROUP_BYTES / (row_bytes > 0 ? row_bytes : 1) : 1;
    atomic_init(&w.next_row, 0);
    atomic_init(&w.bad_row, -1);
    if (ggml_is_quantized(job->to))
        ggml_quantize_init(job->to);

    int64_t n_groups = (job->n_rows + w.group - 1) / w.group;

    while (n + 1 < job->n_threads && n < MAX_THREADS && n + 1 < n_groups &&
           ink_thread_start(&threads[n], "quantize", run, &w) == 0)
        n++;
    if (job->meanwhile)
        job->meanwhile(job->meanwhile_arg);
    (void)run(&w);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);

    long long bad = atomic_load(&w.bad_row);

    if (bad < 0)
        return QUANTIZE_OK;
    *bad_row = bad / 2;
    return bad % 2 ? QUANTIZE_TOO_LARGE : QUANTIZE_NOT_FINITE;
}
