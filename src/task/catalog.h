#ifndef TASK_CATALOG_H
#define TASK_CATALOG_H

#include "base/status.h"
#include "model/model.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Which models are served: for each a model file, its tokenizer, prompt template, output heads and limits, and the
 * engine that runs it. Built once at start; after the last ink_catalog_add() it is
 * read-only and any thread may use it.
 */
struct ink_catalog;
struct ink_served; /* one model of the catalog */
struct ink_tokenizer;

enum ink_capability {
    INK_CAN_REWRITE = 1 << 0,
    INK_CAN_CLASSIFY = 1 << 1,
    INK_CAN_CHAT = 1 << 2,
    INK_CAN_ASK = 1 << 3,
    INK_CAN_SCORE = 1 << 4,
};

struct ink_catalog_options { /* zero means default */
    enum ink_compute compute;
    int n_threads;         /* all processors */
    int n_parallel;        /* sequences decoded together: 64 */
    int n_queue;           /* jobs waiting beyond those running: 256 */
    int max_source_tokens; /* of one text, prompt included: 512 */
    int max_target_tokens; /* of one candidate: 512 */
    int64_t max_memory;    /* bytes for KV; 0: planned from the above */
    const char *prompt;    /* overrides the model's own rewrite template; must contain {text} */
    bool vocabulary_only; /* no weights, no engine: the models have a tokenizer and no capability */
};

struct ink_catalog *ink_catalog_new(const struct ink_catalog_options *options);
/*
 * Cancels every job and waits for the engine to stop. Every task must have been freed. NULL is fine.
 */
void ink_catalog_free(struct ink_catalog *c);

/* Loads the GGUF file at `path` and starts serving it under its file name without ".gguf" (or `name`). */
INK_NODISCARD enum ink_status ink_catalog_add(struct ink_catalog *c, const char *path,
                                              const char *name, struct ink_err *err);

/*
 * The model called `name`, or with NULL the first that has all of `capabilities`. INK_NOT_FOUND
 * (reason "model_not_found", param "model"): no such model, the text lists those there are.
 * INK_INVALID (param "model"): it cannot do that.
 */
INK_NODISCARD enum ink_status ink_catalog_find(struct ink_catalog *c, const char *name,
                                               unsigned capabilities, struct ink_served **out,
                                               struct ink_err *err);
int ink_catalog_n_models(const struct ink_catalog *c);
struct ink_served *ink_catalog_model(const struct ink_catalog *c, int i);

const char *ink_served_name(const struct ink_served *s);
unsigned ink_served_capabilities(const struct ink_served *s);
const struct ink_model_info *ink_served_info(const struct ink_served *s);
const struct ink_tokenizer *ink_served_tokenizer(const struct ink_served *s);
const char *ink_served_prompt(const struct ink_served *s); /* rewrite template with {text} */
bool ink_served_is_demo(const struct ink_served *s);
int64_t ink_served_created(const struct ink_served *s); /* seconds since 1970, from the file */
int ink_served_head_rows(const struct ink_served *s);   /* rows of the Chinese head; 0: none */
int ink_served_max_source(const struct ink_served *s);  /* tokens, prompt and end token included */
int ink_served_max_target(const struct ink_served *s);
int ink_served_n_parallel(const struct ink_served *s); /* sequences decoded together; 0: none */
/* Half of its queue is taken: who has many texts to bring lets others go first. Any thread. */
bool ink_served_is_crowded(const struct ink_served *s);

/* Counters of the engine behind a model, as a snapshot: for /metrics and tests. */
struct ink_engine_stats;
void ink_served_stats(const struct ink_served *s, struct ink_engine_stats *out);

#endif
