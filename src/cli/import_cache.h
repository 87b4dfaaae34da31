#ifndef CLI_IMPORT_CACHE_H
#define CLI_IMPORT_CACHE_H

#include "base/status.h"
#include "convert/import.h"

/*
 * Hugging Face folders given as a model: imported on first use into the cache folder, found there
 * afterwards. The key is the folder's path with the names, sizes and times of its files, and the type, so a
 * changed folder is imported anew, and its old import of that type removed. One process imports at a time; others wait for it.
 *
 * *file is the GGUF file, *name the folder's own name; the caller frees both. Progress on a terminal. Main thread.
 */
INK_NODISCARD enum ink_status import_cached(const char *folder, enum ink_import_type type,
                                            char **file, char **name, struct ink_err *err);

#endif
