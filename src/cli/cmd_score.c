/* `inkstone score`: how probable a target is, given a source. One of the two ways to check the engine from outside. */
#include "cli/cli.h"

#include "base/json.h"
#include "cli/json_lines.h"
#include "cli/model_open.h"
#include "server/answer.h"
#include "task/rewrite.h"
#include "task/score.h"

#include <stdlib.h>
#include <string.h>

struct score_options {
    struct model_choice model;
    const char *source, *target;
    struct option_ids source_ids, target_ids;
    int top;
    bool json, jsonl;
};

#define TO(member) offsetof(struct score_options, member)
static const struct option_row rows[] = {
    MODEL_ROWS(struct score_options, model),
    { "source", 0, OPTION_STRING, "TEXT", 0, 0, NULL,
      "encoder input, without prompt template; \"</s>\" is added", TO(source) },
    { "target", 0, OPTION_STRING, "TEXT", 0, 0, NULL,
      "what is scored; \"</s>\" is added and scored last", TO(target) },
    { "source-ids", 0, OPTION_IDS, "IDS", 0, 0, NULL,
      "token ids such as 1,2,3 instead, used exactly as given", TO(source_ids) },
    { "target-ids", 0, OPTION_IDS, "IDS", 0, 0, NULL, "the same for the target", TO(target_ids) },
    { "top", 0, OPTION_INT, "K", 0, INK_TOP_MAX, "0", "also the K likeliest tokens at every place",
      TO(top) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document", TO(json) },
    { "jsonl", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "read {\"source\"|\"source_ids\", \"target\"|\"target_ids\"} a line from standard input",
      TO(jsonl) },
    { 0 },
};

static const char notes[] =
    "Log-probabilities are natural logarithms at temperature 1 over the full vocabulary.\n"
    "\n"
    "  inkstone score --source \"今天很热。\" --target \"今天天气炎热。\"\n"
    "  inkstone score --jsonl - <pairs.jsonl\n";

/* --- one pair ----------------------------------------------------------------------------------- */

static void print_result(const struct ink_served *served, const struct ink_score_result *r)
{
    json_t *answer = ink_answer_score(served, r); /* has the pieces' spelling */
    const json_t *target = json_object_get(answer, "target");

    for (size_t i = 0; i < json_array_size(target); i++) {
        const json_t *t = json_array_get(target, i), *top = json_object_get(t, "top");

        cli_printf("%10.5f  %7d  %s", json_number_value(json_object_get(t, "logprob")),
                   (int)json_integer_value(json_object_get(t, "id")),
                   json_string_value(json_object_get(t, "piece")));
        for (size_t k = 0; k < json_array_size(top); k++) {
            const json_t *a = json_array_get(top, k);

            cli_printf("%s%s %.3f",
                       k ? ", " : "    of: ", json_string_value(json_object_get(a, "piece")),
                       json_number_value(json_object_get(a, "logprob")));
        }
        cli_printf("\n");
    }
    cli_printf("%10.5f  sum of %d tokens\n", r->sum_logprob, r->n_target);
    json_decref(answer);
}

static int score_one(const struct score_options *o, struct ink_catalog *catalog,
                     const struct ink_served *served)
{
    struct ink_score_request rq = {
        .source = ink_slice_of(o->source ? o->source : ""),
        .target = ink_slice_of(o->target ? o->target : ""),
        .source_ids = o->source_ids.ids,
        .target_ids = o->target_ids.ids,
        .n_source_ids = o->source_ids.n,
        .n_target_ids = o->target_ids.n,
        .n_top = o->top,
    };
    struct ink_score_result r;
    struct ink_err err = { 0 };

    if (ink_score(catalog, &rq, &r, &err) != INK_OK)
        return cli_fail_json(&err, o->json);
    if (o->json)
        cli_print_json(ink_answer_score(served, &r));
    else
        print_result(served, &r);
    ink_score_release(&r);
    return cli_finish(CLI_OK);
}

/* --- standard input ----------------------------------------------------------------------------- */

/* One side of a pair: `name` as text or `name`_ids as an array. The caller frees *ids. */
static enum ink_status read_side(const json_t *obj, const char *name, const char *ids_name,
                                 struct ink_slice *text, int32_t **ids, int *n_ids,
                                 struct ink_err *err)
{
    const char *s = NULL;
    size_t len = 0;
    enum ink_status st = ink_json_string(obj, name, &s, &len, err);

    if (st != INK_OK)
        return st;
    *n_ids = -1;
    if (!ink_json_has(obj, ids_name)) {
        if (!s)
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: missing; give it or %s", name, ids_name);
        *text = (struct ink_slice){ s, len };
        return INK_OK;
    }
    if (s)
        return ink_err_param(err, INK_INVALID, ids_name, "invalid_value",
                             "%s: give either this or %s", ids_name, name);
    return json_read_ids(json_object_get(obj, ids_name), ids_name, ids, n_ids, err);
}

struct job {
    const struct score_options *o;
    struct ink_catalog *catalog;
    const struct ink_served *served;
};

static enum ink_status answer_line(void *arg, struct ink_slice line, json_t **answer,
                                   struct ink_err *err)
{
    const struct job *job = arg;
    struct ink_score_request rq = { 0 };
    struct ink_score_result r;
    int32_t *source_ids = NULL, *target_ids = NULL;
    json_t *obj;
    int64_t top = job->o->top;
    enum ink_status st = ink_json_parse(line.ptr, line.len, &obj, err);

    if (st != INK_OK)
        return st;
    if (!json_is_object(obj))
        st = ink_err_param(
            err, INK_INVALID, "", "invalid_value",
            "a line must be an object with \"source\" or \"source_ids\", \"target\" or "
            "\"target_ids\"");
    if (st == INK_OK && ink_json_has(obj, "images"))
        st = ink_err_param(err, INK_INVALID, "images", "invalid_value",
                           "images: this model takes no images");
    if (st == INK_OK)
        st = ink_json_int(obj, "top", 0, INK_TOP_MAX, &top, err);
    if (st == INK_OK)
        st = read_side(obj, "source", "source_ids", &rq.source, &source_ids, &rq.n_source_ids, err);
    if (st == INK_OK)
        st = read_side(obj, "target", "target_ids", &rq.target, &target_ids, &rq.n_target_ids, err);
    rq.source_ids = source_ids;
    rq.target_ids = target_ids;
    rq.n_top = (int)top;
    if (st == INK_OK)
        st = ink_score(job->catalog, &rq, &r, err);
    if (st == INK_OK) {
        *answer = ink_answer_score(job->served, &r);
        ink_score_release(&r);
    }
    free(source_ids);
    free(target_ids);
    json_decref(obj);
    return st;
}

/* --- the command -------------------------------------------------------------------------------- */

static int check(const struct command *self, const struct score_options *o,
                 const struct arguments *args)
{
    bool has_source = o->source || o->source_ids.n >= 0,
         has_target = o->target || o->target_ids.n >= 0;

    if (o->jsonl) {
        if (has_source || has_target)
            return cli_usage_error(self, "--jsonl takes sources and targets from standard input");
        if (args->n > 1 || (args->n == 1 && strcmp(args->at[0], "-") != 0))
            return cli_usage_error(self,
                                   "--jsonl reads standard input: write \"-\" or nothing after it");
        return CLI_OK;
    }
    if (args->n > 0)
        return cli_usage_error(self, "unexpected \"%.60s\"; texts go after --source and --target",
                               args->at[0]);
    if (!has_source || !has_target)
        return cli_usage_error(self, "%s is missing: give --%s TEXT or --%s-ids IDS",
                               has_source ? "a target" : "a source",
                               has_source ? "target" : "source", has_source ? "target" : "source");
    if ((o->source && o->source_ids.n >= 0) || (o->target && o->target_ids.n >= 0))
        return cli_usage_error(self, "give a text or its ids, not both");
    return CLI_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct score_options o = { .source_ids.n = -1, .target_ids.n = -1 };
    struct ink_catalog_options co = { .n_parallel = 1 };
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
    if (model_open(&o.model, INK_CAN_SCORE, &co, &catalog, &served, &err) != INK_OK)
        return cli_fail_json(&err, o.json);
    status = o.jsonl ? json_lines("scoring", answer_line, &(struct job){ &o, catalog, served })
                     : score_one(&o, catalog, served);
    ink_catalog_free(catalog);
    return status;
}

const struct command cmd_score = {
    .name = "score",
    .summary = "Log-probability of each token of a target text, given a source text",
    .usage = "[OPTION]... --source TEXT --target TEXT",
    .notes = notes,
    .options = rows,
    .run = run,
};
