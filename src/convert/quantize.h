#ifndef CONVERT_QUANTIZE_H
#define CONVERT_QUANTIZE_H

#include "base/status.h"
#include "convert/checkpoint.h"

#include <ggml.h>

/*
 * Rows of weights from one element type to another, on several threads. Pure but for the threads it starts and ends.
 *
 * GGML_TYPE_I8 means whole rows with one scale each: q = round(w / scale), scale = max |w| / 127; a row of zeros has
 * scale 0. The other types are ggml's own.
 */
struct quantize_job {
    enum source_type from;
    const void *src;   /* n_rows * width elements, aligned for their type */
    enum ggml_type to; /* f32 f16 bf16 i8 q8_0 q4_0 q4_k q5_k q6_k; width a multiple of its block */
    void *dst;         /* n_rows * ggml_row_size(to, width) bytes */
    float *scales;     /* i8: n_rows; else NULL */
    int64_t n_rows, width;
    int n_threads;
    /* Runs on the calling thread while the others work, if not NULL. */
    void (*meanwhile)(void *arg);
    void *meanwhile_arg;
};

/* What the weights were like. */
enum quantize_result {
    QUANTIZE_OK,
    QUANTIZE_NOT_FINITE, /* a NaN or an infinity among them */
    QUANTIZE_TOO_LARGE,  /* beyond what the target type can hold */
};

/* `*bad_row`: the lowest row with the trouble, counted in this job. `dst` is then not complete. */
INK_NODISCARD enum quantize_result quantize_rows(const struct quantize_job *job, int64_t *bad_row);

#endif
