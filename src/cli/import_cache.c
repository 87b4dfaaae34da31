/*
 * The imports folder, <cache>/imports:
 *
 *     <folder's hash>-<type>-<content's hash>.gguf     finished imports
 *     <folder's hash>-<type>.lock                      held while one is made
 *
 * An import is written beside its name and renamed, so a file that is there is whole.
 */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "cli/import_cache.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "cli/cli.h"
#include "cli/model_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Names that an older version's imports never have: raise it when the importer's output changes. */
static const char IMPORT_VERSION[] = "1";

enum { PREFIX_MAX = 64, HEX_SHORT = 16 };

static const char *type_name(enum ink_import_type type, char out[16])
{
    const char *at = INK_IMPORT_TYPES;

    for (int i = 0; i < (int)type; i++)
        at += strcspn(at, "|") + 1;
    snprintf(out, 16, "%.*s", (int)strcspn(at, "|"), at);
    return out;
}

static void short_hex(struct ink_digest *d, char out[HEX_SHORT + 1])
{
    uint8_t digest[INK_SHA256_LEN];
    char hex[INK_SHA256_HEX];

    ink_digest_finish(d, digest);
    ink_sha256_hex(digest, hex);
    snprintf(out, HEX_SHORT + 1, "%.*s", HEX_SHORT, hex);
}

/* --- what is in the folder ---------------------------------------------------------------------- */

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum ink_status hash_content(const char *folder, char out[HEX_SHORT + 1],
                                    struct ink_err *err)
{
    struct dirent **names;
    int n = scandir(folder, &names, is_visible, by_name);
    struct ink_digest *d;

    if (n < 0)
        return ink_err_set(err, INK_IO, "%s: %s", folder, strerror(errno));
    d = ink_digest_new();
    ink_digest_field(d, IMPORT_VERSION, sizeof(IMPORT_VERSION));
    for (int i = 0; i < n; i++) {
        char *path = ink_path_join(folder, names[i]->d_name);
        struct stat sb;

        if (stat(path, &sb) == 0 && S_ISREG(sb.st_mode)) {
            int64_t numbers[3] = { (int64_t)sb.st_size, (int64_t)sb.st_mtim.tv_sec,
                                   (int64_t)sb.st_mtim.tv_nsec };

            ink_digest_field(d, names[i]->d_name, strlen(names[i]->d_name));
            ink_digest_field(d, numbers, sizeof(numbers));
        }
        free(path);
        free(names[i]);
    }
    free(names);
    short_hex(d, out);
    return INK_OK;
}

/* --- the lock ----------------------------------------------------------------------------------- */

/* Waits until no other process imports this folder. *fd is to be closed when done. */
static enum ink_status lock(const char *path, int *fd, struct ink_err *err)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    bool told = false;
    int f = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (f < 0)
        return ink_err_set(err, INK_IO, "%s: %s", path, strerror(errno));
    while (fcntl(f, F_SETLK, &whole) != 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            enum ink_status st =
                ink_err_set(err, INK_IO, "%s: cannot lock: %s", path, strerror(errno));
            close(f);
            return st;
        }
        if (interrupt_pending()) {
            close(f);
            return ink_err_set(err, INK_CANCELLED, "interrupted");
        }
        if (!told)
            fprintf(stderr, "inkstone: waiting for another process that imports this folder\n");
        told = true;
        nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
    }
    *fd = f;
    return INK_OK;
}

/* --- importing ---------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

/*
 * Removes earlier imports, "<prefix>-*.gguf", other than `keep`, and what a killed process left of one. Who has a file
 * mapped keeps it until the end. The lock is held.
 */
static void remove_others(const char *dir, const char *prefix, const char *keep)
{
    DIR *d = opendir(dir);
    size_t len = strlen(prefix);
    struct dirent *entry;

    while (d && (entry = readdir(d)) != NULL) {
        const char *name = entry->d_name;

        if (strncmp(name, prefix, len) == 0 && name[len] == '-' && strcmp(name, keep) != 0 &&
            (ends_in(name, ".gguf") || ends_in(name, ".tmp"))) {
            char *path = ink_path_join(dir, name);

            (void)unlink(path); /* what cannot be removed only takes room */
            free(path);
        }
    }
    if (d)
        closedir(d);
}

static void on_progress(void *arg, int64_t done, int64_t total, const char *what)
{
    progress_update(arg, done, total, what);
}

static enum ink_status import(const char *folder, enum ink_import_type type, const char *file,
                              struct ink_err *err)
{
    struct progress progress;
    struct ink_import_report report;
    struct ink_import_options options = {
        .type = type,
        .cancel = interrupt_flag(),
        .progress = on_progress,
        .progress_arg = &progress,
    };
    enum ink_status st;
    char size[24];

    /* A Ctrl-C must not leave half a file behind. */
    bool caught = interrupt_catch();
    progress_begin(&progress, "importing", NULL);
    st = ink_import(folder, file, &options, &report, err);
    progress_end(&progress);
    if (!caught)
        interrupt_release();
    if (st != INK_OK)
        return st;
    fprintf(stderr, "inkstone: imported %s as %s, %s in %.1f s; kept in %s\n", folder, report.type,
            cli_bytes(report.bytes_out, size), report.seconds, file);
    for (int i = 0; i < report.n_notes; i++)
        fprintf(stderr, "inkstone: note: %s\n", report.notes[i]);
    return INK_OK;
}

/* Another process may have made the file while this one waited for the lock. */
static enum ink_status import_locked(const char *folder, enum ink_import_type type, const char *dir,
                                     const char *prefix, const char *name, const char *file,
                                     struct ink_err *err)
{
    char *lock_name, *lock_path;
    size_t size = strlen(prefix) + sizeof(".lock");
    int fd = -1;
    enum ink_status st;

    lock_name = ink_alloc(size);
    snprintf(lock_name, size, "%s.lock", prefix);
    lock_path = ink_path_join(dir, lock_name);
    st = lock(lock_path, &fd, err);
    free(lock_path);
    free(lock_name);
    if (st != INK_OK)
        return st;
    if (!ink_file_exists(file))
        st = import(folder, type, file, err);
    if (st == INK_OK)
        remove_others(dir, prefix, name);
    close(fd);
    return st;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

/* Makes <cache>/imports; the caller frees. NULL with `err` filled when that is impossible. */
static char *imports_folder(struct ink_err *err)
{
    char *cache = cache_folder(), *dir;

    if (!cache) {
        (void)ink_err_set(
            err, INK_IO,
            "no cache folder for the import: set XDG_CACHE_HOME, or use \"inkstone import\"");
        return NULL;
    }
    dir = ink_path_join(cache, "imports");
    free(cache);
    if (ink_dir_make(dir, err) != INK_OK) {
        (void)ink_err_prefix(err, err->code, "cache folder for the import");
        free(dir);
        return NULL;
    }
    return dir;
}

enum ink_status import_cached(const char *folder, enum ink_import_type type, char **file,
                              char **name, struct ink_err *err)
{
    char type_word[16], folder_hex[HEX_SHORT + 1], content_hex[HEX_SHORT + 1], prefix[PREFIX_MAX];
    char file_name[PREFIX_MAX + HEX_SHORT + 8];
    char *plain = realpath(folder, NULL), *dir, *path;
    struct ink_digest *d;
    enum ink_status st;

    if (!plain)
        return ink_err_set(err, INK_IO, "%s: %s", folder, strerror(errno));
    st = hash_content(plain, content_hex, err);
    dir = st == INK_OK ? imports_folder(err) : NULL;
    if (!dir) {
        free(plain);
        return err->code;
    }
    d = ink_digest_new();
    ink_digest_field(d, plain, strlen(plain));
    short_hex(d, folder_hex);
    snprintf(prefix, sizeof(prefix), "%s-%s", folder_hex, type_name(type, type_word));
    snprintf(file_name, sizeof(file_name), "%s-%s.gguf", prefix, content_hex);
    path = ink_path_join(dir, file_name);

    if (!ink_file_exists(path))
        st = import_locked(plain, type, dir, prefix, file_name, path, err);
    if (st == INK_OK) {
        *file = path;
        *name = ink_strdup(last_part(plain));
    } else {
        free(path);
    }
    free(dir);
    free(plain);
    return st;
}
