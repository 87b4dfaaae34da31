#ifndef CLI_IMPORT_CACHE_H
#define CLI_IMPORT_CACHE_H

#include "base/status.h"

/*
 * Hugging Face folders given as a model: imported on first use (type i8) into the cache folder, found there
 * afterwards. The key is the folder's path with the names, sizes and times of its files, so a changed folder is
 * imported anew and its old import removed. One process imports at a time; others wait for it.
 *
 * *file is the GGUF file, *name the folder's own name; the caller frees both. Progress on a terminal. Main thread.
 */
INK_NODISCARD enum ink_status import_cached(const char *folder, char **file, char **name, struct ink_err *err);

#endif
