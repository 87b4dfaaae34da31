/*
 * Ids back to text, by the rules of SentencePiece's decoder, one token at a time:
 *
 *   - "▁" becomes a space, except at the start of the text, where the space that encoding puts in front is taken away
 *     again: all of them where the vocabulary removes extra white space, one where it only adds a prefix;
 *   - a run of byte pieces is read as UTF-8; a byte that can't be part of a character becomes U+FFFD;
 *   - control pieces (and unused ones, which are padding) have no text; the unknown piece is " ⁇ "; user-defined
 *     pieces are text, mT5's own "▁<extra_id_0>" too.
 *
 * A byte that may still grow into a character waits in `bytes`; nothing else is ever held back.
 */
#include "token/detokenize.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "token/vocabulary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct ink_detokenizer {
    const struct ink_tokenizer *t;
    bool keep_special;
    bool has_text;     /* something was written */
    bool prefix_taken; /* the one space of a dummy prefix was taken away */
    char bytes[4];     /* the beginning of a character */
    size_t n_bytes;
    struct ink_buf out;
};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
static const char unknown[] = " \xe2\x81\x87 ";   /* U+2047 between spaces */
static const char lower_block[] = "\xe2\x96\x81"; /* U+2581 */

static void init(struct ink_detokenizer *d, const struct ink_tokenizer *t, bool keep_special)
{
    *d = (struct ink_detokenizer){ .t = t, .keep_special = keep_special };
    /* What a token can add is bounded by its piece, so only memory is a ceiling. */
    ink_buf_init(&d->out, SIZE_MAX / 2);
}

static enum ink_status write_text(struct ink_detokenizer *d, const char *s, size_t len)
{
    if (len > 0)
        d->has_text = true;
    return ink_buf_add(&d->out, s, len);
}

/* Writes what the waiting bytes have become; at the `end` of their run nothing waits any longer. */
static enum ink_status write_bytes(struct ink_detokenizer *d, bool end)
{
    enum ink_status st = INK_OK;

    while (d->n_bytes > 0 && st == INK_OK) {
        uint32_t cp;
        size_t n = ink_utf8_decode(d->bytes, d->n_bytes, &cp);

        if (n > 0) {
            st = write_text(d, d->bytes, n);
        } else {
            if (!end && ink_utf8_is_cut(d->bytes, d->n_bytes))
                break;
            st = write_text(d, replacement, sizeof(replacement) - 1);
            n = 1;
        }
        d->n_bytes -= n;
        memmove(d->bytes, d->bytes + n, d->n_bytes);
    }
    return st;
}

static bool starts_with_space(struct ink_slice s)
{
    return s.len >= sizeof(lower_block) - 1 &&
           memcmp(s.ptr, lower_block, sizeof(lower_block) - 1) == 0;
}

static enum ink_status write_piece(struct ink_detokenizer *d, struct ink_slice piece)
{
    const size_t space_len = sizeof(lower_block) - 1;
    bool may_strip = d->t->add_dummy_prefix || d->t->remove_extra_whitespaces;
    enum ink_status st = INK_OK;

    if (may_strip && !d->has_text && !d->prefix_taken && starts_with_space(piece)) {
        piece.ptr += space_len;
        piece.len -= space_len;
        d->prefix_taken = !d->t->remove_extra_whitespaces;
    }
    while (piece.len > 0 && st == INK_OK) {
        if (starts_with_space(piece)) {
            st = write_text(d, " ", 1);
            piece.ptr += space_len;
            piece.len -= space_len;
            continue;
        }
        const char *next = memchr(piece.ptr + 1, lower_block[0], piece.len - 1);
        size_t n = next ? (size_t)(next - piece.ptr) : piece.len;

        st = write_text(d, piece.ptr, n);
        piece.ptr += n;
        piece.len -= n;
    }
    return st;
}

static enum ink_status add(struct ink_detokenizer *d, int32_t id, struct ink_err *err)
{
    int32_t type = ink_tokenizer_piece_type(d->t, id);
    struct ink_slice piece = ink_tokenizer_piece(d->t, id);
    enum ink_status st;

    if (type == 0)
        return ink_err_set(err, INK_INVALID, "token id %d is not in 0..%d", (int)id,
                           (int)ink_tokenizer_n_pieces(d->t) - 1);
    if (type == INK_PIECE_BYTE) {
        d->bytes[d->n_bytes++] = (char)unigram_byte_of(piece);
        st = write_bytes(d, false);
    } else {
        st = write_bytes(d, true);
        if (st == INK_OK && d->keep_special)
            st = write_piece(d, piece);
        else if (st == INK_OK && type == INK_PIECE_UNKNOWN)
            st = write_text(d, unknown, sizeof(unknown) - 1);
        else if (st == INK_OK && (type == INK_PIECE_NORMAL || type == INK_PIECE_USER_DEFINED))
            st = write_piece(d, piece);
    }
    return st == INK_OK ? st
                        : ink_err_set(err, INK_NO_MEMORY, "out of memory for the text of %zu bytes",
                                      d->out.len);
}

struct ink_detokenizer *ink_detokenizer_new(const struct ink_tokenizer *t)
{
    struct ink_detokenizer *d = ink_alloc(sizeof(*d));

    init(d, t, false);
    return d;
}

void ink_detokenizer_free(struct ink_detokenizer *d)
{
    if (!d)
        return;
    ink_buf_release(&d->out);
    free(d);
}

void ink_detokenizer_clear(struct ink_detokenizer *d)
{
    ink_buf_clear(&d->out);
    d->has_text = d->prefix_taken = false;
    d->n_bytes = 0;
}

enum ink_status ink_detokenizer_add(struct ink_detokenizer *d, int32_t id, struct ink_slice *out,
                                    struct ink_err *err)
{
    ink_buf_clear(&d->out);
    enum ink_status st = add(d, id, err);
    if (st == INK_OK)
        *out = ink_buf_slice(&d->out);
    return st;
}

struct ink_slice ink_detokenizer_finish(struct ink_detokenizer *d)
{
    ink_buf_clear(&d->out);
    (void)write_bytes(d, true); /* at most three U+FFFD: memory of that size is not refused */
    return ink_buf_slice(&d->out);
}

enum ink_status ink_tokenizer_decode(const struct ink_tokenizer *t, const int32_t *ids, size_t n,
                                     bool keep_special, char **out, size_t *len,
                                     struct ink_err *err)
{
    struct ink_detokenizer d;
    enum ink_status st = INK_OK;

    init(&d, t, keep_special);
    for (size_t i = 0; i < n && st == INK_OK; i++)
        st = add(&d, ids[i], err);
    if (st == INK_OK && write_bytes(&d, true) != INK_OK)
        st = ink_err_set(err, INK_NO_MEMORY, "out of memory for the text of %zu tokens", n);
    if (st == INK_OK) {
        *len = d.out.len;
        *out = ink_buf_take(&d.out);
    }
    ink_buf_release(&d.out);
    return st;
}
