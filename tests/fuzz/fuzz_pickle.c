/* Whatever the bytes: refused with a message, or tensors whose numbers are not negative and whose names are inside. */
#include "convert/pickle.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const char *start, *end;
};

static enum ink_status look(void *arg, const struct pickle_tensor *t, struct ink_err *err)
{
    const struct input *in = arg;

    (void)err;
    assert(t->name.ptr >= in->start && t->name.ptr + t->name.len <= in->end);
    assert(t->storage.ptr >= in->start && t->storage.ptr + t->storage.len <= in->end);
    assert(t->offset >= 0 && t->storage_elements >= 0 && t->element_size > 0);
    assert(t->n_dims >= 0 && t->n_dims <= SOURCE_MAX_DIMS);
    for (int d = 0; d < t->n_dims; d++)
        assert(t->shape[d] >= 0 && t->stride[d] >= 0);
    return INK_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = { (const char *)data, (const char *)data + size };
    struct ink_err err = { 0 };

    if (pickle_read((struct ink_slice){ in.start, size }, look, &in, NULL, &err) != INK_OK)
        assert(err.text[0] != '\0');
    return 0;
}
