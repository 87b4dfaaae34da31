/* `inkstone tokenize`: token ids and pieces of a text, or the text of token ids. Loads no weights. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/json_lines.h"
#include "cli/model_open.h"
#include "server/answer.h"
#include "task/tokenize.h"

#include <stdlib.h>
#include <string.h>

struct tokenize_options {
    const char *model;
    int type;
    bool no_special, decode, json, jsonl;
    struct option_ids ids;
};

#define TO(member) offsetof(struct tokenize_options, member)
static const struct option_row rows[] = {
    MODEL_ROW(struct tokenize_options, model),
    IMPORT_TYPE_ROW(struct tokenize_options, type),
    { "no-special", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "don't add special tokens such as the final </s>", TO(no_special) },
    { "decode", 0, OPTION_FLAG, NULL, 0, 0, NULL, "the other way: text of --ids", TO(decode) },
    { "ids", 0, OPTION_IDS, "IDS", 0, 0, NULL, "with --decode: token ids such as 1,2,3", TO(ids) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document", TO(json) },
    { "jsonl", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "standard input has a JSON string or {\"text\"} a line; {\"ids\"} with --decode", TO(jsonl) },
    { 0 },
};

static const char notes[] =
    "With \"-\" every line of standard input is one text and gives one line of JSON.\n"
    "\n"
    "  inkstone tokenize \"这家餐厅\"\n"
    "  inkstone tokenize --decode --ids 259,1543,1\n";

/* --- one text ----------------------------------------------------------------------------------- */

static void print_tokens(const struct ink_served *served, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct ink_slice piece = ink_token_piece(served, ids[i]);

        cli_printf("%7d  %.*s\n", (int)ids[i], (int)piece.len, piece.ptr);
    }
}

static enum ink_status tokenize(const struct tokenize_options *o, const struct ink_served *served,
                                struct ink_slice text, json_t **answer, struct ink_err *err)
{
    int32_t *ids;
    size_t n;
    enum ink_status st = ink_tokenize(served, text, !o->no_special, &ids, &n, err);

    if (st != INK_OK)
        return st;
    if (answer)
        *answer = ink_answer_tokens(served, ids, n);
    else
        print_tokens(served, ids, n);
    free(ids);
    return INK_OK;
}

static enum ink_status detokenize(const struct ink_served *served, const int32_t *ids, size_t n,
                                  json_t **answer, struct ink_err *err)
{
    char *text;
    size_t len;
    enum ink_status st = ink_detokenize(served, ids, n, &text, &len, err);

    if (st != INK_OK)
        return st;
    if (answer)
        *answer = ink_answer_text(served, (struct ink_slice){ text, len });
    else
        cli_printf("%.*s\n", (int)len, text);
    free(text);
    return INK_OK;
}

/* --- standard input ----------------------------------------------------------------------------- */

struct job {
    const struct tokenize_options *o;
    const struct ink_served *served;
};

static enum ink_status answer_ids(const struct ink_served *served, const json_t *value,
                                  json_t **answer, struct ink_err *err)
{
    int32_t *ids;
    int n;
    enum ink_status st = json_read_ids(
        json_is_object(value) ? json_object_get(value, "ids") : value, "ids", &ids, &n, err);

    if (st != INK_OK)
        return st;
    st = detokenize(served, ids, (size_t)n, answer, err);
    free(ids);
    return st;
}

static enum ink_status answer_value(const struct job *job, const json_t *value, json_t **answer,
                                    struct ink_err *err)
{
    const char *text = json_string_value(value); /* NULL for what is no string */
    size_t len = json_string_length(value);
    enum ink_status st = INK_OK;

    if (job->o->decode)
        return answer_ids(job->served, value, answer, err);
    if (json_is_object(value))
        st = ink_json_string(value, "text", &text, &len, err);
    if (st != INK_OK)
        return st;
    if (!text)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "a line must be a JSON string or an object with \"text\"");
    return tokenize(job->o, job->served, (struct ink_slice){ text, len }, answer, err);
}

static enum ink_status answer_line(void *arg, struct ink_slice line, json_t **answer,
                                   struct ink_err *err)
{
    const struct job *job = arg;
    json_t *value;
    enum ink_status st;

    if (!job->o->jsonl)
        return tokenize(job->o, job->served, line, answer, err);
    st = ink_json_parse(line.ptr, line.len, &value, err);
    if (st == INK_OK) {
        st = answer_value(job, value, answer, err);
        json_decref(value);
    }
    return st;
}

/* --- the command -------------------------------------------------------------------------------- */

static int check(const struct command *self, const struct tokenize_options *o,
                 const struct arguments *args)
{
    bool lines = o->jsonl || (args->n == 1 && strcmp(args->at[0], "-") == 0);

    if (args->n > 1)
        return cli_usage_error(
            self,
            "%d texts given; put one text in quotes, or many in lines of standard input "
            "with \"-\"",
            args->n);
    if (o->jsonl && args->n == 1 && !lines)
        return cli_usage_error(self, "--jsonl reads standard input; write \"-\" instead of a text");
    if (!o->decode && o->ids.n >= 0)
        return cli_usage_error(self, "--ids goes with --decode");
    if (o->decode && o->ids.n >= 0 && (o->jsonl || args->n > 0))
        return cli_usage_error(self, "give either --ids or lines of standard input");
    if (o->decode && o->ids.n < 0 && !o->jsonl)
        return cli_usage_error(self,
                               "--decode needs --ids 1,2,3, or --jsonl with {\"ids\"} a line");
    if (!o->decode && args->n == 0 && !o->jsonl)
        return cli_usage_error(self, "no text given; write one, or \"-\" for standard input");
    return CLI_OK;
}

static int once(const struct tokenize_options *o, const struct ink_served *served,
                const struct arguments *args)
{
    json_t *answer = NULL, **where = o->json ? &answer : NULL;
    struct ink_err err = { 0 };
    enum ink_status st = o->decode ? detokenize(served, o->ids.ids, (size_t)o->ids.n, where, &err)
                                   : tokenize(o, served, ink_slice_of(args->at[0]), where, &err);

    if (st != INK_OK)
        return cli_fail_json(&err, o->json);
    if (answer)
        cli_print_json(answer);
    return cli_finish(CLI_OK);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct tokenize_options o = { .ids.n = -1 };
    struct ink_catalog_options co = { .vocabulary_only = true };
    struct arguments args;
    struct ink_err err = { 0 };
    struct ink_catalog *catalog;
    struct ink_served *served;
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    status = check(self, &o, &args);
    if (status != CLI_OK)
        return status;
    if (model_open(&(struct model_choice){ .model = o.model, .type = o.type }, 0, &co, &catalog,
                   &served, &err) != INK_OK)
        return cli_fail_json(&err, o.json);
    if (o.jsonl || (args.n == 1 && strcmp(args.at[0], "-") == 0))
        status = json_lines("tokenizing", answer_line, &(struct job){ &o, served });
    else
        status = once(&o, served, &args);
    ink_catalog_free(catalog);
    return status;
}

const struct command cmd_tokenize = {
    .name = "tokenize",
    .summary = "Token ids and pieces of a text, or the text of token ids",
    .usage = "[OPTION]... TEXT|-",
    .notes = notes,
    .options = rows,
    .run = run,
};
