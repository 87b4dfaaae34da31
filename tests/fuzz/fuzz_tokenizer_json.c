/* Whatever the bytes: refused with a message, or a vocabulary with an unknown piece and a charsmap inside its bounds. */
#include "convert/hf_tokenizer_json.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vocab v;
    struct ink_err err = { 0 };
    json_t *root = json_loadb((const char *)data, size, JSON_DECODE_INT_AS_REAL, NULL);

    vocab_init(&v);
    if (hf_tokenizer_json_read(root, &v, &err) == INK_OK) {
        assert(v.unk >= 0 && v.unk < v.n_pieces && v.eos < v.n_pieces && v.pad < v.n_pieces);
        assert(v.charsmap.len <= size);
    } else {
        assert(err.text[0] != '\0');
    }
    vocab_release(&v);
    json_decref(root);
    return 0;
}
