/*
 * The normalizer on a table and a text that are both made up by the fuzzer.
 *
 * Input: one byte of rules, u16 LE length of the table, the table, and the text. Text that is not valid UTF-8 is cut
 * before it goes wrong, as the tokenizer would refuse it. Whatever the table is, valid text becomes valid text within
 * the promised size.
 */
#include "base/utf8.h"
#include "token/normalize.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char verbatim_text[] = "[v]";
    const struct trie_key verbatim = { { verbatim_text, sizeof(verbatim_text) - 1 }, 0 };
    struct normalizer z;
    struct ink_buf out;

    if (size < 3)
        return 0;
    size_t map_len = data[1] | (size_t)data[2] << 8;
    if (map_len > size - 3)
        map_len = size - 3;
    struct normalizer_options o = {
        .charsmap = { (const char *)data + 3, map_len },
        .add_dummy_prefix = data[0] & 1,
        .remove_extra_whitespaces = data[0] & 2,
        .escape_whitespaces = data[0] & 4,
        .verbatim = &verbatim,
        .n_verbatim = data[0] >> 3 & 1,
    };
    if (normalizer_init(&z, &o, NULL) != INK_OK)
        return 0;

    struct ink_slice text = { (const char *)data + 3 + map_len, size - 3 - map_len };
    text.len = ink_utf8_valid_prefix(text.ptr, text.len);
    size_t max = normalizer_max_output(&z, text.len);
    ink_buf_init(&out, SIZE_MAX / 2);
    enum ink_status st = normalizer_run(&z, text, &out);
    assert(st == INK_OK);
    assert(out.len <= max);
    assert(ink_utf8_is_valid(out.ptr, out.len));
    ink_buf_release(&out);
    normalizer_release(&z);
    return 0;
}
