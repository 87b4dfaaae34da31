/*
 * `inkstone serve`: listen, load, serve, drain, stop.
 *
 * The port is bound first, so that a mistake there shows before a model is loaded, and health checks are answered while
 * it is. Everything is stopped in reverse order by the same function that started it.
 */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/trace.h"
#include "cli/machine.h"
#include "cli/model_open.h"
#include "cli/model_path.h"
#include "server/server.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 256, KEY_FILE_MAX = 64 * 1024 };

struct serve_options {
    const char *host;
    int port;
    struct option_list models, api_keys, allowed_hosts, cors;
    int compute, type, threads;
    int ctx, parallel, queue, max_connections;
    const char *prompt;
    double drain_timeout;
    bool insecure, verbose;
    const char *trace;
};

#define TO(member) offsetof(struct serve_options, member)
static const struct option_row rows[] = {
    { "host", 0, OPTION_STRING, "ADDRESS", 0, 0, "127.0.0.1", "address to listen on", TO(host) },
    { "port", 'p', OPTION_INT, "PORT", 0, 65535, "7860", "0: any free one, which is printed",
      TO(port) },
    { "model", 'm', OPTION_LIST, "MODEL", 0, 0, "the first found",
      "name of a model, or path of a GGUF file or Hugging Face folder; repeatable", TO(models) },
    COMPUTE_ROW(struct serve_options, compute),
    IMPORT_TYPE_ROW(struct serve_options, type),
    THREADS_ROW(struct serve_options, threads),
    { "ctx", 0, OPTION_INT, "N", 16, 65536, "512", "longest text in tokens, prompt included",
      TO(ctx) },
    { "parallel", 0, OPTION_INT, "N", 1, 1024, "64", "rewrites computed together", TO(parallel) },
    { "queue", 0, OPTION_INT, "N", 1, 100000, "256", "requests that may wait; beyond that 429",
      TO(queue) },
    { "prompt", 0, OPTION_STRING, "TEMPLATE", 0, 0, "the model's own",
      "what the model is asked; has {text}", TO(prompt) },
    { "api-key", 0, OPTION_LIST, "KEY|@FILE", 0, 0, NULL,
      "only callers with this Bearer key; a file has one key a line; repeatable", TO(api_keys) },
    { "insecure", 0, OPTION_FLAG, NULL, 0, 0, NULL, "listen beyond this machine without a key",
      TO(insecure) },
    { "allowed-host", 0, OPTION_LIST, "NAME", 0, 0, NULL,
      "further name in the Host header; repeatable", TO(allowed_hosts) },
    { "cors", 0, OPTION_LIST, "ORIGIN", 0, 0, NULL,
      "other page that may call, https://x.example; repeatable", TO(cors) },
    { "max-connections", 0, OPTION_INT, "N", 4, 100000, "1024", "open connections",
      TO(max_connections) },
    { "drain-timeout", 0, OPTION_NUMBER, "SECONDS", 0, 3600, "30",
      "what running requests get after SIGTERM", TO(drain_timeout) },
    { "trace", 0, OPTION_STRING, "FILE", 0, 0, NULL,
      "write where the time of the first request goes, as a Chrome trace", TO(trace) },
    { "verbose", 'v', OPTION_FLAG, NULL, 0, 0, NULL, "log every request", TO(verbose) },
    { 0 },
};

static const char notes[] =
    "SIGTERM and Ctrl-C let running requests finish; a second one stops at once.\n"
    "\n"
    "  inkstone serve\n"
    "  inkstone serve --host 0.0.0.0 --api-key @keys.txt -m ./my-mt5-checkpoint\n";

/* --- keys --------------------------------------------------------------------------------------- */

struct keys {
    char *at[KEYS_MAX];
    int n;
};

static enum ink_status add_key(struct keys *keys, const char *key, size_t len, struct ink_err *err)
{
    if (keys->n == KEYS_MAX)
        return ink_err_set(err, INK_INVALID, "--api-key: more than %d keys", KEYS_MAX);
    keys->at[keys->n++] = ink_strndup(key, len);
    return INK_OK;
}

static enum ink_status add_key_file(struct keys *keys, const char *path, struct ink_err *err)
{
    char *text;
    size_t len;
    int before = keys->n;
    enum ink_status st = ink_file_read(path, KEY_FILE_MAX, &text, &len, err);

    if (st != INK_OK)
        return ink_err_prefix(err, st, "--api-key");
    for (char *line = text; st == INK_OK && *line;) {
        size_t used = strcspn(line, "\r\n");

        if (used > 0)
            st = add_key(keys, line, used, err);
        line += used;
        line += strspn(line, "\r\n");
    }
    free(text);
    if (st == INK_OK && keys->n == before)
        return ink_err_set(err, INK_INVALID, "--api-key: %s has no key in it", path);
    return st;
}

static enum ink_status read_keys(const struct option_list *given, struct keys *keys,
                                 struct ink_err *err)
{
    enum ink_status st = INK_OK;

    for (int i = 0; i < given->n && st == INK_OK; i++) {
        const char *key = given->items[i];

        if (key[0] == '@')
            st = add_key_file(keys, key + 1, err);
        else if (key[0] == '\0')
            st = ink_err_set(err, INK_INVALID, "--api-key: an empty key");
        else
            st = add_key(keys, key, strlen(key), err);
    }
    return st;
}

/* --- start -------------------------------------------------------------------------------------- */

static enum ink_status add_models(const struct serve_options *o, struct ink_catalog *catalog,
                                  struct ink_err *err)
{
    enum ink_status st = INK_OK;

    if (o->models.n == 0)
        return model_add(catalog, NULL, (enum ink_import_type)o->type, INK_CAN_REWRITE, err);
    for (int i = 0; i < o->models.n && st == INK_OK && !interrupt_pending(); i++)
        st = model_add(catalog, o->models.items[i], (enum ink_import_type)o->type, 0, err);
    return st;
}

static void print_model(const struct ink_served *served)
{
    const struct ink_model_info *info = ink_served_info(served);
    char weights[24], packed[24], kv[24], graph[24];

    cli_printf("  model    %s%s: %s, %s; up to %d tokens in, %d out\n", ink_served_name(served),
               ink_served_is_demo(served) ? " (demo)" : "", info->arch, info->type,
               ink_served_max_source(served), ink_served_max_target(served));
    cli_printf("  memory   weights %s, packed %s, keys and values %s, graphs %s\n",
               cli_bytes(info->bytes_weights, weights), cli_bytes(info->bytes_packed, packed),
               cli_bytes(info->bytes_kv, kv), cli_bytes(info->bytes_graph, graph));
    cli_printf("  compute  %s, %s; loaded in %.2f s\n", info->device, info->compute,
               (info->load_ms + info->pack_ms) / 1000);
}

/* What someone who starts a server wants to know; the address comes last. */
static void print_banner(const struct serve_options *o, const struct ink_server *server,
                         const struct ink_catalog *catalog)
{
    struct machine machine;
    char *cache = cache_folder();
    int n_threads;

    machine_look(&machine);
    n_threads = o->threads > 0 ? o->threads : machine.n_cpus;
    cli_printf("inkstone %s\n", INKSTONE_VERSION);
    for (int i = 0; i < ink_catalog_n_models(catalog); i++)
        print_model(ink_catalog_model(catalog, i));
    cli_printf("  cpu      %s; VNNI: %s; %d thread%s\n", machine.cpu,
               machine.has_vnni ? "yes" : "no", n_threads, n_threads == 1 ? "" : "s");
    cli_printf("  cache    %s\n", cache ? cache : "none: neither XDG_CACHE_HOME nor HOME is set");
    cli_printf("serving on %s\n", ink_server_url(server));
    cli_flush();
    free(cache);
}

/* --- run ---------------------------------------------------------------------------------------- */

static void wait_for_signal(void)
{
    while (!interrupt_pending())
        (void)poll(&(struct pollfd){ .fd = interrupt_fd(), .events = POLLIN }, 1, 60 * 1000);
}

static void drain(struct ink_server *server, double seconds)
{
    int left;

    fprintf(stderr, "inkstone: finishing what runs, at most %.0f s; once more stops at once\n",
            seconds);
    left = ink_server_drain(server, (int)(seconds * 1000));
    if (left > 0)
        fprintf(stderr, "inkstone: %d request%s cut off\n", left, left == 1 ? "" : "s");
}

static int run(const struct command *self, int argc, char **argv)
{
    struct serve_options o = { .host = "127.0.0.1", .port = 7860, .drain_timeout = 30 };
    struct arguments args;
    struct keys keys = { .n = 0 };
    struct ink_server *server = NULL;
    struct ink_catalog *catalog = NULL;
    struct ink_err err = { 0 };
    enum ink_status st;
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    if (args.n > 0)
        return cli_usage_error(self, "unexpected \"%.60s\"; models are named with -m", args.at[0]);
    if (o.prompt && !strstr(o.prompt, "{text}"))
        return cli_usage_error(self, "--prompt: has no {text}, the place where the text goes");
    if (o.verbose)
        ink_log_set_level(INK_LOG_INFO);

    /* A reader of our output that has gone is no reason to stop serving. */
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    interrupt_catch();

    st = o.trace ? ink_trace_open(o.trace, &err) : INK_OK;
    if (st == INK_OK)
        st = read_keys(&o.api_keys, &keys, &err);
    if (st == INK_OK) {
        struct ink_server_options so = {
            .host = o.host,
            .port = o.port,
            .api_keys = (const char *const *)keys.at,
            .n_api_keys = keys.n,
            .allowed_hosts = o.allowed_hosts.items,
            .n_allowed_hosts = o.allowed_hosts.n,
            .cors_origins = o.cors.items,
            .n_cors_origins = o.cors.n,
            .insecure = o.insecure,
            .max_connections = o.max_connections,
        };
        st = ink_server_start(&so, &server, &err);
    }
    if (st == INK_INVALID) {
        status = cli_usage_error(self, "%s", err.text);
        goto out;
    }
    if (st == INK_OK) {
        struct ink_catalog_options co = {
            .compute = (enum ink_compute)o.compute,
            .n_threads = o.threads,
            .n_parallel = o.parallel,
            .n_queue = o.queue,
            .max_source_tokens = o.ctx,
            .prompt = o.prompt,
        };
        catalog = ink_catalog_new(&co);
        st = add_models(&o, catalog, &err);
    }
    if (st != INK_OK) {
        status = cli_fail(&err);
        goto out;
    }

    if (!interrupt_pending()) {
        ink_server_set_catalog(server, catalog);
        print_banner(&o, server, catalog);
        wait_for_signal();
        drain(server, o.drain_timeout);
    }
    status = interrupt_signal() == SIGINT ? CLI_INTERRUPTED : CLI_OK;
out:
    ink_server_stop(server);
    ink_catalog_free(catalog);
    if (ink_trace_close(&err) != INK_OK)
        status = cli_fail(&err);
    for (int i = 0; i < keys.n; i++)
        free(keys.at[i]);
    return status;
}

const struct command cmd_serve = {
    .name = "serve",
    .summary = "Serves the page and the HTTP interface",
    .usage = "[OPTION]...",
    .notes = notes,
    .options = rows,
    .run = run,
};
