#ifndef MODEL_GRAPH_H
#define MODEL_GRAPH_H

#include "base/status.h"
#include "model/device.h"
#include "model/probe.h"
#include "model/vector.h"

#include <ggml.h>

#include <stddef.h>

struct i8_kernel;

/*
 * One graph under construction, and what its nodes need while they run. Begin,
 * add nodes, compute, read; the next begin forgets all of it. Shapes are in ggml order, fastest dimension first.
 */
enum { GRAPH_NODES_MAX = 4096, GRAPH_NAMED_MAX = 1024 };

struct graph {
    struct ggml_context *ctx; /* of this graph's tensors */
    struct ggml_cgraph *nodes;
    struct device *device;
    const struct vector_ops *vec;
    const struct i8_kernel
        *i8;                  /* quantizes activations; NULL when no weight of the model needs it */
    bool one_term;            /* i8-fast */
    struct ink_arena *params; /* the nodes' parameters */
    ink_probe_fn *probe;
    void *probe_arg;
    struct ggml_tensor *named[GRAPH_NAMED_MAX]; /* points of this graph that the probe wants */
    int n_named;
    double n_products; /* multiplications of the linear layers added so far */
    void *memory;      /* ctx lives here */
};

void graph_init(struct graph *g, struct device *device);
void graph_release(struct graph *g);

void graph_begin(struct graph *g);
/* Parameters of a node, zeroed; valid until the next graph_begin(). */
void *graph_params(struct graph *g, size_t size);
/* A node of ours: f32 [ne0, ne1], computed by `fn` on all threads after its sources; a trace shows it as `label`. */
struct ggml_tensor *graph_custom(struct graph *g, const char *label, int64_t ne0, int64_t ne1,
                                 ggml_custom_op_t fn, void *params,
                                 struct ggml_tensor *const *sources, int n_sources);
/* Names a point that the golden tests compare; keeps it readable when a probe is set. Returns `t`. */
struct ggml_tensor *graph_name(struct graph *g, struct ggml_tensor *t, const char *fmt, ...)
    INK_PRINTF(3, 4);
/* Marks a result: it is computed and stays readable until the next begin. */
void graph_output(struct graph *g, struct ggml_tensor *t);
/* Allocates, computes, and hands named points to the probe. */
INK_NODISCARD enum ink_status graph_compute(struct graph *g, struct ink_err *err);

/* Row `r` of an f32 tensor; rows may be apart. */
static inline float *graph_row(const struct ggml_tensor *t, int64_t r)
{
    return (float *)((char *)t->data + (size_t)r * t->nb[1]);
}

/* The part [from, to) of `n` that thread `ith` of `nth` works on, in units of `unit`. */
void graph_share(int n, int unit, int ith, int nth, int *from, int *to);

#endif
