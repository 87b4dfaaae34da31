#ifndef CONVERT_TORCH_BIN_H
#define CONVERT_TORCH_BIN_H

#include "convert/checkpoint.h"
#include "convert/pickle.h"

/*
 * pytorch_model.bin: a zip (torch 1.6 and later; for the older format see torch_legacy.h) of one pickle, which describes the tensors, and one member per
 * storage. The pickle is interpreted, never executed; see pickle.h.
 */

/* Opens file number `file` of the checkpoint and adds its tensors. */
INK_NODISCARD enum ink_status torch_bin_list(struct checkpoint *c, int file, struct ink_err *err);
void torch_bin_close(void *zip); /* NULL is fine */

/*
 * For both formats: adds a tensor that a pickle describes, checked against its storage. `offset` counts from the
 * storage's beginning. Errors without the file's name.
 */
INK_NODISCARD enum ink_status torch_add_tensor(struct checkpoint *c, int file,
                                               const struct pickle_tensor *p,
                                               struct source_tensor **out, struct ink_err *err);

/* Reading one tensor from its first byte: start, read in order, stop. */
INK_NODISCARD enum ink_status torch_bin_start(const struct checkpoint_file *f,
                                              const struct source_tensor *t, void **zip_file,
                                              struct ink_err *err);
INK_NODISCARD enum ink_status torch_bin_read(const struct checkpoint_file *f,
                                             const struct source_tensor *t, void *zip_file,
                                             void *out, size_t len, struct ink_err *err);
void torch_bin_stop(void *zip_file); /* NULL is fine */

#endif
