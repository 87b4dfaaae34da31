#ifndef TASK_BATCH_H
#define TASK_BATCH_H

#include "base/status.h"
#include "task/rewrite.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Many texts as a stream of rewrite tasks, without a thread of its own. The owner adds texts while ink_batch_wants()
 * them, pulls after each wake-up, and takes what is finished; it reads its input no faster than that, so memory is
 * bounded however long the input is, and the engine's queue keeps room for requests that come alone.
 *
 *     added --started--> running --pulled--> finished --taken--> gone
 *       '------- failed, or nothing to compute ----^
 *
 * Texts that are not taken form a ring, so one that takes long holds back the others only when that is full.
 * Everything here is for one thread, but the wake function, which any thread may call.
 */
struct ink_batch;
struct ink_catalog;
struct ink_served;

/* What the batches of one thread share: how much each model has to do for them. */
struct ink_batch_pool;

struct ink_batch_pool *ink_batch_pool_new(struct ink_catalog *catalog); /* borrowed */
void ink_batch_pool_free(struct ink_batch_pool *pool); /* after its batches; NULL is fine */

/* `wake(arg)`: short; a text may have changed. With `ordered`, texts are taken in the order in which they were added. */
struct ink_batch *ink_batch_new(struct ink_batch_pool *pool, bool ordered, void (*wake)(void *arg),
                                void *arg);
/* Cancels what runs; `wake` is never called again. NULL is fine. */
void ink_batch_free(struct ink_batch *b);

/* Whether another text should be added now. */
bool ink_batch_wants(struct ink_batch *b);
/* Whether one could be that is finished already. */
bool ink_batch_has_room(const struct ink_batch *b);
/* Milliseconds after which to look again although nothing woke; -1: none. */
int ink_batch_retry_ms(const struct ink_batch *b);

/*
 * Adds a text; everything in `rq` is copied, `tag` is the caller's. What is wrong with it is not an error here: the text
 * then is finished at once, and failed. Its deadline runs from now. INK_BUSY: there is no room after all; nothing
 * happened, and the same text is to be added again when ink_batch_wants() says so.
 */
INK_NODISCARD enum ink_status ink_batch_add(struct ink_batch *b,
                                            const struct ink_rewrite_request *rq, void *tag);
/* Adds a text that is finished already: failed, or with code INK_OK one without anything to compute. Room as above. */
void ink_batch_add_finished(struct ink_batch *b, const struct ink_err *err, void *tag);

/* Takes in what the engine has done. */
void ink_batch_pull(struct ink_batch *b);

struct ink_batch_text {
    int64_t index; /* of the text in the batch, from 0 */
    void *tag;
    const struct ink_served *served; /* of `task` */
    struct ink_task *task; /* owned; finished well: see ink_task_result(). NULL: see `err` */
    struct ink_err err;
};

/* A finished text, whose task the caller then frees; false: none, or with `ordered` the next one is not finished. */
bool ink_batch_take(struct ink_batch *b, struct ink_batch_text *out);

int64_t ink_batch_n_added(const struct ink_batch *b); /* the next text's index */
int ink_batch_n_open(const struct ink_batch *b);      /* added and not taken */
int ink_batch_n_running(const struct ink_batch *b);

/* What runs ends soon, with INK_CANCELLED. */
void ink_batch_cancel(struct ink_batch *b);

/*
 * The seed of text `index` in a batch that was given `seed`, below 2^53: text 0 uses the batch's own, the others
 * one that depends on both. The same for the command line and for HTTP, so a batch gives the same texts either way, and
 * the seed that an answer reports repeats that text alone.
 */
uint64_t ink_batch_seed(uint64_t seed, uint64_t index);

#endif
