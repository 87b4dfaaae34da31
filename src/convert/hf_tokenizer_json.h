#ifndef CONVERT_HF_TOKENIZER_JSON_H
#define CONVERT_HF_TOKENIZER_JSON_H

#include "convert/vocab.h"

#include <jansson.h>

/* A token's number, whether an integer or a whole real; -1 when it is none or out of range. */
int64_t json_token_id(const json_t *v);

/*
 * Reads the vocabulary and the normalizer of a tokenizer.json of the Unigram kind into `v`, which was initialized.
 * Its added tokens are vocab_load()'s business. INK_CORRUPT or INK_UNSUPPORTED, without the file's name.
 */
INK_NODISCARD enum ink_status hf_tokenizer_json_read(const json_t *root, struct vocab *v,
                                                     struct ink_err *err);

#endif
