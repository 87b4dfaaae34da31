/* `inkstone rewrite`: one text, standard input line by line, or a file into another. */
#include "cli/cli.h"

#include "base/trace.h"
#include "cli/model_open.h"
#include "cli/rewrite_files.h"
#include "cli/rewrite_lines.h"
#include "server/answer.h"
#include "server/rewrite_json.h"
#include "task/task.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rewrite_options {
    struct model_choice model;
    int n, top_k, max_tokens;
    double temperature, top_p, min_p, repetition_penalty, timeout;
    struct option_u64 seed;
    struct option_list stop;
    const char *scripts, *prompt, *trace;
    bool allow_same;
    int on_long_input; /* enum ink_long_input */
    bool details;
    int top;
    bool json, jsonl, unordered;
    int parallel;
    struct option_ids source_ids;
    struct rewrite_files_options files;
};

#define TO(member) offsetof(struct rewrite_options, member)
static const struct option_row rows[] = {
    MODEL_ROWS(struct rewrite_options, model),
    { "number", 'n', OPTION_INT, "N", 1, INK_REWRITE_N_MAX, "3", "how many rewrites", TO(n) },
    { "temperature", 0, OPTION_NUMBER, "X", 0, 5, "0.85", "0 always takes the likeliest token",
      TO(temperature) },
    { "top-p", 0, OPTION_NUMBER, "X", 0.001, 1, "0.9",
      "draw from the likeliest tokens of this total", TO(top_p) },
    { "top-k", 0, OPTION_INT, "K", 0, 1000000, "0: off", "draw from the K likeliest tokens",
      TO(top_k) },
    { "min-p", 0, OPTION_NUMBER, "X", 0, 1, "0: off", "drop tokens below X times the likeliest",
      TO(min_p) },
    { "repetition-penalty", 0, OPTION_NUMBER, "X", 0.1, 10, "1: none", "above 1: repeat less",
      TO(repetition_penalty) },
    { "seed", 's', OPTION_U64, "S", 0, 0, "drawn and reported",
      "the same seed gives the same rewrites", TO(seed) },
    { "max-tokens", 0, OPTION_INT, "N", 1, 65536, "64", "length limit of one rewrite",
      TO(max_tokens) },
    { "stop", 0, OPTION_LIST, "TEXT", 0, 0, NULL, "end a rewrite before this text; up to 8 times",
      TO(stop) },
    { "scripts", 0, OPTION_STRING, "LIST", 0, 0, "zh for Chinese text",
      "writing systems that may appear: all, or some of those below", TO(scripts) },
    { "allow-same", 0, OPTION_FLAG, NULL, 0, 0, NULL, "a rewrite may equal the text",
      TO(allow_same) },
    { "on-long-input", 0, OPTION_CHOICE, "reject|truncate", 0, 0, "reject",
      "what to do with a text over the limit", TO(on_long_input) },
    { "prompt", 0, OPTION_STRING, "TEMPLATE", 0, 0, "the model's own",
      "what the model is asked; has {text}", TO(prompt) },
    { "source-ids", 0, OPTION_IDS, "IDS", 0, 0, NULL,
      "raw encoder input such as 1,2,3 instead of a text", TO(source_ids) },
    { "timeout", 0, OPTION_NUMBER, "SECONDS", 0, 86400, "0: none", "give a text up after this time",
      TO(timeout) },
    { "details", 0, OPTION_FLAG, NULL, 0, 0, NULL, "show the probability of every token",
      TO(details) },
    { "top", 0, OPTION_INT, "K", 0, INK_TOP_MAX, "5", "with --details: alternatives per token",
      TO(top) },
    { "trace", 0, OPTION_STRING, "FILE", 0, 0, NULL,
      "write where the time of the first text goes, as a Chrome trace", TO(trace) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document, as POST /v1/rewrite answers",
      TO(json) },
    { "jsonl", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "standard input has a JSON string or {\"text\", options} a line", TO(jsonl) },
    { "unordered", 0, OPTION_FLAG, NULL, 0, 0, NULL, "with \"-\": print answers as they finish",
      TO(unordered) },
    { "parallel", 0, OPTION_INT, "N", 1, 1024, "64",
      "with \"-\" or --input: rewrites computed together", TO(parallel) },
    { "input", 'i', OPTION_STRING, "FILE", 0, 0, NULL,
      "rewrite a file: .csv, .tsv, .jsonl, .ndjson, or .txt with a text a line", TO(files.input) },
    { "column", 0, OPTION_STRING, "NAME", 0, 0, "text", "column or field of --input with the text",
      TO(files.column) },
    { "output", 'o', OPTION_STRING, "FILE", 0, 0, NULL,
      "with --input: where the rows go; .csv, .tsv, .jsonl or .ndjson", TO(files.output) },
    { "resume", 0, OPTION_FLAG, NULL, 0, 0, NULL, "go on with an --output that exists",
      TO(files.resume) },
    { "retry-failed", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "with --resume: try rows that have no rewrite again", TO(files.retry_failed) },
    { "force", 0, OPTION_FLAG, NULL, 0, 0, NULL, "begin an --output that exists anew",
      TO(files.force) },
    { 0 },
};

static const char notes[] =
    "Writing systems are han, latin, digit, punct, emoji, kana, hangul, other, joined by commas; zh is the first five.\n"
    "\n"
    "With \"-\" every line of standard input is one text. Each gives one line of JSON with its \"index\" (from 0), in\n"
    "the order of the input; a line that fails gives {\"index\", \"error\"} in its place, and the exit status is 1.\n"
    "\n"
    "--input writes every row as it stands and, behind it, the columns rewrite_1 to rewrite_N, rewrite_seed and\n"
    "rewrite_error; in JSON Lines the fields \"rewrites\", \"rewrite_seed\" and, where a row failed, \"rewrite_error\".\n"
    "Ctrl-C, a full disk or a crash lose a few rows at most: the same command with --resume goes on, with the same\n"
    "texts as if it had never stopped. Other fields of a row are data and never options.\n"
    "\n"
    "  inkstone rewrite \"这家餐厅的味道非常好，服务也很周到。\"\n"
    "  inkstone rewrite -n 1 --json \"这件衣服的质量很好，价格也不贵。\" | jq -r '.rewrites[0].text'\n"
    "  inkstone rewrite --seed 1 - <reviews.txt >rewrites.jsonl\n"
    "  inkstone rewrite --input reviews.csv --column text --output rewritten.csv --resume\n";

static void set_request(const struct rewrite_options *o, struct ink_rewrite_call *call)
{
    struct ink_rewrite_request *rq = &call->rq;

    ink_rewrite_call_init(call);
    rq->n = o->n;
    rq->temperature = o->temperature;
    rq->top_p = o->top_p;
    rq->top_k = o->top_k;
    rq->min_p = o->min_p;
    rq->repetition_penalty = o->repetition_penalty;
    rq->max_tokens = o->max_tokens;
    rq->has_seed = o->seed.given;
    rq->seed = o->seed.value;
    rq->scripts = o->scripts;
    rq->allow_same = o->allow_same;
    rq->on_long_input = (enum ink_long_input)o->on_long_input;
    rq->details = o->details;
    rq->n_top = o->top;
    rq->timeout_ms = (int)(o->timeout * 1000);
    rq->n_stop = o->stop.n;
    for (int i = 0; i < o->stop.n; i++)
        rq->stop[i] = ink_slice_of(o->stop.items[i]);
    if (o->source_ids.n >= 0) {
        rq->source_ids = o->source_ids.ids;
        rq->n_source_ids = o->source_ids.n;
    }
}

/* --- output for a person ------------------------------------------------------------------------ */

static void print_details(const struct ink_served *served, const struct ink_candidate *c)
{
    json_t *answer = ink_answer_candidate(served, c, true); /* has the pieces' spelling */
    const json_t *tokens = json_object_get(answer, "tokens");

    cli_printf("   mean log-probability %.4f, %d tokens, %s\n", c->score, c->n_tokens,
               c->finish_reason);
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *t = json_array_get(tokens, i), *top = json_object_get(t, "top");

        cli_printf("   %9.4f  %s", json_number_value(json_object_get(t, "logprob")),
                   json_string_value(json_object_get(t, "piece")));
        for (size_t k = 0; k < json_array_size(top); k++) {
            const json_t *a = json_array_get(top, k);

            cli_printf("%s%s %.2f",
                       k ? ", " : "    of: ", json_string_value(json_object_get(a, "piece")),
                       json_number_value(json_object_get(a, "logprob")));
        }
        cli_printf("\n");
    }
    json_decref(answer);
}

static void print_candidate(const struct rewrite_options *o, const struct ink_served *served,
                            const struct ink_candidate *c)
{
    if (c->error.code != INK_OK)
        return; /* said at the end: print_remarks(), or the error of the whole */
    if (isatty(STDOUT_FILENO))
        cli_printf("%d. ", c->index + 1);
    cli_printf("%.*s\n", (int)c->text.len, c->text.ptr);
    if (o->details)
        print_details(served, c);
    cli_flush();
}

/* What must not stay silent although the rewrites themselves look fine. */
static void print_remarks(const struct ink_task_result *r)
{
    for (int i = 0; i < r->n_candidates; i++) {
        if (r->candidates[i].error.code != INK_OK)
            fprintf(stderr, "inkstone: %s\n", r->candidates[i].error.text);
    }
    if (r->truncated_from > 0)
        fprintf(stderr, "inkstone: the text was cut from %d to %d tokens to fit the model\n",
                r->truncated_from, r->truncated_to);
    for (int i = 0; i < r->n_warnings; i++)
        fprintf(stderr, "inkstone: warning: %s\n", r->warnings[i]);
}

/* --- one text ----------------------------------------------------------------------------------- */

/* Prints candidates in order of index, each as soon as it and those before it are complete. */
static enum ink_status follow(const struct rewrite_options *o, const struct ink_served *served,
                              struct ink_task *task, struct ink_err *err)
{
    const struct ink_candidate *complete[INK_REWRITE_N_MAX] = { 0 };
    int n_printed = 0;

    for (;;) {
        struct ink_task_event ev;
        enum ink_status st = ink_task_next(task, 100, &ev, err);

        if (st != INK_OK)
            return st;
        if (interrupt_pending())
            return ink_err_set(err, INK_CANCELLED, "interrupted");
        if (ev.kind == INK_TASK_CANDIDATE && ev.index >= 0 && ev.index < INK_REWRITE_N_MAX)
            complete[ev.index] = ev.candidate;
        while (!o->json && n_printed < INK_REWRITE_N_MAX && complete[n_printed])
            print_candidate(o, served, complete[n_printed++]);
        if (ev.kind == INK_TASK_DONE)
            break;
    }
    const struct ink_task_result *r = ink_task_result(task);
    while (!o->json && n_printed < r->n_candidates)
        print_candidate(o, served, &r->candidates[n_printed++]);
    return INK_OK;
}

static int rewrite_one(const struct rewrite_options *o, struct ink_catalog *catalog,
                       const struct ink_served *served, const struct ink_rewrite_call *call)
{
    struct ink_task *task = NULL;
    struct ink_err err = { 0 };
    enum ink_status st = ink_rewrite_start(catalog, &call->rq, &task, &err);
    int status = CLI_OK;

    if (st == INK_OK)
        st = follow(o, served, task, &err);
    if (st != INK_OK) {
        status = cli_fail_json(&err, o->json);
    } else {
        if (o->json)
            cli_print_json(ink_answer_rewrite(served, ink_task_result(task), o->details));
        status = cli_finish(CLI_OK);
        print_remarks(ink_task_result(task));
    }
    ink_task_free(task);
    return status;
}

/* --- the command -------------------------------------------------------------------------------- */

static int check_files(const struct command *self, const struct rewrite_options *o,
                       const struct arguments *args)
{
    const struct rewrite_files_options *f = &o->files;

    if (!f->input)
        return f->output || f->column || f->resume || f->retry_failed || f->force
                   ? cli_usage_error(self,
                                     "--output, --column, --resume, --retry-failed and --force go "
                                     "with --input FILE")
                   : CLI_OK;
    if (!f->output)
        return cli_usage_error(self, "--input needs --output FILE");
    if (args->n > 0 || o->source_ids.n >= 0)
        return cli_usage_error(self, "give either --input or a text");
    if (o->json || o->jsonl || o->unordered)
        return cli_usage_error(
            self,
            "--json, --jsonl and --unordered do not go with --input: the files' names say it");
    if (f->resume && f->force)
        return cli_usage_error(self, "--resume goes on with the output, --force begins anew");
    if (f->retry_failed && !f->resume)
        return cli_usage_error(self, "--retry-failed goes with --resume");
    return CLI_OK;
}

/* What the table cannot say; CLI_OK when the command line makes sense. */
static int check(const struct command *self, const struct rewrite_options *o,
                 const struct arguments *args)
{
    bool has_ids = o->source_ids.n >= 0;
    bool lines = args->n == 1 && strcmp(args->at[0], "-") == 0;
    int status = check_files(self, o, args);

    if (status != CLI_OK)
        return status;
    if (args->n > 1)
        return cli_usage_error(
            self,
            "%d texts given; put one text in quotes, or many in lines of standard input "
            "with \"-\"",
            args->n);
    if (args->n == 0 && !has_ids && !o->jsonl && !o->files.input)
        return cli_usage_error(
            self, "no text given; write one, \"-\" for standard input, or --input FILE");
    if (has_ids && (args->n > 0 || o->jsonl))
        return cli_usage_error(self, "give either --source-ids or a text");
    if (o->jsonl && args->n > 0 && !lines)
        return cli_usage_error(self, "--jsonl reads standard input; write \"-\" instead of a text");
    if (o->unordered && !lines && !o->jsonl)
        return cli_usage_error(self, "--unordered is for many texts on standard input, \"-\"");
    if (o->stop.n > INK_STOP_MAX)
        return cli_usage_error(self, "--stop: given more than %d times", INK_STOP_MAX);
    if (o->prompt && !strstr(o->prompt, "{text}"))
        return cli_usage_error(self, "--prompt: has no {text}, the place where the text goes");
    return CLI_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct rewrite_options o = { .n = 3,
                                 .temperature = 0.85,
                                 .top_p = 0.9,
                                 .repetition_penalty = 1,
                                 .max_tokens = 64,
                                 .top = 5,
                                 .parallel = 64,
                                 .source_ids.n = -1 };
    struct arguments args;
    struct ink_err err = { 0 };
    struct ink_catalog *catalog;
    struct ink_served *served;
    struct ink_rewrite_call call;
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    status = check(self, &o, &args);
    if (status != CLI_OK)
        return status;

    struct rewrite_files *files = NULL;
    bool lines = o.jsonl || (args.n == 1 && strcmp(args.at[0], "-") == 0);
    struct ink_catalog_options co = { .prompt = o.prompt,
                                      .n_parallel = lines || o.files.input ? o.parallel : o.n };

    set_request(&o, &call);
    if (o.files.input && rewrite_files_open(&o.files, &call, &files, &err) != INK_OK)
        return cli_fail(&err);
    if (model_open(&o.model, INK_CAN_REWRITE, &co, &catalog, &served, &err) != INK_OK) {
        rewrite_files_close(files);
        return cli_fail_json(&err, o.json);
    }

    interrupt_catch();
    if (o.trace && ink_trace_open(o.trace, &err) != INK_OK) {
        status = cli_fail_json(&err, o.json);
        rewrite_files_close(files);
    } else if (files) {
        status = rewrite_files_run(files, catalog);
        rewrite_files_close(files);
    } else if (lines) {
        status =
            rewrite_lines(catalog, &call, &(struct rewrite_lines_options){ o.jsonl, o.unordered });
        status = cli_finish(status);
    } else {
        if (args.n == 1)
            call.rq.text = ink_slice_of(args.at[0]);
        status = rewrite_one(&o, catalog, served, &call);
    }
    ink_catalog_free(catalog);
    if (ink_trace_close(&err) != INK_OK)
        status = cli_fail(&err);
    return status;
}

const struct command cmd_rewrite = {
    .name = "rewrite",
    .summary = "Writes a text anew in other words, keeping its meaning",
    .usage = "[OPTION]... TEXT|-|--input FILE --output FILE",
    .notes = notes,
    .options = rows,
    .run = run,
};
