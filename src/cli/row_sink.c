/* Appending rows to a file so that at most a second of them is lost, and never half of one left. */
#define _DEFAULT_SOURCE /* flock */
#include "cli/row_sink.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PENDING_MAX = 256 * 1024 * 1024, /* beyond any one row: 16 rewrites with all details */
    WRITE_BYTES = 64 * 1024,
};
static const int64_t WRITE_NS = 300 * 1000 * 1000;              /* for who reads along */
static const int64_t SYNC_NS = (int64_t)5 * 1000 * 1000 * 1000; /* what a power cut may take */

void row_sink_init(struct row_sink *s, const char *path, int fd, int64_t size)
{
    struct stat sb;

    *s = (struct row_sink){ .path = path, .fd = fd, .size = size };
    s->regular = fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode);
    s->written_ns = s->synced_ns = ink_clock_ns();
    ink_buf_init(&s->pending, PENDING_MAX);
}

void row_sink_release(struct row_sink *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    ink_buf_release(&s->pending);
}

bool row_sink_add(struct row_sink *s, const void *bytes, size_t len)
{
    if (s->failed == 0 && ink_buf_add(&s->pending, bytes, len) != INK_OK)
        s->failed = ENOMEM;
    return s->failed == 0;
}

static bool write_all(struct row_sink *s)
{
    for (size_t at = 0; at < s->pending.len;) {
        ssize_t n = write(s->fd, s->pending.ptr + at, s->pending.len - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            s->failed = errno;
            return false;
        }
        at += (size_t)n;
    }
    return true;
}

static bool write_pending(struct row_sink *s)
{
    if (!write_all(s)) {
        if (s->regular && ftruncate(s->fd, (off_t)s->size) != 0)
            return false; /* a cut row stays; a resumed run finds it */
        return false;
    }
    s->size += (int64_t)s->pending.len;
    s->n_rows += s->n_pending;
    s->n_pending = 0;
    s->unsynced = true;
    s->written_ns = ink_clock_ns();
    ink_buf_clear(&s->pending);
    return true;
}

bool row_sink_end(struct row_sink *s)
{
    s->n_pending++;
    return s->failed == 0 && (s->pending.len < WRITE_BYTES || write_pending(s));
}

bool row_sink_flush(struct row_sink *s, bool now)
{
    int64_t time = ink_clock_ns();

    if (s->failed)
        return false;
    if (s->pending.len > 0 && (now || time - s->written_ns >= WRITE_NS) && !write_pending(s))
        return false;
    if (!s->regular || !s->unsynced || (!now && time - s->synced_ns < SYNC_NS))
        return true;
    /* Some file systems say only here that there is no room. */
    if (fdatasync(s->fd) != 0 && errno != EINVAL && errno != EROFS) {
        s->failed = errno;
        return false;
    }
    s->unsynced = false;
    s->synced_ns = ink_clock_ns();
    return true;
}

enum ink_status row_sink_error(const struct row_sink *s, struct ink_err *err)
{
    return ink_err_set(err, INK_IO, "%s: %s", s->path, strerror(s->failed));
}

enum ink_status row_sink_lock(const char *path, int fd, struct ink_err *err)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return INK_OK; /* file systems without locks do without */
    return ink_err_set(err, INK_BUSY, "%s: another run is writing it", path);
}
