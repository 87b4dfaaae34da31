/*
 * `inkstone bench`: how long one rewrite request takes, or a batch of them.
 *
 * Sources are random token ids and the end token is ignored, so every run does the same number of steps, with any weights.
 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/machine.h"
#include "cli/model_open.h"
#include "task/batch.h"
#include "task/rewrite.h"
#include "task/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_options {
    struct model_choice model;
    int source_tokens, n, max_tokens, runs, warmup, batch, parallel;
    const char *scripts, *text;
    double temperature;
    struct option_u64 seed;
    bool json;
};

#define TO(member) offsetof(struct bench_options, member)
static const struct option_row rows[] = {
    MODEL_ROWS(struct bench_options, model),
    { "source-tokens", 0, OPTION_INT, "N", 1, 65536, "40",
      "length of each source, random token ids", TO(source_tokens) },
    { "text", 0, OPTION_STRING, "TEXT", 0, 0, NULL, "this text as the source instead", TO(text) },
    { "number", 'n', OPTION_INT, "N", 1, INK_REWRITE_N_MAX, "3", "rewrites per source", TO(n) },
    { "max-tokens", 0, OPTION_INT, "N", 2, 65536, "24", "length of each rewrite, always reached",
      TO(max_tokens) },
    { "batch", 0, OPTION_INT, "N", 1, 10000, "1", "sources handed over together", TO(batch) },
    { "runs", 0, OPTION_INT, "N", 1, 100000, "20", "measured repetitions", TO(runs) },
    { "warmup", 0, OPTION_INT, "N", 0, 1000, "2", "repetitions before, not measured", TO(warmup) },
    { "scripts", 0, OPTION_STRING, "zh|all", 0, 0, "zh where the model has it",
      "output head: Chinese, or the full vocabulary", TO(scripts) },
    { "parallel", 0, OPTION_INT, "N", 1, 4096, "all of the batch", "rewrites computed together",
      TO(parallel) },
    { "temperature", 0, OPTION_NUMBER, "X", 0, 5, "0.85", "0 always takes the likeliest token",
      TO(temperature) },
    { "seed", 's', OPTION_U64, "S", 0, 0, "1", "of the sources and the drawing", TO(seed) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document, with every sample", TO(json) },
    { 0 },
};

static const char notes[] =
    "Times are wall-clock milliseconds. P95 is the sample below which 95 % of all lie.\n"
    "\n"
    "  inkstone bench -m ./mt5-base --source-tokens 40 -n 3 --max-tokens 24 --runs 50\n"
    "  inkstone bench -m ./mt5-base --batch 50 --runs 3\n";

/* --- samples ------------------------------------------------------------------------------------ */

enum measure { TOTAL, FIRST_TOKEN, ENCODE, STEP, N_MEASURES };

static const struct {
    const char *key, *label;
} measures[N_MEASURES] = {
    [TOTAL] = { "total_ms", "total" },
    [FIRST_TOKEN] = { "first_token_ms", "first token" },
    [ENCODE] = { "encode_ms", "encode" },
    [STEP] = { "step_ms", "step" },
};

struct summary {
    double median, p95, mean, sigma, min, max;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct summary summarize(const double *samples, int n)
{
    double *sorted = ink_alloc((size_t)n * sizeof(*sorted)), sum = 0, squares = 0;
    struct summary s;

    memcpy(sorted, samples, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
    for (int i = 0; i < n; i++)
        sum += sorted[i];
    s.mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (sorted[i] - s.mean) * (sorted[i] - s.mean);
    s.sigma = n > 1 ? sqrt(squares / (n - 1)) : 0;
    s.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    s.p95 = sorted[(95 * n + 99) / 100 - 1];
    s.min = sorted[0];
    s.max = sorted[n - 1];
    free(sorted);
    return s;
}

/* --- runs --------------------------------------------------------------------------------------- */

struct bench {
    const struct bench_options *o;
    struct ink_catalog *catalog;
    struct ink_served *served;
    double *samples[N_MEASURES];
    struct ink_task **tasks; /* o->batch of them */
    int32_t *source;
};

/* Ids from the middle of the vocabulary: behind its bytes and specials, before its rarest pieces and its padding. */
static void draw_source(const struct bench *b, uint64_t number)
{
    int n_vocab = ink_served_info(b->served)->n_vocab;
    uint64_t low = (uint64_t)n_vocab / 8, range = (uint64_t)n_vocab / 2;

    for (int i = 0; i < b->o->source_tokens; i++)
        b->source[i] =
            (int32_t)(low + ink_batch_seed(b->o->seed.value + number, (uint64_t)i + 1) % range);
}

static enum ink_status start_all(const struct bench *b, uint64_t run, struct ink_err *err)
{
    struct ink_rewrite_request rq;
    enum ink_status st = INK_OK;

    ink_rewrite_defaults(&rq);
    rq.n = b->o->n;
    rq.temperature = b->o->temperature;
    rq.max_tokens = b->o->max_tokens;
    rq.scripts = b->o->scripts;
    rq.allow_same = true;
    rq.fixed_length = true;
    rq.fresh = true;
    rq.timeout_ms = 0;
    rq.has_seed = true;
    for (int i = 0; i < b->o->batch && st == INK_OK; i++) {
        uint64_t number = run * (uint64_t)b->o->batch + (uint64_t)i;

        rq.seed = ink_batch_seed(b->o->seed.value, number + 1);
        if (b->o->text) {
            rq.text = ink_slice_of(b->o->text);
        } else {
            draw_source(b, number);
            rq.source_ids = b->source;
            rq.n_source_ids = b->o->source_tokens;
        }
        st = ink_rewrite_start(b->catalog, &rq, &b->tasks[i], err);
    }
    return st;
}

static enum ink_status check_length(const struct bench *b, const struct ink_task_result *r,
                                    struct ink_err *err)
{
    if (r->usage.tokens_output == b->o->n * b->o->max_tokens)
        return INK_OK;
    return ink_err_set(err, INK_DEVICE,
                       "a run gave %d tokens, not %d x %d; its time would mean nothing",
                       r->usage.tokens_output, b->o->n, b->o->max_tokens);
}

/* One repetition; measured as sample `at`, or not at all when it is negative. */
static enum ink_status repeat(const struct bench *b, uint64_t run, int at, struct ink_err *err)
{
    int64_t start = ink_clock_ns();
    double total = 0, first = INFINITY, encode = 0, decode = 0;
    enum ink_status st = start_all(b, run, err);

    for (int i = 0; i < b->o->batch && st == INK_OK; i++)
        st = ink_task_wait(b->tasks[i], err);
    total = ink_clock_ms_since(start);
    for (int i = 0; i < b->o->batch; i++) {
        if (st == INK_OK) {
            const struct ink_task_result *r = ink_task_result(b->tasks[i]);
            const struct ink_task_timings *t = &r->timings;

            first = fmin(first, t->queue_ms + t->tokenize_ms + t->encode_ms + t->first_token_ms);
            encode += t->encode_ms / b->o->batch;
            decode += t->decode_ms / b->o->batch;
            st = check_length(b, r, err);
        }
        ink_task_free(b->tasks[i]);
        b->tasks[i] = NULL;
    }
    if (st == INK_OK && at >= 0) {
        b->samples[TOTAL][at] = total;
        b->samples[FIRST_TOKEN][at] = first;
        b->samples[ENCODE][at] = encode;
        b->samples[STEP][at] = decode / (b->o->max_tokens - 1);
    }
    return st;
}

static enum ink_status measure(const struct bench *b, struct ink_err *err)
{
    struct progress progress;
    int n = b->o->warmup + b->o->runs;
    enum ink_status st = INK_OK;

    progress_begin(&progress, "measuring", "runs");
    for (int i = 0; i < n && st == INK_OK; i++) {
        st = repeat(b, (uint64_t)i, i - b->o->warmup, err);
        if (st == INK_OK && interrupt_pending())
            st = ink_err_set(err, INK_CANCELLED, "interrupted");
        progress_update(&progress, i + 1, n, NULL);
    }
    progress_end(&progress);
    return st;
}

/* --- results ------------------------------------------------------------------------------------ */

static double tokens_per_second(const struct bench *b, double total_ms)
{
    return 1000.0 * b->o->batch * b->o->n * b->o->max_tokens / total_ms;
}

static void print_results(const struct bench *b)
{
    const struct bench_options *o = b->o;
    const struct ink_model_info *info = ink_served_info(b->served);
    bool chinese = strcmp(o->scripts, "zh") == 0;
    char peak[24];

    cli_printf("%s: %s, %s, %s; %d source%s x %d rewrites x %d tokens, head of %d rows, %d runs\n",
               ink_served_name(b->served), info->type, info->device, info->compute, o->batch,
               o->batch == 1 ? "" : "s", o->n, o->max_tokens,
               chinese && ink_served_head_rows(b->served) ? ink_served_head_rows(b->served)
                                                          : info->n_vocab,
               o->runs);
    cli_printf("%-14s %9s %9s %9s %9s %9s %9s\n", "ms", "median", "P95", "mean", "sigma", "min",
               "max");
    for (int m = 0; m < N_MEASURES; m++) {
        struct summary s = summarize(b->samples[m], o->runs);

        cli_printf("%-14s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", measures[m].label, s.median,
                   s.p95, s.mean, s.sigma, s.min, s.max);
        if (m == TOTAL)
            cli_printf("%-14s %9.1f\n", "tokens/s", tokens_per_second(b, s.median));
    }
    cli_printf("loading %.2f s, peak memory %s\n", (info->load_ms + info->pack_ms) / 1000,
               cli_bytes(machine_peak_memory(), peak));
}

static json_t *rounded(double ms)
{
    return json_real(round(ms * 1000) / 1000);
}

static json_t *json_summary(const double *samples, int n)
{
    struct summary s = summarize(samples, n);
    json_t *o = json_object(), *all = json_array();

    (void)json_object_set_new(o, "median", rounded(s.median));
    (void)json_object_set_new(o, "p95", rounded(s.p95));
    (void)json_object_set_new(o, "mean", rounded(s.mean));
    (void)json_object_set_new(o, "sigma", rounded(s.sigma));
    (void)json_object_set_new(o, "min", rounded(s.min));
    (void)json_object_set_new(o, "max", rounded(s.max));
    for (int i = 0; i < n; i++)
        (void)json_array_append_new(all, rounded(samples[i]));
    (void)json_object_set_new(o, "samples", all);
    return o;
}

static json_t *json_results(const struct bench *b)
{
    const struct bench_options *o = b->o;
    const struct ink_model_info *info = ink_served_info(b->served);
    struct machine machine;
    json_t *j = json_object();

    machine_look(&machine);
    (void)json_object_set_new(j, "model", json_string(ink_served_name(b->served)));
    (void)json_object_set_new(j, "version", json_string(INKSTONE_VERSION));
    (void)json_object_set_new(j, "type", json_string(info->type));
    (void)json_object_set_new(j, "device", json_string(info->device));
    (void)json_object_set_new(j, "compute", json_string(info->compute));
    (void)json_object_set_new(j, "cpu", json_string(machine.cpu));
    (void)json_object_set_new(j, "vnni", json_boolean(machine.has_vnni));
    (void)json_object_set_new(j, "threads",
                              json_integer(o->model.threads ? o->model.threads : machine.n_cpus));
    (void)json_object_set_new(j, "source_tokens",
                              o->text ? json_null() : json_integer(o->source_tokens));
    (void)json_object_set_new(j, "n", json_integer(o->n));
    (void)json_object_set_new(j, "max_tokens", json_integer(o->max_tokens));
    (void)json_object_set_new(j, "batch", json_integer(o->batch));
    (void)json_object_set_new(j, "runs", json_integer(o->runs));
    (void)json_object_set_new(j, "scripts", json_string(o->scripts));
    (void)json_object_set_new(j, "head_rows", json_integer(ink_served_head_rows(b->served)));
    (void)json_object_set_new(j, "load_ms", rounded(info->load_ms + info->pack_ms));
    for (int m = 0; m < N_MEASURES; m++)
        (void)json_object_set_new(j, measures[m].key, json_summary(b->samples[m], o->runs));
    (void)json_object_set_new(
        j, "tokens_per_s",
        rounded(tokens_per_second(b, summarize(b->samples[TOTAL], o->runs).median)));
    (void)json_object_set_new(j, "peak_rss_bytes", json_integer(machine_peak_memory()));
    return j;
}

/* --- the command -------------------------------------------------------------------------------- */

static int run(const struct command *self, int argc, char **argv)
{
    struct bench_options o = { .source_tokens = 40,
                               .n = 3,
                               .max_tokens = 24,
                               .runs = 20,
                               .warmup = 2,
                               .batch = 1,
                               .temperature = 0.85,
                               .seed.value = 1 };
    struct arguments args;
    struct ink_err err = { 0 };
    struct bench b = { .o = &o };
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    if (args.n > 0)
        return cli_usage_error(self, "unexpected \"%.60s\"; the model is named with -m",
                               args.at[0]);

    int together = o.parallel ? o.parallel : o.batch * o.n < 256 ? o.batch * o.n : 256;
    struct ink_catalog_options co = {
        .n_parallel = together,
        .n_queue = o.batch + 1,
        .max_source_tokens = !o.text && o.source_tokens > 512 ? o.source_tokens : 0,
    };
    if (model_open(&o.model, INK_CAN_REWRITE, &co, &b.catalog, &b.served, &err) != INK_OK)
        return cli_fail(&err);
    if (!o.scripts)
        o.scripts = ink_served_head_rows(b.served) > 0 ? "zh" : "all";
    b.source = ink_alloc((size_t)o.source_tokens * sizeof(*b.source));
    b.tasks = ink_zalloc((size_t)o.batch * sizeof(struct ink_task *));
    for (int m = 0; m < N_MEASURES; m++)
        b.samples[m] = ink_zalloc((size_t)o.runs * sizeof(double));
    interrupt_catch();

    if (measure(&b, &err) != INK_OK) {
        status = cli_fail(&err);
    } else {
        if (o.json)
            cli_print_json(json_results(&b));
        else
            print_results(&b);
        status = cli_finish(CLI_OK);
    }
    for (int m = 0; m < N_MEASURES; m++)
        free(b.samples[m]);
    free(b.tasks);
    free(b.source);
    ink_catalog_free(b.catalog);
    return status;
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "Measures how long rewriting takes on this machine",
    .usage = "[OPTION]...",
    .notes = notes,
    .options = rows,
    .run = run,
};
