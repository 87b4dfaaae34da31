#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "base/buf.h"
#include "base/slice.h"
#include "cli/csv.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Lines of a file descriptor, without ever waiting unasked: the owner polls the descriptor and calls lines_fill()
 * when it is readable, so that work under way goes on while a slow writer is thinking. Only the final '\n' is removed.
 * A line longer than the limit is dropped as it is read and reported as LINE_TOO_LONG; the reader stays in step.
 *
 * With a delimiter, "lines" are the records of a table (cli/csv.h), whose quoted fields may hold newlines.
 */
enum { LINES_MAX = 1024 * 1024 };

enum line_state {
    LINE_READY,
    LINE_TOO_LONG,
    LINE_AGAIN, /* not whole yet: lines_fill() */
    LINE_END,   /* no more lines */
};

struct line_reader {
    int fd;
    struct ink_buf buf; /* read and not yet handed out from `at` */
    size_t at, scanned;
    size_t max;           /* longest line, in bytes */
    struct csv_scan scan; /* delimiter 0: plain lines */
    int64_t consumed;     /* bytes handed out, line ends included */
    int64_t total;        /* size of a regular file; 0: unknown */
    bool ended, skipping;
    bool whole;    /* the line last handed out had its '\n' */
    bool unclosed; /* it ended inside a quoted field */
    int failed;    /* errno of a failed read, which ends the lines; 0: none */
};

void lines_init(struct line_reader *r, int fd); /* plain lines of at most LINES_MAX */
void lines_init_records(struct line_reader *r, int fd, size_t max, char delimiter);
void lines_release(struct line_reader *r);

/* The next line, valid until the next call on `r`. */
enum line_state lines_next(struct line_reader *r, struct ink_slice *line);
/* Goes past these bytes when what is read so far begins with them, as a byte order mark may. */
bool lines_skip(struct line_reader *r, const char *bytes);
/* One read(), which waits when nothing is there. */
void lines_fill(struct line_reader *r);
/* Waits for a whole line: for commands that do one thing at a time. Never LINE_AGAIN. */
enum line_state lines_wait(struct line_reader *r, struct ink_slice *line);

#endif
