#ifndef SERVER_WORK_H
#define SERVER_WORK_H

#include <jansson.h>
#include <stdbool.h>

struct ink_served;
struct ink_task;
struct request;

/* A running task, and what its answer is written with. */
struct work {
    struct ink_task *task; /* owned */
    const struct ink_served *served;
    const char *cache_word; /* overrides the result's, or NULL; static */
    bool details;
    json_t *(*answer)(const struct work *w); /* how its API spells the answer; NULL: R */
};

/* The finished task's answer; a new reference. */
json_t *work_answer(const struct work *w);
/* Says in the reply's header what the answer says of the cache. */
void work_add_cache_header(const struct work *w, struct request *rq);

/*
 * Pulls the request's task towards a plain answer, on an io thread. True: the reply is set, or the client is
 * gone. False: the connection is parked until there is more.
 */
bool work_collect(struct request *rq);

#endif
