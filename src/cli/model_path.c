/* Where models are found: one list of folders, made once from the environment and the program's own place. */
#define _XOPEN_SOURCE 700 /* realpath() */
#include "cli/model_path.h"

#include "base/alloc.h"
#include "base/file.h"
#include "task/catalog.h"

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDERS_MAX = 8, PROGRAM_PATH_MAX = 4096 };

/* --- folders ------------------------------------------------------------------------------------ */

static const char *home(void)
{
    const char *dir = getenv("HOME");

    if (dir && dir[0] == '/')
        return dir;
    const struct passwd *pw = getpwuid(getuid());
    return pw && pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : NULL;
}

/* `variable`/inkstone, or ~/`otherwise`/inkstone. Relative values are ignored, as the XDG rules say. */
static char *xdg_folder(const char *variable, const char *otherwise)
{
    const char *dir = getenv(variable);
    char *base, *out;

    if (dir && dir[0] == '/')
        return ink_path_join(dir, "inkstone");
    if (!home())
        return NULL;
    base = ink_path_join(home(), otherwise);
    out = ink_path_join(base, "inkstone");
    free(base);
    return out;
}

char *cache_folder(void)
{
    return xdg_folder("XDG_CACHE_HOME", ".cache");
}

/* The folder that holds the running program, or NULL. */
static char *program_folder(void)
{
    char path[PROGRAM_PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len <= 0)
        return NULL;
    path[len] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? ink_strndup(path, (size_t)(slash - path)) : NULL;
}

static const char *folders[FOLDERS_MAX];
static int n_folders;

/* Takes `path` over; NULL and what is there already are skipped. */
static void add_folder(char *path)
{
    char *plain = path ? realpath(path, NULL)
                       : NULL; /* without ".." and links; NULL when it does not exist */

    if (plain) {
        free(path);
        path = plain;
    }
    for (int i = 0; path && i < n_folders; i++) {
        if (strcmp(folders[i], path) == 0) {
            free(path);
            return;
        }
    }
    if (path)
        folders[n_folders++] = path;
}

/* `below` beside the folder `n_up` levels above `dir`; NULL when the root is reached. */
static char *beside(const char *dir, int n_up, const char *below)
{
    size_t len = strlen(dir);
    char *up, *out;

    for (int i = 0; i < n_up; i++) {
        while (len > 0 && dir[len - 1] != '/')
            len--;
        if (len == 0)
            return NULL;
        len--;
    }
    up = ink_strndup(dir, len);
    out = ink_path_join(up, below);
    free(up);
    return out;
}

const char *const *model_folders(int *n)
{
    if (n_folders == 0) {
        const char *chosen = getenv("INKSTONE_MODELS");
        char *data = xdg_folder("XDG_DATA_HOME", ".local/share");
        char *program = program_folder();

        if (chosen && *chosen)
            add_folder(ink_strdup(chosen));
        if (data)
            add_folder(ink_path_join(data, "models"));
        if (program) {
            add_folder(beside(program, 1, "models"));
            add_folder(beside(program, 2, "models"));
            add_folder(beside(program, 1, "share/inkstone/models"));
        }
        add_folder(ink_strdup("/usr/share/inkstone/models"));
        free(data);
        free(program);
    }
    *n = n_folders;
    return folders;
}

/* --- one model ---------------------------------------------------------------------------------- */

static bool ends_in_gguf(const char *name)
{
    size_t len = strlen(name);

    return len > 5 && strcmp(name + len - 5, ".gguf") == 0;
}

static bool is_checkpoint(const char *dir)
{
    char *config = ink_path_join(dir, "config.json");
    bool found = ink_file_exists(config);

    free(config);
    return found;
}

static enum ink_status take_path(const char *value, struct model_path *out, struct ink_err *err)
{
    if (ink_file_is_dir(value)) {
        if (!is_checkpoint(value))
            return ink_err_param(
                err, INK_NOT_FOUND, "model", "model_not_found",
                "%s: no config.json in this folder, so it is no Hugging Face checkpoint", value);
        *out = (struct model_path){ ink_strdup(value), true };
        return INK_OK;
    }
    if (!ink_file_exists(value))
        return ink_err_param(err, INK_NOT_FOUND, "model", "model_not_found",
                             "%s: no such file or folder", value);
    *out = (struct model_path){ ink_strdup(value), false };
    return INK_OK;
}

static enum ink_status not_found(const char *name, struct ink_err *err)
{
    char known[200] = "";
    size_t used = 0;
    struct model_found *list;
    int n = model_list(&list);

    for (int i = 0; i < n && used < sizeof(known) - 1; i++) {
        const char *file = strrchr(list[i].path, '/') + 1;

        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%.*s", i ? ", " : "",
                                 (int)strlen(file) - 5, file);
    }
    model_list_free(list, n);
    if (n > 0)
        return ink_err_param(err, INK_NOT_FOUND, "model", "model_not_found",
                             "no model \"%.60s\"; found: %s; or give a path with \"/\"", name,
                             known);
    return ink_err_param(
        err, INK_NOT_FOUND, "model", "model_not_found",
        "no model \"%.60s\": the model folders are empty (\"inkstone doctor\" lists them); give a "
        "path with \"/\" to a GGUF file or a Hugging Face folder",
        name);
}

enum ink_status model_path_resolve(const char *value, struct model_path *out, struct ink_err *err)
{
    int n;
    const char *const *where = model_folders(&n);

    if (*value == '\0')
        return ink_err_param(err, INK_INVALID, "model", "", "-m: an empty name");
    if (strchr(value, '/') || (ink_file_exists(value) && !ink_file_is_dir(value)) ||
        is_checkpoint(value))
        return take_path(value, out, err);

    for (int i = 0; i < n; i++) {
        size_t size = strlen(value) + sizeof(".gguf");
        char *name = ink_alloc(size), *path;

        snprintf(name, size, "%s%s", value, ends_in_gguf(value) ? "" : ".gguf");
        path = ink_path_join(where[i], name);
        free(name);
        if (ink_file_exists(path) && !ink_file_is_dir(path)) {
            *out = (struct model_path){ path, false };
            return INK_OK;
        }
        free(path);
    }
    return not_found(value, err);
}

/* --- all models --------------------------------------------------------------------------------- */

static unsigned capabilities_of(const struct ink_model_file *f, struct ink_err *broken)
{
    const char *arch = ink_model_file_arch(f);

    if (strcmp(arch, "t5") == 0)
        return INK_CAN_REWRITE | INK_CAN_CLASSIFY | INK_CAN_SCORE;
    (void)ink_err_set(broken, INK_UNSUPPORTED, "%s: architecture \"%s\" is not supported",
                      ink_model_file_path(f), arch);
    return 0;
}

static void look_at(const char *path, struct model_found *found)
{
    struct ink_model_file *f;

    *found = (struct model_found){ .path = ink_strdup(path) };
    if (ink_model_file_open(path, &f, &found->broken) != INK_OK)
        return;
    found->capabilities = capabilities_of(f, &found->broken);
    ink_model_file_close(f);
}

static int is_model_name(const struct dirent *entry)
{
    return ends_in_gguf(entry->d_name) && entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int model_list(struct model_found **out)
{
    int n_where, n = 0;
    const char *const *where = model_folders(&n_where);
    struct model_found *list = NULL;

    for (int i = 0; i < n_where; i++) {
        struct dirent **names;
        int n_names = scandir(where[i], &names, is_model_name, by_name);

        for (int k = 0; k < n_names; k++) {
            char *path = ink_path_join(where[i], names[k]->d_name);

            list = ink_realloc(list, (size_t)(n + 1) * sizeof(*list));
            look_at(path, &list[n++]);
            free(path);
            free(names[k]);
        }
        if (n_names >= 0)
            free(names);
    }
    *out = list;
    return n;
}

void model_list_free(struct model_found *list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i].path);
    free(list);
}
