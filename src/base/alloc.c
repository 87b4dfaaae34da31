/* The one place that talks to malloc: small objects never fail, large ones may. */
#define _GNU_SOURCE
#include "base/alloc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_die(void *p, size_t size)
{
    if (!p && size > 0) {
        fprintf(stderr, "inkstone: out of memory (%zu bytes)\n", size);
        abort();
    }
    return p;
}

void *ink_alloc(size_t size)
{
    return or_die(malloc(size ? size : 1), size ? size : 1);
}

void *ink_zalloc(size_t size)
{
    return or_die(calloc(1, size ? size : 1), size ? size : 1);
}

void *ink_realloc(void *p, size_t size)
{
    return or_die(realloc(p, size ? size : 1), size ? size : 1);
}

char *ink_strndup(const char *s, size_t len)
{
    char *out = ink_alloc(len + 1);

    memcpy(out, s, len);
    out[len] = '\0';
    return out;
}

char *ink_strdup(const char *s)
{
    return ink_strndup(s, strlen(s));
}

void *ink_try_realloc(void *p, size_t n, size_t size)
{
    if (size > 0 && n > SIZE_MAX / size)
        return NULL;
    return realloc(p, n * size > 0 ? n * size : 1);
}

void *ink_try_alloc(size_t n, size_t size)
{
    return ink_try_realloc(NULL, n, size);
}

void *ink_try_alloc_aligned(size_t size)
{
    if (size > SIZE_MAX - 64)
        return NULL;
    size_t whole = (size + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole ? whole : 64);

    if (p)
        memset(p, 0, whole);
    return p;
}
