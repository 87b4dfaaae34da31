#ifndef CLI_MODEL_PATH_H
#define CLI_MODEL_PATH_H

#include "base/status.h"

#include <stdbool.h>

/*
 * Which file `-m` means.
 *
 * A value with "/" or an existing path is a GGUF file or a Hugging Face folder. Anything else is a file name without
 * ".gguf", looked for in the model folders: $INKSTONE_MODELS, $XDG_DATA_HOME/inkstone/models, and, seen from the
 * folder of the program, ../models, ../../models and ../share/inkstone/models, then /usr/share/inkstone/models.
 * Main thread only.
 */

/* What `-m` named. A folder has still to be imported: see import_cached(). */
struct model_path {
    char *path;
    bool is_folder; /* a Hugging Face checkpoint */
};

/* INK_NOT_FOUND (param "model") says where it was looked for. The caller frees out->path. */
INK_NODISCARD enum ink_status model_path_resolve(const char *value, struct model_path *out,
                                                 struct ink_err *err);

/* A GGUF file of one of the model folders. */
struct model_found {
    char *path;
    unsigned capabilities; /* enum ink_capability, judged by the file's header; 0 when broken */
    struct ink_err broken; /* code INK_OK, or why it cannot be used */
};

/* All of them, in the order of the folders and by name within each. Free with model_list_free(). */
int model_list(struct model_found **out);
void model_list_free(struct model_found *list, int n);

/* The folders that are searched, in order, whether they exist or not; `n` of them. Never freed. */
const char *const *model_folders(int *n);

/* $XDG_CACHE_HOME/inkstone or ~/.cache/inkstone; caller frees. NULL when there is neither variable nor home. */
char *cache_folder(void);

#endif
