/*
 * Finds the weight files of a folder, lists their tensors, and reads them.
 *
 * safetensors is preferred over pytorch_model.bin where a folder has both, as transformers does. An index only says
 * which files there are; the files themselves say what is in them, and every tensor that the index promises must be
 * in the file it names.
 */
#include "convert/checkpoint.h"

#include "base/alloc.h"
#include "base/json.h"
#include "convert/safetensors.h"
#include "convert/torch_bin.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX_BYTES = 64 << 20 };

size_t source_type_size(enum source_type type)
{
    static const size_t sizes[] = {
        [SOURCE_F32] = 4, [SOURCE_F16] = 2, [SOURCE_BF16] = 2, [SOURCE_F64] = 8, [SOURCE_OTHER] = 0
    };

    return sizes[type];
}

struct source_tensor *checkpoint_add(struct checkpoint *c, const char *name, size_t name_len)
{
    if (c->n_tensors == CHECKPOINT_MAX_TENSORS)
        return NULL;
    if (c->n_tensors == c->cap_tensors) {
        c->cap_tensors = c->cap_tensors ? 2 * c->cap_tensors : 256;
        c->tensors = ink_realloc(c->tensors, c->cap_tensors * sizeof(*c->tensors));
    }
    struct source_tensor *t = &c->tensors[c->n_tensors++];

    *t = (struct source_tensor){ .name = ink_arena_strndup(c->arena, name, name_len),
                                 .type_name = "?" };
    return t;
}

/* Lists one more file; takes over `path`. */
static enum ink_status add_file(struct checkpoint *c, char *path, bool torch, struct ink_err *err)
{
    enum ink_status st;

    if (c->n_files == CHECKPOINT_MAX_FILES) {
        st = ink_err_set(err, INK_CORRUPT, "%s: more than %d weight files", path,
                         CHECKPOINT_MAX_FILES);
        free(path);
        return st;
    }
    int file = c->n_files++;

    c->files[file].path = path;
    if (torch)
        return torch_bin_list(c, file, err);
    st = ink_map_open(path, &c->files[file].map, err);
    return st == INK_OK ? safetensors_list(c, file, err) : st;
}

static int compare_tensors(const void *a, const void *b)
{
    return strcmp(((const struct source_tensor *)a)->name, ((const struct source_tensor *)b)->name);
}

const struct source_tensor *checkpoint_find(const struct checkpoint *c, const char *name)
{
    struct source_tensor wanted = { .name = name };

    return c->n_tensors > 0
               ? bsearch(&wanted, c->tensors, c->n_tensors, sizeof(wanted), compare_tensors)
               : NULL;
}

const char *checkpoint_path_of(const struct checkpoint *c, const struct source_tensor *t)
{
    return c->files[t->file].path;
}

static enum ink_status sort_tensors(struct checkpoint *c, struct ink_err *err)
{
    if (c->n_tensors > 0)
        qsort(c->tensors, c->n_tensors, sizeof(*c->tensors), compare_tensors);
    for (size_t i = 1; i < c->n_tensors; i++) {
        if (strcmp(c->tensors[i - 1].name, c->tensors[i].name) == 0)
            return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: also in %s",
                               checkpoint_path_of(c, &c->tensors[i]), c->tensors[i].name,
                               checkpoint_path_of(c, &c->tensors[i - 1]));
    }
    return INK_OK;
}

/* --- shards ------------------------------------------------------------------------------------------ */

static int file_number(const struct checkpoint *c, const char *path)
{
    for (int i = 0; i < c->n_files; i++) {
        if (strcmp(c->files[i].path, path) == 0)
            return i;
    }
    return -1;
}

/* A file name of an index is a plain name in the same folder, never a path. */
static bool is_plain_name(const char *name)
{
    return name && name[0] != '\0' && !strchr(name, '/') && strcmp(name, "..") != 0 &&
           strcmp(name, ".") != 0;
}

static enum ink_status add_shards(struct checkpoint *c, const char *dir, const char *index_path,
                                  json_t *map, bool torch, struct ink_err *err)
{
    const char *tensor;
    json_t *v;
    enum ink_status st;

    json_object_foreach(map, tensor, v)
    {
        const char *name = json_string_value(v);

        if (!is_plain_name(name))
            return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: no plain file name", index_path,
                               tensor);
        char *path = ink_path_join(dir, name);

        if (file_number(c, path) >= 0) {
            free(path);
            continue;
        }
        if (!ink_file_exists(path)) {
            st = ink_err_set(err, INK_NOT_FOUND, "%s: missing; %s names it for tensor %s", path,
                             index_path, tensor);
            free(path);
            return st;
        }
        if ((st = add_file(c, path, torch, err)) != INK_OK)
            return st;
    }
    return INK_OK;
}

static enum ink_status check_shards(const struct checkpoint *c, const char *dir, json_t *map,
                                    struct ink_err *err)
{
    const char *tensor;
    json_t *v;

    json_object_foreach(map, tensor, v)
    {
        const struct source_tensor *t = checkpoint_find(c, tensor);
        char *path = ink_path_join(dir, json_string_value(v));
        bool there = t && strcmp(checkpoint_path_of(c, t), path) == 0;
        enum ink_status st = INK_OK;

        if (!there)
            st = ink_err_set(err, INK_CORRUPT,
                             "%s: tensor %s: not in the file, though the index says so", path,
                             tensor);
        free(path);
        if (st != INK_OK)
            return st;
    }
    return INK_OK;
}

static enum ink_status open_index(struct checkpoint *c, const char *dir, const char *index_path,
                                  bool torch, struct ink_err *err)
{
    json_t *index = NULL;
    char *text = NULL;
    size_t len;
    enum ink_status st = ink_file_read(index_path, MAX_INDEX_BYTES, &text, &len, err);

    if (st != INK_OK)
        return st;
    if ((st = ink_json_parse(text, len, &index, err)) != INK_OK) {
        (void)ink_err_prefix(err, st, index_path);
        goto out;
    }
    json_t *map = json_object_get(index, "weight_map");

    if (json_object_size(map) == 0) {
        st = ink_err_set(err, INK_CORRUPT, "%s: no weight_map in it", index_path);
        goto out;
    }
    if ((st = add_shards(c, dir, index_path, map, torch, err)) == INK_OK &&
        (st = sort_tensors(c, err)) == INK_OK)
        st = check_shards(c, dir, map, err);
out:
    json_decref(index);
    free(text);
    return st;
}

/* --- opening --------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool torch, index;
} layouts[] = {
    { "model.safetensors", false, false },
    { "model.safetensors.index.json", false, true },
    { "pytorch_model.bin", true, false },
    { "pytorch_model.bin.index.json", true, true },
};

enum ink_status checkpoint_open(const char *dir, struct checkpoint **out, struct ink_err *err)
{
    struct checkpoint *c = ink_zalloc(sizeof(*c));
    enum ink_status st = INK_NOT_FOUND;
    size_t i = 0;

    c->arena = ink_arena_new();
    for (; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        char *path = ink_path_join(dir, layouts[i].name);

        if (!ink_file_exists(path)) {
            free(path);
            continue;
        }
        if (layouts[i].index) {
            st = open_index(c, dir, path, layouts[i].torch, err);
            free(path);
        } else {
            st = add_file(c, path, layouts[i].torch, err);
            if (st == INK_OK)
                st = sort_tensors(c, err);
        }
        break;
    }
    if (i == sizeof(layouts) / sizeof(layouts[0]))
        st = ink_err_set(
            err, INK_NOT_FOUND,
            "%s: no weights: neither model.safetensors nor pytorch_model.bin (nor an index of shards)",
            dir);
    if (st == INK_OK && c->n_tensors == 0)
        st = ink_err_set(err, INK_CORRUPT, "%s: no tensors in its weight files", dir);
    if (st != INK_OK) {
        checkpoint_close(c);
        return st;
    }
    *out = c;
    return INK_OK;
}

void checkpoint_close(struct checkpoint *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n_files; i++) {
        torch_bin_close(c->files[i].zip);
        ink_map_close(&c->files[i].map);
        free(c->files[i].path);
    }
    free(c->tensors);
    ink_arena_free(c->arena);
    free(c);
}

/* --- reading --------------------------------------------------------------------------------------- */

enum ink_status source_reader_open(const struct checkpoint *c, const struct source_tensor *t,
                                   struct source_reader *out, struct ink_err *err)
{
    const char *path = checkpoint_path_of(c, t);

    if (t->type == SOURCE_OTHER)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "%s: tensor %s: elements of type %s are not supported", path, t->name,
                           t->type_name);
    if (!t->contiguous)
        return ink_err_set(
            err, INK_UNSUPPORTED,
            "%s: tensor %s: not stored contiguously; save the checkpoint again as safetensors",
            path, t->name);
    *out = (struct source_reader){ .c = c, .t = t };
    if (c->files[t->file].zip)
        return torch_bin_start(&c->files[t->file], t, &out->zip_file, err);
    return INK_OK;
}

enum ink_status source_reader_next(struct source_reader *r, size_t len, void *scratch,
                                   const void **out, struct ink_err *err)
{
    const struct checkpoint_file *f = &r->c->files[r->t->file];

    assert(len <= r->t->size - r->pos);
    if (r->zip_file) {
        enum ink_status st = torch_bin_read(f, r->t, r->zip_file, scratch, len, err);

        if (st != INK_OK)
            return st;
        *out = scratch;
    } else {
        const uint8_t *p = f->map.ptr + r->t->offset + r->pos;

        /* What was read before this piece is not needed again. */
        if (r->pos > 0)
            ink_map_drop(&f->map, (size_t)(r->t->offset + r->dropped),
                         (size_t)(r->pos - r->dropped));
        r->dropped = r->pos;
        *out = p;
        if ((uintptr_t)p % 8 != 0) {
            memcpy(scratch, p, len);
            *out = scratch;
        }
    }
    r->pos += len;
    return INK_OK;
}

void source_reader_close(struct source_reader *r)
{
    const struct checkpoint_file *f = &r->c->files[r->t->file];

    if (f->map.len > 0)
        ink_map_drop(&f->map, (size_t)(r->t->offset + r->dropped), (size_t)(r->pos - r->dropped));
    torch_bin_stop(r->zip_file);
    r->zip_file = NULL;
}
