/* The monotonic clock in the units callers want. */
#include "base/clock.h"

int64_t ink_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t ink_clock_ms(void)
{
    return ink_clock_ns() / 1000000;
}

struct timespec ink_clock_deadline(int timeout_ms)
{
    int64_t ns = ink_clock_ns() + (int64_t)timeout_ms * 1000000;

    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
                              .tv_nsec = (long)(ns % 1000000000) };
}
