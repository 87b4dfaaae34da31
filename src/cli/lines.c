/* Lines of a pipe or file, bounded, for commands that read standard input. */
#include "cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

void lines_init(struct line_reader *r, int fd)
{
    struct stat sb;

    *r = (struct line_reader){ .fd = fd };
    ink_buf_init(&r->buf, LINES_MAX + 2 * READ_BYTES);
    if (fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode))
        r->total = sb.st_size;
}

void lines_release(struct line_reader *r)
{
    ink_buf_release(&r->buf);
}

void lines_fill(struct line_reader *r)
{
    ssize_t n;

    if (r->ended)
        return;
    if (r->at > 0) {
        memmove(r->buf.ptr, r->buf.ptr + r->at, r->buf.len - r->at);
        r->buf.len -= r->at;
        r->at = 0;
    }
    /* A pending line is at most LINES_MAX long, so there is always room for one read. */
    if (ink_buf_reserve(&r->buf, READ_BYTES) != INK_OK) {
        r->failed = ENOMEM;
        r->ended = true;
        return;
    }
    do {
        n = read(r->fd, r->buf.ptr + r->buf.len, READ_BYTES);
        /* The descriptor may have been left non-blocking by whoever had it before. */
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            (void)poll(&(struct pollfd){ .fd = r->fd, .events = POLLIN }, 1, -1);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK));
    if (n <= 0) {
        r->failed = n < 0 ? errno : 0;
        r->ended = true;
        n = 0;
    }
    r->buf.len += (size_t)n;
    r->buf.ptr[r->buf.len] = '\0';
}

static void consume(struct line_reader *r, size_t len)
{
    r->at += len;
    r->consumed += (int64_t)len;
    r->scanned = 0;
}

enum line_state lines_next(struct line_reader *r, struct ink_slice *line)
{
    const char *start = r->buf.ptr + r->at;
    size_t have = r->buf.len - r->at;
    const char *end = memchr(start + r->scanned, '\n', have - r->scanned);
    bool last = !end && r->ended;
    size_t len = end ? (size_t)(end - start) : have;

    r->scanned = have;
    if (!end && !last) {
        if (len <= LINES_MAX)
            return LINE_AGAIN;
        consume(r, len);
        r->skipping = true;
        return LINE_AGAIN;
    }
    if (last && len == 0 && !r->skipping)
        return LINE_END;

    consume(r, len + (end ? 1 : 0));
    if (r->skipping || len > LINES_MAX) {
        r->skipping = false;
        return LINE_TOO_LONG;
    }
    *line = (struct ink_slice){ start, len };
    return LINE_READY;
}

enum line_state lines_wait(struct line_reader *r, struct ink_slice *line)
{
    enum line_state st;

    while ((st = lines_next(r, line)) == LINE_AGAIN)
        lines_fill(r);
    return st;
}
