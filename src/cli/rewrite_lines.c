/* Standard input as a stream of rewrite tasks, answered on standard output. */
#include "cli/rewrite_lines.h"

#include "base/json.h"
#include "cli/cli.h"
#include "cli/json_lines.h"
#include "cli/lines.h"
#include "cli/rewrite_stream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct pipe_job {
    bool jsonl;
    struct line_reader in;
    int64_t n_read;
    struct progress progress;
};

static enum ink_status object_of_line(const struct pipe_job *p, struct ink_slice line, json_t **out,
                                      struct ink_err *err)
{
    json_t *value;
    enum ink_status st;

    if (!p->jsonl)
        return rewrite_object_of_text(line, out, err);
    st = ink_json_parse(line.ptr, line.len, &value, err);
    if (st != INK_OK)
        return st;
    if (json_is_object(value)) {
        *out = value;
        return INK_OK;
    }
    if (json_is_string(value)) {
        *out = json_object();
        (void)json_object_set_new(*out, "text", value);
        return INK_OK;
    }
    json_decref(value);
    return ink_err_param(err, INK_INVALID, "", "invalid_value",
                         "a line must be a JSON string or an object with \"text\"");
}

static enum line_state next(void *arg, struct rewrite_item *item)
{
    struct pipe_job *p = arg;
    struct ink_slice line = { 0 };
    enum line_state st = lines_next(&p->in, &line);

    if (st == LINE_AGAIN || st == LINE_END)
        return st;
    item->index = p->n_read++;
    if (st == LINE_TOO_LONG)
        (void)ink_err_param(&item->err, INK_INVALID, "text", "input_too_long",
                            "a line longer than %d bytes", LINES_MAX);
    else
        (void)object_of_line(p, line, &item->object, &item->err); /* a failure is the item's */
    return LINE_READY;
}

static void fill(void *arg)
{
    struct pipe_job *p = arg;

    lines_fill(&p->in);
}

static bool put(void *arg, const struct rewrite_item *item, json_t *answer)
{
    (void)arg;
    cli_print_json(json_numbered(item->index, answer));
    return !cli_output_failed();
}

static bool flush(void *arg)
{
    (void)arg;
    cli_flush();
    return !cli_output_failed();
}

static void show_progress(void *arg, const struct rewrite_counts *counts)
{
    struct pipe_job *p = arg;
    int64_t total = 0;

    if (p->in.ended)
        total = counts->n_read;
    else if (p->in.total > 0 && p->in.consumed > 0)
        total = (int64_t)((double)p->in.total / (double)p->in.consumed * (double)p->n_read + 0.5);
    progress_update(&p->progress, counts->n_put, total, NULL);
}

/* What is left to say on stderr, and the exit status. */
static int report(const struct pipe_job *p, enum rewrite_stream_end end,
                  const struct rewrite_counts *counts)
{
    if (end == STREAM_INTERRUPTED)
        return CLI_INTERRUPTED;
    if (end == STREAM_STOPPED)
        return CLI_FAILED; /* cli_finish() says why */
    if (p->in.failed) {
        fprintf(stderr, "inkstone: standard input: %s\n", strerror(p->in.failed));
        return CLI_FAILED;
    }
    if (counts->n_failed == 0)
        return CLI_OK;
    fprintf(stderr, "inkstone: %lld of %lld texts failed; their lines say why\n",
            (long long)counts->n_failed, (long long)counts->n_read);
    return CLI_FAILED;
}

int rewrite_lines(struct ink_catalog *catalog, const struct ink_rewrite_call *call,
                  const struct rewrite_lines_options *options)
{
    struct pipe_job p = { .jsonl = options->jsonl };
    struct rewrite_ends ends = { &p, next, fill, STDIN_FILENO, put, flush, show_progress };
    enum rewrite_stream_end end;
    struct rewrite_counts counts;
    struct ink_err err = { 0 };
    enum ink_status st;

    lines_init(&p.in, STDIN_FILENO);
    progress_begin(&p.progress, "rewriting", "texts");
    st = rewrite_stream(catalog, call, options->unordered, &ends, &end, &counts, &err);
    progress_end(&p.progress);
    lines_release(&p.in);
    return st == INK_OK ? report(&p, end, &counts) : cli_fail(&err);
}
