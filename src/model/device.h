#ifndef MODEL_DEVICE_H
#define MODEL_DEVICE_H

#include "base/status.h"

#include <stdint.h>

struct ggml_cgraph;

/*
 * Where graphs run: the CPU back end of ggml with one persistent thread pool and one
 * growing memory for intermediate tensors. Only the thread that drives the model uses it.
 */
struct device;

INK_NODISCARD enum ink_status device_open(int n_threads, struct device **out, struct ink_err *err);
void device_close(struct device *d); /* NULL is fine */

int device_n_threads(const struct device *d);
const char *device_name(const struct device *d); /* "cpu" */
int64_t device_bytes(const struct device *d);    /* memory for intermediate tensors */

/* Gives the graph's tensors memory; their `data` is valid until the next call. */
INK_NODISCARD enum ink_status device_allocate(struct device *d, struct ggml_cgraph *cg,
                                              struct ink_err *err);
/*
 * `n_products` is the multiplications of the graph's linear layers: a graph with few runs on the
 * calling thread alone, because threads meet after every node and each meeting costs microseconds.
 * A larger one runs on all threads, or on fewer while other processes hold the cores (contention.h).
 */
INK_NODISCARD enum ink_status device_compute(struct device *d, struct ggml_cgraph *cg,
                                             double n_products, struct ink_err *err);

/* Runs fn(arg, i) for i in [0, n) on plain threads, n_threads of them: for work at load, outside graphs. */
void device_parallel(int n_threads, int n, void (*fn)(void *arg, int i), void *arg);

#endif
