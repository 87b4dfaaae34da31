/* Files: read-only maps, bounded reads, and writes that are all or nothing. */
#define _GNU_SOURCE
#include "base/file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ink_status open_regular(const char *path, int *fd, size_t *len, struct ink_err *err)
{
    struct stat sb;
    /* O_NONBLOCK: a named pipe given by mistake must not hang the program. */
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (f < 0) {
        enum ink_status st = errno == ENOENT || errno == ENOTDIR ? INK_NOT_FOUND : INK_IO;
        return ink_err_set(err, st, "%s: %s", path, strerror(errno));
    }
    if (fstat(f, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        close(f);
        return ink_err_set(err, INK_INVALID, "%s: not a regular file", path);
    }
    *fd = f;
    *len = (size_t)sb.st_size;
    return INK_OK;
}

enum ink_status ink_map_open(const char *path, struct ink_map *out, struct ink_err *err)
{
    static const uint8_t nothing[1];
    int fd;
    size_t len;
    enum ink_status st = open_regular(path, &fd, &len, err);

    if (st != INK_OK)
        return st;
    if (len == 0) {
        close(fd);
        *out = (struct ink_map){ nothing, 0 };
        return INK_OK;
    }
    void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    int failed = errno;
    close(fd);
    if (p == MAP_FAILED)
        return ink_err_set(err, INK_IO, "%s: cannot map: %s", path, strerror(failed));
    *out = (struct ink_map){ p, len };
    return INK_OK;
}

void ink_map_close(struct ink_map *map)
{
    if (map->len > 0)
        munmap((void *)map->ptr, map->len);
    *map = (struct ink_map){ 0 };
}

void ink_map_drop(const struct ink_map *map, size_t offset, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t from = (offset + page - 1) / page * page;
    size_t to = (offset + len) / page * page;

    if (from < to && to <= map->len)
        (void)madvise((void *)(map->ptr + from), to - from, MADV_DONTNEED);
}

enum ink_status ink_file_read(const char *path, size_t max, char **out, size_t *len_out,
                              struct ink_err *err)
{
    int fd;
    size_t len, got = 0;
    enum ink_status st = open_regular(path, &fd, &len, err);

    if (st != INK_OK)
        return st;
    if (len > max) {
        close(fd);
        return ink_err_set(err, INK_INVALID, "%s: %zu bytes; at most %zu are accepted", path, len,
                           max);
    }
    char *p = ink_try_alloc(len + 1, 1);
    if (!p) {
        close(fd);
        return ink_err_set(err, INK_NO_MEMORY, "%s: no memory for %zu bytes", path, len);
    }
    while (got < len) {
        ssize_t n = read(fd, p + got, len - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    close(fd);
    if (got < len) {
        free(p);
        return ink_err_set(err, INK_IO, "%s: read failed after %zu of %zu bytes", path, got, len);
    }
    p[len] = '\0';
    *out = p;
    *len_out = len;
    return INK_OK;
}

bool ink_file_is_dir(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

bool ink_file_exists(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0;
}

enum ink_status ink_dir_make(const char *path, struct ink_err *err)
{
    char *p = ink_strdup(path);
    enum ink_status st = INK_OK;

    for (char *s = p + 1; st == INK_OK; s++) {
        char c = *s;

        if (c != '/' && c != '\0')
            continue;
        *s = '\0';
        if (mkdir(p, 0777) != 0 && errno != EEXIST)
            st = ink_err_set(err, INK_IO, "%s: cannot make folder: %s", p, strerror(errno));
        *s = c;
        if (c == '\0')
            break;
    }
    if (st == INK_OK && !ink_file_is_dir(path))
        st = ink_err_set(err, INK_IO, "%s: exists and is not a folder", path);
    free(p);
    return st;
}

char *ink_path_join(const char *dir, const char *name)
{
    size_t a = strlen(dir), b = strlen(name);
    char *out = ink_alloc(a + b + 2);

    memcpy(out, dir, a);
    if (a == 0 || dir[a - 1] != '/')
        out[a++] = '/';
    memcpy(out + a, name, b + 1);
    return out;
}

enum ink_status ink_atomic_open(const char *path, struct ink_atomic_file *out, struct ink_err *err)
{
    size_t len = strlen(path) + sizeof(".XXXXXX.tmp");
    char *temp = ink_alloc(len);

    snprintf(temp, len, "%s.XXXXXX.tmp", path);
    int fd = mkostemps(temp, 4, O_CLOEXEC);
    if (fd < 0) {
        enum ink_status st =
            ink_err_set(err, INK_IO, "%s: cannot write: %s", path, strerror(errno));
        free(temp);
        return st;
    }
    /* mkostemps makes private files; give this one what any new file would get. */
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(fd, 0666 & ~mask);
    FILE *fp = fdopen(fd, "w+b");
    if (!fp) {
        enum ink_status st =
            ink_err_set(err, INK_IO, "%s: cannot write: %s", path, strerror(errno));

        close(fd);
        unlink(temp);
        free(temp);
        return st;
    }
    *out = (struct ink_atomic_file){ .fp = fp, .path = ink_strdup(path), .temp = temp };
    return INK_OK;
}

enum ink_status ink_atomic_commit(struct ink_atomic_file *f, struct ink_err *err)
{
    if (ferror(f->fp) || fflush(f->fp) != 0 || fsync(fileno(f->fp)) != 0)
        return ink_err_set(err, INK_IO, "%s: write failed: %s", f->path, strerror(errno));
    if (rename(f->temp, f->path) != 0)
        return ink_err_set(err, INK_IO, "%s: cannot rename the finished file: %s", f->path,
                           strerror(errno));
    free(f->temp);
    f->temp = NULL;
    return INK_OK;
}

void ink_atomic_close(struct ink_atomic_file *f)
{
    if (f->fp)
        fclose(f->fp);
    if (f->temp)
        unlink(f->temp);
    free(f->temp);
    free(f->path);
    *f = (struct ink_atomic_file){ 0 };
}
