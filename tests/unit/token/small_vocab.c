#include "unit.h"
#include "small_vocab.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t small_vocab_add(struct small_vocab *v, const char *piece, float score, int32_t type)
{
    int32_t id = v->vocab.n_pieces++;

    assert_true((size_t)id < sizeof(v->pieces) / sizeof(v->pieces[0]));
    v->pieces[id] = (struct ink_piece){ ink_slice_of(piece), score, type };
    return id;
}

void small_vocab_init(struct small_vocab *v)
{
    *v = (struct small_vocab){ 0 };
    v->vocab = (struct ink_vocab){
        .kind = INK_VOCAB_UNIGRAM,
        .pieces = v->pieces,
        .bos = -1,
        .eos = SMALL_EOS,
        .unk = SMALL_UNK,
        .pad = SMALL_PAD,
        .add_dummy_prefix = true,
        .remove_extra_whitespaces = true,
        .escape_whitespaces = true,
    };
    small_vocab_add(v, "<unk>", 0, INK_PIECE_UNKNOWN);
    small_vocab_add(v, "<pad>", 0, INK_PIECE_CONTROL);
    small_vocab_add(v, "</s>", 0, INK_PIECE_CONTROL);
}

int32_t small_vocab_add_bytes(struct small_vocab *v)
{
    int32_t first = v->vocab.n_pieces;

    for (unsigned i = 0; i < 256; i++) {
        snprintf(v->bytes[i], sizeof(v->bytes[i]), "<0x%02X>", i);
        small_vocab_add(v, v->bytes[i], 0, INK_PIECE_BYTE);
    }
    v->vocab.byte_fallback = true;
    return first;
}

struct ink_tokenizer *small_vocab_tokenizer(const struct small_vocab *v)
{
    struct ink_tokenizer *t;
    struct ink_err err;

    if (ink_tokenizer_new(&v->vocab, &t, &err) != INK_OK)
        fail_msg("%s", err.text);
    return t;
}

void small_pieces(const struct ink_tokenizer *t, struct ink_slice text,
                  struct ink_encode_options options, char *out, size_t cap)
{
    struct ink_tokens tokens = { 0 };
    struct ink_err err;
    size_t at = 0;

    if (ink_tokenizer_encode(t, text, &options, &tokens, &err) != INK_OK)
        fail_msg("%s", err.text);
    out[0] = '\0';
    for (size_t i = 0; i < tokens.n; i++) {
        struct ink_slice piece = ink_tokenizer_piece(t, tokens.ids[i]);
        int n = snprintf(out + at, cap - at, "%s%.*s", i ? " " : "", (int)piece.len, piece.ptr);

        assert_true(n >= 0 && (size_t)n < cap - at);
        at += (size_t)n;
    }
    free(tokens.ids);
}

static void put_u32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i & 0xff);
}

struct ink_slice small_charsmap(const struct small_entry *entries, size_t n)
{
    /* The root at unit 0 has offset 256, so byte c leads to unit 256 + c, whose own offset leads to a value. */
    enum { UNITS = 1024, HEAD = 4 };
    size_t len = HEAD + UNITS * 4;
    uint32_t at = 0;

    for (size_t i = 0; i < n; i++)
        len += strlen(entries[i].to) + 1;
    unsigned char *blob = ink_zalloc(len + 1);
    put_u32(blob, UNITS * 4);
    put_u32(blob + HEAD, 256U << 10);
    for (size_t i = 0; i < UNITS; i++)
        if (i > 0)
            put_u32(blob + HEAD + 4 * i, 0x80000000U);
    for (size_t i = 0; i < n; i++) {
        uint32_t unit = 256U + entries[i].from, value = 512U + entries[i].from;

        put_u32(blob + HEAD + 4 * (size_t)unit, (unit ^ value) << 10 | 0x100U | entries[i].from);
        put_u32(blob + HEAD + 4 * (size_t)value, 0x80000000U | at);
        memcpy(blob + HEAD + UNITS * 4 + at, entries[i].to, strlen(entries[i].to));
        at += (uint32_t)strlen(entries[i].to) + 1;
    }
    return (struct ink_slice){ (char *)blob, n > 0 ? len : len + 1 };
}
