#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H

#include "base/status.h"
#include "model/model_file.h"

#include <ggml.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * One weight matrix as the file stores it: rows are output channels (or tokens). Reads any type as floats, a row
 * at a time. Borrowed from the model file.
 */
struct weight {
    struct ink_tensor_info info;
    int n_in, n_out;       /* ne[0], ne[1] */
    enum ggml_type type;   /* of info.type; looked up once, at binding */
    const float *i8_scale; /* [n_out] for the `i8` type, else NULL */
};

/*
 * Finds a matrix by name and checks its shape; n_out 0 accepts any. INK_CORRUPT names tensor,
 * expected and actual shape.
 */
INK_NODISCARD enum ink_status weight_bind(const struct ink_model_file *f, struct weight *w,
                                          int n_in, int n_out, struct ink_err *err, const char *fmt,
                                          ...) INK_PRINTF(6, 7);
/* The same for a vector of floats [n], copied if the file has it in another type; caller frees. */
INK_NODISCARD enum ink_status weight_vector(const struct ink_model_file *f, float **out, int n,
                                            struct ink_err *err, const char *fmt, ...)
    INK_PRINTF(5, 6);
bool weight_exists(const struct ink_model_file *f, const char *fmt, ...) INK_PRINTF(2, 3);

/* Row `row` as n_in floats. Any thread. */
void weight_row(const struct weight *w, int row, float *out);
bool weight_is_float(const struct weight *w); /* f32, f16 or bf16 */
bool weight_is_i8(const struct weight *w);

/* Numbers of the architecture: key is "ARCH.NAME". INK_CORRUPT when missing, or out of [min, max]. */
INK_NODISCARD enum ink_status hparam_int(const struct ink_model_file *f, const char *name, int min,
                                         int max, int *out, struct ink_err *err);
/* The same with a default instead of an error when missing. */
INK_NODISCARD enum ink_status hparam_int_or(const struct ink_model_file *f, const char *name,
                                            int min, int max, int fallback, int *out,
                                            struct ink_err *err);
float hparam_float_or(const struct ink_model_file *f, const char *name, float fallback);

#endif
