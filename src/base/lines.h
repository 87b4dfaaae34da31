#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes into lines, bounded, however the bytes arrive. Only the final '\n' is removed. A line longer than the limit is
 * dropped as it comes and reported as INK_LINE_TOO_LONG; the lines after it stay in step. Not thread-safe.
 */
enum ink_line_state {
    INK_LINE_READY,
    INK_LINE_TOO_LONG,
    INK_LINE_AGAIN, /* not whole yet: more bytes are needed */
    INK_LINE_END,   /* no more lines */
};

struct ink_lines {
    struct ink_buf buf; /* received; handed out up to `at` */
    size_t at, scanned;
    size_t line_max;
    size_t n_whole;   /* lines in `buf` from `at` that are whole */
    int64_t consumed; /* bytes handed out or dropped */
    bool ended;       /* set by the owner: no more bytes come, so what is left is the last line */
    bool skipping;    /* inside a line that is too long */
};

void ink_lines_init(struct ink_lines *l, size_t line_max);
void ink_lines_release(struct ink_lines *l);

/*
 * How many bytes should be added now: 0 while whole lines are waiting and the buffer has some 64 kB, so that it grows
 * beyond only for a line that needs it.
 */
size_t ink_lines_room(const struct ink_lines *l);

/* Where to write up to `len` bytes, at most 64 kB; NULL when memory is out. */
char *ink_lines_reserve(struct ink_lines *l, size_t len);
/* `len` bytes were written there. */
void ink_lines_commit(struct ink_lines *l, size_t len);

/* The next line, valid until the next call on `l`. */
enum ink_line_state ink_lines_next(struct ink_lines *l, struct ink_slice *line);

#endif
