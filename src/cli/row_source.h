#ifndef CLI_ROW_SOURCE_H
#define CLI_ROW_SOURCE_H

#include "base/slice.h"
#include "base/status.h"
#include "cli/lines.h"
#include "cli/row_cells.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * The rows of an input file, each with its text and with its own bytes as the output begins the row. Rows are numbered
 * from 0; the line of column names and empty lines of tables and JSON Lines are none. A row without a usable text is a
 * row with an error; only what leaves the rows behind it in doubt ends the source.
 */
struct row_source;

struct row {
    int64_t index;
    struct ink_slice head; /* in the output's format (cli/row_cells.h); valid until the next row */
    bool crlf;             /* its line end */
    json_t *object;        /* {"text": ...}, the caller's; NULL: `err` says why */
    struct ink_err err;
};

/*
 * Opens `path` for an output of format `out` with `n` rewrites a row. `column` names the column or field of the text; NULL
 * is "text". Reads the column names; fails with one line that names the file when it cannot be what it should be: no
 * such column, a name that we add, another encoding than UTF-8.
 */
INK_NODISCARD enum ink_status row_source_open(const char *path, const char *column,
                                              const struct row_format *out, int n,
                                              struct row_source **source, struct ink_err *err);
void row_source_close(struct row_source *s); /* NULL is fine */

/* The output's line of column names, line end included; empty where it has none. Borrowed. */
struct ink_slice row_source_names(const struct row_source *s);
const struct stat *row_source_stat(const struct row_source *s);

/* The next row: LINE_READY, LINE_AGAIN (row_source_fill() when the descriptor is readable), or LINE_END. */
enum line_state row_source_next(struct row_source *s, struct row *row);
/* The same, waiting. Never LINE_AGAIN. */
enum line_state row_source_wait(struct row_source *s, struct row *row);
void row_source_fill(struct row_source *s);
int row_source_fd(const struct row_source *s);

/* After LINE_END: INK_OK, or what keeps the rest from being read. */
enum ink_status row_source_error(const struct row_source *s, struct ink_err *err);

/* How many rows there are: exact at the end, before that by the file's size; 0: unknown. */
int64_t row_source_estimate(const struct row_source *s);

#endif
