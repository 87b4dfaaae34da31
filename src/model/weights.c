/* Weights by name with their shapes checked, and architecture numbers by key with their ranges checked. */
#include "model/weights.h"

#include "base/alloc.h"
#include "base/slice.h"

#include <ggml.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_MAX_LEN = 128 };

static enum ggml_type type_of(const struct ink_tensor_info *info)
{
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        const char *name = ggml_type_name((enum ggml_type)t);

        if (name && strcasecmp(name, info->type) == 0)
            return (enum ggml_type)t;
    }
    return GGML_TYPE_COUNT;
}

enum ink_status weight_bind(const struct ink_model_file *f, struct weight *w, int n_in, int n_out,
                            struct ink_err *err, const char *fmt, ...)
{
    char name[NAME_MAX_LEN], scale[NAME_MAX_LEN + 8];
    struct ink_tensor_info info;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    if (!ink_model_file_find(f, name, &w->info))
        return ink_err_set(err, INK_CORRUPT, "%s: tensor %s is missing", ink_model_file_path(f),
                           name);
    if (w->info.n_dims > 2 || w->info.ne[0] != n_in || (n_out > 0 && w->info.ne[1] != n_out))
        return ink_err_set(err, INK_CORRUPT,
                           "%s: tensor %s has the shape [%lld, %lld]; [%d, %d] is expected",
                           ink_model_file_path(f), name, (long long)w->info.ne[0],
                           (long long)w->info.ne[1], n_in, n_out);
    w->n_in = n_in;
    w->n_out = (int)w->info.ne[1];
    w->type = type_of(&w->info);
    w->i8_scale = NULL;
    if (weight_is_i8(w)) {
        snprintf(scale, sizeof(scale), "%s_scale", name);
        if (!ink_model_file_find(f, scale, &info) || strcmp(info.type, "f32") != 0 ||
            info.ne[0] != w->n_out)
            return ink_err_set(err, INK_CORRUPT,
                               "%s: tensor %s of type f32 and length %d is missing",
                               ink_model_file_path(f), scale, w->n_out);
        w->i8_scale = info.data;
    } else {
        enum ggml_type t = w->type;

        if (t == GGML_TYPE_COUNT || (t != GGML_TYPE_F32 && !ggml_get_type_traits(t)->to_float))
            return ink_err_set(err, INK_UNSUPPORTED,
                               "%s: tensor %s has the type %s, which cannot be computed with",
                               ink_model_file_path(f), name, w->info.type);
    }
    return INK_OK;
}

enum ink_status weight_vector(const struct ink_model_file *f, float **out, int n,
                              struct ink_err *err, const char *fmt, ...)
{
    char name[NAME_MAX_LEN];
    struct weight w;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    enum ink_status st = weight_bind(f, &w, n, 1, err, "%s", name);
    if (st != INK_OK)
        return st;
    if (weight_is_i8(&w))
        return ink_err_set(err, INK_UNSUPPORTED, "%s: tensor %s must be of a float type",
                           ink_model_file_path(f), name);
    *out = ink_alloc((size_t)n * sizeof(**out));
    weight_row(&w, 0, *out);
    return INK_OK;
}

bool weight_exists(const struct ink_model_file *f, const char *fmt, ...)
{
    char name[NAME_MAX_LEN];
    struct ink_tensor_info info;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    return ink_model_file_find(f, name, &info);
}

bool weight_is_i8(const struct weight *w)
{
    return strcmp(w->info.type, "i8") == 0;
}

bool weight_is_float(const struct weight *w)
{
    return strcmp(w->info.type, "f32") == 0 || strcmp(w->info.type, "f16") == 0 ||
           strcmp(w->info.type, "bf16") == 0;
}

void weight_row(const struct weight *w, int row, float *out)
{
    const size_t n = (size_t)w->n_in;

    if (w->i8_scale) {
        const int8_t *q = (const int8_t *)w->info.data + (size_t)row * n;

        for (size_t k = 0; k < n; k++)
            out[k] = (float)q[k] * w->i8_scale[row];
        return;
    }
    size_t row_bytes = w->info.size / (size_t)w->n_out;
    const char *from = (const char *)w->info.data + (size_t)row * row_bytes;
    if (w->type == GGML_TYPE_F32)
        memcpy(out, from, n * sizeof(*out));
    else
        ggml_get_type_traits(w->type)->to_float(from, out, (int64_t)n);
}

static void make_key(const struct ink_model_file *f, const char *name, char out[NAME_MAX_LEN])
{
    snprintf(out, NAME_MAX_LEN, "%s.%s", ink_model_file_arch(f), name);
}

enum ink_status hparam_int(const struct ink_model_file *f, const char *name, int min, int max,
                           int *out, struct ink_err *err)
{
    char key[NAME_MAX_LEN];
    int64_t v;

    make_key(f, name, key);
    if (!ink_model_file_int(f, key, &v))
        return ink_err_set(err, INK_CORRUPT, "%s: key %s is missing", ink_model_file_path(f), key);
    if (v < min || v > max)
        return ink_err_set(err, INK_CORRUPT, "%s: %s: %lld is not in %d..%d",
                           ink_model_file_path(f), key, (long long)v, min, max);
    *out = (int)v;
    return INK_OK;
}

enum ink_status hparam_int_or(const struct ink_model_file *f, const char *name, int min, int max,
                              int fallback, int *out, struct ink_err *err)
{
    char key[NAME_MAX_LEN];
    int64_t v;

    make_key(f, name, key);
    if (!ink_model_file_int(f, key, &v)) {
        *out = fallback;
        return INK_OK;
    }
    return hparam_int(f, name, min, max, out, err);
}

float hparam_float_or(const struct ink_model_file *f, const char *name, float fallback)
{
    char key[NAME_MAX_LEN];
    double v;

    make_key(f, name, key);
    return ink_model_file_float(f, key, &v) ? (float)v : fallback;
}
