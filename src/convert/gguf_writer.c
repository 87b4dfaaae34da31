/* The header is ggml's to write; this file does the bookkeeping of data that comes in pieces. */
#include "convert/gguf_writer.h"

#include "base/alloc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

void gguf_writer_init(struct gguf_writer *w, int max_tensors)
{
    *w = (struct gguf_writer){ .keys = gguf_init_empty() };
    w->tensors = ggml_init((struct ggml_init_params){
        .mem_size = (size_t)(max_tensors + 1) * ggml_tensor_overhead(),
        .no_alloc = true,
    });
}

void gguf_writer_release(struct gguf_writer *w)
{
    ink_atomic_close(&w->file);
    if (w->keys)
        gguf_free(w->keys);
    if (w->tensors)
        ggml_free(w->tensors);
    *w = (struct gguf_writer){ 0 };
}

void gguf_writer_add(struct gguf_writer *w, const char *name, enum ggml_type type, int n_dims,
                     const int64_t *ne)
{
    struct ggml_tensor *t = ggml_new_tensor(w->tensors, type, n_dims, ne);

    ggml_set_name(t, name);
    gguf_add_tensor(w->keys, t);
}

static size_t padding(const struct gguf_writer *w, size_t len)
{
    size_t alignment = gguf_get_alignment(w->keys);

    return (alignment - len % alignment) % alignment;
}

int64_t gguf_writer_total(const struct gguf_writer *w)
{
    size_t total = gguf_get_meta_size(w->keys);

    for (int64_t i = 0; i < gguf_get_n_tensors(w->keys); i++) {
        size_t size = gguf_get_tensor_size(w->keys, i);

        total += size + padding(w, size);
    }
    return (int64_t)total;
}

static enum ink_status write_all(struct gguf_writer *w, const void *bytes, size_t len,
                                 struct ink_err *err)
{
    if (fwrite(bytes, 1, len, w->file.fp) != len)
        return ink_err_set(err, INK_IO, "%s: write failed: %s", w->file.path, strerror(errno));
    return INK_OK;
}

static enum ink_status write_meta(struct gguf_writer *w, struct ink_err *err)
{
    size_t len = gguf_get_meta_size(w->keys);
    void *meta = ink_alloc(len);

    gguf_get_meta_data(w->keys, meta);

    enum ink_status st = write_all(w, meta, len, err);

    free(meta);
    return st;
}

enum ink_status gguf_writer_start(struct gguf_writer *w, const char *path, struct ink_err *err)
{
    struct statvfs disk;
    int64_t total = gguf_writer_total(w);
    enum ink_status st = ink_atomic_open(path, &w->file, err);

    if (st != INK_OK)
        return st;
    if (fstatvfs(fileno(w->file.fp), &disk) == 0 &&
        (uint64_t)total / disk.f_frsize > (uint64_t)disk.f_bavail)
        return ink_err_set(err, INK_IO,
                           "%s: not enough room on the disk: needs %lld MB, %llu MB are free", path,
                           (long long)(total / 1000000),
                           (unsigned long long)(disk.f_bavail * disk.f_frsize / 1000000));
    return write_meta(w, err);
}

enum ink_status gguf_writer_data(struct gguf_writer *w, const void *bytes, size_t len,
                                 struct ink_err *err)
{
    static const uint8_t zeros[GGUF_DEFAULT_ALIGNMENT];
    size_t size = gguf_get_tensor_size(w->keys, w->next);
    enum ink_status st = write_all(w, bytes, len, err);

    assert(w->written + len <= size && gguf_get_alignment(w->keys) == sizeof(zeros));
    w->written += len;
    if (st == INK_OK && w->written == size) {
        st = write_all(w, zeros, padding(w, size), err);
        w->next++;
        w->written = 0;
    }
    return st;
}

enum ink_status gguf_writer_finish(struct gguf_writer *w, struct ink_err *err)
{
    assert(w->next == gguf_get_n_tensors(w->keys) && w->written == 0);
    if (fflush(w->file.fp) != 0 || fseek(w->file.fp, 0, SEEK_SET) != 0)
        return ink_err_set(err, INK_IO, "%s: write failed: %s", w->file.path, strerror(errno));

    enum ink_status st = write_meta(w, err);

    return st == INK_OK ? ink_atomic_commit(&w->file, err) : st;
}
