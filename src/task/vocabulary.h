#ifndef TASK_VOCABULARY_H
#define TASK_VOCABULARY_H

#include "base/status.h"

struct ink_model_file;
struct ink_tokenizer;

/*
 * The tokenizer that a model file carries, under the keys that llama.cpp's converter writes for T5
 * (tokenizer.ggml.*) and a few of our own. INK_CORRUPT names the key that is missing or wrong.
 */
INK_NODISCARD enum ink_status vocabulary_read(const struct ink_model_file *file,
                                              struct ink_tokenizer **out, struct ink_err *err);

#endif
