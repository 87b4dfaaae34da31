/*
 * The zip that torch.save() writes: <root>/data.pkl, <root>/byteorder, <root>/data/<key> for each storage. libzip finds
 * and reads the members; tensors that share a storage each read their part of it.
 */
#include "convert/torch_bin.h"

#include "base/alloc.h"
#include "convert/pickle.h"
#include "convert/torch_legacy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MAX_PICKLE = 64 << 20, MAX_MEMBER_NAME = 512, SKIP_BYTES = 64 << 10 };

struct listing {
    struct checkpoint *c;
    int file;
    zip_t *zip;
    const char *root; /* "archive/", or "" */
    int root_len;
};

static const char *path_of(const struct listing *l)
{
    return l->c->files[l->file].path;
}

/* --- opening ----------------------------------------------------------------------------------------- */

static enum ink_status open_zip(const char *path, zip_t **out, struct ink_err *err)
{
    int code = 0;
    zip_error_t error;
    enum ink_status st;

    *out = zip_open(path, ZIP_RDONLY, &code);
    if (*out)
        return INK_OK;
    zip_error_init_with_code(&error, code);
    if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS)
        st = ink_err_set(err, INK_CORRUPT, "%s: truncated or damaged zip: %s", path,
                         zip_error_strerror(&error));
    else
        st = ink_err_set(err, INK_IO, "%s: %s", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return st;
}

/* A zip, or the older format; nothing else is a torch checkpoint. */
static enum ink_status open_either(struct checkpoint *c, int file, zip_t **zip, struct ink_err *err)
{
    struct checkpoint_file *f = &c->files[file];
    enum ink_status st = ink_map_open(f->path, &f->map, err);

    if (st != INK_OK)
        return st;
    *zip = NULL;
    if (torch_legacy_matches(&f->map))
        return INK_OK; /* stays mapped: its tensors are read from there */
    bool is_zip = f->map.len >= 2 && memcmp(f->map.ptr, "PK", 2) == 0;

    ink_map_close(&f->map);
    if (!is_zip)
        return ink_err_set(err, INK_CORRUPT, "%s: not a torch checkpoint", f->path);
    return open_zip(f->path, zip, err);
}

/* The member <root>/data.pkl with at most one folder before it. */
static bool find_pickle(struct listing *l, zip_uint64_t *index)
{
    zip_int64_t n = zip_get_num_entries(l->zip, 0);

    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(l->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW);
        const char *slash = name ? strchr(name, '/') : NULL;
        const char *base = slash ? slash + 1 : name;

        if (!name || strcmp(base, "data.pkl") != 0 || base - name > MAX_MEMBER_NAME / 2)
            continue;
        l->root = name;
        l->root_len = (int)(base - name);
        *index = (zip_uint64_t)i;
        return true;
    }
    return false;
}

/* Reads a whole member of at most `max` bytes; caller frees. NULL when that fails. */
static char *read_member(zip_t *zip, zip_uint64_t index, zip_uint64_t max, size_t *len)
{
    zip_stat_t info;
    zip_file_t *f;
    char *out = NULL;

    if (zip_stat_index(zip, index, 0, &info) != 0 || !(info.valid & ZIP_STAT_SIZE) ||
        info.size > max)
        return NULL;
    f = zip_fopen_index(zip, index, 0);
    if (!f)
        return NULL;
    out = ink_try_alloc((size_t)info.size + 1, 1);
    if (out && zip_fread(f, out, info.size) != (zip_int64_t)info.size) {
        free(out);
        out = NULL;
    }
    zip_fclose(f);
    *len = (size_t)info.size;
    return out;
}

static enum ink_status check_byte_order(const struct listing *l, struct ink_err *err)
{
    char name[MAX_MEMBER_NAME];
    size_t len;

    snprintf(name, sizeof(name), "%.*sbyteorder", l->root_len, l->root);
    zip_int64_t i = zip_name_locate(l->zip, name, ZIP_FL_ENC_RAW);

    if (i < 0)
        return INK_OK;
    char *text = read_member(l->zip, (zip_uint64_t)i, 64, &len);
    bool little = text && len >= 6 && memcmp(text, "little", 6) == 0;

    free(text);
    return little ? INK_OK
                  : ink_err_set(err, INK_UNSUPPORTED, "%s: its numbers are big-endian", path_of(l));
}

/* --- tensors ----------------------------------------------------------------------------------------- */

/* Elements of the shape; -1 when their number is beyond what any storage has. */
static int64_t count_elements(const struct pickle_tensor *p)
{
    int64_t n = 1;

    for (int d = 0; d < p->n_dims; d++) {
        if (p->shape[d] > 0 && n > (INT64_MAX / 8) / p->shape[d])
            return -1;
        n *= p->shape[d];
    }
    return n;
}

static bool is_contiguous(const struct pickle_tensor *p)
{
    int64_t expected = 1;

    for (int d = p->n_dims - 1; d >= 0; d--) {
        if (p->shape[d] != 1 && p->stride[d] != expected)
            return false;
        expected *= p->shape[d] > 0 ? p->shape[d] : 1;
    }
    return true;
}

static enum ink_status find_storage(const struct listing *l, const struct pickle_tensor *p,
                                    zip_uint64_t *entry, struct ink_err *err)
{
    char name[MAX_MEMBER_NAME];
    zip_stat_t info;
    int n = snprintf(name, sizeof(name), "%.*sdata/%.*s", l->root_len, l->root,
                     (int)(p->storage.len < 64 ? p->storage.len : 64), p->storage.ptr);
    zip_int64_t i =
        n > 0 && (size_t)n < sizeof(name) ? zip_name_locate(l->zip, name, ZIP_FL_ENC_RAW) : -1;

    if (i < 0 || zip_stat_index(l->zip, (zip_uint64_t)i, 0, &info) != 0 ||
        !(info.valid & ZIP_STAT_SIZE))
        return ink_err_set(err, INK_CORRUPT, "tensor %.*s: its member %s is not in the zip",
                           (int)p->name.len, p->name.ptr, name);
    if (p->storage_elements > INT64_MAX / 8 ||
        info.size < (zip_uint64_t)p->storage_elements * (zip_uint64_t)p->element_size)
        return ink_err_set(err, INK_CORRUPT,
                           "tensor %.*s: its member %s has %llu bytes, not the %lld %s elements",
                           (int)p->name.len, p->name.ptr, name, (unsigned long long)info.size,
                           (long long)p->storage_elements, p->storage_type);
    *entry = (zip_uint64_t)i;
    return INK_OK;
}

enum ink_status torch_add_tensor(struct checkpoint *c, int file, const struct pickle_tensor *p,
                                 struct source_tensor **out, struct ink_err *err)
{
    int64_t n = count_elements(p);
    bool contiguous = is_contiguous(p);

    if (p->name.len == 0 || p->name.len > 255)
        return ink_err_set(err, INK_CORRUPT, "a tensor's name is empty or too long");
    if (p->storage_elements > INT64_MAX / 8 ||
        (contiguous &&
         (n < 0 || p->offset > p->storage_elements || n > p->storage_elements - p->offset)))
        return ink_err_set(err, INK_CORRUPT,
                           "tensor %.*s: larger than its storage of %lld elements",
                           (int)p->name.len, p->name.ptr, (long long)p->storage_elements);

    struct source_tensor *t = checkpoint_add(c, p->name.ptr, p->name.len);

    if (!t)
        return ink_err_set(err, INK_CORRUPT, "more than %d tensors", CHECKPOINT_MAX_TENSORS);
    t->type_name = p->storage_type;
    t->type = p->type;
    t->n_dims = p->n_dims;
    memcpy(t->shape, p->shape, sizeof(t->shape));
    t->contiguous = contiguous;
    t->file = file;
    if (contiguous) {
        t->offset = (uint64_t)p->offset * p->element_size;
        t->size = (uint64_t)n * p->element_size;
    }
    *out = t;
    return INK_OK;
}

static enum ink_status add_tensor(void *arg, const struct pickle_tensor *p, struct ink_err *err)
{
    const struct listing *l = arg;
    struct source_tensor *t;
    zip_uint64_t entry;
    enum ink_status st = find_storage(l, p, &entry, err);

    if (st == INK_OK)
        st = torch_add_tensor(l->c, l->file, p, &t, err);
    if (st == INK_OK)
        t->entry = entry;
    return st;
}

enum ink_status torch_bin_list(struct checkpoint *c, int file, struct ink_err *err)
{
    struct listing l = { .c = c, .file = file };
    zip_uint64_t index;
    size_t len;
    enum ink_status st = open_either(c, file, &l.zip, err);

    if (st != INK_OK)
        return st;
    if (!l.zip)
        return torch_legacy_list(c, file, err);
    c->files[file].zip = l.zip;
    if (!find_pickle(&l, &index))
        return ink_err_set(err, INK_CORRUPT, "%s: not a torch checkpoint: no data.pkl in the zip",
                           path_of(&l));
    if ((st = check_byte_order(&l, err)) != INK_OK)
        return st;
    char *pickle = read_member(l.zip, index, MAX_PICKLE, &len);

    if (!pickle)
        return ink_err_set(err, INK_CORRUPT, "%s: its data.pkl cannot be read, or is over 64 MiB",
                           path_of(&l));
    st = pickle_read((struct ink_slice){ pickle, len }, add_tensor, &l, NULL, err);
    free(pickle);
    return st == INK_OK ? st : ink_err_prefix(err, st, path_of(&l));
}

void torch_bin_close(void *zip)
{
    if (zip)
        zip_discard(zip);
}

/* --- reading ----------------------------------------------------------------------------------------- */

static enum ink_status read_exactly(const struct checkpoint_file *f, const struct source_tensor *t,
                                    zip_file_t *zf, void *out, size_t len, struct ink_err *err)
{
    for (size_t got = 0; got < len;) {
        zip_int64_t n = zip_fread(zf, (char *)out + got, len - got);

        if (n <= 0)
            return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: cannot be read: %s", f->path,
                               t->name, n < 0 ? zip_file_strerror(zf) : "its data ends too early");
        got += (size_t)n;
    }
    return INK_OK;
}

enum ink_status torch_bin_start(const struct checkpoint_file *f, const struct source_tensor *t,
                                void **zip_file, struct ink_err *err)
{
    zip_file_t *zf = zip_fopen_index(f->zip, t->entry, 0);
    zip_stat_t info;
    enum ink_status st = INK_OK;

    if (!zf)
        return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: cannot be read: %s", f->path, t->name,
                           zip_strerror(f->zip));
    /* Members are usually stored as they are; in a compressed one the bytes before are read over. */
    bool stored = zip_stat_index(f->zip, t->entry, 0, &info) == 0 &&
                  (info.valid & ZIP_STAT_COMP_METHOD) && info.comp_method == ZIP_CM_STORE;

    if (t->offset > 0 && stored) {
        if (zip_fseek(zf, (zip_int64_t)t->offset, SEEK_SET) != 0)
            st = ink_err_set(err, INK_CORRUPT, "%s: tensor %s: cannot be read: %s", f->path,
                             t->name, zip_file_strerror(zf));
    } else if (t->offset > 0) {
        char *skipped = ink_alloc(SKIP_BYTES);

        for (uint64_t at = 0; at < t->offset && st == INK_OK;) {
            uint64_t n = t->offset - at < SKIP_BYTES ? t->offset - at : SKIP_BYTES;

            st = read_exactly(f, t, zf, skipped, (size_t)n, err);
            at += n;
        }
        free(skipped);
    }
    if (st != INK_OK) {
        zip_fclose(zf);
        return st;
    }
    *zip_file = zf;
    return INK_OK;
}

enum ink_status torch_bin_read(const struct checkpoint_file *f, const struct source_tensor *t,
                               void *zip_file, void *out, size_t len, struct ink_err *err)
{
    return read_exactly(f, t, zip_file, out, len, err);
}

void torch_bin_stop(void *zip_file)
{
    if (zip_file)
        zip_fclose(zip_file);
}
