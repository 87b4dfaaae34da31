#ifndef BASE_TRACE_H
#define BASE_TRACE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Where the time of one request went, as a timeline in the trace event format that Chrome's about:tracing and Perfetto
 * read. A process has at most one trace: it waits for the first request, records what happens anywhere until that
 * request's end, and is then a complete file. Off, asking costs one atomic load. Any thread.
 */
enum ink_trace_track { INK_TRACE_REQUEST, INK_TRACE_ENGINE, INK_TRACE_OPERATOR };

/* Creates the file (INK_IO: why not) and waits for a request. */
INK_NODISCARD enum ink_status ink_trace_open(const char *path, struct ink_err *err);
/* `request` is any address that tells requests apart: the first one to come is the one that is traced. */
void ink_trace_begin(const void *request);
/* Completes the file when it is `request`'s. */
void ink_trace_end(const void *request);
/* Completes the file whatever it waits for. INK_IO: it could not be written. Without a trace nothing happens. */
INK_NODISCARD enum ink_status ink_trace_close(struct ink_err *err);

bool ink_trace_is_on(void);                /* recording */
bool ink_trace_is_of(const void *request); /* recording this one */

/*
 * Something that took from start_ns to end_ns (ink_clock_ns()). `name` is copied; `key` (plain ASCII, or NULL) and `value` are shown
 * with it. Nothing happens while no trace is recording.
 */
void ink_trace_span(enum ink_trace_track track, const char *name, int64_t start_ns, int64_t end_ns,
                    const char *key, int64_t value);

#endif
