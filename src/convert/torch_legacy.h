#ifndef CONVERT_TORCH_LEGACY_H
#define CONVERT_TORCH_LEGACY_H

#include "convert/checkpoint.h"

#include <stdbool.h>

/*
 * pytorch_model.bin as torch wrote it before 1.6, and later on request: pickles one after the other, then the
 * storages. Many older checkpoints are stored so.
 */

bool torch_legacy_matches(const struct ink_map *map);

/* Adds the tensors of file number `file`, which is mapped. They are read from the map, as those of safetensors. */
INK_NODISCARD enum ink_status torch_legacy_list(struct checkpoint *c, int file,
                                                struct ink_err *err);

#endif
