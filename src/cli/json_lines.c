/* One JSON answer per line of standard input, for jobs that are done one after the other. */
#include "cli/json_lines.h"

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDS_MAX = 1 << 20 };

json_t *json_numbered(int64_t index, json_t *fields)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "index", json_integer(index));
    (void)json_object_update(o, fields);
    json_decref(fields);
    return o;
}

enum ink_status json_read_ids(const json_t *array, const char *name, int32_t **ids, int *n,
                              struct ink_err *err)
{
    size_t count = json_array_size(array);

    if (!json_is_array(array))
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s: must be an array of token ids", name);
    if (count > IDS_MAX)
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s: %zu ids; at most %d are possible", name, count, IDS_MAX);

    int32_t *out = ink_alloc((count + 1) * sizeof(*out));
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(array, i);
        double id = json_is_number(v) ? json_number_value(v) : -1;

        if (!(id >= 0 && id <= INT32_MAX) || id != (double)(int32_t)id) {
            free(out);
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: entry %zu is no token id", name, i);
        }
        out[i] = (int32_t)id;
    }
    *ids = out;
    *n = (int)count;
    return INK_OK;
}

int json_lines(const char *verb, line_answer_fn *answer, void *arg)
{
    struct line_reader in;
    struct progress progress;
    int64_t n = 0, n_failed = 0;
    int status = CLI_OK;

    lines_init(&in, STDIN_FILENO);
    progress_begin(&progress, verb, "lines");
    for (;; n++) {
        struct ink_slice line = { 0 };
        struct ink_err err = { 0 };
        json_t *fields = NULL;
        enum ink_status st;
        enum line_state state;

        while ((state = lines_next(&in, &line)) == LINE_AGAIN) {
            /* Whoever reads our output must not wait for more of it than there is. */
            cli_flush();
            lines_fill(&in);
        }
        if (state == LINE_END || cli_output_failed())
            break;
        if (state == LINE_TOO_LONG)
            st = ink_err_param(&err, INK_INVALID, "", "input_too_long",
                               "a line longer than %d bytes", LINES_MAX);
        else
            st = answer(arg, line, &fields, &err);
        if (st != INK_OK) {
            fields = cli_error_json(&err);
            n_failed++;
        }
        cli_print_json(json_numbered(n, fields));
        progress_update(&progress, n + 1, 0, NULL);
    }
    progress_end(&progress);

    status = cli_finish(n_failed > 0 ? CLI_FAILED : CLI_OK);
    if (in.failed) {
        fprintf(stderr, "inkstone: standard input: %s\n", strerror(in.failed));
        status = CLI_FAILED;
    } else if (n_failed > 0) {
        fprintf(stderr, "inkstone: %lld of %lld lines failed; each says why\n", (long long)n_failed,
                (long long)n);
    }
    lines_release(&in);
    return status;
}
