/* Graphs: building, memory, computing; a thin layer so that architectures read as formulas. */
#include "model/graph.h"

#include "base/alloc.h"
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static size_t memory_size(void)
{
    return ggml_tensor_overhead() * GRAPH_NODES_MAX +
           ggml_graph_overhead_custom(GRAPH_NODES_MAX, false);
}

void graph_init(struct graph *g, struct device *device)
{
    *g = (struct graph){ .device = device,
                         .vec = vector_best(),
                         .memory = ink_alloc(memory_size()) };
}

void graph_release(struct graph *g)
{
    if (g->ctx)
        ggml_free(g->ctx);
    ink_arena_free(g->params);
    free(g->memory);
    *g = (struct graph){ 0 };
}

void graph_begin(struct graph *g)
{
    if (g->ctx)
        ggml_free(g->ctx);
    ink_arena_free(g->params);
    g->params = ink_arena_new();
    g->n_named = 0;
    g->n_products = 0.0;
    g->ctx = ggml_init((struct ggml_init_params){
        .mem_size = memory_size(), .mem_buffer = g->memory, .no_alloc = true });
    g->nodes = ggml_new_graph_custom(g->ctx, GRAPH_NODES_MAX, false);
}

void *graph_params(struct graph *g, size_t size)
{
    return ink_arena_alloc(g->params, size);
}

struct ggml_tensor *graph_custom(struct graph *g, const char *label, int64_t ne0, int64_t ne1,
                                 ggml_custom_op_t fn, void *params,
                                 struct ggml_tensor *const *sources, int n_sources)
{
    struct ggml_tensor *args[GGML_MAX_SRC];

    assert(n_sources < GGML_MAX_SRC);
    for (int i = 0; i < n_sources; i++)
        args[i] = sources[i];

    struct ggml_tensor *t = ggml_custom_4d(g->ctx, GGML_TYPE_F32, ne0, ne1, 1, 1, args, n_sources,
                                           fn, GGML_N_TASKS_MAX, params);
    return ggml_set_name(t, label);
}

struct ggml_tensor *graph_name(struct graph *g, struct ggml_tensor *t, const char *fmt, ...)
{
    if (g->probe && g->n_named < GRAPH_NAMED_MAX) {
        char name[GGML_MAX_NAME];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(name, sizeof(name), fmt, ap);
        va_end(ap);
        ggml_set_name(t, name);
        g->named[g->n_named++] = t;
        graph_output(g, t);
    }
    return t;
}

void graph_output(struct graph *g, struct ggml_tensor *t)
{
    /* A view has no memory of its own: what must be kept is the tensor behind it. */
    ggml_set_output(t->view_src ? t->view_src : t);
    ggml_set_output(t);
    ggml_build_forward_expand(g->nodes, t);
}

enum ink_status graph_compute(struct graph *g, struct ink_err *err)
{
    enum ink_status st = device_allocate(g->device, g->nodes, err);

    if (st == INK_OK)
        st = device_compute(g->device, g->nodes, g->n_products, err);
    if (st != INK_OK || !g->probe)
        return st;

    for (int i = 0; i < g->n_named; i++) {
        const struct ggml_tensor *t = g->named[i];
        size_t width = (size_t)t->ne[0], n = (size_t)t->ne[1];

        float *rows = ink_alloc(width * n * sizeof(*rows));
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < width; c++)
                rows[r * width + c] = ((const float *)((const char *)t->data + r * t->nb[1]))[c];
        g->probe(g->probe_arg, t->name, rows, n, width);
        free(rows);
    }
    return INK_OK;
}

void graph_share(int n, int unit, int ith, int nth, int *from, int *to)
{
    int units = (n + unit - 1) / unit;

    *from = units * ith / nth * unit;
    *to = units * (ith + 1) / nth * unit;
    if (*to > n)
        *to = n;
}
