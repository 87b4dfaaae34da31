#ifndef CLI_REWRITE_FILES_H
#define CLI_REWRITE_FILES_H

#include "base/status.h"
#include "server/rewrite_json.h"

#include <stdbool.h>

struct ink_catalog;

/*
 * Rewrites the texts of a file into another: `inkstone rewrite --input FILE --output FILE`. The output grows row by row in
 * the order of the input, so an interrupted run leaves a file that is whole as far as it goes.
 *
 * Resuming reads both files side by side: every row of the output must begin with its row of the input and carry the
 * seed that its place gives it. A last row that was cut off is dropped; what follows is computed with the seed that
 * the output shows, so the result is that of a run that was never interrupted.
 */
struct rewrite_files_options {
    const char *input, *output;
    const char *column; /* NULL: "text" */
    bool resume;
    bool
        retry_failed; /* with resume: rows without any rewrite are computed again, in their place */
    bool force;       /* an output that exists is begun anew */
};

struct rewrite_files;

/*
 * Opens and checks both files, so that mistakes show before a model is loaded. Sets the seed of `call`: given, that of
 * the output, or drawn. `options` and `call` must outlive the job.
 */
INK_NODISCARD enum ink_status rewrite_files_open(const struct rewrite_files_options *options,
                                                 struct ink_rewrite_call *call,
                                                 struct rewrite_files **job, struct ink_err *err);
void rewrite_files_close(struct rewrite_files *job); /* NULL is fine */

/* Returns an exit status; what there is to say is said on stderr. */
int rewrite_files_run(struct rewrite_files *job, struct ink_catalog *catalog);

#endif
