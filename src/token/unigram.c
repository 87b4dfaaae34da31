/*
 * The best cut by dynamic programming over byte positions: best[i] holds the greatest score with which
 * text[0, i) can be written and the last piece of that way. From every character start, in order, all pieces
 * that begin there are tried.
 *
 * The ids must equal SentencePiece 0.2.3's, also where two ways are worth the same or nearly so.
 * What decides there, and is done here in the same way:
 *
 *   - sums are 32-bit floats, added from the left; a later way must be strictly better to win, and pieces that
 *     end at one place compete in the order of their starts;
 *   - a character that no piece covers alone may be "unknown" at the least normal score - 10;
 *   - a user-defined piece of n bytes is worth 0.1 * (n - 1), computed in double;
 *   - when a sum passes 100,000 it becomes 0, and the ways already under way are shifted by as much;
 *   - an unknown character becomes its bytes where the vocabulary has them; else a run of them is one token.
 */
#include "token/unigram.h"

#include "base/alloc.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ON_STACK = 1024 }; /* positions; texts beyond it take one allocation */

static const float unk_penalty = 10.0F;
static const float reset_threshold = 100000.0F;

/* The best way to write the text up to some position. */
struct best {
    float score;
    int32_t id;     /* its last piece */
    uint32_t start; /* where that piece begins; NOWHERE: no way leads here yet */
};

static const uint32_t NOWHERE = UINT32_MAX;

int unigram_byte_of(struct ink_slice piece)
{
    static const char digits[] = "0123456789ABCDEF";

    if (piece.len != 6 || memcmp(piece.ptr, "<0x", 3) != 0 || piece.ptr[5] != '>')
        return -1;
    const char *high = memchr(digits, piece.ptr[3], 16);
    const char *low = memchr(digits, piece.ptr[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

static enum ink_status index_bytes(struct unigram *u, const struct ink_vocab *vocab,
                                   struct ink_err *err)
{
    for (size_t i = 0; i < 256; i++)
        u->byte_ids[i] = -1;
    for (int32_t i = 0; i < vocab->n_pieces; i++)
        if (vocab->pieces[i].type == INK_PIECE_BYTE)
            u->byte_ids[unigram_byte_of(vocab->pieces[i].text)] = i;
    for (int i = 0; i < 256 && vocab->byte_fallback; i++)
        if (u->byte_ids[i] < 0)
            return ink_err_set(err, INK_CORRUPT,
                               "tokenizer: byte fallback is on but piece <0x%02X> is missing",
                               (unsigned)i);
    return INK_OK;
}

enum ink_status unigram_init(struct unigram *u, const struct ink_vocab *vocab, struct ink_err *err)
{
    size_t n = 0;
    float min_score = FLT_MAX;

    *u = (struct unigram){ .unk = vocab->unk, .byte_fallback = vocab->byte_fallback };
    enum ink_status st = index_bytes(u, vocab, err);
    if (st != INK_OK)
        return st;
    struct trie_key *keys = ink_try_alloc((size_t)vocab->n_pieces, sizeof(*keys));
    u->scores = ink_try_alloc((size_t)vocab->n_pieces, sizeof(*u->scores));
    if (!keys || !u->scores) {
        st = ink_err_set(err, INK_NO_MEMORY, "tokenizer: out of memory for %d pieces",
                         (int)vocab->n_pieces);
        goto out;
    }
    for (int32_t i = 0; i < vocab->n_pieces; i++) {
        const struct ink_piece *p = &vocab->pieces[i];

        u->scores[i] = p->score;
        if (p->type == INK_PIECE_USER_DEFINED)
            u->scores[i] = (float)(0.1 * (double)((int)p->text.len - 1));
        if (p->type == INK_PIECE_NORMAL && p->score < min_score)
            min_score = p->score;
        if (p->type == INK_PIECE_NORMAL || p->type == INK_PIECE_USER_DEFINED)
            keys[n++] = (struct trie_key){ p->text, i };
    }
    u->unk_score = min_score - unk_penalty;
    st = trie_build(&u->pieces, keys, n, "piece", err);
out:
    free(keys);
    if (st != INK_OK)
        unigram_release(u);
    return st;
}

void unigram_release(struct unigram *u)
{
    trie_release(&u->pieces);
    free(u->scores);
    *u = (struct unigram){ 0 };
}

/* Bytes of a character by its first byte alone; a byte that starts none counts as one. */
static size_t char_len(unsigned char first)
{
    static const unsigned char by_high_bits[16] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4
    };

    return by_high_bits[first >> 4];
}

static inline void offer(struct best *at, float score, int32_t id, uint32_t start)
{
    if (at->start == NOWHERE || score > at->score)
        *at = (struct best){ score, id, start };
}

/* Makes the sum at `from` 0 and shifts the ways that end at it or after it, up to `frontier`. */
static void reset_scores(struct best *best, size_t from, size_t frontier)
{
    float offset = best[from].score;

    for (size_t i = from; i <= frontier; i++)
        if (i == from || best[i].start != NOWHERE)
            best[i].score -= offset;
}

/* Fills best[0, text.len]. */
static void find_best(const struct unigram *u, struct ink_slice text, struct best *best)
{
    const unsigned char *s = (const unsigned char *)text.ptr;
    const size_t len = text.len;
    size_t frontier = 0;

    memset(best, 0xff, (len + 1) * sizeof(*best));
    best[0].score = 0.0F;
    for (size_t i = 0; i < len;) {
        float till_here = best[i].score;

        if (till_here < -reset_threshold || till_here > reset_threshold) {
            reset_scores(best, i, frontier);
            till_here = best[i].score;
        }
        size_t one = char_len(s[i]);
        if (one > len - i)
            one = len - i;

        uint64_t node = trie_root(&u->pieces);
        bool covered = false;
        for (size_t end = i; end < len && trie_step(&u->pieces, &node, s[end]);) {
            int32_t id = trie_id(node);

            end++;
            if (id < 0)
                continue;
            if (end > frontier)
                frontier = end;
            offer(&best[end], u->scores[id] + till_here, id, (uint32_t)i);
            covered |= end - i == one;
        }
        if (!covered) {
            if (i + one > frontier)
                frontier = i + one;
            offer(&best[i + one], u->unk_score + till_here, u->unk, (uint32_t)i);
        }
        i += one;
    }
}

/* Tokens of the best way. */
static size_t count_tokens(const struct unigram *u, const struct best *best, size_t len)
{
    size_t n = 0;
    bool after_unk = false;

    for (size_t end = len; end > 0; end = best[end].start) {
        bool is_unk = best[end].id == u->unk;

        if (is_unk && u->byte_fallback)
            n += end - best[end].start;
        else if (!is_unk || !after_unk)
            n++;
        after_unk = is_unk;
    }
    return n;
}

/* Writes the ids of the best way, last first, so that they end before `to`. */
static void write_tokens(const struct unigram *u, const struct best *best, struct ink_slice text,
                         int32_t *to)
{
    bool after_unk = false;

    for (size_t end = text.len; end > 0; end = best[end].start) {
        bool is_unk = best[end].id == u->unk;

        if (is_unk && u->byte_fallback)
            for (size_t i = end; i > best[end].start; i--)
                *--to = u->byte_ids[(unsigned char)text.ptr[i - 1]];
        else if (!is_unk || !after_unk)
            *--to = best[end].id;
        after_unk = is_unk;
    }
}

static enum ink_status reserve(struct ink_tokens *out, size_t extra, struct ink_err *err)
{
    if (extra <= out->cap - out->n)
        return INK_OK;
    size_t cap =
        out->cap + out->cap / 2 > out->n + extra ? out->cap + out->cap / 2 : out->n + extra;
    int32_t *ids = ink_try_realloc(out->ids, cap, sizeof(*ids));

    if (!ids)
        return ink_err_set(err, INK_NO_MEMORY, "out of memory for %zu tokens", cap);
    out->ids = ids;
    out->cap = cap;
    return INK_OK;
}

enum ink_status unigram_encode(const struct unigram *u, struct ink_slice text,
                               struct ink_tokens *out, struct ink_err *err)
{
    struct best on_stack[ON_STACK + 1];
    struct best *best = on_stack;

    if (text.len == 0)
        return INK_OK;
    if (text.len >= INT32_MAX)
        return ink_err_set(err, INK_INVALID,
                           "a text of %zu normalized bytes is too long to tokenize", text.len);
    if (text.len > ON_STACK)
        best = ink_try_alloc(text.len + 1, sizeof(*best));
    if (!best)
        return ink_err_set(err, INK_NO_MEMORY, "out of memory to tokenize %zu bytes", text.len);

    find_best(u, text, best);
    size_t n = count_tokens(u, best, text.len);
    enum ink_status st = reserve(out, n, err);
    if (st == INK_OK) {
        write_tokens(u, best, text, out->ids + out->n + n);
        out->n += n;
    }
    if (best != on_stack)
        free(best);
    return st;
}
