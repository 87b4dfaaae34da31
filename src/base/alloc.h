#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

/*
 * Heap memory. The first three end the process with a message when memory is
 * out: they are for small objects whose number is bounded. Sizes that come from
 * input go through ink_try_alloc(). Everything is released with free().
 */
void *ink_alloc(size_t size);
void *ink_zalloc(size_t size); /* zeroed */
void *ink_realloc(void *p, size_t size);
char *ink_strdup(const char *s);
char *ink_strndup(const char *s, size_t len); /* adds the final NUL */

/* n * size bytes, or NULL when the product overflows or memory is out. */
void *ink_try_alloc(size_t n, size_t size);
void *ink_try_realloc(void *p, size_t n, size_t size); /* on NULL, `p` is as it was */

/* Aligned for vector loads (64 bytes), zeroed; NULL when out of memory. free() releases it. */
void *ink_try_alloc_aligned(size_t size);

#endif
