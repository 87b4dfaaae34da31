/* `inkstone doctor`: would `serve` work here, and if not, what to do about it. Changes nothing. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/machine.h"
#include "cli/model_path.h"
#include "server/server.h"
#include "task/catalog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct doctor_options {
    const char *host, *model;
    int port;
    bool json;
};

#define TO(member) offsetof(struct doctor_options, member)
static const struct option_row rows[] = {
    { "host", 0, OPTION_STRING, "ADDRESS", 0, 0, "127.0.0.1", "address that would be listened on",
      TO(host) },
    { "port", 'p', OPTION_INT, "PORT", 0, 65535, "7860", "port that would be listened on",
      TO(port) },
    { "model", 'm', OPTION_STRING, "MODEL", 0, 0, "the first found", "model that would be served",
      TO(model) },
    { "json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "one JSON document", TO(json) },
    { 0 },
};

static const char notes[] =
    "The exit status is 1 when something would keep \"inkstone serve\" from working.\n";

/* --- findings ----------------------------------------------------------------------------------- */

enum verdict { GOOD, WARN, BAD };
static const char *const verdict_names[] = { "ok", "warn", "fail" };

enum { FINDINGS_MAX = 64 };

struct finding {
    const char *name; /* what was looked at */
    enum verdict verdict;
    char text[400];
    char fix[300]; /* what to do; "" when nothing */
};

struct report {
    struct finding at[FINDINGS_MAX];
    int n;
};

static struct finding *add(struct report *r, const char *name, enum verdict verdict,
                           const char *fmt, ...) INK_PRINTF(4, 5);

/* The last place is used again and again when there are too many, which only a hundred broken models could cause. */
static struct finding *add(struct report *r, const char *name, enum verdict verdict,
                           const char *fmt, ...)
{
    struct finding *f = &r->at[r->n < FINDINGS_MAX ? r->n++ : FINDINGS_MAX - 1];
    struct ink_err line; /* for its promise: one line of valid UTF-8 */
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)ink_err_set(&line, INK_INVALID, "%s", text);
    *f = (struct finding){ .name = name, .verdict = verdict };
    snprintf(f->text, sizeof(f->text), "%s", line.text);
    return f;
}

static void fix(struct finding *f, const char *fmt, ...) INK_PRINTF(2, 3);

static void fix(struct finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->fix, sizeof(f->fix), fmt, ap);
    va_end(ap);
}

/* --- checks ------------------------------------------------------------------------------------- */

static void check_cpu(struct report *r, const struct machine *m)
{
    struct finding *f;

    if (m->is_x86 && !m->has_avx2) {
        f = add(r, "cpu", WARN, "%s: no AVX2, so everything is many times slower", m->cpu);
        fix(f, "use a processor made after 2013, or a virtual machine that passes its features on");
        return;
    }
    if (m->is_x86 && !m->has_vnni)
        add(r, "cpu", GOOD, "%s: %s; no VNNI, int8 models use AVX2 instead", m->cpu, m->features);
    else
        add(r, "cpu", GOOD, "%s: %s", m->cpu,
            m->features[0] ? m->features : "no features looked for");
}

static void check_threads(struct report *r, const struct machine *m)
{
    add(r, "threads", GOOD, "%d processor%s may be used", m->n_cpus, m->n_cpus == 1 ? "" : "s");
}

static void check_memory(struct report *r, const struct machine *m, int64_t model_size)
{
    char available[24], total[24], wanted[24];
    int64_t need =
        2 * model_size + 256 * 1000 * 1000; /* mapped once, packed once, and working memory */
    struct finding *f;

    if (m->memory_total == 0) {
        add(r, "memory", WARN, "cannot be known: /proc/meminfo is not readable");
        return;
    }
    cli_bytes(m->memory_available, available);
    cli_bytes(m->memory_total, total);
    if (m->memory_available >= need) {
        add(r, "memory", GOOD, "%s of %s available", available, total);
        return;
    }
    f = add(r, "memory", m->memory_available < model_size ? BAD : WARN,
            "%s of %s available; the model may need up to %s", available, total,
            cli_bytes(need, wanted));
    fix(f, "close other programs, or import the model with a smaller type (--type q4_k)");
}

static int64_t file_size(const char *path)
{
    struct stat sb;

    return stat(path, &sb) == 0 ? sb.st_size : 0;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void check_found_models(struct report *r, int64_t *size)
{
    struct model_found *list;
    int n = model_list(&list), n_folders;
    const char *const *folders = model_folders(&n_folders);
    bool usable = false;

    for (int i = 0; i < n; i++) {
        char bytes[24];

        if (list[i].broken.code != INK_OK) {
            fix(add(r, "model", WARN, "%s", list[i].broken.text),
                "remove the file, or import or download it again");
            continue;
        }
        add(r, "model", GOOD, "%s (%s) in %.*s", file_name(list[i].path),
            cli_bytes(file_size(list[i].path), bytes),
            (int)(file_name(list[i].path) - list[i].path - 1), list[i].path);
        if (!usable && (list[i].capabilities & INK_CAN_REWRITE)) {
            usable = true;
            *size = file_size(list[i].path);
        }
    }
    if (!usable) {
        char where[300] = "";
        size_t used = 0;

        for (int i = 0; i < n_folders && used < sizeof(where); i++)
            used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s", i ? ", " : "",
                                     folders[i]);
        fix(add(r, "model", BAD, "none found that can rewrite; looked in %s", where),
            "put a GGUF file there, set INKSTONE_MODELS, or give serve a path: -m ./checkpoint-folder");
    }
    model_list_free(list, n);
}

static void check_named_model(struct report *r, const char *value, int64_t *size)
{
    struct model_path found;
    struct ink_model_file *file;
    struct ink_err err = { 0 };
    char bytes[24];

    if (model_path_resolve(value, &found, &err) != INK_OK) {
        fix(add(r, "model", BAD, "%s", err.text), "check the spelling, or give a path");
        return;
    }
    if (found.is_folder) {
        add(r, "model", GOOD, "%s: a checkpoint folder, imported when first used", found.path);
    } else if (ink_model_file_open(found.path, &file, &err) != INK_OK) {
        fix(add(r, "model", BAD, "%s", err.text), "import or download the file again");
    } else {
        *size = (int64_t)ink_model_file_size(file);
        add(r, "model", GOOD, "%s: %s, %s, %s", found.path, ink_model_file_arch(file),
            ink_model_file_type(file), cli_bytes(*size, bytes));
        ink_model_file_close(file);
    }
    free(found.path);
}

/* The nearest folder at or above `path` that exists: where making the rest would begin. */
static char *existing_parent(const char *path)
{
    char *at = ink_strdup(path);

    while (!ink_file_exists(at)) {
        char *slash = strrchr(at, '/');

        if (!slash || slash == at)
            break;
        *slash = '\0';
    }
    return at;
}

static void check_cache(struct report *r)
{
    char *cache = cache_folder();

    if (!cache) {
        fix(add(r, "cache", WARN,
                "no place for a cache folder: neither XDG_CACHE_HOME nor HOME is set"),
            "set XDG_CACHE_HOME to a folder that can be written");
        return;
    }
    char *parent = existing_parent(cache);
    if (!ink_file_is_dir(parent))
        fix(add(r, "cache", WARN, "%s is in the way: not a folder", parent),
            "remove it, or set XDG_CACHE_HOME");
    else if (access(parent, W_OK | X_OK) != 0)
        fix(add(r, "cache", WARN, "%s: %s; checkpoint folders cannot be imported on first use",
                parent, strerror(errno)),
            "make it writable, or set XDG_CACHE_HOME to a folder that is");
    else
        add(r, "cache", GOOD, "%s can be written", cache);
    free(parent);
    free(cache);
}

/* Binds and lets go again. Returns 0 or an errno. */
static int try_bind(const struct addrinfo *ai)
{
    int fd = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
    int on = 1, failed = 0;

    if (fd < 0)
        return errno;
    /* As the server does: connections of a server that has just ended don't block the port. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, 1) != 0)
        failed = errno;
    close(fd);
    return failed;
}

static void check_port(struct report *r, const char *host, int port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *ai;
    char service[16], holder[200];
    int why, failed;

    snprintf(service, sizeof(service), "%d", port);
    why = getaddrinfo(host, service, &hints, &ai);
    if (why != 0) {
        fix(add(r, "port", BAD, "%s: %s", host, gai_strerror(why)),
            "give --host an address of this machine");
        return;
    }
    failed = try_bind(ai);
    freeaddrinfo(ai);
    if (failed == 0) {
        add(r, "port", GOOD, "%s:%d is free", host, port);
    } else if (failed == EADDRINUSE) {
        if (ink_port_holder(port, holder, sizeof(holder)))
            fix(add(r, "port", BAD, "%s:%d is in use by %s", host, port, holder),
                "stop that program, or use another port: inkstone serve --port %d",
                port < 65535 ? port + 1 : 7860);
        else
            fix(add(r, "port", BAD, "%s:%d is in use by a program of another user", host, port),
                "use another port: inkstone serve --port %d", port < 65535 ? port + 1 : 7860);
    } else {
        fix(add(r, "port", BAD, "%s:%d: %s", host, port, strerror(failed)),
            failed == EACCES ? "use a port above 1023" : "give --host an address of this machine");
    }
}

static void check_files(struct report *r)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= 1024)
        add(r, "files", GOOD, "%llu files may be open", (unsigned long long)limit.rlim_cur);
    else
        fix(add(r, "files", WARN, "only %llu files may be open, each connection is one",
                (unsigned long long)limit.rlim_cur),
            "ulimit -n 4096");
}

/* --- the command -------------------------------------------------------------------------------- */

static void print_report(const struct report *r)
{
    for (int i = 0; i < r->n; i++) {
        const struct finding *f = &r->at[i];

        cli_printf("%-4s  %-8s %s\n", verdict_names[f->verdict], f->name, f->text);
        if (f->fix[0])
            cli_printf("               -> %s\n", f->fix);
    }
}

static json_t *json_report(const struct report *r, bool good)
{
    json_t *checks = json_array(), *o = json_object();

    for (int i = 0; i < r->n; i++) {
        const struct finding *f = &r->at[i];
        json_t *one = json_object();

        (void)json_object_set_new(one, "name", json_string(f->name));
        (void)json_object_set_new(one, "status", json_string(verdict_names[f->verdict]));
        (void)json_object_set_new(one, "message", json_string(f->text));
        (void)json_object_set_new(one, "fix", f->fix[0] ? json_string(f->fix) : json_null());
        (void)json_array_append_new(checks, one);
    }
    (void)json_object_set_new(o, "ok", json_boolean(good));
    (void)json_object_set_new(o, "version", json_string(INKSTONE_VERSION));
    (void)json_object_set_new(o, "checks", checks);
    return o;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct doctor_options o = { .host = "127.0.0.1", .port = 7860 };
    struct arguments args;
    struct report *r;
    struct machine m;
    int64_t model_size = 0;
    bool good = true;
    int status;

    if (!options_parse(self, argc, argv, &o, &args, &status))
        return status;
    if (args.n > 0)
        return cli_usage_error(self, "unexpected \"%.60s\"", args.at[0]);

    r = ink_zalloc(sizeof(*r));
    machine_look(&m);
    check_cpu(r, &m);
    check_threads(r, &m);
    if (o.model)
        check_named_model(r, o.model, &model_size);
    else
        check_found_models(r, &model_size);
    check_memory(r, &m, model_size);
    check_cache(r);
    check_port(r, o.host, o.port);
    check_files(r);

    for (int i = 0; i < r->n; i++)
        good = good && r->at[i].verdict != BAD;
    if (o.json)
        cli_print_json(json_report(r, good));
    else
        print_report(r);
    free(r);
    return cli_finish(good ? CLI_OK : CLI_FAILED);
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "Checks whether serving would work here, and says what to do if not",
    .usage = "[OPTION]...",
    .notes = notes,
    .options = rows,
    .run = run,
};
