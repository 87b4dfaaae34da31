/* `inkstone inspect`: what a GGUF file holds, and what running it takes. */
#include "cli/cli.h"

#include "base/arena.h"
#include "task/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inspect_options {
    int compute, threads;
    bool no_load, json;
};

#define TO(member) offsetof(struct inspect_options, member)
static const struct option_row rows[] = {
    { "no-load", 0, OPTION_FLAG, NULL, 0, 0, NULL,
      "only read the file; don't load the model to measure its memory", TO(no_load) },
    { "compute", 0, OPTION_CHOICE, "auto|exact|i8|i8-fast", 0, 0, "auto",
      "arithmetic: as stored, f32 throughout, int8", TO(compute) },
    { "threads", 't', OPTION_INT, "N", 0, 1024, "0: all processors", "threads that compute",
      TO(threads) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document", TO(json) },
    { 0 },
};

static const char notes[] =
    "Memory is measured by loading the model as serving it would, with defaults for everything that --compute and\n"
    "--threads don't say. The exit status is 1 when the file cannot be read, or cannot be loaded.\n";

static struct ink_arena *shown; /* what visible() has made, until the end of run() */

/* Text of a file for a terminal: control characters would let it write anything there. */
static const char *visible(const char *s)
{
    char *out = ink_arena_strndup(shown, s, strlen(s));

    for (char *c = out; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    return out;
}

/* --- for a person --------------------------------------------------------------------------------- */

static void print_number(const char *label, int64_t v)
{
    if (v >= 0)
        cli_printf("  %-16s%lld\n", label, (long long)v);
}

static void print_model(const struct ink_inspection *x)
{
    char size[24];

    cli_printf("%s: %s%s%s%s, %s, %s\n", x->name[0] ? visible(x->name) : "(no name)",
               x->arch[0] ? visible(x->arch) : "(no architecture)", x->family[0] ? " (" : "",
               visible(x->family), x->family[0] ? ")" : "", x->type, cli_bytes(x->bytes, size));
    if (x->demo)
        cli_printf("  a demo model: small, for trying things out\n");
    if (x->license[0])
        cli_printf("  %-16s%s\n", "license", visible(x->license));
    cli_printf("  %-16s%lld in %lld tensors\n", "weights", (long long)x->n_weights,
               (long long)x->n_tensors);
    print_number("encoder layers", x->n_encoder_layers);
    print_number("decoder layers", x->n_decoder_layers);
    print_number("width", x->d_model);
    if (x->n_heads > 0)
        cli_printf("  %-16s%lld of %lld\n", "heads", (long long)x->n_heads, (long long)x->d_head);
    if (x->d_ff > 0)
        cli_printf("  %-16s%lld%s%s\n", "feed-forward", (long long)x->d_ff,
                   x->activation[0] ? ", " : "", visible(x->activation));
    print_number("context", x->context);
    if (x->n_vocab >= 0)
        cli_printf("  %-16s%lld rows, %s\n", "vocabulary", (long long)x->n_vocab,
                   x->own_head ? "output head of its own" : "output head tied to the embedding");
    if (x->prompt)
        cli_printf("  %-16s%s\n", "prompt", visible(x->prompt));
    cli_printf("  %-16s%.16s\n", "digest", x->digest);
}

static void print_groups(const struct ink_inspection *x)
{
    char size[24];

    cli_printf("\ntensors\n");
    for (int i = 0; i < x->n_groups; i++) {
        const struct ink_inspect_group *g = &x->groups[i];

        cli_printf("  %-16s%-6s %4lld  %12lld weights  %9s\n", g->role, g->type,
                   (long long)g->n_tensors, (long long)g->n_weights, cli_bytes(g->bytes, size));
    }
}

static void print_tokenizer(const struct ink_inspection *x)
{
    if (x->n_pieces < 0) {
        cli_printf("\ntokenizer: none in the file\n");
        return;
    }
    cli_printf("\ntokenizer: %s, %lld pieces",
               x->tokenizer[0] ? visible(x->tokenizer) : "(unnamed)", (long long)x->n_pieces);
    if (x->n_unused > 0)
        cli_printf(", %lld of them unused", (long long)x->n_unused);
    cli_printf(x->n_bytes > 0 ? ", byte pieces" : ", no byte pieces");
    if (x->charsmap_bytes > 0)
        cli_printf(", normalization table of %lld bytes", (long long)x->charsmap_bytes);
    cli_printf("\n");
    print_number("pad", x->pad);
    print_number("end", x->eos);
    print_number("unknown", x->unk);
    print_number("begin", x->bos);
}

static void print_memory(const struct ink_inspection *x)
{
    const struct ink_model_info *m = &x->info;
    char size[24];

    if (!x->loaded)
        return;
    cli_printf("\nmemory on %s, computing as %s\n", m->device, m->compute);
    cli_printf("  %-16s%9s  mapped; shared between processes, given back where packed\n", "file",
               cli_bytes(m->bytes_weights, size));
    cli_printf("  %-16s%9s\n", "packed weights", cli_bytes(m->bytes_packed, size));
    cli_printf("  %-16s%9s  at most, for %d blocks of %d tokens\n", "keys and values",
               cli_bytes(m->bytes_kv, size), m->n_blocks, INK_KV_BLOCK_TOKENS);
    cli_printf("  %-16s%9s\n", "graphs", cli_bytes(m->bytes_graph, size));
    cli_printf("  loaded in %.0f ms, of which packing %.0f ms\n", m->load_ms, m->pack_ms);
}

/* --- for a program -------------------------------------------------------------------------------- */

static json_t *string_or_null(const char *s)
{
    return s && s[0] ? json_string(s) : json_null();
}

static json_t *number_or_null(int64_t v)
{
    return v >= 0 ? json_integer(v) : json_null();
}

static json_t *groups_json(const struct ink_inspection *x)
{
    json_t *list = json_array();

    for (int i = 0; i < x->n_groups; i++) {
        const struct ink_inspect_group *g = &x->groups[i];

        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:I, s:I}", "role", g->role, "type",
                                        g->type, "tensors", (json_int_t)g->n_tensors, "weights",
                                        (json_int_t)g->n_weights, "bytes", (json_int_t)g->bytes));
    }
    return list;
}

static json_t *memory_json(const struct ink_inspection *x)
{
    const struct ink_model_info *m = &x->info;

    if (!x->loaded)
        return json_null();
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f}", "device", m->device, "compute",
                     m->compute, "file", (json_int_t)m->bytes_weights, "packed",
                     (json_int_t)m->bytes_packed, "kv", (json_int_t)m->bytes_kv, "graph",
                     (json_int_t)m->bytes_graph, "load_ms", m->load_ms, "pack_ms", m->pack_ms);
}

static json_t *to_json(const char *path, const struct ink_inspection *x)
{
    json_t *model = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "vocabulary",
        number_or_null(x->n_vocab), "context", number_or_null(x->context), "width",
        number_or_null(x->d_model), "feed_forward", number_or_null(x->d_ff), "heads",
        number_or_null(x->n_heads), "head_width", number_or_null(x->d_head), "encoder_layers",
        number_or_null(x->n_encoder_layers), "decoder_layers", number_or_null(x->n_decoder_layers),
        "activation", string_or_null(x->activation), "own_head", (int)x->own_head);
    json_t *tokenizer = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "kind", string_or_null(x->tokenizer),
        "pieces", number_or_null(x->n_pieces), "unused", (json_int_t)x->n_unused, "bytes",
        (json_int_t)x->n_bytes, "charsmap_bytes", (json_int_t)x->charsmap_bytes, "pad",
        number_or_null(x->pad), "eos", number_or_null(x->eos), "unk", number_or_null(x->unk), "bos",
        number_or_null(x->bos));
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:b, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o}", "file",
        path, "name", string_or_null(x->name), "architecture", string_or_null(x->arch), "family",
        string_or_null(x->family), "type", x->type, "license", string_or_null(x->license), "prompt",
        string_or_null(x->prompt), "demo", (int)x->demo, "bytes", (json_int_t)x->bytes, "weights",
        (json_int_t)x->n_weights, "tensors", (json_int_t)x->n_tensors, "sha256", x->digest, "model",
        model, "tokenizer", tokenizer, "types", groups_json(x), "memory", memory_json(x));

    if (x->load_err.code != INK_OK)
        json_object_update_new(root, cli_error_json(&x->load_err));
    return root;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct inspect_options o = { 0 };
    struct arguments args;
    struct ink_inspection *x;
    struct ink_err err = { 0 };
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    if (args.n != 1)
        return cli_usage_error(self, args.n == 0 ? "which file?" : "one file at a time");
    const struct ink_model_options model = { .compute = (enum ink_compute)o.compute,
                                             .n_threads = o.threads };

    if (ink_inspect(args.at[0], !o.no_load, &model, &x, &err) != INK_OK)
        return cli_fail(&err);
    bool failed = x->load_err.code != INK_OK;

    if (o.json) {
        cli_print_json(to_json(args.at[0], x));
    } else {
        shown = ink_arena_new();
        print_model(x);
        print_groups(x);
        print_tokenizer(x);
        print_memory(x);
        ink_arena_free(shown);
    }
    status = cli_finish(CLI_OK);
    if (failed && !o.json)
        status = cli_fail(&x->load_err);
    else if (failed)
        status = CLI_FAILED;
    ink_inspect_close(x);
    return status;
}

const struct command cmd_inspect = {
    .name = "inspect",
    .summary = "Says what a GGUF file holds and what memory running it takes",
    .usage = "[OPTION]... FILE.gguf",
    .notes = notes,
    .options = rows,
    .run = run,
};
