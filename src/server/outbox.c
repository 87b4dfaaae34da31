/* Three queues behind each other: memory, the file, and the piece that the file did not take. */
#include "server/outbox.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_MAX = 64 * 1024 * 1024, BLOCK = 64 * 1024 };

void outbox_init(struct outbox *o)
{
    *o = (struct outbox){ .fd = -1 };
    ink_buf_init(&o->head, PIECE_MAX + OUTBOX_MEMORY);
    ink_buf_init(&o->late, PIECE_MAX + OUTBOX_MEMORY);
}

void outbox_release(struct outbox *o)
{
    ink_buf_release(&o->head);
    ink_buf_release(&o->late);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

static size_t in_memory(const struct outbox *o)
{
    return o->head.len - o->at;
}

int64_t outbox_in_file(const struct outbox *o)
{
    return o->file_len - o->file_at;
}

bool outbox_is_empty(const struct outbox *o)
{
    return in_memory(o) == 0 && outbox_in_file(o) == 0 && o->late.len == 0;
}

bool outbox_wants(const struct outbox *o, bool may_spool)
{
    if (outbox_in_file(o) == 0 && o->late.len == 0 && in_memory(o) < OUTBOX_MEMORY)
        return true;
    return may_spool && !o->file_failed && o->file_len < OUTBOX_FILE_MAX;
}

static bool open_file(struct outbox *o)
{
    const char *folder = getenv("TMPDIR");
    char path[4096];

    if (o->fd >= 0)
        return true;
    (void)snprintf(path, sizeof(path), "%s/inkstone-XXXXXX",
                   folder && folder[0] ? folder : "/var/tmp");
    o->fd = mkstemp(path);
    if (o->fd < 0) {
        ink_log(INK_LOG_WARN, "no file for waiting answers: %s: %s", path, strerror(errno));
        return false;
    }
    (void)unlink(path);
    (void)fcntl(o->fd, F_SETFD, FD_CLOEXEC);
    return true;
}

/* All or nothing. */
static bool to_file(struct outbox *o, const char *bytes, size_t len)
{
    if (o->file_failed || !open_file(o)) {
        o->file_failed = true;
        return false;
    }
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(o->fd, bytes + done, len - done, o->file_len + (int64_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            ink_log(INK_LOG_WARN, "answers wait for their reader: %s", strerror(errno));
            o->file_failed = true;
            return false;
        }
        done += (size_t)n;
    }
    o->file_len += (int64_t)len;
    return true;
}

enum ink_status outbox_add(struct outbox *o, const void *bytes, size_t len)
{
    if (o->late.len > 0)
        return ink_buf_add(&o->late, bytes, len);
    if (outbox_in_file(o) == 0 && in_memory(o) < OUTBOX_MEMORY) {
        if (o->at > 0) {
            memmove(o->head.ptr, o->head.ptr + o->at, in_memory(o));
            o->head.len -= o->at;
            o->at = 0;
        }
        return ink_buf_add(&o->head, bytes, len);
    }
    return to_file(o, bytes, len) ? INK_OK : ink_buf_add(&o->late, bytes, len);
}

static bool refill_from_file(struct outbox *o)
{
    int64_t left = outbox_in_file(o);
    size_t want = left < BLOCK ? (size_t)left : BLOCK;
    ssize_t n;

    if (ink_buf_reserve(&o->head, want) != INK_OK)
        return false;
    do
        n = pread(o->fd, o->head.ptr, want, o->file_at);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return false;
    o->head.len = (size_t)n;
    o->file_at += n;
    if (o->file_at == o->file_len) {
        o->file_at = o->file_len = 0;
        o->file_failed = false; /* there is room again */
        (void)!ftruncate(o->fd, 0);
    }
    return true;
}

long outbox_take(struct outbox *o, void *to, size_t max)
{
    if (in_memory(o) == 0) {
        ink_buf_clear(&o->head);
        o->at = 0;
        if (outbox_in_file(o) > 0) {
            if (!refill_from_file(o))
                return -1;
        } else if (o->late.len > 0) {
            struct ink_buf empty = o->head;

            o->head = o->late;
            o->late = empty;
        }
    }

    size_t n = in_memory(o) < max ? in_memory(o) : max;
    memcpy(to, o->head.ptr + o->at, n);
    o->at += n;
    return (long)n;
}
