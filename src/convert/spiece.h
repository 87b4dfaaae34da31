#ifndef CONVERT_SPIECE_H
#define CONVERT_SPIECE_H

#include "convert/vocab.h"

/*
 * Reads a SentencePiece model (the protocol buffer of spiece.model) of the unigram kind into `v`, which was
 * initialized. INK_CORRUPT or INK_UNSUPPORTED, without the file's name.
 */
INK_NODISCARD enum ink_status spiece_read(struct ink_slice bytes, struct vocab *v,
                                          struct ink_err *err);

#endif
