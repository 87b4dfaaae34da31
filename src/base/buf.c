/* A growing byte buffer with a ceiling. */
#include "base/buf.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An empty buffer points here, so that init never allocates; never written to. */
static char empty[1];

void ink_buf_init(struct ink_buf *b, size_t max)
{
    *b = (struct ink_buf){ .ptr = empty, .max = max };
}

void ink_buf_release(struct ink_buf *b)
{
    if (b->ptr != empty)
        free(b->ptr);
    *b = (struct ink_buf){ .ptr = empty, .max = b->max };
}

void ink_buf_clear(struct ink_buf *b)
{
    b->len = 0;
    if (b->ptr != empty && b->ptr)
        b->ptr[0] = '\0';
}

char *ink_buf_take(struct ink_buf *b)
{
    char *out = b->ptr == empty ? ink_strdup("") : b->ptr;
    size_t max = b->max;

    ink_buf_init(b, max);
    return out;
}

enum ink_status ink_buf_reserve(struct ink_buf *b, size_t extra)
{
    if (extra > b->max || b->len > b->max - extra)
        return INK_NO_MEMORY;
    size_t need = b->len + extra;
    if (b->ptr != empty && need <= b->cap)
        return INK_OK;

    size_t cap = b->cap < 64 ? 64 : b->cap + b->cap / 2;
    if (cap < need)
        cap = need;
    if (cap > b->max)
        cap = b->max;
    char *p = ink_try_realloc(b->ptr == empty ? NULL : b->ptr, cap + 1, 1);
    if (!p)
        return INK_NO_MEMORY;
    p[b->len] = '\0';
    b->ptr = p;
    b->cap = cap;
    return INK_OK;
}

enum ink_status ink_buf_add(struct ink_buf *b, const void *bytes, size_t len)
{
    if (len == 0)
        return INK_OK;
    enum ink_status st = ink_buf_reserve(b, len);
    if (st != INK_OK)
        return st;
    memcpy(b->ptr + b->len, bytes, len);
    b->len += len;
    b->ptr[b->len] = '\0';
    return INK_OK;
}

enum ink_status ink_buf_adds(struct ink_buf *b, const char *s)
{
    return ink_buf_add(b, s, strlen(s));
}

enum ink_status ink_buf_addf(struct ink_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return INK_INVALID;

    enum ink_status st = ink_buf_reserve(b, (size_t)n);
    if (st != INK_OK)
        return st;
    va_start(ap, fmt);
    vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return INK_OK;
}
