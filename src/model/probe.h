#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include <stddef.h>

struct ink_model;

/*
 * Intermediate tensors, for the golden tests: `save` is called with every named point of the next encode and decode
 * calls ("enc.0.attn_out", "enc.out", "dec.0.ffn_out", "dec.out", ...). Rows are tokens, `width` floats each;
 * the data is valid during the call. NULL stops probing. Slows computation down; not for serving.
 */
typedef void ink_probe_fn(void *arg, const char *name, const float *data, size_t n_rows,
                          size_t width);
void ink_model_set_probe(struct ink_model *m, ink_probe_fn *save, void *arg);

#endif
