/*
 * A whole tokenizer on a vocabulary and a text that are both made up by the fuzzer.
 *
 * Input: one byte of rules; one byte: number of pieces; for each a byte of type and length (low 3 bits: type, high 5:
 * length), a signed byte of score, the spelling; the rest is text. With bit 7 of the rules the 256 byte pieces are added
 * and byte fallback is on. Text that goes wrong is cut, after a look at whether it is refused.
 *
 * What a tokenizer owes for any vocabulary: ids are inside it; only pieces that may come out do; the pieces join to
 * the same text whether decoded at once or as a stream; and where nothing is unknown and nothing is normalized away, they join to the input.
 */
#include "base/alloc.h"
#include "base/utf8.h"
#include "token/detokenize.h"
#include "token/script.h"
#include "token/tokenizer.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIECES = 256 + 256 };

struct input {
    const uint8_t *at, *end;
    struct ink_piece pieces[MAX_PIECES];
    char byte_text[256][8];
    struct ink_vocab vocab;
    unsigned rules;
};

static void read_pieces(struct input *in)
{
    int n = in->at < in->end ? *in->at++ : 0;

    for (int i = 0; i < n && in->end - in->at >= 2; i++) {
        unsigned head = *in->at++;
        int score = (int8_t)*in->at++;
        size_t len = head >> 3;

        if (len > (size_t)(in->end - in->at))
            len = (size_t)(in->end - in->at);
        in->pieces[in->vocab.n_pieces++] = (struct ink_piece){ { (const char *)in->at, len },
                                                               (float)score / 8,
                                                               (int32_t)(head & 7) };
        in->at += len;
    }
}

static void read_vocab(struct input *in)
{
    in->rules = in->at < in->end ? *in->at++ : 0;
    in->vocab = (struct ink_vocab){
        .kind = INK_VOCAB_UNIGRAM,
        .pieces = in->pieces,
        .bos = -1,
        .eos = -1,
        .unk = -1,
        .pad = -1,
        .add_dummy_prefix = in->rules & 1,
        .remove_extra_whitespaces = in->rules & 2,
        .escape_whitespaces = in->rules & 4,
        .n_extra_ids = (int32_t)(in->rules >> 3 & 3),
    };
    read_pieces(in);
    if (in->rules & 0x80) {
        in->vocab.byte_fallback = true;
        for (unsigned i = 0; i < 256; i++) {
            int n = snprintf(in->byte_text[i], sizeof(in->byte_text[i]), "<0x%02X>", i);

            in->pieces[in->vocab.n_pieces++] =
                (struct ink_piece){ { in->byte_text[i], (size_t)n }, 0, INK_PIECE_BYTE };
        }
    }
    for (int32_t i = 0; i < in->vocab.n_pieces; i++) {
        if (in->pieces[i].type == INK_PIECE_UNKNOWN && in->vocab.unk < 0)
            in->vocab.unk = i;
        if (in->pieces[i].type == INK_PIECE_CONTROL)
            in->vocab.eos = i;
    }
}

static void check_ids(const struct input *in, const struct ink_tokenizer *t,
                      const struct ink_tokens *tokens, bool specials)
{
    for (size_t i = 0; i < tokens->n; i++) {
        int32_t type = ink_tokenizer_piece_type(t, tokens->ids[i]);

        assert(type != 0 && type != INK_PIECE_UNUSED);
        assert(specials || type != INK_PIECE_CONTROL);
        assert(type != INK_PIECE_BYTE || in->vocab.byte_fallback);
    }
}

static void check_decoding(const struct ink_tokenizer *t, const struct ink_tokens *tokens)
{
    struct ink_detokenizer *d = ink_detokenizer_new(t);
    char *whole, *kept;
    size_t len, kept_len, at = 0;
    struct ink_slice part;
    enum ink_status st = ink_tokenizer_decode(t, tokens->ids, tokens->n, false, &whole, &len, NULL);

    assert(st == INK_OK && ink_utf8_is_valid(whole, len));
    st = ink_tokenizer_decode(t, tokens->ids, tokens->n, true, &kept, &kept_len, NULL);
    assert(st == INK_OK && ink_utf8_is_valid(kept, kept_len));
    for (size_t i = 0; i <= tokens->n; i++) {
        if (i < tokens->n) {
            st = ink_detokenizer_add(d, tokens->ids[i], &part, NULL);
            assert(st == INK_OK);
        } else {
            part = ink_detokenizer_finish(d);
        }
        assert(ink_utf8_is_valid(part.ptr, part.len));
        assert(part.len <= len - at && memcmp(whole + at, part.ptr, part.len) == 0);
        at += part.len;
    }
    assert(at == len);
    free(whole);
    free(kept);
    ink_detokenizer_free(d);
}

/* With bytes for all that is unknown and no rule for spaces, encoding loses nothing. */
static void check_round_trip(const struct input *in, const struct ink_tokenizer *t,
                             const struct ink_tokens *tokens, struct ink_slice text)
{
    char *joined = ink_alloc(text.len + 1);
    size_t at = 0;

    if (in->vocab.byte_fallback && !(in->rules & 7)) {
        for (size_t i = 0; i < tokens->n; i++) {
            struct ink_slice piece = ink_tokenizer_piece(t, tokens->ids[i]);
            unsigned byte;

            if (ink_tokenizer_piece_type(t, tokens->ids[i]) == INK_PIECE_BYTE) {
                assert(sscanf(piece.ptr, "<0x%2X>", &byte) == 1);
                assert(at < text.len);
                joined[at++] = (char)byte;
            } else {
                assert(piece.len <= text.len - at);
                memcpy(joined + at, piece.ptr, piece.len);
                at += piece.len;
            }
        }
        assert(at == text.len && (at == 0 || memcmp(joined, text.ptr, at) == 0));
    }
    free(joined);
}

static void run(const struct input *in, const struct ink_tokenizer *t, struct ink_slice text)
{
    for (int specials = 0; specials < 2; specials++) {
        const struct ink_encode_options options = { .specials = specials, .add_special = specials };
        struct ink_tokens tokens = { 0 };
        enum ink_status st = ink_tokenizer_encode(t, text, &options, &tokens, NULL);

        assert(st == INK_OK);
        check_ids(in, t, &tokens, specials);
        check_decoding(t, &tokens);
        if (!specials)
            check_round_trip(in, t, &tokens, text);
        free(tokens.ids);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct input in;
    struct ink_tokenizer *t;
    int32_t *ids, n;

    in.at = data;
    in.end = data + size;
    read_vocab(&in);
    if (ink_tokenizer_new(&in.vocab, &t, NULL) != INK_OK)
        return 0;
    struct ink_slice text = { (const char *)in.at, (size_t)(in.end - in.at) };
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);
    if (valid < text.len) {
        const struct ink_encode_options options = { 0 };
        struct ink_tokens tokens = { 0 };
        enum ink_status st = ink_tokenizer_encode(t, text, &options, &tokens, NULL);

        assert(st == INK_INVALID && tokens.n == 0);
        text.len = valid;
    }
    run(&in, t, text);
    enum ink_status st =
        ink_script_select(t, ink_script_of_text(text) | INK_SCRIPT_LATIN_COMMON, &ids, &n, NULL);
    assert(st == INK_OK && n >= 0 && n <= ink_tokenizer_n_pieces(t));
    free(ids);
    ink_tokenizer_free(t);
    return 0;
}
