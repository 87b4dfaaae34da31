/* Events as bytes, and where each of them ends. */
#include "server/stream_log.h"

#include "base/alloc.h"
#include "base/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stream_log_init(struct stream_log *log, const char *id, size_t max)
{
    *log = (struct stream_log){ 0 };
    (void)snprintf(log->id, sizeof(log->id), "%s", id);
    ink_buf_init(&log->bytes, max);
}

void stream_log_release(struct stream_log *log)
{
    ink_buf_release(&log->bytes);
    free(log->ends);
    log->ends = NULL;
}

size_t stream_log_end(const struct stream_log *log)
{
    return log->begin + log->bytes.len;
}

static void note_end(struct stream_log *log)
{
    if (log->n_events == log->cap_events) {
        log->cap_events = log->cap_events > 0 ? 2 * log->cap_events : 64;
        log->ends = ink_realloc(log->ends, (size_t)log->cap_events * sizeof(*log->ends));
    }
    log->ends[log->n_events++] = stream_log_end(log);
}

enum ink_status stream_log_add(struct stream_log *log, json_t *event)
{
    char *text = ink_json_dump(event);
    enum ink_status st = INK_NO_MEMORY;

    json_decref(event);
    if (text)
        st = ink_buf_addf(&log->bytes, "id: %s:%d\ndata: %s\n\n", log->id, log->n_events + 1, text);
    if (st == INK_OK)
        note_end(log);
    free(text);
    return st;
}

enum ink_status stream_log_close(struct stream_log *log)
{
    return ink_buf_adds(&log->bytes, "data: [DONE]\n\n");
}

bool stream_log_after(const struct stream_log *log, int n, size_t *place)
{
    if (n < 0 || n > log->n_events)
        return false;
    *place = n == 0 ? 0 : log->ends[n - 1];
    return *place >= log->begin;
}

size_t stream_log_read(const struct stream_log *log, size_t place, char *out, size_t cap)
{
    assert(place >= log->begin && place <= stream_log_end(log));

    size_t left = stream_log_end(log) - place;
    size_t n = left < cap ? left : cap;
    memcpy(out, log->bytes.ptr + (place - log->begin), n);
    return n;
}

void stream_log_forget(struct stream_log *log)
{
    log->begin += log->bytes.len;
    ink_buf_clear(&log->bytes);
}

bool stream_event_number(const char *text, const char *id, int *n)
{
    size_t len = strlen(id);
    int value = 0;

    if (strncmp(text, id, len) == 0 && text[len] == ':') {
        text += len + 1;
        if (*text == '\0')
            return false;
    }
    for (int digits = 0; *text; text++, digits++) {
        if (*text < '0' || *text > '9' || digits == 9)
            return false;
        value = value * 10 + (*text - '0');
    }
    *n = value;
    return true;
}
