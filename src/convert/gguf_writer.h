#ifndef CONVERT_GGUF_WRITER_H
#define CONVERT_GGUF_WRITER_H

#include "base/file.h"
#include "base/status.h"

#include <ggml.h>
#include <gguf.h>
#include <stdint.h>

/*
 * A GGUF file that is written tensor by tensor: keys and the list of tensors first, then the data in that order, then
 * keys of fixed length may be given their final values. Appears under its name only when finished.
 */
struct gguf_writer {
    struct gguf_context
        *keys; /* set keys through ggml's own functions before gguf_writer_start() */
    struct ggml_context *tensors;
    struct ink_atomic_file file;
    int64_t next;   /* tensor whose data comes next */
    size_t written; /* bytes of it */
};

/* Prepares for at most `max_tensors`. Nothing is on disk yet. */
void gguf_writer_init(struct gguf_writer *w, int max_tensors);
void gguf_writer_release(struct gguf_writer *w); /* an unfinished file disappears; { 0 } is fine */

/* Announces a tensor; `ne` in ggml's order, fastest first. */
void gguf_writer_add(struct gguf_writer *w, const char *name, enum ggml_type type, int n_dims,
                     const int64_t *ne);

/* Bytes the file will have. */
int64_t gguf_writer_total(const struct gguf_writer *w);

/* Opens the file, checks that it fits on the disk, and writes everything before the data. */
INK_NODISCARD enum ink_status gguf_writer_start(struct gguf_writer *w, const char *path,
                                                struct ink_err *err);
/* The next bytes of the current tensor; when it is complete the next one becomes current. */
INK_NODISCARD enum ink_status gguf_writer_data(struct gguf_writer *w, const void *bytes, size_t len,
                                               struct ink_err *err);
/* Writes the keys once more, whose length must not have changed, and gives the file its name. */
INK_NODISCARD enum ink_status gguf_writer_finish(struct gguf_writer *w, struct ink_err *err);

#endif
