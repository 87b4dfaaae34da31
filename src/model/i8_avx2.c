/*
 * int8 weights × 16-bit activations with AVX2.
 *
 * Byte products of AVX2 (vpmaddubsw) saturate, and two of them would be needed per weight. So weights are
 * widened to 16 bits on the way in and multiplied by the whole X at once (vpmaddwd): exact, as fast as the
 * two byte products, and half the instructions. A panel is 8 channels, one vector of int32 sums; two inputs
 * side by side make the pair that vpmaddwd adds.
 *
 * |w * X| <= 127 * 32258, so an int32 lane is safe for 524 products: sums move to float every
 * K_CHUNK inputs. That is also the cache block: a group of panels × K_CHUNK stays in the first-level cache while
 * all rows pass over it.
 */
#include "model/i8_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define AVX2        __attribute__((target("avx2,fma")))
#define AVX2_INLINE static inline __attribute__((always_inline, target("avx2,fma")))

/* Ties a sum to a register here: left alone, gcc moves all loads to the front and spills the sums. */
#define KEEP(v) __asm__ volatile("" : "+x"(v))

enum { PANEL = 8, GROUP = 2, K_CHUNK = 512 };

static bool supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

AVX2 static void quantize(const float *x, int n_in, bool one_term, uint8_t *out)
{
    int16_t *v = (int16_t *)(void *)(out + I8_ROW_HEAD);
    const __m256 abs_mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 tops = _mm256_setzero_ps();
    float top = 0.0f;
    int i = 0;

    for (; i + 8 <= n_in; i += 8)
        tops = _mm256_max_ps(tops, _mm256_and_ps(abs_mask, _mm256_loadu_ps(x + i)));
    for (int j = 0; j < 8; j++)
        top = fmaxf(top, ((const float *)&tops)[j]);
    for (; i < n_in; i++)
        top = fmaxf(top, fabsf(x[i]));

    float sx = top / I8_LEVELS;
    float inv = top > 0.0f ? (float)(I8_STEP * I8_LEVELS) / top : 0.0f;
    memcpy(out, &sx, sizeof(sx));

    if (one_term) {
        for (i = 0; i < n_in; i++)
            v[i] = (int16_t)((int)lrintf(x[i] * inv / I8_STEP) * I8_STEP);
    } else {
        const __m256 f = _mm256_set1_ps(inv);

        for (i = 0; i + 16 <= n_in; i += 16) {
            __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(f, _mm256_loadu_ps(x + i)));
            __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(f, _mm256_loadu_ps(x + i + 8)));
            __m256i p = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);

            _mm256_storeu_si256((__m256i *)(void *)(v + i), p);
        }
        for (; i < n_in; i++)
            v[i] = (int16_t)lrintf(x[i] * inv);
    }
    memset(v + n_in, 0, (size_t)(i8_padded(n_in) - n_in) * sizeof(*v));
}

/*
 * R rows × P panels over the inputs [k_from, k_to): partial sums are added to y, and on the last chunk scaled.
 * R and P are constants at each call, so the accumulators are registers.
 */
AVX2_INLINE void tile(const int R, const int P, const struct i8_matrix *m, int panel, int k_from,
                      int k_to, const uint8_t *rows, size_t row_stride, float *y, size_t y_stride)
{
    const size_t panel_bytes = (size_t)PANEL * (size_t)m->n_in_padded;
    const int8_t *w = m->panels + (size_t)panel * panel_bytes + (size_t)k_from * PANEL;
    const int16_t *x = (const int16_t *)(const void *)(rows + I8_ROW_HEAD) + k_from;
    const size_t x_stride = row_stride / sizeof(*x);
    __m256i acc[6][4];

#pragma GCC unroll 6
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
            acc[r][p] = _mm256_setzero_si256();

    for (int k = 0; k < k_to - k_from; k += GROUP) {
        __m256i ws[4];

#pragma GCC unroll 4
        for (int p = 0; p < P; p++) {
            const void *at = w + (size_t)p * panel_bytes + (size_t)k * PANEL;

            ws[p] = _mm256_cvtepi8_epi16(_mm_load_si128(at));
        }
#pragma GCC unroll 6
        for (int r = 0; r < R; r++) {
            int32_t pair;

            memcpy(&pair, x + (size_t)r * x_stride + k, sizeof(pair));
            __m256i xs = _mm256_set1_epi32(pair);
#pragma GCC unroll 4
            for (int p = 0; p < P; p++) {
                acc[r][p] = _mm256_add_epi32(acc[r][p], _mm256_madd_epi16(ws[p], xs));
                KEEP(acc[r][p]);
            }
        }
    }

#pragma GCC unroll 6
    for (int r = 0; r < R; r++) {
        float sx;

        memcpy(&sx, rows + (size_t)r * row_stride, sizeof(sx));
#pragma GCC unroll 4
        for (int p = 0; p < P; p++) {
            int c = (panel + p) * PANEL;
            float *to = y + (size_t)r * y_stride + c;
            __m256 sum = _mm256_cvtepi32_ps(acc[r][p]);
            float part[PANEL];
            int n = m->n_out - c < PANEL ? m->n_out - c : PANEL;

            if (k_from > 0) {
                if (n == PANEL) {
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(to));
                } else {
                    memset(part, 0, sizeof(part));
                    memcpy(part, to, (size_t)n * sizeof(float));
                    sum = _mm256_add_ps(sum, _mm256_loadu_ps(part));
                }
            }
            if (k_to >= m->n_in)
                sum = _mm256_mul_ps(
                    sum, _mm256_mul_ps(_mm256_set1_ps(sx), _mm256_load_ps(m->scale + c)));
            if (n == PANEL) {
                _mm256_storeu_ps(to, sum);
            } else {
                _mm256_storeu_ps(part, sum);
                memcpy(to, part, (size_t)n * sizeof(float));
            }
        }
    }
}

/*
 * All rows over one group of P panels. R × P is what 16 registers hold: R * P sums, P weights, one activation
 * and one product.
 */
AVX2_INLINE void all_rows(const int R, const int P, const struct i8_matrix *m, int panel,
                          int k_from, int k_to, const uint8_t *rows, size_t row_stride, int n_rows,
                          float *y, size_t y_stride)
{
    for (; n_rows >= R; n_rows -= R) {
        tile(R, P, m, panel, k_from, k_to, rows, row_stride, y, y_stride);
        rows += (size_t)R * row_stride;
        y += (size_t)R * y_stride;
    }
    switch (n_rows) {
#define REST(r)                                                                \
    case r:                                                                    \
        if (r < R)                                                             \
            tile(r, P, m, panel, k_from, k_to, rows, row_stride, y, y_stride); \
        break
        REST(1);
        REST(2);
        REST(3);
        REST(4);
        REST(5);
#undef REST
    default:
        break;
    }
}

AVX2 static void multiply(const struct i8_matrix *m, int panel_from, int panel_to,
                          const uint8_t *rows, size_t row_stride, int n_rows, bool one_term,
                          float *y, size_t y_stride)
{
    /* Equal chunks, an even number of inputs each: 768 is 2 × 384, not 512 + 256. */
    const int n_in = (m->n_in + GROUP - 1) / GROUP * GROUP;
    const int n_chunks = (n_in + K_CHUNK - 1) / K_CHUNK;
    const int chunk = ((n_in + n_chunks - 1) / n_chunks + GROUP - 1) / GROUP * GROUP;
    int panel = panel_from;
    (void)one_term; /* the row was quantized so; the cost is the same */

    while (panel < panel_to) {
        int left = panel_to - panel;
        int group = n_rows > 3 ? (left >= 2 ? 2 : 1) : (left >= 3 ? 3 : 1);

        for (int k = 0; k < n_in; k += chunk) {
            int k_to = k + chunk < n_in ? k + chunk : n_in;

            if (group == 3)
                all_rows(3, 3, m, panel, k, k_to, rows, row_stride, n_rows, y, y_stride);
            else if (group == 2)
                all_rows(6, 2, m, panel, k, k_to, rows, row_stride, n_rows, y, y_stride);
            else
                all_rows(6, 1, m, panel, k, k_to, rows, row_stride, n_rows, y, y_stride);
        }
        panel += group;
    }
}

const struct i8_kernel i8_avx2 = {
    .name = "avx2",
    .panel = PANEL,
    .group = GROUP,
    .supported = supported,
    .quantize = quantize,
    .multiply = multiply,
};

#endif
