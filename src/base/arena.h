#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

/*
 * Memory that is freed all at once: what lives as long as one request or one
 * loaded file. Not thread-safe; one owner at a time. Ends the process when
 * memory is out, so sizes must be bounded by the caller first.
 */
struct ink_arena;

struct ink_arena *ink_arena_new(void);
void ink_arena_free(struct ink_arena *a); /* NULL is fine */

void *ink_arena_alloc(struct ink_arena *a, size_t size); /* zeroed, aligned to 16 */
char *ink_arena_strndup(struct ink_arena *a, const char *s, size_t len);

#endif
