#ifndef TASK_TOKENIZE_H
#define TASK_TOKENIZE_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Token ids of a text and back, as a served model's tokenizer sees them: what the front ends need of the token
 * room. Any thread.
 */
struct ink_served;

enum { INK_TOKENIZE_BYTES_MAX = 1024 * 1024 };

/*
 * The ids of `text`; special pieces written in it are recognized, and with `add_special` those are added that the
 * reference adds. INK_INVALID (param "text") when it is not valid UTF-8 or longer than INK_TOKENIZE_BYTES_MAX.
 * The caller frees *ids.
 */
INK_NODISCARD enum ink_status ink_tokenize(const struct ink_served *served, struct ink_slice text,
                                           bool add_special, int32_t **ids, size_t *n,
                                           struct ink_err *err);

/* The text of `n` ids without special pieces; INK_INVALID (param "ids") for one outside the vocabulary. Caller frees *text. */
INK_NODISCARD enum ink_status ink_detokenize(const struct ink_served *served, const int32_t *ids,
                                             size_t n, char **text, size_t *len,
                                             struct ink_err *err);

/* The vocabulary's own spelling of one id; empty outside it. Borrowed from `served`. */
struct ink_slice ink_token_piece(const struct ink_served *served, int32_t id);

#endif
