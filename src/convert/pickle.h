#ifndef CONVERT_PICKLE_H
#define CONVERT_PICKLE_H

#include "base/slice.h"
#include "base/status.h"
#include "convert/checkpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads the pickle of a torch state dictionary: name -> tensor.
 *
 * A pickle is a program for a stack machine, and Python's would call whatever it names. This one knows the
 * opcodes that such a dictionary needs and a short list of names (tensor and parameter rebuilding, storages,
 * OrderedDict); what they stand for is noted down, nothing is ever called. Anything else is refused by name.
 * Stack, memo and number of values are bounded. Pure.
 */

struct pickle_tensor {
    struct ink_slice name;
    struct ink_slice storage; /* key of the storage: the member data/<key> of the zip */
    const char *storage_type; /* "FloatStorage"; a literal */
    enum source_type type;
    size_t element_size; /* bytes */
    int64_t storage_elements;
    int64_t offset; /* elements */
    int n_dims;
    int64_t shape[SOURCE_MAX_DIMS], stride[SOURCE_MAX_DIMS];
};

typedef enum ink_status pickle_tensor_fn(void *arg, const struct pickle_tensor *t,
                                         struct ink_err *err);

/*
 * Calls `each` for every tensor of the dictionary, in its order; other entries are skipped. Stops at
 * the first status that is not INK_OK and returns it. INK_CORRUPT: no pickle, or cut off;
 * INK_UNSUPPORTED: something that is refused. `*used` (may be NULL): bytes of the pickle, which more may follow.
 */
INK_NODISCARD enum ink_status pickle_read(struct ink_slice bytes, pickle_tensor_fn *each, void *arg,
                                          size_t *used, struct ink_err *err);

/* The same for a list of strings. */
typedef enum ink_status pickle_string_fn(void *arg, struct ink_slice s, struct ink_err *err);

INK_NODISCARD enum ink_status pickle_read_strings(struct ink_slice bytes, pickle_string_fn *each,
                                                  void *arg, size_t *used, struct ink_err *err);

#endif
