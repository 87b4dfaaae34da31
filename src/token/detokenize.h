#ifndef TOKEN_DETOKENIZE_H
#define TOKEN_DETOKENIZE_H

#include "base/slice.h"
#include "base/status.h"
#include "token/tokenizer.h"

/*
 * Text of a growing token sequence, for streams. What has been handed out never
 * changes: an incomplete character (byte pieces) is held back until it is whole
 * or can never be. The pieces handed out, joined, equal ink_tokenizer_decode()
 * of all ids.
 *
 * One owner; borrows the tokenizer.
 */
struct ink_detokenizer;

struct ink_detokenizer *ink_detokenizer_new(const struct ink_tokenizer *t);
void ink_detokenizer_free(struct ink_detokenizer *d);  /* NULL is fine */
void ink_detokenizer_clear(struct ink_detokenizer *d); /* ready for another sequence */

/* Adds one token; `*out` is the new text, maybe empty, valid until the next call on `d`. */
INK_NODISCARD enum ink_status ink_detokenizer_add(struct ink_detokenizer *d, int32_t id,
                                                  struct ink_slice *out, struct ink_err *err);
/* The rest, at the end of the sequence. */
struct ink_slice ink_detokenizer_finish(struct ink_detokenizer *d);

#endif
