#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/slice.h"
#include "base/status.h"

#include <stddef.h>

/*
 * Bytes that grow up to a ceiling set at birth. `ptr` is always followed by a
 * NUL that is not counted in `len`, so text can be used as a C string.
 * Adding fails with INK_NO_MEMORY at the ceiling and leaves the content as it was.
 * Not thread-safe.
 */
struct ink_buf {
    char *ptr; /* owned; never NULL after init */
    size_t len;
    size_t cap; /* allocated, without the NUL */
    size_t max; /* ceiling */
};

void ink_buf_init(struct ink_buf *b, size_t max);
void ink_buf_release(struct ink_buf *b);
void ink_buf_clear(struct ink_buf *b); /* room kept */
char *ink_buf_take(struct ink_buf *b); /* caller frees; `b` is empty and usable after */

INK_NODISCARD enum ink_status ink_buf_add(struct ink_buf *b, const void *bytes, size_t len);
INK_NODISCARD enum ink_status ink_buf_adds(struct ink_buf *b, const char *s);
INK_NODISCARD enum ink_status ink_buf_addf(struct ink_buf *b, const char *fmt, ...)
    INK_PRINTF(2, 3);
INK_NODISCARD enum ink_status ink_buf_reserve(struct ink_buf *b, size_t extra);

static inline struct ink_slice ink_buf_slice(const struct ink_buf *b)
{
    return (struct ink_slice){ b->ptr, b->len };
}

#endif
