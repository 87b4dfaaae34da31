/* Whatever the bytes: refused with a message, or a vocabulary whose ids name pieces. */
#include "convert/spiece.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vocab v;
    struct ink_err err = { 0 };

    vocab_init(&v);
    if (spiece_read((struct ink_slice){ (const char *)data, size }, &v, &err) == INK_OK) {
        const int32_t ids[] = { v.bos, v.eos, v.pad, v.unk };

        assert(v.n_pieces > 0 && v.unk >= 0);
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
            assert(ids[i] >= -1 && ids[i] < v.n_pieces);
        for (int32_t i = 0; i < v.n_pieces; i++) {
            assert(v.pieces[i].type >= PIECE_NORMAL && v.pieces[i].type <= PIECE_BYTE);
            assert(strlen(v.pieces[i].text) <= VOCAB_MAX_PIECE_BYTES);
        }
    } else {
        assert(err.text[0] != '\0');
    }
    vocab_release(&v);
    return 0;
}
