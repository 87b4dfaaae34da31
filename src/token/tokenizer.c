/*
 * The vocabulary behind the interface: checks, look-ups, and special tokens in text.
 *
 * Which ids a text gets follows two references. For plain text it is SentencePiece 0.2.3 on the same
 * vocabulary. With `specials`, text is first cut at special tokens written in it, as the fast
 * T5 tokenizer of transformers 5.24 does: in the raw text, before normalization; the leftmost, and of those the
 * longest; nothing around them is stripped. Special are control pieces (</s>, <pad>, <s>), the unknown piece,
 * and the <extra_id_N> that the text side adds. Each stretch between them is then a plain text of its own, with
 * its own "▁" in front; an empty stretch gives no ids.
 *
 * Where the two differ on such a stretch, SentencePiece is followed. transformers:
 *   - has no byte fallback in T5 tokenizers; what is outside the vocabulary becomes one unknown token;
 *   - splits on all white space and drops it, also where the vocabulary keeps it (umT5: tabs, line ends, runs of
 *     spaces, spaces beside a special token);
 *   - applies the charsmap to whole grapheme clusters, so that combining marks may get lost;
 *   - takes a U+2581 in the text for a space that is already there;
 *   - finds control and byte pieces spelled out in normalized text ("＜/s＞" in full width, "<0x41>");
 *   - cuts the text at user-defined pieces too (umT5's "[eod]" at the start of a text then has no "▁" before it);
 *   - sums scores in double, so ways of almost the same score may be ordered differently.
 */
#include "token/tokenizer.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "token/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PIECE = 8000, /* bytes of one piece, as in SentencePiece */
    MAX_EXTRA_IDS = 10000,
};

/* Scores are log-probabilities; with this bound no sum of them leaves the range of a float. */
static const float max_score = 1e9F;

static enum ink_status check_piece(const struct ink_piece *p, int32_t id, struct ink_err *err)
{
    if (p->type < INK_PIECE_NORMAL || p->type > INK_PIECE_BYTE)
        return ink_err_set(err, INK_CORRUPT, "tokenizer: piece %d has the unknown type %d", (int)id,
                           (int)p->type);
    if (p->text.len == 0 && p->type != INK_PIECE_UNUSED)
        return ink_err_set(err, INK_CORRUPT, "tokenizer: piece %d is empty", (int)id);
    if (p->text.len > MAX_PIECE)
        return ink_err_set(err, INK_CORRUPT,
                           "tokenizer: piece %d has %zu bytes; at most %d are accepted", (int)id,
                           p->text.len, MAX_PIECE);
    if (!ink_utf8_is_valid(p->text.ptr, p->text.len) ||
        (p->text.len > 0 && memchr(p->text.ptr, 0, p->text.len)))
        return ink_err_set(err, INK_CORRUPT,
                           "tokenizer: piece %d is not text (invalid UTF-8 or a NUL)", (int)id);
    if (!(fabsf(p->score) <= max_score))
        return ink_err_set(err, INK_CORRUPT,
                           "tokenizer: the score of piece %d is %g, not in %g..%g", (int)id,
                           (double)p->score, (double)-max_score, (double)max_score);
    if (p->type == INK_PIECE_BYTE && unigram_byte_of(p->text) < 0)
        return ink_err_set(err, INK_CORRUPT,
                           "tokenizer: byte piece %d is \"%.*s\", not like <0xE4>", (int)id,
                           (int)(p->text.len < 80 ? p->text.len : 80), p->text.ptr);
    return INK_OK;
}

static enum ink_status check_id(int32_t id, const char *what, int32_t n_pieces, struct ink_err *err)
{
    if (id < -1 || id >= n_pieces)
        return ink_err_set(err, INK_CORRUPT, "tokenizer: the %s id %d is not in 0..%d", what,
                           (int)id, (int)n_pieces - 1);
    return INK_OK;
}

static enum ink_status check_vocab(const struct ink_vocab *v, struct ink_err *err)
{
    const struct {
        int32_t id;
        const char *name;
    } ids[] = {
        { v->bos, "bos" },
        { v->eos, "eos" },
        { v->unk, "unknown" },
        { v->pad, "pad" },
    };
    enum ink_status st = INK_OK;

    if (v->kind != INK_VOCAB_UNIGRAM)
        return ink_err_set(err, INK_UNSUPPORTED, "tokenizer: vocabulary kind %d is not supported",
                           (int)v->kind);
    if (v->n_pieces < 1 || v->n_pieces > TRIE_MAX_ID - MAX_EXTRA_IDS)
        return ink_err_set(err, INK_CORRUPT, "tokenizer: %d pieces; 1..%d are accepted",
                           (int)v->n_pieces, TRIE_MAX_ID - MAX_EXTRA_IDS);
    if (v->n_extra_ids < 0 || v->n_extra_ids > MAX_EXTRA_IDS)
        return ink_err_set(err, INK_CORRUPT, "tokenizer: %d extra ids; 0..%d are accepted",
                           (int)v->n_extra_ids, MAX_EXTRA_IDS);
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]) && st == INK_OK; i++)
        st = check_id(ids[i].id, ids[i].name, v->n_pieces, err);
    for (int32_t i = 0; i < v->n_pieces && st == INK_OK; i++)
        st = check_piece(&v->pieces[i], i, err);
    if (st == INK_OK && v->unk < 0 && !v->byte_fallback)
        st = ink_err_set(err, INK_CORRUPT, "tokenizer: neither an unknown piece nor byte fallback");
    return st;
}

static int32_t n_ids(const struct ink_tokenizer *t)
{
    return t->n_pieces + t->n_extra_ids;
}

/* The spelling of an id beyond the vocabulary. */
static size_t spell_extra(const struct ink_tokenizer *t, int32_t id, char *out, size_t cap)
{
    return (size_t)snprintf(out, cap, "<extra_id_%d>", (int)(n_ids(t) - 1 - id));
}

static enum ink_status copy_pieces(struct ink_tokenizer *t, const struct ink_vocab *v,
                                   struct ink_err *err)
{
    char extra[32];
    size_t n = (size_t)n_ids(t);
    uint64_t bytes = 0;

    for (int32_t i = 0; i < v->n_pieces; i++)
        bytes += v->pieces[i].text.len;
    for (int32_t i = v->n_pieces; i < n_ids(t); i++)
        bytes += spell_extra(t, i, extra, sizeof(extra));
    if (bytes > UINT32_MAX)
        return ink_err_set(err, INK_CORRUPT,
                           "tokenizer: the pieces are longer than 4 GiB together");
    t->text = ink_try_alloc((size_t)bytes + 1, 1);
    t->text_at = ink_try_alloc(n + 1, sizeof(*t->text_at));
    t->scores = ink_try_alloc(n, sizeof(*t->scores));
    t->types = ink_try_alloc(n, sizeof(*t->types));
    if (!t->text || !t->text_at || !t->scores || !t->types)
        return ink_err_set(err, INK_NO_MEMORY, "tokenizer: out of memory for %zu pieces", n);

    uint32_t at = 0;
    for (int32_t i = 0; i < n_ids(t); i++) {
        bool is_extra = i >= v->n_pieces;
        struct ink_slice s =
            is_extra ? (struct ink_slice){ extra, spell_extra(t, i, extra, sizeof(extra)) }
                     : v->pieces[i].text;

        t->text_at[i] = at;
        if (s.len > 0)
            memcpy(t->text + at, s.ptr, s.len);
        at += (uint32_t)s.len;
        t->scores[i] = is_extra ? 0.0F : v->pieces[i].score;
        t->types[i] = (uint8_t)(is_extra ? INK_PIECE_CONTROL : v->pieces[i].type);
    }
    t->text_at[n] = at;
    return INK_OK;
}

/* Indexes the pieces whose type is in `types`, a set of bits 1 << type. */
static enum ink_status index_types(const struct ink_tokenizer *t, unsigned types, struct trie *out,
                                   struct ink_err *err)
{
    size_t n = 0;
    struct trie_key *keys = ink_try_alloc((size_t)n_ids(t), sizeof(*keys));

    if (!keys)
        return ink_err_set(err, INK_NO_MEMORY, "tokenizer: out of memory for %d pieces",
                           (int)n_ids(t));
    for (int32_t i = 0; i < n_ids(t); i++) {
        struct ink_slice piece = ink_tokenizer_piece(t, i);

        if ((types >> t->types[i] & 1U) && piece.len > 0)
            keys[n++] = (struct trie_key){ piece, i };
    }
    enum ink_status st = trie_build(out, keys, n, "piece", err);
    free(keys);
    return st;
}

static enum ink_status init_normalizer(struct ink_tokenizer *t, const struct ink_vocab *v,
                                       struct ink_err *err)
{
    struct normalizer_options o = {
        .charsmap = t->charsmap,
        .add_dummy_prefix = v->add_dummy_prefix,
        .remove_extra_whitespaces = v->remove_extra_whitespaces,
        .escape_whitespaces = v->escape_whitespaces,
    };
    struct trie_key *keys = ink_try_alloc((size_t)v->n_pieces, sizeof(*keys));

    if (!keys)
        return ink_err_set(err, INK_NO_MEMORY, "tokenizer: out of memory for %d pieces",
                           (int)v->n_pieces);
    for (int32_t i = 0; i < v->n_pieces; i++)
        if (v->pieces[i].type == INK_PIECE_USER_DEFINED)
            keys[o.n_verbatim++] = (struct trie_key){ v->pieces[i].text, i };
    o.verbatim = keys;
    enum ink_status st = normalizer_init(&t->normalizer, &o, err);
    free(keys);
    return st;
}

static enum ink_status init(struct ink_tokenizer *t, const struct ink_vocab *v, struct ink_err *err)
{
    const unsigned control = 1U << INK_PIECE_CONTROL, unknown = 1U << INK_PIECE_UNKNOWN;
    enum ink_status st = check_vocab(v, err);

    if (st != INK_OK)
        return st;
    t->kind = v->kind;
    t->n_pieces = v->n_pieces;
    t->n_extra_ids = v->n_extra_ids;
    t->bos = v->bos;
    t->eos = v->eos;
    t->unk = v->unk;
    t->pad = v->pad;
    t->add_dummy_prefix = v->add_dummy_prefix;
    t->remove_extra_whitespaces = v->remove_extra_whitespaces;
    t->escape_whitespaces = v->escape_whitespaces;
    t->byte_fallback = v->byte_fallback;
    if (v->charsmap.len > 0) {
        char *copy = ink_try_alloc(v->charsmap.len, 1);

        if (!copy)
            return ink_err_set(err, INK_NO_MEMORY, "tokenizer: out of memory for the charsmap");
        memcpy(copy, v->charsmap.ptr, v->charsmap.len);
        t->charsmap = (struct ink_slice){ copy, v->charsmap.len };
    }
    st = copy_pieces(t, v, err);
    if (st == INK_OK)
        st = index_types(t, control | unknown | 1U << INK_PIECE_BYTE, &t->reserved, err);
    if (st == INK_OK)
        st = index_types(t, control | unknown, &t->written, err);
    if (st == INK_OK)
        st = index_types(t, 1U << INK_PIECE_UNUSED, &t->unused, err);
    if (st == INK_OK)
        st = init_normalizer(t, v, err);
    if (st == INK_OK)
        st = unigram_init(&t->unigram, v, err);
    if (st != INK_OK)
        return st;
    for (int32_t i = 0; i < n_ids(t); i++)
        if (t->types[i] == INK_PIECE_CONTROL || t->types[i] == INK_PIECE_UNKNOWN)
            t->starts_written[(unsigned char)t->text[t->text_at[i]]] = true;
    return INK_OK;
}

enum ink_status ink_tokenizer_new(const struct ink_vocab *vocab, struct ink_tokenizer **out,
                                  struct ink_err *err)
{
    struct ink_tokenizer *t = ink_zalloc(sizeof(*t));
    enum ink_status st = init(t, vocab, err);

    if (st != INK_OK) {
        ink_tokenizer_free(t);
        return st;
    }
    *out = t;
    return INK_OK;
}

void ink_tokenizer_free(struct ink_tokenizer *t)
{
    if (!t)
        return;
    unigram_release(&t->unigram);
    normalizer_release(&t->normalizer);
    trie_release(&t->reserved);
    trie_release(&t->unused);
    trie_release(&t->written);
    free((void *)t->charsmap.ptr);
    free(t->text);
    free(t->text_at);
    free(t->scores);
    free(t->types);
    free(t);
}

struct ink_slice ink_tokenizer_piece(const struct ink_tokenizer *t, int32_t id)
{
    if (id < 0 || id >= n_ids(t))
        return (struct ink_slice){ "", 0 };
    return (struct ink_slice){ t->text + t->text_at[id], t->text_at[id + 1] - t->text_at[id] };
}

int32_t ink_tokenizer_n_pieces(const struct ink_tokenizer *t)
{
    return n_ids(t);
}

int32_t ink_tokenizer_piece_type(const struct ink_tokenizer *t, int32_t id)
{
    return id < 0 || id >= n_ids(t) ? 0 : t->types[id];
}

float ink_tokenizer_score(const struct ink_tokenizer *t, int32_t id)
{
    return id < 0 || id >= n_ids(t) ? 0.0F : t->scores[id];
}

int32_t ink_tokenizer_find(const struct ink_tokenizer *t, struct ink_slice piece)
{
    int32_t id = trie_find(&t->reserved, piece);

    if (id < 0)
        id = trie_find(&t->unigram.pieces, piece);
    return id < 0 ? trie_find(&t->unused, piece) : id;
}

int32_t ink_tokenizer_eos(const struct ink_tokenizer *t)
{
    return t->eos;
}

int32_t ink_tokenizer_pad(const struct ink_tokenizer *t)
{
    return t->pad;
}

int32_t ink_tokenizer_unk(const struct ink_tokenizer *t)
{
    return t->unk;
}

/* "<extra_id_7>", with or without a "▁" before it: mT5's vocabulary has them with it. */
static bool is_extra_id(struct ink_slice s)
{
    static const char space[] = "\xe2\x96\x81", head[] = "<extra_id_";
    const size_t space_len = sizeof(space) - 1, head_len = sizeof(head) - 1;

    if (s.len > space_len && memcmp(s.ptr, space, space_len) == 0)
        s = (struct ink_slice){ s.ptr + space_len, s.len - space_len };
    if (s.len < head_len + 2 || memcmp(s.ptr, head, head_len) != 0 || s.ptr[s.len - 1] != '>')
        return false;
    for (size_t i = head_len; i < s.len - 1; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return true;
}

bool ink_tokenizer_is_special(const struct ink_tokenizer *t, int32_t id)
{
    switch (ink_tokenizer_piece_type(t, id)) {
    case INK_PIECE_NORMAL:
    case INK_PIECE_BYTE:
        return id == t->bos || id == t->pad || id == t->unk;
    case INK_PIECE_USER_DEFINED:
        return id == t->bos || id == t->pad || is_extra_id(ink_tokenizer_piece(t, id));
    case INK_PIECE_CONTROL:
        return id != t->eos;
    default:
        return true;
    }
}

/* Where the first special token of `text` is and how long; INK_OK without one leaves `*len` 0. */
static size_t find_written(const struct ink_tokenizer *t, struct ink_slice text, size_t *len,
                           int32_t *id)
{
    *len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!t->starts_written[(unsigned char)text.ptr[i]])
            continue;
        *len = trie_longest(&t->written, (struct ink_slice){ text.ptr + i, text.len - i }, id);
        if (*len > 0)
            return i;
    }
    return text.len;
}

static enum ink_status encode_plain(const struct ink_tokenizer *t, struct ink_slice text,
                                    struct ink_buf *normal, struct ink_tokens *out,
                                    struct ink_err *err)
{
    if (text.len == 0)
        return INK_OK;
    ink_buf_clear(normal);
    if (normalizer_run(&t->normalizer, text, normal) != INK_OK)
        return ink_err_set(err, INK_NO_MEMORY, "out of memory to normalize %zu bytes of text",
                           text.len);
    return unigram_encode(&t->unigram, ink_buf_slice(normal), out, err);
}

static enum ink_status add_token(struct ink_tokens *out, int32_t id, struct ink_err *err)
{
    if (out->n == out->cap) {
        size_t cap = out->cap < 16 ? 16 : out->cap + out->cap / 2;
        int32_t *ids = ink_try_realloc(out->ids, cap, sizeof(*ids));

        if (!ids)
            return ink_err_set(err, INK_NO_MEMORY, "out of memory for %zu tokens", cap);
        out->ids = ids;
        out->cap = cap;
    }
    out->ids[out->n++] = id;
    return INK_OK;
}

static enum ink_status encode_with_specials(const struct ink_tokenizer *t, struct ink_slice text,
                                            struct ink_buf *normal, struct ink_tokens *out,
                                            struct ink_err *err)
{
    enum ink_status st = INK_OK;

    while (text.len > 0 && st == INK_OK) {
        size_t len;
        int32_t id = -1;
        size_t at = find_written(t, text, &len, &id);

        st = encode_plain(t, (struct ink_slice){ text.ptr, at }, normal, out, err);
        if (st == INK_OK && len > 0)
            st = add_token(out, id, err);
        text.ptr += at + len;
        text.len -= at + len;
    }
    return st;
}

enum ink_status ink_tokenizer_encode(const struct ink_tokenizer *t, struct ink_slice text,
                                     const struct ink_encode_options *options,
                                     struct ink_tokens *out, struct ink_err *err)
{
    size_t valid = ink_utf8_valid_prefix(text.ptr, text.len);
    size_t before = out->n;
    struct ink_buf normal;

    if (valid < text.len)
        return ink_err_set(err, INK_INVALID, "the text is not valid UTF-8 at byte %zu", valid);
    ink_buf_init(&normal, normalizer_max_output(&t->normalizer, text.len));
    enum ink_status st = options->specials ? encode_with_specials(t, text, &normal, out, err)
                                           : encode_plain(t, text, &normal, out, err);
    ink_buf_release(&normal);
    if (st == INK_OK && options->add_special && t->eos >= 0)
        st = add_token(out, t->eos, err);
    if (st == INK_OK && options->max_tokens > 0 && out->n - before > options->max_tokens)
        st = ink_err_param(err, INK_INVALID, "", "input_too_long",
                           "the text has %zu tokens; at most %zu are accepted", out->n - before,
                           options->max_tokens);
    if (st != INK_OK)
        out->n = before;
    return st;
}

void ink_tokenizer_digest(const struct ink_tokenizer *t, uint8_t out[32])
{
    static const char version[] = "inkstone tokenizer 1";
    const int32_t numbers[] = {
        (int32_t)t->kind,
        t->n_pieces,
        t->n_extra_ids,
        t->bos,
        t->eos,
        t->unk,
        t->pad,
        t->add_dummy_prefix,
        t->remove_extra_whitespaces,
        t->escape_whitespaces,
        t->byte_fallback,
    };
    size_t n = (size_t)n_ids(t);
    struct ink_digest *d = ink_digest_new();

    ink_digest_field(d, version, sizeof(version) - 1);
    ink_digest_field(d, numbers, sizeof(numbers));
    ink_digest_field(d, t->text_at, (n + 1) * sizeof(*t->text_at));
    ink_digest_field(d, t->text, t->text_at[n]);
    ink_digest_field(d, t->scores, n * sizeof(*t->scores));
    ink_digest_field(d, t->types, n);
    ink_digest_field(d, t->charsmap.ptr, t->charsmap.len);
    ink_digest_finish(d, out);
}
