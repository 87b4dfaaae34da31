/*
 * Stop strings across tokens. First, is one there? Otherwise, from where on could one begin? What was found safe to
 * show is never looked at again: a stop string that began in it would have held it back.
 */
#include "task/stop.h"

/* Whether `stop`, or as much of it as there is text, stands at `at`. */
static bool stands_at(struct ink_slice text, size_t at, struct ink_slice stop)
{
    size_t rest = text.len - at;

    return memcmp(text.ptr + at, stop.ptr, rest < stop.len ? rest : stop.len) == 0;
}

size_t stop_scan(struct ink_slice text, size_t from, const struct ink_slice *stops, int n_stops,
                 bool *hit)
{
    size_t safe = text.len;

    *hit = false;
    for (size_t at = from; at < text.len; at++) {
        for (int i = 0; i < n_stops; i++) {
            if (!stands_at(text, at, stops[i]))
                continue;
            if (text.len - at >= stops[i].len) {
                *hit = true;
                return at;
            }
            safe = at < safe ? at : safe;
        }
    }
    return safe;
}
