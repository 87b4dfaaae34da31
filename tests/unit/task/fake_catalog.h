#ifndef UNIT_TASK_FAKE_CATALOG_H
#define UNIT_TASK_FAKE_CATALOG_H

#include "engine/fake_model.h"
#include "task/catalog.h"
#include "task/rewrite.h"
#include "task/task.h"

#include <stdint.h>

/*
 * A catalog with one model made of a small vocabulary (one piece a character, all bytes, <extra_id_N>) and of
 * answers: the model is the distribution that gives answer i with probability weight i / sum.
 */
struct fake_answer {
    const char
        *text; /* in the vocabulary's characters; "{X0}" spells <extra_id_0>, "{b E4}" a byte */
    double weight;
};

/* Options of the next fake_catalog_new(); zero means default. Reset by it. */
extern struct fake_options fake_model_options;
/* A key of the file that the next ink_catalog_add() must not find; NULL: all there. */
extern const char *fake_missing_key;

/* Answers end with one that has no text (NULL). They stay in force until the next call. */
struct ink_catalog *fake_catalog_new(const struct ink_catalog_options *options,
                                     const struct fake_answer *answers);

/* The model behind the last catalog made. */
struct ink_model *fake_catalog_model(void);

/* Pulls all events of a task and checks the rules that hold for every stream. */
struct fake_stream {
    enum ink_status status;
    struct ink_err err;
    char text[16][2048]; /* deltas after the last reset, joined, per candidate */
    int n_resets[16], n_candidates, n_texts, n_queued;
    bool done;
};

void fake_read_all(struct ink_task *task, struct fake_stream *out);
/* One event; counts and checks it. */
void fake_take(struct fake_stream *s, const struct ink_task_event *ev);

#endif
