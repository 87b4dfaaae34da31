/*
 * The compiled table is a double array of the Darts format: little-endian 32-bit units, the child of
 * unit `i` by byte `c` is unit `i ^ offset(i) ^ c`, valid if its label is `c`:
 *
 *     bits 0..7 and 31   label (bit 31 marks a value, which no byte equals)
 *     bit  8             a value hangs on this unit, at `i ^ offset(i)`
 *     bit  9             the offset is shifted by another 8 bits
 *     bits 10..30        offset          a value is bits 0..30: the position of a replacement
 *
 * At each place of the text the longest entry wins and is replaced; where no entry starts, one character
 * passes. Hostile tables: an index is compared with the length before each access, a walk moves one byte of
 * text per step, a value must be the start of a character inside the replacements, these are valid UTF-8, end with a NUL,
 * and none may be longer than MAX_REPLACEMENT. So what comes out is valid UTF-8 too.
 *
 * Most text is touched by none of this, so a run of such characters is found by tables and copied at once. What
 * they hold is derived from the rules at the start: characters of the basic plane that no entry starts with (nearly
 * all Han characters), and ASCII characters that only entries with a combining mark start with.
 */
#include "token/normalize.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_REPLACEMENT = 1024, /* bytes; NFKC's longest is 33 */
    PLANE = 0x10000,
};

static const char lower_block[] = "\xe2\x96\x81"; /* U+2581, which stands for a space */
enum { LOWER_BLOCK_LEN = 3 };

static uint32_t unit_label(uint32_t unit)
{
    return unit & 0x800000ffU;
}

static size_t unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 0x200U) >> 6);
}

/* One byte further from `at`, which is moved beyond the unit's offset; false: no entry goes on like this. */
static bool step(const struct normalizer *z, size_t *at, unsigned char byte, uint32_t *unit)
{
    size_t next = *at ^ byte;

    if (next >= z->n_units || unit_label(z->units[next]) != byte)
        return false;
    *unit = z->units[next];
    *at = next ^ unit_offset(*unit);
    return true;
}

/* The longest entry at the start of `text`: its length (0: none) and replacement. */
static size_t match(const struct normalizer *z, struct ink_slice text,
                    struct ink_slice *replacement)
{
    size_t at = unit_offset(z->units[0]);
    size_t longest = 0;
    uint32_t unit;

    for (size_t i = 0; i < text.len && step(z, &at, (unsigned char)text.ptr[i], &unit); i++) {
        if (!(unit >> 8 & 1) || at >= z->n_units)
            continue;
        size_t value = z->units[at] & 0x7fffffffU;
        if (value >= z->replacements_len || ((unsigned char)z->replacements[value] & 0xc0) == 0x80)
            continue;
        longest = i + 1;
        replacement->ptr = z->replacements + value;
    }
    if (longest > 0)
        replacement->len = strlen(replacement->ptr);
    return longest;
}

/* Whether no entry can match at this character, whatever follows it. */
static bool is_untouched(const struct normalizer *z, uint32_t cp)
{
    char utf8[4];
    size_t n = ink_utf8_encode(cp, utf8);
    size_t at = unit_offset(z->units[0]);
    uint32_t unit = 0;

    for (size_t i = 0; i < n; i++) {
        if (!step(z, &at, (unsigned char)utf8[i], &unit))
            return true;
        if (unit >> 8 & 1)
            return false;
    }
    for (unsigned c = 0; c < 256; c++)
        if ((at ^ c) < z->n_units && unit_label(z->units[at ^ c]) == c)
            return false;
    return true;
}

static enum ink_status load_table(struct normalizer *z, struct ink_slice blob, struct ink_err *err)
{
    const unsigned char *p = (const unsigned char *)blob.ptr;

    if (blob.len < 4)
        return ink_err_set(err, INK_CORRUPT, "charsmap: %zu bytes, too short for its header",
                           blob.len);
    size_t trie_len = p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
    if (trie_len < 4 || trie_len % 4 != 0 || trie_len >= blob.len - 4)
        return ink_err_set(err, INK_CORRUPT,
                           "charsmap: a trie of %zu bytes does not fit %zu bytes of table",
                           trie_len, blob.len);
    if (p[blob.len - 1] != 0)
        return ink_err_set(err, INK_CORRUPT, "charsmap: the replacements do not end with a NUL");

    z->n_units = trie_len / 4;
    z->replacements_len = blob.len - 4 - trie_len;
    z->units = ink_try_alloc(z->n_units, sizeof(*z->units));
    z->replacements = ink_try_alloc(z->replacements_len, 1);
    z->untouched = ink_try_alloc(PLANE / 64, sizeof(*z->untouched));
    if (!z->units || !z->replacements || !z->untouched)
        return ink_err_set(err, INK_NO_MEMORY, "charsmap: out of memory for %zu bytes", blob.len);
    for (size_t i = 0; i < z->n_units; i++) {
        const unsigned char *u = p + 4 + 4 * i;

        z->units[i] = u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
    }
    memcpy(z->replacements, p + 4 + trie_len, z->replacements_len);
    for (size_t i = 0; i < z->replacements_len;) {
        size_t len = strlen(z->replacements + i);

        if (len > MAX_REPLACEMENT)
            return ink_err_set(err, INK_CORRUPT,
                               "charsmap: a replacement of %zu bytes; at most %d are accepted", len,
                               MAX_REPLACEMENT);
        if (!ink_utf8_is_valid(z->replacements + i, len))
            return ink_err_set(err, INK_CORRUPT, "charsmap: a replacement is not valid UTF-8");
        if (len > z->longest_replacement)
            z->longest_replacement = len;
        i += len + 1;
    }
    memset(z->untouched, 0, PLANE / 8);
    for (uint32_t cp = 1; cp < PLANE; cp++)
        if (is_untouched(z, cp))
            z->untouched[cp / 64] |= 1ULL << cp % 64;
    return INK_OK;
}

/* Whether entries that start with this ASCII character need a byte beyond ASCII next; `*none`: there are no entries. */
static bool is_plain_before_ascii(const struct normalizer *z, unsigned char byte, bool *none)
{
    uint32_t unit;

    *none = true;
    if (!z->units)
        return true;
    size_t at = unit_offset(z->units[0]);
    if (!step(z, &at, byte, &unit))
        return true;
    *none = false;
    if (unit >> 8 & 1)
        return false;
    for (unsigned c = 0; c < 0x80; c++)
        if ((at ^ c) < z->n_units && unit_label(z->units[at ^ c]) == c)
            return false;
    return true;
}

static void fill_ascii_tables(struct normalizer *z)
{
    for (unsigned char c = 0; c < 0x80; c++) {
        bool none = false;
        bool plain = c != ' ' && !z->starts_verbatim[c] && is_plain_before_ascii(z, c, &none);

        z->plain_before_ascii[c] = plain;
        z->plain[c] = plain && none;
    }
}

enum ink_status normalizer_init(struct normalizer *z, const struct normalizer_options *o,
                                struct ink_err *err)
{
    enum ink_status st = INK_OK;

    *z = (struct normalizer){
        .add_dummy_prefix = o->add_dummy_prefix,
        .remove_extra_whitespaces = o->remove_extra_whitespaces,
        .escape_whitespaces = o->escape_whitespaces,
    };
    if (o->charsmap.len > 0)
        st = load_table(z, o->charsmap, err);
    if (st == INK_OK)
        st = trie_build(&z->verbatim, o->verbatim, o->n_verbatim, "piece", err);
    if (st != INK_OK) {
        normalizer_release(z);
        return st;
    }
    for (size_t i = 0; i < o->n_verbatim; i++)
        z->starts_verbatim[(unsigned char)o->verbatim[i].text.ptr[0]] = true;
    fill_ascii_tables(z);
    return INK_OK;
}

void normalizer_release(struct normalizer *z)
{
    free(z->units);
    free(z->replacements);
    free(z->untouched);
    trie_release(&z->verbatim);
    *z = (struct normalizer){ 0 };
}

size_t normalizer_max_output(const struct normalizer *z, size_t len)
{
    /* Every byte may be a space, and every replacement may consist of them. */
    size_t growth = LOWER_BLOCK_LEN * (z->longest_replacement > 1 ? z->longest_replacement : 1);

    return len > (SIZE_MAX / 2 - LOWER_BLOCK_LEN) / growth ? SIZE_MAX / 2
                                                           : len * growth + LOWER_BLOCK_LEN;
}

/*
 * Length of what is read next from `text` (not empty), and what it becomes. Text that no entry
 * touches becomes itself.
 */
static size_t next_part(const struct normalizer *z, struct ink_slice text,
                        struct ink_slice *becomes)
{
    unsigned char first = (unsigned char)text.ptr[0];
    uint32_t cp = 0;

    *becomes = text;
    if (z->starts_verbatim[first]) {
        int32_t id;
        size_t len = trie_longest(&z->verbatim, text, &id);

        if (len > 0)
            return becomes->len = len;
    }
    size_t char_len = first < 0x80 ? 1 : ink_utf8_decode(text.ptr, text.len, &cp);
    if (first < 0x80)
        cp = first;
    if (z->units && !(cp < PLANE && z->untouched[cp / 64] >> cp % 64 & 1)) {
        size_t len = match(z, text, becomes);

        if (len > 0)
            return len;
        becomes->ptr = text.ptr;
    }
    if (char_len == 0) /* not reached with valid UTF-8; keeps the walk going all the same */
        char_len = 1;
    return becomes->len = char_len;
}

static bool is_untouched_at(const struct normalizer *z, uint32_t cp)
{
    return !z->units || (z->untouched[cp / 64] >> cp % 64 & 1);
}

/* Length of the characters at the start of `text`, without spaces, that become themselves. */
static size_t plain_run(const struct normalizer *z, struct ink_slice text)
{
    const unsigned char *s = (const unsigned char *)text.ptr;
    size_t i = 0;

    while (i < text.len) {
        unsigned char c = s[i];
        size_t left = text.len - i;

        if (c < 0x80) {
            if (!z->plain[c] && !(z->plain_before_ascii[c] && (left == 1 || s[i + 1] < 0x80)))
                break;
            i++;
        } else if (z->starts_verbatim[c]) {
            break;
        } else if (c >= 0xe0 && c < 0xf0 && left >= 3) {
            if (!is_untouched_at(z,
                                 (c & 0xfU) << 12 | (s[i + 1] & 0x3fU) << 6 | (s[i + 2] & 0x3fU)))
                break;
            i += 3;
        } else if (c < 0xe0 && left >= 2) {
            if (!is_untouched_at(z, (c & 0x1fU) << 6 | (s[i + 1] & 0x3fU)))
                break;
            i += 2;
        } else {
            break;
        }
    }
    return i;
}

static enum ink_status put(const struct normalizer *z, struct ink_buf *out, struct ink_slice s)
{
    size_t from = 0;

    if (!z->escape_whitespaces || !memchr(s.ptr, ' ', s.len))
        return ink_buf_add(out, s.ptr, s.len);
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] != ' ')
            continue;
        enum ink_status st = ink_buf_add(out, s.ptr + from, i - from);
        if (st == INK_OK)
            st = ink_buf_add(out, lower_block, LOWER_BLOCK_LEN);
        if (st != INK_OK)
            return st;
        from = i + 1;
    }
    return ink_buf_add(out, s.ptr + from, s.len - from);
}

static void advance(struct ink_slice *text, size_t n)
{
    text->ptr += n;
    text->len -= n;
}

/* Removes spaces from the end of what was appended after `start`; a U+2581 of the text counts as one. */
static void trim_end(const struct normalizer *z, struct ink_buf *out, size_t start)
{
    size_t space = z->escape_whitespaces ? LOWER_BLOCK_LEN : 1;
    const char *mark = z->escape_whitespaces ? lower_block : " ";

    while (out->len - start >= space && memcmp(out->ptr + out->len - space, mark, space) == 0)
        out->len -= space;
    out->ptr[out->len] = '\0';
}

enum ink_status normalizer_run(const struct normalizer *z, struct ink_slice text,
                               struct ink_buf *out)
{
    size_t start = out->len;
    struct ink_slice part;
    enum ink_status st = ink_buf_reserve(out, text.len + text.len / 8 + LOWER_BLOCK_LEN);

    if (st != INK_OK)
        return st;
    if (z->remove_extra_whitespaces) {
        while (text.len > 0) {
            size_t n = next_part(z, text, &part);

            if (part.len != 1 || part.ptr[0] != ' ')
                break;
            advance(&text, n);
        }
    }
    if (text.len == 0)
        return INK_OK;
    if (z->add_dummy_prefix)
        st = put(z, out, (struct ink_slice){ " ", 1 });

    bool after_space = z->remove_extra_whitespaces;
    while (text.len > 0 && st == INK_OK) {
        size_t n = plain_run(z, text);

        if (n > 0) {
            st = ink_buf_add(out, text.ptr, n);
            after_space = false;
            advance(&text, n);
            continue;
        }
        n = next_part(z, text, &part);
        while (after_space && part.len > 0 && part.ptr[0] == ' ')
            advance(&part, 1);
        if (part.len > 0) {
            st = put(z, out, part);
            after_space = z->remove_extra_whitespaces && part.ptr[part.len - 1] == ' ';
        }
        advance(&text, n);
    }
    if (st == INK_OK && z->remove_extra_whitespaces)
        trim_end(z, out, start);
    return st;
}
