/* The token room's answers for those who only know a served model. */
#include "task/tokenize.h"

#include "base/utf8.h"
#include "task/catalog.h"
#include "token/tokenizer.h"

#include <stdlib.h>

enum ink_status ink_tokenize(const struct ink_served *served, struct ink_slice text,
                             bool add_special, int32_t **ids, size_t *n, struct ink_err *err)
{
    struct ink_tokens tokens = { 0 };
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);

    if (text.len > INK_TOKENIZE_BYTES_MAX)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: %zu bytes; at most %d", text.len, INK_TOKENIZE_BYTES_MAX);
    if (valid != text.len)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "text: not valid UTF-8 at byte %zu of %zu", valid, text.len);

    enum ink_status st = ink_tokenizer_encode(
        ink_served_tokenizer(served), text,
        &(struct ink_encode_options){ .specials = true, .add_special = add_special }, &tokens, err);
    if (st != INK_OK) {
        free(tokens.ids);
        return st;
    }
    *ids = tokens.ids;
    *n = tokens.n;
    return INK_OK;
}

enum ink_status ink_detokenize(const struct ink_served *served, const int32_t *ids, size_t n,
                               char **text, size_t *len, struct ink_err *err)
{
    const struct ink_tokenizer *t = ink_served_tokenizer(served);
    int32_t n_vocab = ink_tokenizer_n_pieces(t);

    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return ink_err_param(err, INK_INVALID, "ids", "invalid_value",
                                 "ids[%zu]: %d is not in 0..%d", i, (int)ids[i], (int)n_vocab - 1);
    }
    return ink_tokenizer_decode(t, ids, n, false, text, len, err);
}

struct ink_slice ink_token_piece(const struct ink_served *served, int32_t id)
{
    const struct ink_tokenizer *t = ink_served_tokenizer(served);

    if (id < 0 || id >= ink_tokenizer_n_pieces(t))
        return (struct ink_slice){ "", 0 };
    return ink_tokenizer_piece(t, id);
}
