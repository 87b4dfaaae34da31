#ifndef CLI_MODEL_OPEN_H
#define CLI_MODEL_OPEN_H

#include "cli/cli.h"
#include "convert/import.h"
#include "task/catalog.h"

#include <stddef.h>

/* What every command that loads a model asks for; put MODEL_ROWS into its table. */
struct model_choice {
    const char *model; /* NULL: the first found that can do the task */
    int compute;       /* enum ink_compute */
    int type;          /* enum ink_import_type, for a Hugging Face folder */
    int threads;       /* 0: all processors */
};

/* clang-format off */
#define MODEL_ROW(s, member)                                                                       \
    { "model", 'm', OPTION_STRING, "MODEL", 0, 0, "the first that can do it",                      \
      "name of a model, or path of a GGUF file or Hugging Face folder", offsetof(s, member) }
#define IMPORT_TYPE_ROW(s, member)                                                                 \
    { "type", 0, OPTION_CHOICE, INK_IMPORT_TYPES, 0, 0, "i8",                                      \
      "what a Hugging Face folder is imported as, on first use", offsetof(s, member) }
#define COMPUTE_ROW(s, member)                                                                     \
    { "compute", 0, OPTION_CHOICE, "auto|exact|i8|i8-fast", 0, 0, "auto",                          \
      "arithmetic: as stored, f32 throughout, int8", offsetof(s, member) }
#define THREADS_ROW(s, member)                                                                     \
    { "threads", 't', OPTION_INT, "N", 0, 1024, "0: all processors", "threads that compute",       \
      offsetof(s, member) }
#define MODEL_ROWS(s, member)                                                                      \
    MODEL_ROW(s, member.model), COMPUTE_ROW(s, member.compute), IMPORT_TYPE_ROW(s, member.type),   \
    THREADS_ROW(s, member.threads)
/* clang-format on */

/*
 * Resolves, imports (a Hugging Face folder, once), loads. `options` may be NULL; what the choice says goes over it.
 * Free the catalog with ink_catalog_free() after the last task.
 */
INK_NODISCARD enum ink_status model_open(const struct model_choice *choice, unsigned capabilities,
                                         const struct ink_catalog_options *options,
                                         struct ink_catalog **catalog, struct ink_served **served,
                                         struct ink_err *err);

/* Adds the model called `value` (NULL: the first found with `capabilities`) to a catalog. */
INK_NODISCARD enum ink_status model_add(struct ink_catalog *catalog, const char *value,
                                        enum ink_import_type type, unsigned capabilities,
                                        struct ink_err *err);

#endif
