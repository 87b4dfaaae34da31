#ifndef CONVERT_TORCH_BIN_H
#define CONVERT_TORCH_BIN_H

#include "convert/checkpoint.h"

/*
 * pytorch_model.bin: a zip (torch 1.6 and later) of one pickle, which describes the tensors, and one member per
 * storage. The pickle is interpreted, never executed; see pickle.h.
 */

/* Opens file number `file` of the checkpoint and adds its tensors. */
INK_NODISCARD enum ink_status torch_bin_list(struct checkpoint *c, int file, struct ink_err *err);
void torch_bin_close(void *zip); /* NULL is fine */

/* Reading one tensor from its first byte: start, read in order, stop. */
INK_NODISCARD enum ink_status torch_bin_start(const struct checkpoint_file *f,
                                              const struct source_tensor *t, void **zip_file,
                                              struct ink_err *err);
INK_NODISCARD enum ink_status torch_bin_read(const struct checkpoint_file *f,
                                             const struct source_tensor *t, void *zip_file,
                                             void *out, size_t len, struct ink_err *err);
void torch_bin_stop(void *zip_file); /* NULL is fine */

#endif
