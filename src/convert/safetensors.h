#ifndef CONVERT_SAFETENSORS_H
#define CONVERT_SAFETENSORS_H

#include "convert/checkpoint.h"

/*
 * Adds the tensors of a safetensors file, which is mapped as file number `file`. The header is checked completely:
 * every tensor lies inside the file, none overlap, none leave a gap. INK_CORRUPT names file and tensor.
 */
INK_NODISCARD enum ink_status safetensors_list(struct checkpoint *c, int file, struct ink_err *err);

#endif
