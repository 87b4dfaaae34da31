#ifndef TASK_STOP_H
#define TASK_STOP_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks for stop strings in a growing text. `from` is what the last call for this text returned (0 at first). Returns how much of the text can be
 * shown: up to where the earliest stop string begins (`*hit` is set), else all but a tail that
 * could still become one. Pure; stop strings are not empty.
 */
size_t stop_scan(struct ink_slice text, size_t from, const struct ink_slice *stops, int n_stops,
                 bool *hit);

#endif
