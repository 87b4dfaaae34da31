/* Events go straight into the file's buffer; its array is closed when the request ends. */
#include "base/trace.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A request of some hundred steps of some hundred operators; about 120 bytes each. */
enum { EVENTS_MAX = 1000000 };

enum trace_state { TRACE_OFF, TRACE_WAITING, TRACE_ON };

static struct {
    atomic_int state;
    _Atomic(const void *) request;
    pthread_mutex_t lock; /* guards what is below */
    FILE *file;
    char path[256];
    int64_t start_ns;
    int n_events;
    bool failed;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

enum ink_status ink_trace_open(const char *path, struct ink_err *err)
{
    FILE *file = fopen(path, "wbe");

    if (!file)
        return ink_err_set(err, INK_IO, "%s: cannot be written: %s", path, strerror(errno));
    pthread_mutex_lock(&trace.lock);
    trace.file = file;
    trace.n_events = 0;
    trace.failed = false;
    (void)snprintf(trace.path, sizeof(trace.path), "%s", path);
    atomic_store(&trace.state, TRACE_WAITING);
    pthread_mutex_unlock(&trace.lock);
    return INK_OK;
}

bool ink_trace_is_on(void)
{
    return atomic_load_explicit(&trace.state, memory_order_relaxed) == TRACE_ON;
}

bool ink_trace_is_of(const void *request)
{
    return ink_trace_is_on() && atomic_load(&trace.request) == request;
}

static void write_head(void)
{
    static const char *const tracks[] = { "request", "engine", "operators" };

    (void)fputs(
        "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"inkstone\"}}",
        trace.file);
    for (int i = 0; i < 3; i++)
        (void)fprintf(trace.file,
                      ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\","
                      "\"args\":{\"name\":\"%s\"}}",
                      i, tracks[i]);
}

void ink_trace_begin(const void *request)
{
    if (atomic_load_explicit(&trace.state, memory_order_relaxed) != TRACE_WAITING)
        return;
    pthread_mutex_lock(&trace.lock);
    if (atomic_load(&trace.state) == TRACE_WAITING) {
        trace.start_ns = ink_clock_ns();
        atomic_store(&trace.request, request);
        write_head();
        atomic_store(&trace.state, TRACE_ON);
    }
    pthread_mutex_unlock(&trace.lock);
}

static void finish(void)
{
    if (atomic_load(&trace.state) == TRACE_WAITING)
        write_head();
    (void)fputs("\n]}\n", trace.file);
    trace.failed = ferror(trace.file) != 0;
    trace.failed |= fclose(trace.file) != 0;
    trace.file = NULL;
    atomic_store(&trace.request, NULL);
    atomic_store(&trace.state, TRACE_OFF);
}

void ink_trace_end(const void *request)
{
    if (!ink_trace_is_of(request))
        return;
    pthread_mutex_lock(&trace.lock);
    if (trace.file && atomic_load(&trace.request) == request)
        finish();
    pthread_mutex_unlock(&trace.lock);
}

enum ink_status ink_trace_close(struct ink_err *err)
{
    pthread_mutex_lock(&trace.lock);
    if (trace.file)
        finish();
    const bool failed = trace.failed;
    trace.failed = false;
    pthread_mutex_unlock(&trace.lock);
    return failed ? ink_err_set(err, INK_IO, "%s: the trace could not be written", trace.path)
                  : INK_OK;
}

/* A name as the inside of a JSON string: what would need escaping becomes '?'. */
static void plain(char *out, size_t cap, const char *name)
{
    size_t n = 0;

    for (; *name && n + 1 < cap; name++)
        out[n++] = (unsigned char)*name < 0x20 || *name == '"' || *name == '\\' ||
                           (unsigned char)*name > 0x7e
                       ? '?'
                       : *name;
    out[n] = '\0';
}

void ink_trace_span(enum ink_trace_track track, const char *name, int64_t start_ns, int64_t end_ns,
                    const char *key, int64_t value)
{
    char shown[96];

    if (!ink_trace_is_on())
        return;
    plain(shown, sizeof(shown), name);
    pthread_mutex_lock(&trace.lock);
    if (trace.file && trace.n_events < EVENTS_MAX) {
        trace.n_events++;
        (void)fprintf(
            trace.file,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f",
            (int)track, shown, (double)(start_ns - trace.start_ns) / 1e3,
            (double)(end_ns - start_ns) / 1e3);
        if (key)
            (void)fprintf(trace.file, ",\"args\":{\"%s\":%lld}", key, (long long)value);
        (void)fputc('}', trace.file);
    }
    pthread_mutex_unlock(&trace.lock);
}
