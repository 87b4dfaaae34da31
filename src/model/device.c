/*
 * The CPU device: ggml's thread pool and graph allocator behind five functions.
 *
 * The pool's threads sleep between graphs (poll = 0) and are nicer than the rest of the program, so that
 * reading a request or answering /health never waits for a matrix product.
 */
#include "model/device.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/trace.h"
#include "model/contention.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { NICE_BY = 10 };

/* About a millisecond of one core: some hundred nodes' meetings cost a tenth of that on an idle machine. */
#define PRODUCTS_WORTH_THREADS 5e7

struct device {
    int n_threads;
    struct ggml_threadpool *pool;
    struct contention contention;
    clockid_t
        *clocks; /* of the time each pool thread has run; [0], the driving thread's, isn't used */
    int64_t *ran_ns;
    ggml_gallocr_t memory;
    uint8_t *work; /* ggml's scratch for one graph */
    size_t work_size;
};

/* ggml's threads inherit the nice value of the thread that makes the pool, so a short-lived nicer one makes it. */
static void *make_pool(void *arg)
{
    struct device *d = arg;
    struct ggml_threadpool_params p = ggml_threadpool_params_default(d->n_threads);

    ink_thread_nice(NICE_BY);
    p.poll = 0;
    d->pool = ggml_threadpool_new(&p);
    return NULL;
}

/* A custom operator: every thread of the pool says which clock counts its time. */
static void note_clock(struct ggml_tensor *dst, int ith, int nth, void *userdata)
{
    struct device *d = userdata;
    (void)dst;
    (void)nth;

    if (pthread_getcpuclockid(pthread_self(), &d->clocks[ith]) != 0)
        d->clocks[ith] = CLOCK_MONOTONIC; /* then it never seems to wait */
}

static bool find_clocks(struct device *d)
{
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){
        .mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead_custom(8, false),
        .no_alloc = true });

    if (!ctx)
        return false;
    struct ggml_cgraph *cg = ggml_new_graph_custom(ctx, 8, false);
    struct ggml_tensor *t =
        ggml_custom_4d(ctx, GGML_TYPE_F32, 1, 1, 1, 1, NULL, 0, note_clock, GGML_N_TASKS_MAX, d);
    ggml_build_forward_expand(cg, t);

    struct ggml_cplan plan = ggml_graph_plan(cg, d->n_threads, d->pool);
    uint8_t *work = ink_try_alloc_aligned(plan.work_size + 1);

    plan.work_data = work;
    const bool done = work && ggml_gallocr_alloc_graph(d->memory, cg) &&
                      ggml_graph_compute(cg, &plan) == GGML_STATUS_SUCCESS;
    free(work);
    ggml_free(ctx);
    return done;
}

enum ink_status device_open(int n_threads, struct device **out, struct ink_err *err)
{
    struct device *d = ink_zalloc(sizeof(*d));
    pthread_t maker;

    d->n_threads = n_threads > 0 ? n_threads : ink_thread_n_cpus();
    if (d->n_threads > GGML_MAX_N_THREADS)
        d->n_threads = GGML_MAX_N_THREADS;
    ggml_cpu_init();
    if (ink_thread_start(&maker, "ink-pool", make_pool, d) == 0)
        pthread_join(maker, NULL);
    d->memory = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
    contention_init(&d->contention, d->n_threads);
    d->clocks = ink_zalloc(sizeof(d->clocks[0]) * (size_t)d->n_threads);
    d->ran_ns = ink_zalloc(sizeof(d->ran_ns[0]) * (size_t)d->n_threads);
    if (!d->pool || !d->memory || !find_clocks(d)) {
        device_close(d);
        return ink_err_set(err, INK_DEVICE, "cannot start %d compute threads", n_threads);
    }
    *out = d;
    return INK_OK;
}

void device_close(struct device *d)
{
    if (!d)
        return;
    if (d->memory)
        ggml_gallocr_free(d->memory);
    if (d->pool)
        ggml_threadpool_free(d->pool);
    free(d->clocks);
    free(d->ran_ns);
    free(d->work);
    free(d);
}

int device_n_threads(const struct device *d)
{
    return d->n_threads;
}

const char *device_name(const struct device *d)
{
    (void)d;
    return "cpu";
}

int64_t device_bytes(const struct device *d)
{
    return (int64_t)ggml_gallocr_get_buffer_size(d->memory, 0);
}

enum ink_status device_allocate(struct device *d, struct ggml_cgraph *cg, struct ink_err *err)
{
    if (!ggml_gallocr_alloc_graph(d->memory, cg))
        return ink_err_set(err, INK_DEVICE, "no memory for the intermediate tensors of a step");
    return INK_OK;
}

/* Called before (sign -1) and after (1) a graph: leaves in ran_ns what each of n threads has run in between. */
static void count_ran(struct device *d, int n, int sign)
{
    for (int i = 0; i < n; i++) {
        struct timespec t;

        clock_gettime(i == 0 ? CLOCK_THREAD_CPUTIME_ID : d->clocks[i], &t);
        const int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        d->ran_ns[i] = sign < 0 ? -ns : d->ran_ns[i] + ns;
    }
}

/* Called by the first thread after each node that computes something, until all are done. */
struct node_clock {
    struct ggml_cgraph *cg;
    int next;
    int64_t last_ns;
};

static bool computes(const struct ggml_tensor *t)
{
    return t->op != GGML_OP_NONE && t->op != GGML_OP_RESHAPE && t->op != GGML_OP_VIEW &&
           t->op != GGML_OP_PERMUTE && t->op != GGML_OP_TRANSPOSE;
}

static bool trace_node(void *arg)
{
    struct node_clock *c = arg;
    const int64_t now = ink_clock_ns();
    const int n = ggml_graph_n_nodes(c->cg);

    while (c->next < n && !computes(ggml_graph_node(c->cg, c->next)))
        c->next++;
    if (c->next < n) {
        const struct ggml_tensor *t = ggml_graph_node(c->cg, c->next++);

        ink_trace_span(INK_TRACE_OPERATOR, t->name[0] ? t->name : ggml_op_desc(t), c->last_ns, now,
                       "rows", t->ne[1]);
    }
    c->last_ns = now;
    return false; /* go on */
}

enum ink_status device_compute(struct device *d, struct ggml_cgraph *cg, double n_products,
                               struct ink_err *err)
{
    const bool small = n_products < PRODUCTS_WORTH_THREADS;
    const int n = small ? 1 : d->contention.n_now;
    struct ggml_cplan plan = ggml_graph_plan(cg, n, n == 1 ? NULL : d->pool);

    if (plan.work_size > d->work_size) {
        free(d->work);
        d->work = ink_try_alloc_aligned(plan.work_size);
        d->work_size = d->work ? plan.work_size : 0;
        if (!d->work)
            return ink_err_set(err, INK_DEVICE, "no memory for %zu bytes of scratch",
                               plan.work_size);
    }
    plan.work_data = d->work;

    const int64_t start = ink_clock_ns();
    struct node_clock clock = { .cg = cg, .last_ns = start };

    if (ink_trace_is_on()) {
        plan.abort_callback = trace_node;
        plan.abort_callback_data = &clock;
    }
    if (!small)
        count_ran(d, n, -1);
    if (ggml_graph_compute(cg, &plan) != GGML_STATUS_SUCCESS)
        return ink_err_set(err, INK_DEVICE, "the compute back end failed");
    if (!small) {
        const int64_t now = ink_clock_ns();

        count_ran(d, n, 1);
        contention_observe(&d->contention, now, now - start, d->ran_ns);
    }
    return INK_OK;
}

struct parallel {
    int n;
    atomic_int next;
    void (*fn)(void *arg, int i);
    void *arg;
};

static void *parallel_worker(void *arg)
{
    struct parallel *p = arg;

    for (int i = atomic_fetch_add(&p->next, 1); i < p->n; i = atomic_fetch_add(&p->next, 1))
        p->fn(p->arg, i);
    return NULL;
}

void device_parallel(int n_threads, int n, void (*fn)(void *arg, int i), void *arg)
{
    enum { MOST = 64 };
    struct parallel p = { .n = n, .fn = fn, .arg = arg };
    pthread_t threads[MOST];
    int started = 0;

    /* The caller is one of the threads; one that cannot be started is simply missing. */
    for (int i = 1; i < n_threads && i < MOST && i < n; i++)
        started += ink_thread_start(&threads[started], "ink-load", parallel_worker, &p) == 0;
    parallel_worker(&p);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
