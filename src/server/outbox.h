#ifndef SERVER_OUTBOX_H
#define SERVER_OUTBOX_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An answer on its way to a client: bytes in, the same bytes out. Some 256 kB stay in memory. What is more waits in an
 * unlinked file in $TMPDIR (or /var/tmp), for a client that reads nothing until it has sent everything: without that it
 * and the server would wait for each other. Not thread-safe.
 */
struct outbox {
    struct ink_buf head; /* taken up to `at` */
    size_t at;
    int fd; /* the file; -1: none yet */
    int64_t file_at, file_len;
    struct ink_buf late; /* what the file did not take; behind all else */
    bool file_failed;    /* no more goes to it */
};

enum { OUTBOX_MEMORY = 256 * 1024 };
#define OUTBOX_FILE_MAX ((int64_t)1 << 30)

void outbox_init(struct outbox *o);
void outbox_release(struct outbox *o);

/* Whether more should be added now; with `may_spool`, until the file is full. */
bool outbox_wants(const struct outbox *o, bool may_spool);
/* INK_NO_MEMORY when one piece is beyond all bounds (64 MiB). */
INK_NODISCARD enum ink_status outbox_add(struct outbox *o, const void *bytes, size_t len);

/* Moves up to `max` bytes to `to`; 0: it is empty. A file that cannot be read any more: -1. */
long outbox_take(struct outbox *o, void *to, size_t max);

bool outbox_is_empty(const struct outbox *o);
int64_t outbox_in_file(const struct outbox *o); /* bytes */

#endif
