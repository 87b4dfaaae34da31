#ifndef MODEL_MODEL_FILE_H
#define MODEL_MODEL_FILE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A GGUF file, mapped and checked: every length, offset and count lies inside
 * the file, so that whoever reads through this interface needs no check of its own.
 * Immutable after opening; any thread. What is returned is borrowed from it.
 */
struct ink_model_file;

/*
 * INK_NOT_FOUND or INK_IO: cannot be read. INK_CORRUPT: not GGUF, truncated, or
 * inconsistent; INK_UNSUPPORTED: a version, a type or a split file that is not read here. The text names the file
 * and what is wrong (which key or tensor).
 */
INK_NODISCARD enum ink_status ink_model_file_open(const char *path, struct ink_model_file **out,
                                                  struct ink_err *err);
void ink_model_file_close(struct ink_model_file *f); /* NULL is fine */

const char *ink_model_file_path(const struct ink_model_file *f);
size_t ink_model_file_size(const struct ink_model_file *f); /* bytes */
const char *ink_model_file_arch(
    const struct ink_model_file *f); /* general.architecture; "" if none */

/* Metadata by key. Each returns whether the key is there with that type; integers of any width are read as one. Strings are
 * valid UTF-8: other bytes have become '?'. */
bool ink_model_file_int(const struct ink_model_file *f, const char *key, int64_t *out);
bool ink_model_file_float(const struct ink_model_file *f, const char *key, double *out);
bool ink_model_file_bool(const struct ink_model_file *f, const char *key, bool *out);
bool ink_model_file_string(const struct ink_model_file *f, const char *key, const char **out);
/* Number of elements of an array key, or -1. */
int64_t ink_model_file_array(const struct ink_model_file *f, const char *key);
/* One element of an array of strings, straight from the map; empty when out of range or not such an array. */
struct ink_slice ink_model_file_array_string(const struct ink_model_file *f, const char *key,
                                             int64_t i);
/*
 * The elements of a numeric array, aligned for their type, or NULL when the key is not such an array. `type` is
 * "f32", "i32" (also u32) or "u8" (also i8 and bool): the width is what counts.
 */
const void *ink_model_file_array_data(const struct ink_model_file *f, const char *key,
                                      const char *type);

struct ink_tensor_info {
    const char *name;
    const char *type; /* "f32", "f16", "bf16", "i8", "q8_0", "q4_k", ... */
    int n_dims;
    int64_t ne[4];    /* ggml order, fastest first; 1 beyond n_dims */
    const void *data; /* in the map, aligned as the file says */
    size_t size;      /* bytes */
};

int64_t ink_model_file_n_tensors(const struct ink_model_file *f);
void ink_model_file_tensor(const struct ink_model_file *f, int64_t i, struct ink_tensor_info *out);
bool ink_model_file_find(const struct ink_model_file *f, const char *name,
                         struct ink_tensor_info *out);

/* "i8" for a file the importer made so; else "f16", "q4_k", ...: the type most bytes of the weights have. */
const char *ink_model_file_type(const struct ink_model_file *f);

/*
 * Identity of the weights: the importer's stored digest (key inkstone.weights_sha256, 64 hex digits) where there is
 * one, else SHA-256 over the tensor table and the first and last 4 KiB of every tensor.
 */
void ink_model_file_digest(const struct ink_model_file *f, uint8_t out[32]);

/* Tells the kernel that a tensor's bytes are no longer needed in memory (it was packed elsewhere). */
void ink_model_file_drop(const struct ink_model_file *f, const struct ink_tensor_info *tensor);

#endif
