#ifndef ENGINE_BELL_H
#define ENGINE_BELL_H

/*
 * What the engine sleeps on. Anyone may ring it, also after the engine is gone: it is shared, and the last holder
 * frees it. Its lock is a leaf: nothing is called while it is held.
 */
struct bell;

struct bell *bell_new(void);
struct bell *bell_ref(struct bell *b);
void bell_unref(struct bell *b); /* NULL is fine */

void bell_ring(struct bell *b);
/* Returns when the bell was rung since the last return, or after `timeout_ms` (-1: never). */
void bell_wait(struct bell *b, int timeout_ms);

#endif
