#ifndef CLI_REWRITE_LINES_H
#define CLI_REWRITE_LINES_H

#include "server/rewrite_json.h"

#include <stdbool.h>

struct ink_catalog;

struct rewrite_lines_options {
    bool jsonl;     /* a JSON string or object a line instead of a text */
    bool unordered; /* answers as they finish */
};

/*
 * Rewrites standard input, one text a line, and prints one JSON document a line: an answer, or an error object in
 * the place of a line that failed. `call` holds the defaults for every line. Many texts are under way at once; a
 * fixed window bounds memory however long the input is. Returns an exit status.
 */
int rewrite_lines(struct ink_catalog *catalog, const struct ink_rewrite_call *call,
                  const struct rewrite_lines_options *options);

#endif
