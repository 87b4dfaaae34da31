#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes somebody else owns; not NUL-terminated. Text from outside travels like this. */
struct ink_slice {
    const char *ptr;
    size_t len;
};

static inline struct ink_slice ink_slice_of(const char *s)
{
    return (struct ink_slice){ s, strlen(s) };
}

static inline bool ink_slice_eq(struct ink_slice a, struct ink_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

#endif
