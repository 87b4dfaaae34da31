/* `inkstone import`: a Hugging Face checkpoint folder becomes one GGUF file. */
#include "cli/cli.h"

#include "convert/import.h"

#include <stdio.h>
#include <stdlib.h>

struct import_options {
    const char *output;
    int type;
    int threads;
    bool json;
};

#define TO(member) offsetof(struct import_options, member)
static const struct option_row rows[] = {
    { "output", 'o', OPTION_STRING, "FILE", 0, 0, NULL, "GGUF file to write; needed", TO(output) },
    { "type", 0, OPTION_CHOICE, INK_IMPORT_TYPES, 0, 0, "i8", "how the weights are stored",
      TO(type) },
    { "threads", 't', OPTION_INT, "N", 0, 1024, "0: all processors", "threads that convert",
      TO(threads) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document", TO(json) },
    { 0 },
};

static const char notes[] =
    "DIR has config.json, the weights (model.safetensors or pytorch_model.bin, also sharded) and the tokenizer\n"
    "(spiece.model, or a tokenizer.json of the Unigram kind) of a T5, mT5 or umT5 model.\n"
    "\n"
    "An inkstone.json in it may add {\"name\", \"license\", \"prompt\", \"demo\"}; the prompt is the template for\n"
    "rewriting and holds {text}. The file appears whole or not at all; an older one is replaced.\n"
    "\n"
    "  i8                       8 bits, one scale a row: the fastest on a CPU\n"
    "  f32 f16 bf16             as computed by the reference; bf16 for weights that f16 cannot hold\n"
    "  q8_0 q6_k q5_k q4_k q4_0 ggml's block types, smaller to the right\n"
    "\n"
    "  inkstone import ~/checkpoints/mt5-base-rewrite -o models/rewrite.gguf\n";

static void on_progress(void *arg, int64_t done, int64_t total, const char *what)
{
    progress_update(arg, done, total, what);
}

/* The note about matrices that could not have the type asked for; "" when all could. */
static void fallback_text(const struct ink_import_report *r, char *out, size_t size)
{
    int n = r->n_fallback_q8_0 + r->n_fallback_f16;

    out[0] = '\0';
    if (n > 0)
        snprintf(out, size,
                 "%d of %d tensors have rows that do not divide into blocks of %s; stored as %s", n,
                 r->n_tensors, r->type,
                 r->n_fallback_f16 == 0    ? "q8_0"
                 : r->n_fallback_q8_0 == 0 ? "f16"
                                           : "q8_0 or f16");
}

static void print_json(const char *file, const struct ink_import_report *r)
{
    json_t *list = json_array();

    for (int i = 0; i < r->n_notes; i++)
        json_array_append_new(list, json_string(r->notes[i]));
    cli_print_json(
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:i, s:b, s:{s:i, s:i}, s:i, s:f, s:o}",
                  "file", file, "family", r->family, "type", r->type, "bytes_in",
                  (json_int_t)r->bytes_in, "bytes", (json_int_t)r->bytes_out, "weights",
                  (json_int_t)r->n_weights, "tensors", r->n_tensors, "pieces", (int)r->n_pieces,
                  "own_head", (int)r->own_head, "fallback", "q8_0", r->n_fallback_q8_0, "f16",
                  r->n_fallback_f16, "unused", r->n_unused, "seconds", r->seconds, "notes", list));
}

static void print_text(const char *file, const struct ink_import_report *r)
{
    char size[24], from[24], fallback[160];

    fallback_text(r, fallback, sizeof(fallback));
    cli_printf("%s: %s as %s, %s from %s in %.1f s (%.1f M weights in %d tensors, %d pieces, %s)\n",
               file, r->family, r->type, cli_bytes(r->bytes_out, size),
               cli_bytes(r->bytes_in, from), r->seconds, (double)r->n_weights / 1e6, r->n_tensors,
               (int)r->n_pieces, r->own_head ? "own output head" : "tied output head");
    if (fallback[0])
        fprintf(stderr, "inkstone: note: %s\n", fallback);
    for (int i = 0; i < r->n_notes; i++)
        fprintf(stderr, "inkstone: note: %s\n", r->notes[i]);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct import_options o = { 0 };
    struct arguments args;
    struct progress progress;
    struct ink_import_report report;
    struct ink_err err = { 0 };
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    if (args.n != 1)
        return cli_usage_error(self, args.n == 0 ? "which folder?" : "one folder at a time");
    if (!o.output)
        return cli_usage_error(self, "-o FILE.gguf is needed: where to write");
    struct ink_import_options options = {
        .type = (enum ink_import_type)o.type,
        .n_threads = o.threads,
        .cancel = interrupt_flag(),
        .progress = on_progress,
        .progress_arg = &progress,
    };

    interrupt_catch();
    progress_begin(&progress, "importing", NULL);
    enum ink_status st = ink_import(args.at[0], o.output, &options, &report, &err);

    progress_end(&progress);
    if (st != INK_OK)
        return cli_fail(&err);
    if (o.json)
        print_json(o.output, &report);
    else
        print_text(o.output, &report);
    return cli_finish(CLI_OK);
}

const struct command cmd_import = {
    .name = "import",
    .summary = "Turns a Hugging Face checkpoint folder into a GGUF file",
    .usage = "[OPTION]... DIR -o FILE.gguf",
    .notes = notes,
    .options = rows,
    .run = run,
};
