/*
 * Linear layers. Their results never depend on how many rows a step has: int8 sums are exact, float sums run in
 * a fixed order, and ggml's plain products work row by row.
 */
#include "model/linear.h"

#include "base/alloc.h"
#include "model/i8_kernel.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Panels that go to one thread together: a whole number of the kernels' groups of 2 and 3. */
enum { PANEL_UNIT = 6, FLOAT_UNIT = 4 };

enum linear_kind linear_kind_of(const struct weight *w, enum linear_compute compute)
{
    if (compute == LINEAR_ALL_I8 || (compute == LINEAR_AS_STORED && weight_is_i8(w)))
        return LINEAR_I8;
    if (compute == LINEAR_ALL_FLOAT || weight_is_float(w))
        return LINEAR_FLOAT;
    return LINEAR_GGML;
}

struct packing {
    struct linear *l;
    const int32_t *rows; /* output channel c is row rows[c]; NULL: all rows of all parts */
    int panel;
    int unit; /* panels per task */
    atomic_bool no_memory;
};

static void pack_panels(void *arg, int task)
{
    struct packing *p = arg;
    struct linear *l = p->l;
    int first = task * p->unit * p->panel;
    int end = first + p->unit * p->panel < l->n_out ? first + p->unit * p->panel : l->n_out;
    float *row = ink_try_alloc((size_t)l->n_in, sizeof(*row));
    int8_t *q = ink_try_alloc((size_t)l->n_in, 1);
    int part = 0, before = 0;

    if (!row || !q) {
        atomic_store(&p->no_memory, true);
        end = first;
    }
    for (int c = first; c < end; c++) {
        while (!p->rows && c - before >= l->part[part].n_out)
            before += l->part[part++].n_out;

        const struct weight *w = &l->part[part];
        int from = p->rows ? p->rows[c] : c - before;

        if (w->i8_scale) {
            i8_matrix_set(l->packed, c,
                          (const int8_t *)w->info.data + (size_t)from * (size_t)l->n_in,
                          w->i8_scale[from]);
        } else {
            weight_row(w, from, row);
            float scale = i8_round_channel(row, l->n_in, q);
            i8_matrix_set(l->packed, c, q, scale);
        }
    }
    free(q);
    free(row);
}

static enum ink_status pack(struct linear *l, const struct i8_kernel *kernel, const int32_t *rows,
                            int n_threads, struct ink_err *err)
{
    struct packing p = { .l = l, .rows = rows, .panel = kernel->panel, .unit = PANEL_UNIT };
    int per_task = p.unit * p.panel;

    l->packed = i8_matrix_new(kernel, l->n_in, l->n_out);
    if (!l->packed)
        return ink_err_set(err, INK_NO_MEMORY, "no memory to pack %d x %d weights", l->n_in,
                           l->n_out);
    device_parallel(n_threads, (l->n_out + per_task - 1) / per_task, pack_panels, &p);
    if (atomic_load(&p.no_memory))
        return ink_err_set(err, INK_NO_MEMORY, "no memory to pack %d x %d weights", l->n_in,
                           l->n_out);
    return INK_OK;
}

/* Copies the kept rows, as they are stored, so that the layer reads one dense matrix. */
static enum ink_status gather(struct linear *l, const int32_t *rows, struct ink_err *err)
{
    struct weight *w = &l->part[0];
    const size_t row_bytes = w->info.size / (size_t)w->n_out, n = (size_t)l->n_out;
    const size_t scales = w->i8_scale ? n * sizeof(float) : 0;
    char *data = ink_try_alloc_aligned(n * row_bytes + scales + sizeof(float));

    if (!data)
        return ink_err_set(err, INK_NO_MEMORY, "no memory to gather %d x %d weights", l->n_in,
                           l->n_out);
    float *scale = (float *)(void *)(data + (n * row_bytes + 3) / sizeof(float) * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        memcpy(data + i * row_bytes, (const char *)w->info.data + (size_t)rows[i] * row_bytes,
               row_bytes);
        if (w->i8_scale)
            scale[i] = w->i8_scale[rows[i]];
    }
    l->gathered = data;
    w->info.data = data;
    w->info.size = n * row_bytes;
    w->info.ne[1] = w->n_out = l->n_out;
    if (w->i8_scale)
        w->i8_scale = scale;
    return INK_OK;
}

enum ink_status linear_init(struct linear *l, const struct weight *parts, int n_parts,
                            enum linear_compute compute, const struct i8_kernel *kernel,
                            const int32_t *rows, int n_rows, int n_threads,
                            const struct ink_model_file *file, struct ink_err *err)
{
    assert(n_parts >= 1 && n_parts <= LINEAR_PARTS_MAX && (!rows || n_parts == 1));

    *l = (struct linear){ .kind = linear_kind_of(&parts[0], compute),
                          .n_in = parts[0].n_in,
                          .n_parts = n_parts };
    for (int i = 0; i < n_parts; i++) {
        l->part[i] = parts[i];
        l->n_out += parts[i].n_out;
        /* Parts of different types (a file made by hand): floats can read them all. */
        if (linear_kind_of(&parts[i], compute) != l->kind)
            l->kind = LINEAR_FLOAT;
    }
    if (l->kind == LINEAR_I8 && l->n_in > I8_MAX_IN)
        l->kind = LINEAR_FLOAT;
    if (rows)
        l->n_out = n_rows;
    if (l->kind != LINEAR_I8)
        return rows ? gather(l, rows, err) : INK_OK;

    enum ink_status st = pack(l, kernel, rows, n_threads, err);
    for (int i = 0; st == INK_OK && file && i < n_parts; i++)
        ink_model_file_drop(file, &parts[i].info);
    if (st != INK_OK)
        linear_release(l);
    return st;
}

void linear_release(struct linear *l)
{
    i8_matrix_free(l->packed);
    free(l->gathered);
    *l = (struct linear){ 0 };
}

int64_t linear_packed_bytes(const struct linear *l)
{
    if (l->packed)
        return (int64_t)i8_matrix_bytes(l->packed);
    return l->gathered ? (int64_t)l->part[0].info.size : 0;
}

struct act act_of(struct ggml_tensor *rows)
{
    return (struct act){ .rows = rows };
}

/* What a node of a layer needs while it runs. */
struct layer_params {
    const struct graph *g;
    const struct linear *l;
    float *scratch; /* FLOAT_UNIT rows of n_in floats for each thread */
};

/* Threads share the rows. */
static void run_quantize(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct graph *g = params;
    const struct ggml_tensor *x = dst->src[0];
    int from, to;

    graph_share((int)dst->ne[1], 1, ith, nth, &from, &to);
    for (int r = from; r < to; r++)
        g->i8->quantize(graph_row(x, r), (int)x->ne[0], g->one_term, (uint8_t *)graph_row(dst, r));
}

/* Threads share the output channels, so each weight is read once. */
static void run_i8(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct layer_params *p = params;
    const struct linear *l = p->l;
    const struct ggml_tensor *x = dst->src[0];
    int from, to;

    graph_share(l->packed->n_panels, PANEL_UNIT, ith, nth, &from, &to);
    if (from < to)
        l->packed->kernel->multiply(l->packed, from, to, x->data, x->nb[1], (int)dst->ne[1],
                                    p->g->one_term, dst->data, dst->nb[1] / sizeof(float));
}

static void run_float(struct ggml_tensor *dst, int ith, int nth, void *params)
{
    const struct layer_params *lp = params;
    const struct linear *l = lp->l;
    const struct ggml_tensor *x = dst->src[0];
    const size_t n_in = (size_t)l->n_in;
    int from, to, part = 0, before = 0;

    float *scratch = lp->scratch + (size_t)ith * FLOAT_UNIT * n_in;
    graph_share(l->n_out, FLOAT_UNIT, ith, nth, &from, &to);
    for (int c = from; c < to; c += FLOAT_UNIT) {
        int n = to - c < FLOAT_UNIT ? to - c : FLOAT_UNIT;
        const float *w[FLOAT_UNIT];

        for (int i = 0; i < n; i++) {
            while (c + i - before >= l->part[part].n_out)
                before += l->part[part++].n_out;

            const struct weight *p = &l->part[part];
            int row = c + i - before;

            if (p->type == GGML_TYPE_F32) {
                w[i] = (const float *)p->info.data + (size_t)row * n_in;
            } else {
                weight_row(p, row, scratch + (size_t)i * n_in);
                w[i] = scratch + (size_t)i * n_in;
            }
        }
        lp->g->vec->dot_rows(w, n, x->data, x->nb[1] / sizeof(float), (int)dst->ne[1], l->n_in,
                             (float *)dst->data + c, dst->nb[1] / sizeof(float));
    }
}

static struct ggml_tensor *apply_ggml(struct graph *g, const struct linear *l,
                                      struct ggml_tensor *x)
{
    struct ggml_tensor *out = NULL;

    for (int i = 0; i < l->n_parts; i++) {
        const struct weight *p = &l->part[i];
        struct ggml_tensor *w = ggml_new_tensor_2d(g->ctx, p->type, p->n_in, p->n_out);
        w->data = (void *)p->info.data;
        struct ggml_tensor *y = ggml_mul_mat(g->ctx, w, x);
        out = out ? ggml_concat(g->ctx, out, y, 0) : y;
    }
    return out;
}

struct ggml_tensor *linear_apply(struct graph *g, const struct linear *l, struct act *x)
{
    const int64_t n_rows = x->rows->ne[1];

    assert(x->rows->ne[0] == l->n_in);
    g->n_products += (double)l->n_in * l->n_out * (double)n_rows;
    if (l->kind == LINEAR_GGML)
        return apply_ggml(g, l, x->rows);

    struct layer_params *p = graph_params(g, sizeof(*p));
    p->g = g;
    p->l = l;
    if (l->kind == LINEAR_FLOAT) {
        p->scratch = graph_params(g, (size_t)device_n_threads(g->device) * FLOAT_UNIT *
                                         (size_t)l->n_in * sizeof(*p->scratch));
        return graph_custom(g, l->part[0].info.name, l->n_out, n_rows, run_float, p, &x->rows, 1);
    }
    if (!x->quantized)
        x->quantized = graph_custom(g, "quantize", (int64_t)(i8_row_bytes(l->n_in) / sizeof(float)),
                                    n_rows, run_quantize, g, &x->rows, 1);
    return graph_custom(g, l->part[0].info.name, l->n_out, n_rows, run_i8, p, &x->quantized, 1);
}
