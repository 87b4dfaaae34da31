/*
 * GGUF, read in place.
 *
 * The file is mapped and walked once. After that every key, string and tensor is known to lie inside the map, so the
 * accessors only look up and return pointers. Nothing is copied but names, short strings and numeric arrays that the
 * format left misaligned; the strings of a vocabulary stay where they are and only their offsets are kept.
 *
 * Layout (little endian): magic, u32 version, u64 tensors, u64 keys; per key: string name, u32 type, value; per
 * tensor: string name, u32 dimensions, u64 each, u32 type, u64 offset; then, aligned, the data that offsets count
 * from. A string is a u64 length and its bytes. Versions 2 and 3 differ only in that 3 allows big-endian files, which
 * are refused. ggml's own reader is not used: it reports to stderr instead of to the caller and
 * copies every token, which takes over ten times as long for a vocabulary of 250,000.
 */
#include "model/model_file.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"

#include <ggml.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum value_type {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    N_VALUE_TYPES,
};

/* Bytes of one value; 0 where that depends on the value. */
static const uint8_t value_size[N_VALUE_TYPES] = {
    [VALUE_U8] = 1,  [VALUE_I8] = 1,  [VALUE_U16] = 2, [VALUE_I16] = 2,
    [VALUE_U32] = 4, [VALUE_I32] = 4, [VALUE_F32] = 4, [VALUE_BOOL] = 1,
    [VALUE_U64] = 8, [VALUE_I64] = 8, [VALUE_F64] = 8,
};

enum {
    MAX_KEYS = 65536,
    MAX_TENSORS = 65536,
    MAX_NAME = 255,       /* of keys and tensors */
    MAX_STRING = 1 << 24, /* of a single string value */
    MAX_ALIGNMENT = 1 << 20,
    TYPE_NAME_LEN = 16,
    /* The least a key (name length, one byte, type, one byte) and a tensor (name, one dimension) can take. */
    MIN_KEY_BYTES = 8 + 1 + 4 + 1,
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8,
};

struct key {
    const char *name;
    enum value_type type; /* of the value, or of an array's elements */
    bool is_array;
    const uint8_t *data; /* scalars and numeric arrays; arrays are aligned */
    const char *string;
    uint64_t n;  /* elements of an array */
    void *owned; /* array of strings: the u64 offset of each from the start of the map; or `data` */
};

struct tensor {
    struct ink_tensor_info info;
    uint64_t offset; /* from the start of the map */
};

struct name {
    const char *name;
    uint32_t i;
};

struct ink_model_file {
    char *path;
    struct ink_map map;
    struct ink_arena *arena;
    struct key *keys; /* by name */
    size_t n_keys;
    struct tensor *tensors; /* as in the file */
    struct name *by_name;   /* sorted */
    size_t n_tensors;
    char type_names[GGML_TYPE_COUNT][TYPE_NAME_LEN];
    const char *type;
};

/* --- walking the bytes --------------------------------------------------------------------------- */

struct reader {
    struct ink_model_file *f;
    size_t pos;
    char where[MAX_NAME + 32]; /* what is being read, for errors */
    struct ink_err *err;
};

static enum ink_status truncated(struct reader *r)
{
    return ink_err_set(r->err, INK_CORRUPT, "%s: truncated: the file ends inside %s", r->f->path,
                       r->where);
}

static enum ink_status corrupt(struct reader *r, const char *what)
{
    return ink_err_set(r->err, INK_CORRUPT, "%s: %s: %s", r->f->path, r->where, what);
}

static size_t left(const struct reader *r)
{
    return r->f->map.len - r->pos;
}

static enum ink_status read_bytes(struct reader *r, size_t n, const uint8_t **out)
{
    if (n > left(r))
        return truncated(r);
    *out = r->f->map.ptr + r->pos;
    r->pos += n;
    return INK_OK;
}

static uint32_t get_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static enum ink_status read_u32(struct reader *r, uint32_t *out)
{
    const uint8_t *p = NULL;
    enum ink_status st = read_bytes(r, sizeof(*out), &p);

    if (st == INK_OK)
        *out = get_u32(p);
    return st;
}

static enum ink_status read_u64(struct reader *r, uint64_t *out)
{
    const uint8_t *p = NULL;
    enum ink_status st = read_bytes(r, sizeof(*out), &p);

    if (st == INK_OK)
        *out = get_u64(p);
    return st;
}

static enum ink_status read_string(struct reader *r, struct ink_slice *out)
{
    const uint8_t *p = NULL;
    uint64_t len;
    enum ink_status st = read_u64(r, &len);

    if (st != INK_OK)
        return st;
    if (len > left(r))
        return truncated(r);
    st = read_bytes(r, (size_t)len, &p);
    if (st == INK_OK)
        *out = (struct ink_slice){ (const char *)p, (size_t)len };
    return st;
}

/* A name: short, not empty, valid UTF-8 without NUL, so that it can be printed and compared as a C string. */
static enum ink_status read_name(struct reader *r, const char **out)
{
    struct ink_slice s;
    enum ink_status st = read_string(r, &s);

    if (st != INK_OK)
        return st;
    if (s.len == 0 || s.len > MAX_NAME)
        return corrupt(r, "its name is empty or longer than 255 bytes");
    if (memchr(s.ptr, '\0', s.len) || !ink_utf8_is_valid(s.ptr, s.len))
        return corrupt(r, "its name is not valid UTF-8");
    *out = ink_arena_strndup(r->f->arena, s.ptr, s.len);
    return INK_OK;
}

/* --- keys ------------------------------------------------------------------------------------------ */

static enum ink_status no_memory(struct reader *r, uint64_t n)
{
    return ink_err_set(r->err, INK_NO_MEMORY, "%s: %s: no memory for %llu elements", r->f->path,
                       r->where, (unsigned long long)n);
}

static enum ink_status read_string_array(struct reader *r, struct key *k)
{
    struct ink_slice s;

    if (k->n > left(r) / 8)
        return truncated(r);
    uint64_t *offsets = ink_try_alloc((size_t)k->n + 1, sizeof(*offsets));

    if (!offsets)
        return no_memory(r, k->n);
    k->owned = offsets;
    for (uint64_t i = 0; i < k->n; i++) {
        offsets[i] = r->pos;
        enum ink_status st = read_string(r, &s);

        if (st != INK_OK)
            return st;
    }
    return INK_OK;
}

static enum ink_status read_numeric_array(struct reader *r, struct key *k)
{
    size_t size = value_size[k->type];

    if (k->n > left(r) / size)
        return truncated(r);
    enum ink_status st = read_bytes(r, (size_t)k->n * size, &k->data);

    if (st == INK_OK && (uintptr_t)k->data % size != 0) {
        k->owned = ink_try_alloc((size_t)k->n, size);
        if (!k->owned)
            return no_memory(r, k->n);
        memcpy(k->owned, k->data, (size_t)k->n * size);
        k->data = k->owned;
    }
    return st;
}

/* A copy that is valid UTF-8: a wrong byte in somebody's name is no reason to refuse a model. */
static char *copy_text(struct ink_arena *arena, struct ink_slice s)
{
    char *out = ink_arena_strndup(arena, s.ptr, s.len);

    for (size_t at = ink_utf8_valid_prefix(out, s.len); at < s.len;
         at += ink_utf8_valid_prefix(out + at, s.len - at))
        out[at] = '?';
    return out;
}

static enum ink_status read_value(struct reader *r, struct key *k)
{
    struct ink_slice s;
    uint32_t type;
    enum ink_status st = read_u32(r, &type);

    if (st != INK_OK)
        return st;
    if (type == VALUE_ARRAY) {
        k->is_array = true;
        if ((st = read_u32(r, &type)) != INK_OK || (st = read_u64(r, &k->n)) != INK_OK)
            return st;
        if (type == VALUE_ARRAY)
            return corrupt(r, "arrays of arrays are not supported");
        if (k->n > INT64_MAX)
            return truncated(r);
    }
    if (type >= N_VALUE_TYPES)
        return corrupt(r, "unknown value type");
    k->type = (enum value_type)type;

    if (k->is_array)
        return k->type == VALUE_STRING ? read_string_array(r, k) : read_numeric_array(r, k);
    if (k->type != VALUE_STRING)
        return read_bytes(r, value_size[k->type], &k->data);
    if ((st = read_string(r, &s)) != INK_OK)
        return st;
    if (s.len > MAX_STRING)
        return corrupt(r, "longer than 16 MiB");
    k->string = copy_text(r->f->arena, s);
    return INK_OK;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct key *)a)->name, ((const struct key *)b)->name);
}

static enum ink_status read_keys(struct reader *r, uint64_t n)
{
    struct ink_model_file *f = r->f;

    snprintf(r->where, sizeof(r->where), "the header");
    if (n > MAX_KEYS)
        return corrupt(r, "more than 65536 keys");
    if (n > left(r) / MIN_KEY_BYTES)
        return truncated(r);
    f->keys = ink_zalloc((size_t)(n ? n : 1) * sizeof(*f->keys));
    for (uint64_t i = 0; i < n; i++) {
        struct key *k = &f->keys[f->n_keys];

        snprintf(r->where, sizeof(r->where), "key number %llu of %llu", (unsigned long long)(i + 1),
                 (unsigned long long)n);
        enum ink_status st = read_name(r, &k->name);

        if (st != INK_OK)
            return st;
        f->n_keys++;
        snprintf(r->where, sizeof(r->where), "key %s", k->name);
        if ((st = read_value(r, k)) != INK_OK)
            return st;
    }
    qsort(f->keys, f->n_keys, sizeof(*f->keys), compare_keys);
    for (size_t i = 1; i < f->n_keys; i++) {
        if (strcmp(f->keys[i - 1].name, f->keys[i].name) == 0)
            return ink_err_set(r->err, INK_CORRUPT, "%s: key %s: there twice", f->path,
                               f->keys[i].name);
    }
    return INK_OK;
}

static const struct key *find_key(const struct ink_model_file *f, const char *name)
{
    struct key wanted = { .name = name };

    return bsearch(&wanted, f->keys, f->n_keys, sizeof(*f->keys), compare_keys);
}

/* --- tensors --------------------------------------------------------------------------------------- */

static enum ink_status set_type(struct reader *r, struct tensor *t, uint32_t type)
{
    const char *name = type < GGML_TYPE_COUNT ? r->f->type_names[type] : "";

    if (name[0] == '\0')
        return ink_err_set(r->err, INK_UNSUPPORTED,
                           "%s: %s: its type has number %u, which this program does not know",
                           r->f->path, r->where, type);
    t->info.type = name;
    return INK_OK;
}

/* Fills in the tensor's size, checked against overflow. */
static enum ink_status measure(struct reader *r, struct tensor *t, enum ggml_type type)
{
    uint64_t block = (uint64_t)ggml_blck_size(type), n = 1;

    for (int d = 0; d < 4; d++) {
        uint64_t ne = (uint64_t)t->info.ne[d];

        if (n > (uint64_t)(INT64_MAX / 64) /
                    ne) /* 64: more than the bytes of one element of any type */
            return corrupt(r, "its dimensions are too large");
        n *= ne;
    }
    if ((uint64_t)t->info.ne[0] % block != 0)
        return ink_err_set(r->err, INK_CORRUPT,
                           "%s: %s: rows of %lld are not whole blocks of %s (%llu values)",
                           r->f->path, r->where, (long long)t->info.ne[0], t->info.type,
                           (unsigned long long)block);
    t->info.size = (size_t)(n / block) * ggml_type_size(type);
    return INK_OK;
}

static enum ink_status read_tensor(struct reader *r, struct tensor *t)
{
    uint32_t n_dims, type;
    enum ink_status st = read_u32(r, &n_dims);

    if (st != INK_OK)
        return st;
    if (n_dims < 1 || n_dims > 4)
        return ink_err_set(r->err, INK_CORRUPT, "%s: %s: %u dimensions, not 1 to 4", r->f->path,
                           r->where, n_dims);
    t->info.n_dims = (int)n_dims;
    for (uint32_t d = 0; d < 4; d++) {
        uint64_t ne = 1;

        if (d < n_dims && (st = read_u64(r, &ne)) != INK_OK)
            return st;
        if (ne == 0 || ne > INT64_MAX)
            return corrupt(r, "a dimension is zero or negative");
        t->info.ne[d] = (int64_t)ne;
    }
    if ((st = read_u32(r, &type)) != INK_OK || (st = read_u64(r, &t->offset)) != INK_OK ||
        (st = set_type(r, t, type)) != INK_OK)
        return st;
    return measure(r, t, (enum ggml_type)type);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct ink_tensor_info *x = *(const struct ink_tensor_info *const *)a;
    const struct ink_tensor_info *y = *(const struct ink_tensor_info *const *)b;

    return (x->data > y->data) - (x->data < y->data);
}

/* Two tensors that share bytes are never meant: something is wrong with the offsets. */
static enum ink_status check_overlap(const struct ink_model_file *f, struct ink_err *err)
{
    const struct ink_tensor_info **sorted = ink_alloc((f->n_tensors + 1) * sizeof(*sorted));
    enum ink_status st = INK_OK;

    for (size_t i = 0; i < f->n_tensors; i++)
        sorted[i] = &f->tensors[i].info;
    qsort(sorted, f->n_tensors, sizeof(*sorted), compare_ranges);
    for (size_t i = 1; i < f->n_tensors && st == INK_OK; i++) {
        const uint8_t *end = (const uint8_t *)sorted[i - 1]->data + sorted[i - 1]->size;

        if ((const uint8_t *)sorted[i]->data < end)
            st = ink_err_set(err, INK_CORRUPT, "%s: tensors %s and %s overlap", f->path,
                             sorted[i - 1]->name, sorted[i]->name);
    }
    free(sorted);
    return st;
}

/* Gives every tensor its place in the map. `start` is where the data begins. */
static enum ink_status place_tensors(struct reader *r, size_t start, uint32_t alignment)
{
    struct ink_model_file *f = r->f;

    for (size_t i = 0; i < f->n_tensors; i++) {
        struct tensor *t = &f->tensors[i];

        snprintf(r->where, sizeof(r->where), "tensor %s", t->info.name);
        if (t->offset % alignment != 0)
            return ink_err_set(r->err, INK_CORRUPT,
                               "%s: %s: its offset %llu is not a multiple of %u", f->path, r->where,
                               (unsigned long long)t->offset, alignment);
        if (start > f->map.len || t->offset > f->map.len - start ||
            t->info.size > f->map.len - start - t->offset)
            return ink_err_set(
                r->err, INK_CORRUPT,
                "%s: truncated: %s needs %zu bytes at %llu of the data, which has %zu", f->path,
                r->where, t->info.size, (unsigned long long)t->offset,
                start > f->map.len ? (size_t)0 : f->map.len - start);
        t->offset += start;
        t->info.data = f->map.ptr + t->offset;
    }
    return check_overlap(f, r->err);
}

static enum ink_status read_tensors(struct reader *r, uint64_t n)
{
    struct ink_model_file *f = r->f;
    int64_t alignment = 32;

    snprintf(r->where, sizeof(r->where), "the list of tensors");
    if (n > MAX_TENSORS)
        return corrupt(r, "more than 65536 tensors");
    if (n > left(r) / MIN_TENSOR_BYTES)
        return truncated(r);
    f->tensors = ink_zalloc((size_t)(n + 1) * sizeof(*f->tensors));
    f->by_name = ink_zalloc((size_t)(n + 1) * sizeof(*f->by_name));
    for (uint64_t i = 0; i < n; i++) {
        struct tensor *t = &f->tensors[i];

        snprintf(r->where, sizeof(r->where), "tensor number %llu of %llu",
                 (unsigned long long)(i + 1), (unsigned long long)n);
        enum ink_status st = read_name(r, &t->info.name);

        if (st != INK_OK)
            return st;
        snprintf(r->where, sizeof(r->where), "tensor %s", t->info.name);
        if ((st = read_tensor(r, t)) != INK_OK)
            return st;
        f->by_name[i] = (struct name){ t->info.name, (uint32_t)i };
        f->n_tensors++;
    }
    qsort(f->by_name, f->n_tensors, sizeof(*f->by_name), compare_names);
    for (size_t i = 1; i < f->n_tensors; i++) {
        if (strcmp(f->by_name[i - 1].name, f->by_name[i].name) == 0)
            return ink_err_set(r->err, INK_CORRUPT, "%s: tensor %s: there twice", f->path,
                               f->by_name[i].name);
    }

    if (ink_model_file_int(f, "general.alignment", &alignment) &&
        (alignment < 8 || alignment > MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0))
        return ink_err_set(r->err, INK_CORRUPT,
                           "%s: key general.alignment: %lld is not a power of two from 8 to %d",
                           f->path, (long long)alignment, MAX_ALIGNMENT);
    size_t start = (r->pos + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;

    return place_tensors(r, start, (uint32_t)alignment);
}

/* --- opening --------------------------------------------------------------------------------------- */

/* ggml's names of its types in lower case; "" for numbers that are not, or no longer, in use. */
static void name_types(struct ink_model_file *f)
{
    for (int i = 0; i < GGML_TYPE_COUNT; i++) {
        enum ggml_type type = (enum ggml_type)i;
        const char *name = ggml_type_name(type);

        if (!name || ggml_type_size(type) == 0 || ggml_blck_size(type) == 0)
            continue;
        for (size_t c = 0; name[c] != '\0' && c + 1 < TYPE_NAME_LEN; c++)
            f->type_names[i][c] = (char)tolower((unsigned char)name[c]);
    }
}

static const char *choose_type(const struct ink_model_file *f)
{
    size_t bytes[GGML_TYPE_COUNT] = { 0 };
    int best = GGML_TYPE_F32;
    int64_t i8_version;

    if (ink_model_file_int(f, "inkstone.i8_version", &i8_version))
        return f->type_names[GGML_TYPE_I8];
    for (size_t i = 0; i < f->n_tensors; i++) {
        for (int t = 0; t < GGML_TYPE_COUNT; t++) {
            if (f->tensors[i].info.type == f->type_names[t])
                bytes[t] += f->tensors[i].info.size;
        }
    }
    for (int t = 0; t < GGML_TYPE_COUNT; t++) {
        if (bytes[t] > bytes[best])
            best = t;
    }
    return f->type_names[best];
}

static enum ink_status read_all(struct reader *r)
{
    struct ink_model_file *f = r->f;
    uint32_t version;
    uint64_t n_tensors, n_keys;
    int64_t n_parts;
    enum ink_status st;

    if (f->map.len < 4 || memcmp(f->map.ptr, "GGUF", 4) != 0)
        return ink_err_set(r->err, INK_CORRUPT, "%s: not a GGUF file", f->path);
    r->pos = 4;
    snprintf(r->where, sizeof(r->where), "the header");
    if ((st = read_u32(r, &version)) != INK_OK)
        return st;
    if (version != 2 && version != 3)
        return ink_err_set(r->err, INK_UNSUPPORTED,
                           "%s: GGUF version %u is not supported (2 and 3 are)%s", f->path, version,
                           version != 0 && (version & 0xffff) == 0 ? "; it seems to be big-endian"
                                                                   : "");
    if ((st = read_u64(r, &n_tensors)) != INK_OK || (st = read_u64(r, &n_keys)) != INK_OK ||
        (st = read_keys(r, n_keys)) != INK_OK)
        return st;
    if (ink_model_file_int(f, "split.count", &n_parts) && n_parts > 1)
        return ink_err_set(
            r->err, INK_UNSUPPORTED,
            "%s: one of %lld parts of a split GGUF file: merge the parts first (llama-gguf-split "
            "--merge)",
            f->path, (long long)n_parts);
    return read_tensors(r, n_tensors);
}

enum ink_status ink_model_file_open(const char *path, struct ink_model_file **out,
                                    struct ink_err *err)
{
    const uint16_t one = 1;
    struct ink_map map;
    enum ink_status st;

    if (*(const uint8_t *)&one != 1)
        return ink_err_set(err, INK_UNSUPPORTED,
                           "%s: GGUF files are read on little-endian machines only", path);
    if ((st = ink_map_open(path, &map, err)) != INK_OK)
        return st;

    struct ink_model_file *f = ink_zalloc(sizeof(*f));
    struct reader r = { .f = f, .err = err };

    f->path = ink_strdup(path);
    f->map = map;
    f->arena = ink_arena_new();
    name_types(f);
    if ((st = read_all(&r)) != INK_OK) {
        ink_model_file_close(f);
        return st;
    }
    f->type = choose_type(f);
    *out = f;
    return INK_OK;
}

void ink_model_file_close(struct ink_model_file *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n_keys; i++)
        free(f->keys[i].owned);
    free(f->keys);
    free(f->tensors);
    free(f->by_name);
    ink_arena_free(f->arena);
    ink_map_close(&f->map);
    free(f->path);
    free(f);
}

const char *ink_model_file_path(const struct ink_model_file *f)
{
    return f->path;
}

size_t ink_model_file_size(const struct ink_model_file *f)
{
    return f->map.len;
}

const char *ink_model_file_arch(const struct ink_model_file *f)
{
    const char *arch = "";

    (void)ink_model_file_string(f, "general.architecture", &arch);
    return arch;
}

const char *ink_model_file_type(const struct ink_model_file *f)
{
    return f->type;
}

/* --- looking up -------------------------------------------------------------------------------------- */

static const struct key *find_scalar(const struct ink_model_file *f, const char *name)
{
    const struct key *k = find_key(f, name);

    return k && !k->is_array ? k : NULL;
}

static const struct key *find_array(const struct ink_model_file *f, const char *name)
{
    const struct key *k = find_key(f, name);

    return k && k->is_array ? k : NULL;
}

bool ink_model_file_int(const struct ink_model_file *f, const char *key, int64_t *out)
{
    const struct key *k = find_scalar(f, key);
    int16_t i16;
    uint16_t u16;
    uint64_t u64;

    if (!k)
        return false;
    switch (k->type) {
    case VALUE_U8:
        *out = *k->data;
        return true;
    case VALUE_I8:
        *out = *(const int8_t *)k->data;
        return true;
    case VALUE_U16:
        memcpy(&u16, k->data, sizeof(u16));
        *out = u16;
        return true;
    case VALUE_I16:
        memcpy(&i16, k->data, sizeof(i16));
        *out = i16;
        return true;
    case VALUE_U32:
        *out = get_u32(k->data);
        return true;
    case VALUE_I32:
        *out = (int32_t)get_u32(k->data);
        return true;
    case VALUE_U64:
        u64 = get_u64(k->data);
        if (u64 > INT64_MAX)
            return false;
        *out = (int64_t)u64;
        return true;
    case VALUE_I64:
        *out = (int64_t)get_u64(k->data);
        return true;
    default:
        return false;
    }
}

bool ink_model_file_float(const struct ink_model_file *f, const char *key, double *out)
{
    const struct key *k = find_scalar(f, key);
    float f32;

    if (!k)
        return false;
    if (k->type == VALUE_F64) {
        memcpy(out, k->data, sizeof(*out));
        return true;
    }
    if (k->type != VALUE_F32)
        return false;
    memcpy(&f32, k->data, sizeof(f32));
    *out = (double)f32;
    return true;
}

bool ink_model_file_bool(const struct ink_model_file *f, const char *key, bool *out)
{
    const struct key *k = find_scalar(f, key);

    if (!k || k->type != VALUE_BOOL)
        return false;
    *out = *k->data != 0;
    return true;
}

bool ink_model_file_string(const struct ink_model_file *f, const char *key, const char **out)
{
    const struct key *k = find_scalar(f, key);

    if (!k || k->type != VALUE_STRING)
        return false;
    *out = k->string;
    return true;
}

int64_t ink_model_file_array(const struct ink_model_file *f, const char *key)
{
    const struct key *k = find_array(f, key);

    return k ? (int64_t)k->n : -1;
}

struct ink_slice ink_model_file_array_string(const struct ink_model_file *f, const char *key,
                                             int64_t i)
{
    const struct key *k = find_array(f, key);

    if (!k || k->type != VALUE_STRING || i < 0 || (uint64_t)i >= k->n)
        return (struct ink_slice){ "", 0 };

    const uint8_t *at = f->map.ptr + ((const uint64_t *)k->owned)[i];

    return (struct ink_slice){ (const char *)at + 8, (size_t)get_u64(at) };
}

const void *ink_model_file_array_data(const struct ink_model_file *f, const char *key,
                                      const char *type)
{
    const struct key *k = find_array(f, key);
    bool fits = false;

    if (!k)
        return NULL;
    if (strcmp(type, "f32") == 0)
        fits = k->type == VALUE_F32;
    else if (strcmp(type, "i32") == 0)
        fits = k->type == VALUE_I32 || k->type == VALUE_U32;
    else if (strcmp(type, "u8") == 0)
        fits = k->type == VALUE_U8 || k->type == VALUE_I8 || k->type == VALUE_BOOL;
    return fits ? k->data : NULL;
}

int64_t ink_model_file_n_tensors(const struct ink_model_file *f)
{
    return (int64_t)f->n_tensors;
}

void ink_model_file_tensor(const struct ink_model_file *f, int64_t i, struct ink_tensor_info *out)
{
    *out = f->tensors[i].info;
}

bool ink_model_file_find(const struct ink_model_file *f, const char *name,
                         struct ink_tensor_info *out)
{
    struct name wanted = { .name = name };
    const struct name *hit =
        bsearch(&wanted, f->by_name, f->n_tensors, sizeof(*f->by_name), compare_names);

    if (hit)
        *out = f->tensors[hit->i].info;
    return hit != NULL;
}

/* --- identity ---------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_digest(const char *hex, uint8_t out[INK_SHA256_LEN])
{
    if (strlen(hex) != 2 * INK_SHA256_LEN)
        return false;
    for (size_t i = 0; i < INK_SHA256_LEN; i++) {
        int high = hex_digit(hex[2 * i]), low = hex_digit(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void ink_model_file_digest(const struct ink_model_file *f, uint8_t out[32])
{
    enum { SAMPLE = 4096 };
    const char *stored;

    if (ink_model_file_string(f, "inkstone.weights_sha256", &stored) && parse_digest(stored, out))
        return;

    struct ink_digest *d = ink_digest_new();

    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct ink_tensor_info *t = &f->tensors[i].info;
        size_t n = t->size < SAMPLE ? t->size : SAMPLE;

        ink_digest_field(d, t->name, strlen(t->name));
        ink_digest_field(d, t->type, strlen(t->type));
        ink_digest_field(d, t->ne, sizeof(t->ne));
        ink_digest_field(d, t->data, n);
        ink_digest_field(d, (const uint8_t *)t->data + t->size - n, n);
    }
    ink_digest_finish(d, out);
}

void ink_model_file_drop(const struct ink_model_file *f, const struct ink_tensor_info *tensor)
{
    ink_map_drop(&f->map, (size_t)((const uint8_t *)tensor->data - f->map.ptr), tensor->size);
}
