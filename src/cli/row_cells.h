#ifndef CLI_ROW_CELLS_H
#define CLI_ROW_CELLS_H

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What a rewriting run adds to a row of its input, and how it is read back from an output when a run is resumed.
 *
 *   table:      ...,rewrite_1,...,rewrite_n,rewrite_seed,rewrite_error
 *   JSON Lines: {...,"rewrites":[C...],"rewrite_seed":S} with "rewrite_error":{...} behind it when the text failed
 *
 * The row's own bytes stand before that and are the head; of a JSON object that is all but the closing brace. A row
 * has failed when it has no rewrite at all; a table's rewrite_error also names single rewrites that are missing.
 */
enum row_form { ROW_TEXT, ROW_JSON, ROW_TABLE };

struct row_format {
    enum row_form form;
    char delimiter; /* ROW_TABLE */
};

/* By the end of a file's name: .csv .tsv .jsonl .ndjson .txt; false for any other. */
bool row_format_of(const char *path, struct row_format *out);

/* Whether a column or field of this name would be taken for ours. */
bool row_cells_is_ours(struct ink_slice name);

/* The names of n rewrites and the rest, each with the delimiter before it. */
INK_NODISCARD enum ink_status row_cells_add_names(struct ink_buf *out, char delimiter, int n);

/* What follows a head, for an answer R or {"error"}; no line end. */
INK_NODISCARD enum ink_status row_cells_add(struct ink_buf *out, const struct row_format *format,
                                            int n, uint64_t seed, const json_t *answer);

/* Reads what follows a head in an output. False when it is not what a run with n rewrites writes. */
bool row_cells_read(struct ink_slice tail, const struct row_format *format, int n, uint64_t *seed,
                    bool *failed);

#endif
