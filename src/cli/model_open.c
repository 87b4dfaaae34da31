/* From `-m` to a model that is ready to work. */
#include "cli/model_open.h"

#include "base/alloc.h"
#include "cli/import_cache.h"
#include "cli/model_path.h"

#include <stdlib.h>
#include <string.h>

static const char *task_name(unsigned capabilities)
{
    return capabilities & INK_CAN_REWRITE ? "rewrite"
           : capabilities & INK_CAN_SCORE ? "score"
                                          : "be used here";
}

/* The first usable file of the model folders. */
static enum ink_status first_found(unsigned capabilities, char **path, struct ink_err *err)
{
    struct model_found *list;
    int n = model_list(&list), n_broken = 0;

    *path = NULL;
    for (int i = 0; i < n && !*path; i++) {
        if (list[i].broken.code != INK_OK)
            n_broken++;
        else if ((list[i].capabilities & capabilities) == capabilities)
            *path = ink_strdup(list[i].path);
    }
    model_list_free(list, n);
    if (*path)
        return INK_OK;
    return ink_err_param(
        err, INK_NOT_FOUND, "model", "model_not_found",
        "no model found that can %s (%d files looked at, %d unusable): name one with -m, or run "
        "\"inkstone doctor\" to see where models are looked for",
        task_name(capabilities), n, n_broken);
}

enum ink_status model_add(struct ink_catalog *catalog, const char *value, enum ink_import_type type,
                          unsigned capabilities, struct ink_err *err)
{
    struct model_path found = { 0 };
    char *name = NULL;
    enum ink_status st = value ? model_path_resolve(value, &found, err)
                               : first_found(capabilities, &found.path, err);

    if (st != INK_OK)
        return st;
    if (found.is_folder) {
        char *file = NULL;

        st = import_cached(found.path, type, &file, &name, err);
        free(found.path);
        found.path = file;
    }
    if (st == INK_OK)
        st = ink_catalog_add(catalog, found.path, name, err);
    free(found.path);
    free(name);
    return st;
}

enum ink_status model_open(const struct model_choice *choice, unsigned capabilities,
                           const struct ink_catalog_options *options, struct ink_catalog **catalog,
                           struct ink_served **served, struct ink_err *err)
{
    struct ink_catalog_options co = options ? *options : (struct ink_catalog_options){ 0 };

    co.compute = (enum ink_compute)choice->compute;
    co.n_threads = choice->threads;
    *catalog = ink_catalog_new(&co);

    enum ink_status st =
        model_add(*catalog, choice->model, (enum ink_import_type)choice->type, capabilities, err);
    if (st == INK_OK)
        st = ink_catalog_find(*catalog, NULL, co.vocabulary_only ? 0 : capabilities, served, err);
    if (st != INK_OK) {
        ink_catalog_free(*catalog);
        *catalog = NULL;
    }
    return st;
}
