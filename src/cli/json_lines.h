#ifndef CLI_JSON_LINES_H
#define CLI_JSON_LINES_H

#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Standard input answered line by line, one at a time: `answer` makes a new JSON object of a line, or fails; it is
 * printed with the line's "index" (from 0) in front, or an error object in its place. Returns an exit status:
 * CLI_FAILED when a line failed. `verb` is for the progress line: "scoring".
 */
typedef enum ink_status line_answer_fn(void *arg, struct ink_slice line, json_t **answer,
                                       struct ink_err *err);

int json_lines(const char *verb, line_answer_fn *answer, void *arg);

/* {"index": i, ...fields}: takes over `fields`. */
json_t *json_numbered(int64_t index, json_t *fields);

/* The token ids of a JSON array, which is called `name` in errors. The caller frees *ids. */
INK_NODISCARD enum ink_status json_read_ids(const json_t *array, const char *name, int32_t **ids,
                                            int *n, struct ink_err *err);

#endif
