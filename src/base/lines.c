/* Lines out of a growing buffer. Each byte is looked at once for a line's end, and moved at most once a refill. */
#include "base/lines.h"

#include <string.h>

enum { BLOCK = 64 * 1024 };

void ink_lines_init(struct ink_lines *l, size_t line_max)
{
    *l = (struct ink_lines){ .line_max = line_max };
    ink_buf_init(&l->buf, line_max + 2 * BLOCK);
}

void ink_lines_release(struct ink_lines *l)
{
    ink_buf_release(&l->buf);
}

size_t ink_lines_room(const struct ink_lines *l)
{
    size_t have = l->buf.len - l->at;

    if (l->n_whole > 0)
        return have < BLOCK ? BLOCK - have : 0;
    return have <= l->line_max
               ? BLOCK
               : 0; /* a line that is too long already is dropped by the next look */
}

char *ink_lines_reserve(struct ink_lines *l, size_t len)
{
    if (l->at > 0) {
        memmove(l->buf.ptr, l->buf.ptr + l->at, l->buf.len - l->at);
        l->buf.len -= l->at;
        l->at = 0;
    }
    return ink_buf_reserve(&l->buf, len) == INK_OK ? l->buf.ptr + l->buf.len : NULL;
}

void ink_lines_commit(struct ink_lines *l, size_t len)
{
    const char *at = l->buf.ptr + l->buf.len;
    const char *end = at + len;

    l->buf.len += len;
    l->buf.ptr[l->buf.len] = '\0';
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        l->n_whole++;
        at++;
    }
}

static void consume(struct ink_lines *l, size_t len)
{
    l->at += len;
    l->consumed += (int64_t)len;
    l->scanned = 0;
}

enum ink_line_state ink_lines_next(struct ink_lines *l, struct ink_slice *line)
{
    const char *start = l->buf.ptr + l->at;
    size_t have = l->buf.len - l->at;
    const char *end = l->n_whole > 0 ? memchr(start + l->scanned, '\n', have - l->scanned) : NULL;
    bool last = !end && l->ended;
    size_t len = end ? (size_t)(end - start) : have;

    l->scanned = have;
    if (!end && !last) {
        if (len > l->line_max) {
            consume(l, len);
            l->skipping = true;
        }
        return INK_LINE_AGAIN;
    }
    if (last && len == 0 && !l->skipping)
        return INK_LINE_END;

    consume(l, len + (end ? 1 : 0));
    l->n_whole -= end ? 1 : 0;
    if (l->skipping || len > l->line_max) {
        l->skipping = false;
        return INK_LINE_TOO_LONG;
    }
    *line = (struct ink_slice){ start, len };
    return INK_LINE_READY;
}
