/* The log: whole lines to stderr, filtered by one level. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_int level_max = INK_LOG_WARN;

void ink_log_set_level(enum ink_log_level max)
{
    atomic_store(&level_max, (int)max);
}

void ink_log(enum ink_log_level level, const char *fmt, ...)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    char text[1024];
    char stamp[32];
    struct tm tm;
    time_t now = time(NULL);
    va_list ap;

    if ((int)level > atomic_load(&level_max))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
    fprintf(stderr, "%s %s %s\n", stamp, names[level], text);
}
