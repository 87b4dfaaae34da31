#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/status.h"

/*
 * Lines on stderr: "2026-01-31T12:00:00Z level message". Any thread; one line is
 * one write. User text never goes into the log.
 */
enum ink_log_level { INK_LOG_ERROR, INK_LOG_WARN, INK_LOG_INFO, INK_LOG_DEBUG };

void ink_log_set_level(enum ink_log_level max); /* default INK_LOG_WARN */
void ink_log(enum ink_log_level level, const char *fmt, ...) INK_PRINTF(2, 3);

#endif
