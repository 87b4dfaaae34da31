#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic time; never jumps with the wall clock. Any thread. */
int64_t ink_clock_ms(void);
int64_t ink_clock_ns(void);
static inline double ink_clock_ms_since(int64_t start_ns)
{
    return (double)(ink_clock_ns() - start_ns) / 1e6;
}

/* Monotonic now + `timeout_ms` as an absolute time, for condition variables made by ink_cond_init(). */
struct timespec ink_clock_deadline(int timeout_ms);

#endif
