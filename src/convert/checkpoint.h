#ifndef CONVERT_CHECKPOINT_H
#define CONVERT_CHECKPOINT_H

#include "base/arena.h"
#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The weights of a Hugging Face folder, whichever way they are stored: model.safetensors or pytorch_model.bin, in
 * one file or in shards with an index. Opening reads names and shapes only; the bytes of a tensor are then read in
 * order, a piece at a time. One thread.
 */

/* Element types that weights come in. SOURCE_OTHER can be listed, but not read. */
enum source_type { SOURCE_F32, SOURCE_F16, SOURCE_BF16, SOURCE_F64, SOURCE_OTHER };

enum { SOURCE_MAX_DIMS = 8, CHECKPOINT_MAX_TENSORS = 65536, CHECKPOINT_MAX_FILES = 1024 };

struct source_tensor {
    const char *name;
    const char *type_name; /* as the file spells it: "F32", "BFloat16Storage" */
    enum source_type type;
    int n_dims;
    int64_t shape[SOURCE_MAX_DIMS]; /* outermost first */
    bool contiguous;                /* elements lie in order without gaps; others cannot be read */
    int file;                       /* index into the checkpoint's files */
    uint64_t entry;                 /* torch: the storage's place in the zip */
    uint64_t offset;                /* bytes: in the file, or for torch in the storage */
    uint64_t size;                  /* bytes */
};

struct checkpoint_file {
    char *path;         /* owned */
    struct ink_map map; /* safetensors; empty otherwise */
    void *zip;          /* torch: struct zip *; NULL otherwise */
};

struct checkpoint {
    struct ink_arena *arena;
    struct checkpoint_file files[CHECKPOINT_MAX_FILES];
    int n_files;
    struct source_tensor *tensors; /* by name, after checkpoint_open() */
    size_t n_tensors, cap_tensors;
};

INK_NODISCARD enum ink_status checkpoint_open(const char *dir, struct checkpoint **out,
                                              struct ink_err *err);
void checkpoint_close(struct checkpoint *c); /* NULL is fine */

const struct source_tensor *checkpoint_find(const struct checkpoint *c, const char *name);
const char *checkpoint_path_of(const struct checkpoint *c, const struct source_tensor *t);

/* Bytes of one element; 0 for SOURCE_OTHER. */
size_t source_type_size(enum source_type type);

/* Reads one tensor from its first byte on. */
struct source_reader {
    const struct checkpoint *c;
    const struct source_tensor *t;
    uint64_t pos;     /* bytes read so far */
    uint64_t dropped; /* of these, bytes given back to the kernel */
    void *zip_file;   /* torch: struct zip_file * */
};

INK_NODISCARD enum ink_status source_reader_open(const struct checkpoint *c,
                                                 const struct source_tensor *t,
                                                 struct source_reader *out, struct ink_err *err);
/*
 * The next `len` bytes: `*out` points into the map where there is one, else to `scratch` (room for `len`, aligned to
 * 8), which they were copied to.
 */
INK_NODISCARD enum ink_status source_reader_next(struct source_reader *r, size_t len, void *scratch,
                                                 const void **out, struct ink_err *err);
void source_reader_close(struct source_reader *r);

/* For the readers of the formats: a new tensor to fill in; NULL when there are too many. `name` is copied. */
struct source_tensor *checkpoint_add(struct checkpoint *c, const char *name, size_t name_len);

#endif
