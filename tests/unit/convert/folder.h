#ifndef FOLDER_H
#define FOLDER_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Temporary checkpoint folders, and the bytes of the formats that they hold. Failures end the test. */

char *folder_new(void);        /* an empty folder; folder_remove() frees the path */
void folder_remove(char *dir); /* with the files in it */
void folder_put(const char *dir, const char *name, const void *bytes, size_t len);
void folder_puts(const char *dir, const char *name, const char *text);
int folder_n_files(const char *dir); /* files in it, hidden ones too */

/* One protocol buffer field: bytes, varint, float. */
void proto_bytes(struct ink_buf *b, unsigned field, const void *bytes, size_t len);
void proto_int(struct ink_buf *b, unsigned field, uint64_t v);
void proto_float(struct ink_buf *b, unsigned field, float v);
/* A SentencePiece piece; type 0: not written. */
void proto_piece(struct ink_buf *b, const char *text, float score, unsigned type);

/* A safetensors file of f32 tensors, one call each between begin and end. */
struct tensors {
    struct ink_buf header, data;
};
void tensors_begin(struct tensors *t);
/* `fill`: value of element i is fill + i / 1024. ne1 0: one dimension. */
void tensors_add(struct tensors *t, const char *name, int ne1, int ne0, float fill);
void tensors_end(struct tensors *t, const char *dir, const char *file);

/* A whole T5 checkpoint: d_model 8, 2 heads of 4, d_ff 16, one layer each way, 16 rows, 12 pieces. */
enum { TINY_ROWS = 16, TINY_PIECES = 12 };
extern const char tiny_config[];
void tiny_spiece(const char *dir);
/* Its tensors; `skip` (may be NULL) is left out, and `head` adds a lm_head.weight of its own. */
void tiny_tensors(struct tensors *t, const char *skip, int head);
char *tiny_folder(void);

#endif
