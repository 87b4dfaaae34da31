/* A chain of blocks; an object too big for one gets a block of its own. */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 * 1024, ALIGN = 16 };

struct block {
    struct block *next;
    size_t used, cap;
    _Alignas(ALIGN) unsigned char bytes[];
};

struct ink_arena {
    struct block *head; /* the block that is being filled */
};

struct ink_arena *ink_arena_new(void)
{
    return ink_zalloc(sizeof(struct ink_arena));
}

void ink_arena_free(struct ink_arena *a)
{
    if (!a)
        return;
    for (struct block *b = a->head; b;) {
        struct block *next = b->next;

        free(b);
        b = next;
    }
    free(a);
}

void *ink_arena_alloc(struct ink_arena *a, size_t size)
{
    size_t need = (size + ALIGN - 1) / ALIGN * ALIGN;
    struct block *b = a->head;

    if (!b || b->cap - b->used < need) {
        size_t cap = need > BLOCK ? need : BLOCK;

        b = ink_alloc(sizeof(*b) + cap);
        b->used = 0;
        b->cap = cap;
        b->next = a->head;
        a->head = b;
    }
    void *p = b->bytes + b->used;
    b->used += need;
    memset(p, 0, need);
    return p;
}

char *ink_arena_strndup(struct ink_arena *a, const char *s, size_t len)
{
    char *out = ink_arena_alloc(a, len + 1);

    memcpy(out, s, len);
    return out;
}
