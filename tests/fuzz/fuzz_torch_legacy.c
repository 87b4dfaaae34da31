/* Whatever the bytes: the file is refused with a message, or every tensor that can be read lies inside it. */
#include "convert/torch_legacy.h"

#include "base/alloc.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkpoint *c = ink_zalloc(sizeof(*c));
    struct ink_err err = { 0 };

    c->arena = ink_arena_new();
    c->n_files = 1;
    c->files[0].path = ink_strdup("x");
    c->files[0].map = (struct ink_map){ data, size };
    if (!torch_legacy_matches(&c->files[0].map)) {
        /* The fuzzer has its own business with the rest. */
    } else if (torch_legacy_list(c, 0, &err) == INK_OK) {
        for (size_t i = 0; i < c->n_tensors; i++) {
            const struct source_tensor *t = &c->tensors[i];

            assert(!t->contiguous || (t->offset <= size && t->size <= size - t->offset));
        }
    } else {
        assert(err.text[0] != '\0');
    }
    c->files[0].map = (struct ink_map){ NULL, 0 }; /* not ours to unmap */
    checkpoint_close(c);
    return 0;
}
