/*
 * Five pickles: a magic number, a version, a dictionary about the machine, the state dictionary, the list of storage
 * keys. Then, for each key in that order, an i64 number of elements and the elements, little endian.
 */
#include "convert/torch_legacy.h"

#include "base/alloc.h"
#include "convert/pickle.h"
#include "convert/torch_bin.h"

#include <stdlib.h>
#include <string.h>

/* Protocol 2; the integers 0x1950a86a20f9469cfc6c and 1001. */
static const char magic[] = "\x80\x02\x8a\nl\xfc\x9c"
                            "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.";

enum { MAX_KEY = 32 };

/* A tensor whose storage has not been met yet. */
struct waiting {
    size_t tensor; /* its place in the checkpoint */
    char key[MAX_KEY];
    int64_t offset, n_storage;
    size_t element_size;
    bool placed;
};

struct listing {
    struct checkpoint *c;
    int file;
    struct waiting *waiting;
    size_t n_waiting, cap_waiting, n_placed;
    size_t at; /* where the next storage begins */
};

static enum ink_status add_tensor(void *arg, const struct pickle_tensor *p, struct ink_err *err)
{
    struct listing *l = arg;
    struct source_tensor *t;
    enum ink_status st = torch_add_tensor(l->c, l->file, p, &t, err);

    if (st != INK_OK)
        return st;
    if (p->storage.len >= MAX_KEY)
        return ink_err_set(err, INK_CORRUPT, "tensor %s: its storage has no plain number", t->name);
    if (l->n_waiting == l->cap_waiting) {
        l->cap_waiting = l->cap_waiting ? 2 * l->cap_waiting : 256;
        l->waiting = ink_realloc(l->waiting, l->cap_waiting * sizeof(*l->waiting));
    }
    struct waiting *w = &l->waiting[l->n_waiting++];

    *w = (struct waiting){ .tensor = l->c->n_tensors - 1,
                           .n_storage = p->storage_elements,
                           .element_size = p->element_size };
    memcpy(w->key, p->storage.ptr, p->storage.len);
    return INK_OK;
}

static enum ink_status count_string(void *arg, struct ink_slice s, struct ink_err *err)
{
    (void)s;
    (void)err;
    ++*(size_t *)arg;
    return INK_OK;
}

static int compare_waiting(const void *a, const void *b)
{
    return strcmp(((const struct waiting *)a)->key, ((const struct waiting *)b)->key);
}

/* The first of the tensors that wait for this storage, in the sorted list; n_waiting if none does. */
static size_t find_waiting(const struct listing *l, struct ink_slice key)
{
    struct waiting wanted = { 0 };

    if (key.len >= MAX_KEY)
        return l->n_waiting;
    memcpy(wanted.key, key.ptr, key.len);
    const struct waiting *hit =
        l->n_waiting ? bsearch(&wanted, l->waiting, l->n_waiting, sizeof(wanted), compare_waiting)
                     : NULL;

    while (hit && hit > l->waiting && compare_waiting(hit - 1, hit) == 0)
        hit--;
    return hit ? (size_t)(hit - l->waiting) : l->n_waiting;
}

/* The next storage is that of `key`: its tensors get their place in the file. */
static enum ink_status place_storage(void *arg, struct ink_slice key, struct ink_err *err)
{
    struct listing *l = arg;
    const struct ink_map *map = &l->c->files[l->file].map;
    size_t element_size = 0;
    uint64_t n = 0;

    if (map->len - l->at < 8)
        return ink_err_set(err, INK_CORRUPT, "truncated: storage %.*s is missing", (int)key.len,
                           key.ptr);
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)map->ptr[l->at + (size_t)i] << (8 * i);
    l->at += 8;
    for (size_t i = find_waiting(l, key); i < l->n_waiting; i++) {
        struct waiting *w = &l->waiting[i];
        struct source_tensor *t = &l->c->tensors[w->tensor];

        if (!ink_slice_eq(key, ink_slice_of(w->key)))
            break;
        if (w->placed)
            return ink_err_set(err, INK_CORRUPT, "storage %.*s is listed twice", (int)key.len,
                               key.ptr);
        if (n != (uint64_t)w->n_storage || (element_size && element_size != w->element_size))
            return ink_err_set(err, INK_CORRUPT,
                               "tensor %s: its storage has %llu elements, not %lld", t->name,
                               (unsigned long long)n, (long long)w->n_storage);
        element_size = w->element_size;
        if (n > (map->len - l->at) / element_size)
            return ink_err_set(err, INK_CORRUPT, "truncated: tensor %s: the file ends inside it",
                               t->name);
        t->offset += l->at;
        w->placed = true;
        l->n_placed++;
    }
    if (!element_size)
        return ink_err_set(err, INK_CORRUPT, "storage %.*s belongs to no tensor", (int)key.len,
                           key.ptr);
    l->at += (size_t)n * element_size;
    return INK_OK;
}

static enum ink_status ignore_tensor(void *arg, const struct pickle_tensor *t, struct ink_err *err)
{
    (void)arg;
    (void)t;
    (void)err;
    return INK_OK;
}

static enum ink_status list(struct listing *l, struct ink_err *err)
{
    const struct ink_map *map = &l->c->files[l->file].map;
    const char *bytes = (const char *)map->ptr;
    struct ink_slice rest = { bytes + sizeof(magic) - 1, map->len - (sizeof(magic) - 1) };
    size_t used = 0;
    enum ink_status st = pickle_read(rest, ignore_tensor, NULL, &used, err);

    if (st != INK_OK)
        return st;
    rest = (struct ink_slice){ rest.ptr + used, rest.len - used };
    if ((st = pickle_read(rest, add_tensor, l, &used, err)) != INK_OK)
        return st;
    rest = (struct ink_slice){ rest.ptr + used, rest.len - used };

    if (l->n_waiting)
        qsort(l->waiting, l->n_waiting, sizeof(*l->waiting), compare_waiting);

    /* Where the storages begin is known once the list has been walked over. */
    size_t n_keys = 0;

    if ((st = pickle_read_strings(rest, count_string, &n_keys, &used, err)) != INK_OK)
        return st;
    l->at = (size_t)(rest.ptr - bytes) + used;
    if ((st = pickle_read_strings(rest, place_storage, l, &used, err)) != INK_OK)
        return st;
    if (l->n_placed < l->n_waiting)
        st = ink_err_set(err, INK_CORRUPT, "the storages of %zu of %zu tensors are missing",
                         l->n_waiting - l->n_placed, l->n_waiting);
    return st;
}

bool torch_legacy_matches(const struct ink_map *map)
{
    return map->len >= sizeof(magic) - 1 && memcmp(map->ptr, magic, sizeof(magic) - 1) == 0;
}

enum ink_status torch_legacy_list(struct checkpoint *c, int file, struct ink_err *err)
{
    struct listing l = { .c = c, .file = file };
    enum ink_status st = list(&l, err);

    free(l.waiting);
    return st == INK_OK ? st : ink_err_prefix(err, st, c->files[file].path);
}
