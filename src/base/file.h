#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A whole file mapped read-only. The bytes stay valid until ink_map_close(). */
struct ink_map {
    const uint8_t *ptr; /* never NULL after open; an empty file has len 0 */
    size_t len;
};

INK_NODISCARD enum ink_status ink_map_open(const char *path, struct ink_map *out,
                                           struct ink_err *err);
void ink_map_close(struct ink_map *map);
/* Tells the kernel that these bytes of the map are no longer needed in memory. */
void ink_map_drop(const struct ink_map *map, size_t offset, size_t len);

/* Reads a regular file of at most `max` bytes; adds a NUL that is not counted. Caller frees *out. */
INK_NODISCARD enum ink_status ink_file_read(const char *path, size_t max, char **out, size_t *len,
                                            struct ink_err *err);
bool ink_file_is_dir(const char *path);
bool ink_file_exists(const char *path);
/* mkdir -p. */
INK_NODISCARD enum ink_status ink_dir_make(const char *path, struct ink_err *err);
/* dir + "/" + name; caller frees. */
char *ink_path_join(const char *dir, const char *name);

/*
 * A file that appears whole or not at all: writes go to a temporary file beside
 * `path`, which ink_atomic_commit() flushes to disk and renames. Closing without
 * a commit removes it.
 */
struct ink_atomic_file {
    FILE *fp;
    char *path, *temp;
};

INK_NODISCARD enum ink_status ink_atomic_open(const char *path, struct ink_atomic_file *out,
                                              struct ink_err *err);
INK_NODISCARD enum ink_status ink_atomic_commit(struct ink_atomic_file *f, struct ink_err *err);
void ink_atomic_close(struct ink_atomic_file *f); /* after commit or instead of it */

#endif
