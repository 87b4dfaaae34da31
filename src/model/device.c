/*
 * The CPU device: ggml's thread pool and graph allocator behind five functions.
 *
 * The pool's threads sleep between graphs (poll = 0) and are nicer than the rest of the program, so that
 * reading a request or answering /health never waits for a matrix product.
 */
#include "model/device.h"

#include "base/alloc.h"
#include "base/thread.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { NICE_BY = 10 };

/* About a millisecond of one core: some hundred nodes' meetings cost a tenth of that on an idle machine. */
#define PRODUCTS_WORTH_THREADS 5e7

struct device {
    int n_threads;
    struct ggml_threadpool *pool;
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
    if (!d->pool || !d->memory) {
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

enum ink_status device_compute(struct device *d, struct ggml_cgraph *cg, double n_products,
                               struct ink_err *err)
{
    const bool alone = d->n_threads == 1 || n_products < PRODUCTS_WORTH_THREADS;
    struct ggml_cplan plan = ggml_graph_plan(cg, alone ? 1 : d->n_threads, alone ? NULL : d->pool);

    if (plan.work_size > d->work_size) {
        free(d->work);
        d->work = ink_try_alloc_aligned(plan.work_size);
        d->work_size = d->work ? plan.work_size : 0;
        if (!d->work)
            return ink_err_set(err, INK_DEVICE, "no memory for %zu bytes of scratch",
                               plan.work_size);
    }
    plan.work_data = d->work;
    if (ggml_graph_compute(cg, &plan) != GGML_STATUS_SUCCESS)
        return ink_err_set(err, INK_DEVICE, "the compute back end failed");
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
