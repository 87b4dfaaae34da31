#ifndef CLI_REWRITE_STREAM_H
#define CLI_REWRITE_STREAM_H

#include "cli/lines.h"
#include "server/rewrite_json.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct ink_catalog;

/*
 * Many texts as a stream of rewrite tasks, from a source that reads them to a sink that writes the answers. Many are
 * under way at once; a fixed window bounds memory however long the input is.
 */

/* One text, from the source through the computation to the sink. */
struct rewrite_item {
    int64_t index; /* of the text in its input: with a seed, what its own seed is made of */
    json_t
        *object; /* {"text", options}; NULL: `err` says why, or INK_OK: nothing is to be computed */
    struct ink_err err;
    void *keep; /* what the sink wants back with the answer; NULL or free()able */
};

struct rewrite_counts {
    int64_t n_read, n_put, n_failed;
};

/* Where the texts come from and where the answers go. All on the calling thread. */
struct rewrite_ends {
    void *arg;
    /* The next text: LINE_READY, LINE_AGAIN (fill() when `fd` is readable) or LINE_END. `item` is zeroed beforehand;
     * what it then holds is the stream's. */
    enum line_state (*next)(void *arg, struct rewrite_item *item);
    void (*fill)(void *arg);
    int fd;
    /* An answer R or {"error"}, whose reference the callee takes over; NULL when there was nothing to compute. false:
     * it cannot be written, and the stream stops. */
    bool (*put)(void *arg, const struct rewrite_item *item, json_t *answer);
    /* Called before every wait, and so at least once a second. false: as above. */
    bool (*flush)(void *arg);
    /* How far it is: cheap, called after every answer. */
    void (*progress)(void *arg, const struct rewrite_counts *counts);
};

enum rewrite_stream_end {
    STREAM_ENDED,
    STREAM_STOPPED, /* the sink could not write */
    STREAM_INTERRUPTED,
};

/*
 * Runs until the source has ended and everything is written; with `unordered`, answers are put as they finish, not in
 * the order of the texts. `call` holds the defaults for every text; with a seed,
 * text i has the seed ink_batch_seed(seed, i). INK_IO when the stream cannot be set up.
 */
INK_NODISCARD enum ink_status rewrite_stream(struct ink_catalog *catalog,
                                             const struct ink_rewrite_call *call, bool unordered,
                                             const struct rewrite_ends *ends,
                                             enum rewrite_stream_end *end,
                                             struct rewrite_counts *counts, struct ink_err *err);

/*
 * {"text": text}, so that every spelling of a text meets the same checks. INK_INVALID for bytes that are not UTF-8, and
 * for NUL.
 */
INK_NODISCARD enum ink_status rewrite_object_of_text(struct ink_slice text, json_t **out,
                                                     struct ink_err *err);

#endif
