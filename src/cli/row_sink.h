#ifndef CLI_ROW_SINK_H
#define CLI_ROW_SINK_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * A file that grows by whole rows. Rows are collected and written a few times a second, and reach the disk every few
 * seconds. When a write fails, the file is cut back to the last whole row. One process writes a file at a time.
 */
struct row_sink {
    const char *path; /* borrowed, for messages */
    int fd;           /* owned; -1: none */
    bool regular;
    struct ink_buf pending;    /* whole rows */
    int64_t size;              /* of the file; always at the end of a row */
    int64_t n_pending, n_rows; /* rows that wait; rows in the file that this sink has written */
    int64_t written_ns, synced_ns;
    bool unsynced;
    int failed; /* errno of the write that failed; nothing is written after it */
};

/* Takes over `fd`, which is locked and stands at the end of `size` bytes. */
void row_sink_init(struct row_sink *s, const char *path, int fd, int64_t size);
void row_sink_release(struct row_sink *s); /* closes; what waits is not written */

/* Adds bytes to the row under construction; row_sink_end() completes it. False: see `failed`. */
bool row_sink_add(struct row_sink *s, const void *bytes, size_t len);
bool row_sink_end(struct row_sink *s);
/* Writes what waits when it is time to, or with `now` at once and onto the disk. */
bool row_sink_flush(struct row_sink *s, bool now);
/* "path: No space left on device", for `failed`. */
enum ink_status row_sink_error(const struct row_sink *s, struct ink_err *err);

/* Locks a file against other processes that write it: INK_BUSY when one does. */
INK_NODISCARD enum ink_status row_sink_lock(const char *path, int fd, struct ink_err *err);

#endif
