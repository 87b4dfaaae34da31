#ifndef TASK_SERVED_H
#define TASK_SERVED_H

#include "engine/engine.h"
#include "model/model.h"
#include "model/model_file.h"
#include "task/catalog.h"
#include "token/tokenizer.h"

/* A served model from the inside of this room. Immutable once in the catalog. */
struct ink_served {
    char *name;
    struct ink_model_file *file;
    struct ink_model *model;    /* NULL: vocabulary only */
    struct ink_model_info info; /* a copy, so that it can be asked for without a model */
    struct ink_tokenizer *tokenizer;
    struct ink_lane *lane;
    char *prompt; /* contains {text} */
    unsigned capabilities;
    bool is_demo;
    int64_t created;
    int head_zh, head_zh_rows;  /* 0, 0: no such head */
    int max_source, max_target; /* tokens */
    int n_parallel, n_queue;    /* the lane's */
};

#endif
