/*
 * safetensors: u64 length of a JSON header, the header, the data. The header maps names to
 * {"dtype", "shape", "data_offsets": [begin, end]}, offsets counting from the end of the header.
 */
#include "convert/safetensors.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

/* The format's own limit on the header. */
static const uint64_t max_header = 100000000;

static const struct {
    const char *name;
    enum source_type type;
    size_t size;
} dtypes[] = {
    { "F32", SOURCE_F32, 4 },    { "F16", SOURCE_F16, 2 },   { "BF16", SOURCE_BF16, 2 },
    { "F64", SOURCE_F64, 8 },    { "I8", SOURCE_OTHER, 1 },  { "U8", SOURCE_OTHER, 1 },
    { "BOOL", SOURCE_OTHER, 1 }, { "I16", SOURCE_OTHER, 2 }, { "U16", SOURCE_OTHER, 2 },
    { "I32", SOURCE_OTHER, 4 },  { "U32", SOURCE_OTHER, 4 }, { "I64", SOURCE_OTHER, 8 },
    { "U64", SOURCE_OTHER, 8 },
};

struct entry {
    uint64_t begin, end;
    const char *name;
};

/* Begin and end of one tensor, from JSON; false when they are not two ordered non-negative integers. */
static bool read_offsets(const json_t *v, uint64_t *begin, uint64_t *end)
{
    const json_t *b = json_array_get(v, 0), *e = json_array_get(v, 1);

    if (json_array_size(v) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0 || json_integer_value(e) < json_integer_value(b))
        return false;
    *begin = (uint64_t)json_integer_value(b);
    *end = (uint64_t)json_integer_value(e);
    return true;
}

/* Shape and number of elements; false when it is no list of up to SOURCE_MAX_DIMS sizes or too large. */
static bool read_shape(const json_t *v, struct source_tensor *t, uint64_t *n)
{
    if (!json_is_array(v) || json_array_size(v) > SOURCE_MAX_DIMS)
        return false;
    t->n_dims = (int)json_array_size(v);
    *n = 1;
    for (int d = 0; d < t->n_dims; d++) {
        const json_t *dim = json_array_get(v, (size_t)d);

        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return false;
        t->shape[d] = json_integer_value(dim);
        if (t->shape[d] > 0 && *n > (uint64_t)(INT64_MAX / 8) / (uint64_t)t->shape[d])
            return false;
        *n *= (uint64_t)t->shape[d];
    }
    return true;
}

static enum ink_status read_entry(struct checkpoint *c, int file, uint64_t data, const char *name,
                                  const json_t *v, struct entry *e, struct ink_err *err)
{
    const char *path = c->files[file].path, *dtype = json_string_value(json_object_get(v, "dtype"));
    uint64_t room = c->files[file].map.len - data, n;
    size_t i = 0;

    if (!dtype || !read_offsets(json_object_get(v, "data_offsets"), &e->begin, &e->end))
        return ink_err_set(err, INK_CORRUPT,
                           "%s: tensor %s: dtype or data_offsets missing or wrong", path, name);
    if (e->end > room)
        return ink_err_set(err, INK_CORRUPT,
                           "%s: truncated: tensor %s ends at byte %llu of the data, which has %llu",
                           path, name, (unsigned long long)e->end, (unsigned long long)room);

    struct source_tensor *t = checkpoint_add(c, name, strlen(name));

    if (!t)
        return ink_err_set(err, INK_CORRUPT, "%s: more than %d tensors", path,
                           CHECKPOINT_MAX_TENSORS);
    if (!read_shape(json_object_get(v, "shape"), t, &n))
        return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: its shape is missing or wrong", path,
                           name);
    t->file = file;
    t->type = SOURCE_OTHER;
    t->type_name = ink_arena_strndup(c->arena, dtype, strlen(dtype));
    t->contiguous = true;
    t->offset = data + e->begin;
    t->size = e->end - e->begin;
    e->name = t->name;

    while (i < sizeof(dtypes) / sizeof(dtypes[0]) && strcmp(dtypes[i].name, dtype) != 0)
        i++;
    if (i == sizeof(dtypes) / sizeof(dtypes[0]))
        return INK_OK; /* a type of another kind: its size is not known here, and nothing will read it */
    t->type = dtypes[i].type;
    if (t->size != n * dtypes[i].size)
        return ink_err_set(err, INK_CORRUPT,
                           "%s: tensor %s: %llu bytes do not fit its shape of %llu %s values", path,
                           name, (unsigned long long)t->size, (unsigned long long)n, dtype);
    return INK_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The tensors must fill the data exactly, as the format demands. */
static enum ink_status check_cover(const char *path, struct entry *entries, size_t n, uint64_t room,
                                   struct ink_err *err)
{
    uint64_t at = 0;

    qsort(entries, n, sizeof(*entries), compare_entries);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].begin != at)
            return ink_err_set(err, INK_CORRUPT, "%s: tensor %s: %s the tensor before it", path,
                               entries[i].name,
                               entries[i].begin < at ? "overlaps" : "leaves a gap after");
        at = entries[i].end;
    }
    if (at != room)
        return ink_err_set(err, INK_CORRUPT, "%s: %llu bytes at its end belong to no tensor", path,
                           (unsigned long long)(room - at));
    return INK_OK;
}

enum ink_status safetensors_list(struct checkpoint *c, int file, struct ink_err *err)
{
    const char *path = c->files[file].path, *name;
    const struct ink_map *map = &c->files[file].map;
    struct entry *entries = NULL;
    json_t *header, *v;
    uint64_t len = 0;
    size_t n = 0;
    enum ink_status st;

    for (int i = 0; i < 8 && map->len >= 8; i++)
        len |= (uint64_t)map->ptr[i] << (8 * i);
    if (map->len < 8 || len < 2 || len > max_header)
        return ink_err_set(err, INK_CORRUPT, "%s: not a safetensors file", path);
    if (len > map->len - 8)
        return ink_err_set(err, INK_CORRUPT,
                           "%s: truncated: its header has %llu bytes, the file %zu", path,
                           (unsigned long long)len, map->len);
    if (map->ptr[8] != '{')
        return ink_err_set(err, INK_CORRUPT, "%s: not a safetensors file", path);
    st = ink_json_parse((const char *)map->ptr + 8, (size_t)len, &header, err);
    if (st != INK_OK) {
        (void)ink_err_prefix(err, st, "header");
        (void)ink_err_prefix(err, st, path);
        if (err)
            err->code = INK_CORRUPT;
        return INK_CORRUPT;
    }

    entries = ink_alloc((json_object_size(header) + 1) * sizeof(*entries));
    json_object_foreach(header, name, v)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        st = read_entry(c, file, 8 + len, name, v, &entries[n], err);
        if (st != INK_OK)
            goto out;
        n++;
    }
    st = check_cover(path, entries, n, map->len - 8 - len, err);
out:
    free(entries);
    json_decref(header);
    return st;
}
