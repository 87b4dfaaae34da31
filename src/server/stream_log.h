#ifndef SERVER_STREAM_LOG_H
#define SERVER_STREAM_LOG_H

#include "base/buf.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The events of one stream as the bytes that go out, written once and read from any place by any number of readers.
 * Event n, from 1, has the id "<stream>:<n>". A place is a count of bytes from the stream's beginning.
 * Pure and not thread-safe.
 */
enum { STREAM_ID_CAP = 40 };

struct stream_log {
    char id[STREAM_ID_CAP]; /* the stream's */
    struct ink_buf bytes;   /* from place `begin` on */
    size_t begin;
    size_t *ends; /* [n_events]: the place behind each event; owned */
    int n_events, cap_events;
};

/* `max`: bytes kept at once. */
void stream_log_init(struct stream_log *log, const char *id, size_t max);
void stream_log_release(struct stream_log *log);

/* Adds `event` as one event; takes the reference. INK_NO_MEMORY: it does not fit, and the log is as it was. */
INK_NODISCARD enum ink_status stream_log_add(struct stream_log *log, json_t *event);
/* The line that says that nothing follows. It has no id: it belongs to whatever event was last. */
INK_NODISCARD enum ink_status stream_log_close(struct stream_log *log);

size_t stream_log_end(const struct stream_log *log);
/* The place behind event `n`, or with 0 the beginning; false: no such event, or its followers are forgotten. */
bool stream_log_after(const struct stream_log *log, int n, size_t *place);
/* Copies at most `cap` bytes from `place` on; `place` is not before `begin`. */
size_t stream_log_read(const struct stream_log *log, size_t place, char *out, size_t cap);
/* Drops the bytes of all events so far. */
void stream_log_forget(struct stream_log *log);

/*
 * What a Last-Event-ID says to the stream `id`: "<id>:<n>" or "<n>". "" is 0, the beginning. False: anything else.
 */
bool stream_event_number(const char *text, const char *id, int *n);

#endif
