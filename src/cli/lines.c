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
    lines_init_records(r, fd, LINES_MAX, 0);
}

void lines_init_records(struct line_reader *r, int fd, size_t max, char delimiter)
{
    struct stat sb;

    *r = (struct line_reader){ .fd = fd, .max = max };
    csv_scan_init(&r->scan, delimiter);
    ink_buf_init(&r->buf, max + 2 * READ_BYTES);
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
    /* A pending line is at most `max` long, so there is always room for one read. */
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

bool lines_skip(struct line_reader *r, const char *bytes)
{
    size_t len = strlen(bytes);

    if (r->buf.len - r->at < len || memcmp(r->buf.ptr + r->at, bytes, len) != 0)
        return false;
    consume(r, len);
    return true;
}

/* The '\n' that ends the line, as far as there are bytes. */
static const char *find_end(struct line_reader *r, const char *start, size_t have)
{
    const char *from = start + r->scanned;
    size_t n;

    if (r->scan.delimiter == 0)
        return memchr(from, '\n', have - r->scanned);
    n = csv_scan(&r->scan, from, have - r->scanned);
    return n > 0 ? from + n - 1 : NULL;
}

enum line_state lines_next(struct line_reader *r, struct ink_slice *line)
{
    const char *start = r->buf.ptr + r->at;
    size_t have = r->buf.len - r->at;
    const char *end = find_end(r, start, have);
    bool last = !end && r->ended;
    size_t len = end ? (size_t)(end - start) : have;

    r->scanned = have;
    if (!end && !last) {
        if (len <= r->max)
            return LINE_AGAIN;
        consume(r, len);
        r->skipping = true;
        return LINE_AGAIN;
    }
    if (last && len == 0 && !r->skipping)
        return LINE_END;

    r->whole = end != NULL;
    r->unclosed = !end && r->scan.state == CSV_QUOTED;
    consume(r, len + (end ? 1 : 0));
    csv_scan_init(&r->scan, r->scan.delimiter);
    if (r->skipping || len > r->max) {
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
