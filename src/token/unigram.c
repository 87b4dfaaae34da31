/*
 * The best cut by dynamic programming over character positions: for every position the greatest score with which the
 * text up to it can be written, and the last piece of that way. From every position, in order, all pieces that
 * begin there are tried. Scores are needed only as far back as a piece can reach and live in a ring.
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
#include "base/utf8.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ON_STACK = 512, /* positions; a longer text takes one allocation */
    RING_ON_STACK = 64,
};

static const float unk_penalty = 10.0F;
static const float reset_threshold = 100000.0F;

/* The last piece of the best way to write the text up to some position. */
struct step {
    int32_t id;
    uint32_t start; /* the position where it begins */
};

/* The scores of positions that a piece from here can end at; all others are -infinity. */
struct ring {
    float *scores;
    size_t mask; /* its size, a power of two, minus 1 */
};

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
    size_t longest = 1;

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
        if (p->type != INK_PIECE_NORMAL && p->type != INK_PIECE_USER_DEFINED)
            continue;
        keys[n++] = (struct trie_key){ p->text, i };
        if (ink_utf8_count(p->text.ptr, p->text.len) > longest)
            longest = ink_utf8_count(p->text.ptr, p->text.len);
    }
    for (u->ring_size = 16; u->ring_size <= longest;)
        u->ring_size *= 2;
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

static bool starts_char(unsigned char byte)
{
    return (byte & 0xc0) != 0x80;
}

/* A way to position `end` whose last piece is `id`. */
static inline void offer(struct ring *ring, struct step *steps, uint32_t end, float score,
                         int32_t id, uint32_t start)
{
    float *best = &ring->scores[end & ring->mask];

    if (score > *best) {
        *best = score;
        steps[end] = (struct step){ id, start };
    }
}

/* Makes the score at `from` 0 and shifts all others with it. */
static void reset_scores(struct ring *ring, uint32_t from)
{
    float offset = ring->scores[from & ring->mask];

    for (size_t i = 0; i <= ring->mask; i++)
        ring->scores[i] -= offset;
}

/*
 * Fills steps[1, n] for the n characters of `text`; returns n. Every position is reached, at the least by an unknown
 * character, so the steps always lead back to 0.
 */
static uint32_t find_best(const struct unigram *u, struct ink_slice text, struct ring *ring,
                          struct step *steps)
{
    const unsigned char *s = (const unsigned char *)text.ptr;
    const size_t len = text.len;
    uint32_t at = 0;

    for (size_t i = 0; i <= ring->mask; i++)
        ring->scores[i] = -INFINITY;
    ring->scores[0] = 0.0F;
    for (size_t i = 0; i < len; at++) {
        float till_here = ring->scores[at & ring->mask];
        size_t next = i + 1;

        if (till_here < -reset_threshold || till_here > reset_threshold) {
            reset_scores(ring, at);
            till_here = 0.0F;
        }
        ring->scores[at & ring->mask] = -INFINITY; /* from now on the slot of a position to come */
        while (next < len && !starts_char(s[next]))
            next++;

        uint64_t node = trie_root(&u->pieces);
        uint32_t end = at + 1;
        bool covered = false;
        for (size_t k = i; k < len && trie_step(&u->pieces, &node, s[k]); k++) {
            int32_t id = trie_id(node);

            end += k >= next && starts_char(s[k]);
            if (id < 0)
                continue;
            offer(ring, steps, end, u->scores[id] + till_here, id, at);
            covered |= end == at + 1;
        }
        if (!covered)
            offer(ring, steps, at + 1, u->unk_score + till_here, u->unk, at);
        i = next;
    }
    return at;
}

/* The most tokens that the best way can become. */
static size_t most_tokens(const struct unigram *u, const struct step *steps, uint32_t n_chars)
{
    size_t n = 0;

    for (uint32_t end = n_chars; end > 0; end = steps[end].start)
        n += u->byte_fallback && steps[end].id == u->unk ? 4 : 1;
    return n;
}

static const char *chars_back(const char *at, uint32_t n)
{
    while (n > 0)
        n -= starts_char((unsigned char)*--at);
    return at;
}

/* Writes the ids of the best way, last first, so that they end before `to`; returns where they begin. */
static int32_t *write_tokens(const struct unigram *u, const struct step *steps, uint32_t n_chars,
                             struct ink_slice text, int32_t *to)
{
    const char *known_byte = text.ptr + text.len; /* where character `known_char` begins */
    uint32_t known_char = n_chars;
    bool after_unk = false;

    for (uint32_t end = n_chars; end > 0; end = steps[end].start) {
        bool is_unk = steps[end].id == u->unk;

        if (is_unk && u->byte_fallback) {
            const char *from = chars_back(known_byte, known_char - end);
            const char *first = chars_back(from, 1);

            known_byte = first;
            known_char = end - 1;
            while (from > first)
                *--to = u->byte_ids[(unsigned char)*--from];
        } else if (!is_unk || !after_unk) {
            *--to = steps[end].id;
        }
        after_unk = is_unk;
    }
    return to;
}

static enum ink_status reserve(struct ink_tokens *out, size_t extra, struct ink_err *err)
{
    if (extra <= out->cap - out->n)
        return INK_OK;
    size_t cap = out->cap + out->cap / 2;
    if (cap < out->n + extra)
        cap = out->n + extra;
    int32_t *ids = ink_try_realloc(out->ids, cap, sizeof(*ids));

    if (!ids)
        return ink_err_set(err, INK_NO_MEMORY, "out of memory for %zu tokens", cap);
    out->ids = ids;
    out->cap = cap;
    return INK_OK;
}

static enum ink_status append_tokens(const struct unigram *u, const struct step *steps,
                                     uint32_t n_chars, struct ink_slice text,
                                     struct ink_tokens *out, struct ink_err *err)
{
    size_t most = most_tokens(u, steps, n_chars);
    enum ink_status st = reserve(out, most, err);

    if (st != INK_OK)
        return st;
    int32_t *end = out->ids + out->n + most;
    int32_t *first = write_tokens(u, steps, n_chars, text, end);

    memmove(out->ids + out->n, first, (size_t)(end - first) * sizeof(*first));
    out->n += (size_t)(end - first);
    return INK_OK;
}

enum ink_status unigram_encode(const struct unigram *u, struct ink_slice text,
                               struct ink_tokens *out, struct ink_err *err)
{
    struct step steps_on_stack[ON_STACK + 1];
    float scores_on_stack[RING_ON_STACK];
    struct step *steps = steps_on_stack;
    struct ring ring = { scores_on_stack, u->ring_size - 1 };
    enum ink_status st;

    if (text.len == 0)
        return INK_OK;
    if (text.len >= INT32_MAX)
        return ink_err_set(err, INK_INVALID,
                           "a text of %zu normalized bytes is too long to tokenize", text.len);
    if (text.len > ON_STACK)
        steps = ink_try_alloc(ink_utf8_count(text.ptr, text.len) + 1, sizeof(*steps));
    if (u->ring_size > RING_ON_STACK)
        ring.scores = ink_try_alloc(u->ring_size, sizeof(*ring.scores));
    if (steps && ring.scores)
        st = append_tokens(u, steps, find_best(u, text, &ring, steps), text, out, err);
    else
        st = ink_err_set(err, INK_NO_MEMORY, "out of memory to tokenize %zu bytes", text.len);
    if (steps != steps_on_stack)
        free(steps);
    if (ring.scores != scores_on_stack)
        free(ring.scores);
    return st;
}
