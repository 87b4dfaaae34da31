/*
 * Writing systems of characters and of vocabulary pieces.
 *
 * Han, Latin, kana and Hangul are the ranges of Unicode 15's Scripts.txt, with what Unicode calls "Common" or
 * "Inherited" added where it is used with one script only (the kana prolonged sound mark, combining Latin marks). What
 * is left of the listed blocks of symbols is a digit or a punctuation mark by its general category, and an emoji by the
 * property Extended_Pictographic; both come from utf8proc.
 */
#include "token/script.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <utf8proc.h>

#include <stdlib.h>
#include <string.h>

enum {
    NONE = 0,
    INVISIBLE = 1 << 16, /* inside this file: leaves no ink and is no white space */
    SYMBOLS = 1 << 17,   /* inside this file: a block to be looked at one by one */
    /*
     * Pieces in ASCII letters, beside the short ones and the capitals. mT5's Chinese head has 49,721 rows with it and
     * 48,080 with none; 79 % of the Latin tokens in 35,000 Chinese reviews are in it as they are.
     */
    N_COMMON_LATIN = 2000,
    SHORT_LATIN = 2, /* letters */
};

struct range {
    uint32_t first, last;
    unsigned script;
};

/* In the order of code points; no two overlap. */
/* clang-format off */
static const struct range ranges[] = {
    { 0x0021, 0x002f, SYMBOLS },
    { 0x0030, 0x0039, INK_SCRIPT_DIGIT },
    { 0x003a, 0x0040, SYMBOLS },
    { 0x0041, 0x005a, INK_SCRIPT_LATIN },
    { 0x005b, 0x0060, SYMBOLS },
    { 0x0061, 0x007a, INK_SCRIPT_LATIN },
    { 0x007b, 0x007e, SYMBOLS },
    { 0x00a1, 0x00a9, SYMBOLS },
    { 0x00aa, 0x00aa, INK_SCRIPT_LATIN },
    { 0x00ab, 0x00ac, SYMBOLS },
    { 0x00ae, 0x00b9, SYMBOLS },
    { 0x00ba, 0x00ba, INK_SCRIPT_LATIN },
    { 0x00bb, 0x00bf, SYMBOLS },
    { 0x00c0, 0x00d6, INK_SCRIPT_LATIN },
    { 0x00d7, 0x00d7, SYMBOLS },
    { 0x00d8, 0x00f6, INK_SCRIPT_LATIN },
    { 0x00f7, 0x00f7, SYMBOLS },
    { 0x00f8, 0x02b8, INK_SCRIPT_LATIN },
    { 0x02b9, 0x02df, SYMBOLS },
    { 0x02e0, 0x02e4, INK_SCRIPT_LATIN },
    { 0x02e5, 0x02e9, SYMBOLS },
    { 0x02ea, 0x02eb, INK_SCRIPT_HAN },             /* Bopomofo tones */
    { 0x02ec, 0x02ff, SYMBOLS },
    { 0x0300, 0x036f, INK_SCRIPT_LATIN },           /* combining marks */
    { 0x1100, 0x11ff, INK_SCRIPT_HANGUL },
    { 0x1ab0, 0x1ace, INK_SCRIPT_LATIN },           /* combining marks */
    { 0x1d00, 0x1d25, INK_SCRIPT_LATIN },
    { 0x1d2c, 0x1d5c, INK_SCRIPT_LATIN },
    { 0x1d62, 0x1d65, INK_SCRIPT_LATIN },
    { 0x1d6b, 0x1d77, INK_SCRIPT_LATIN },
    { 0x1d79, 0x1dbe, INK_SCRIPT_LATIN },
    { 0x1dc0, 0x1dff, INK_SCRIPT_LATIN },           /* combining marks */
    { 0x1e00, 0x1eff, INK_SCRIPT_LATIN },
    { 0x200d, 0x200d, INK_SCRIPT_EMOJI },           /* zero-width joiner */
    { 0x2010, 0x2027, SYMBOLS },
    { 0x2030, 0x205e, SYMBOLS },
    { 0x2070, 0x2070, SYMBOLS },
    { 0x2071, 0x2071, INK_SCRIPT_LATIN },
    { 0x2074, 0x207e, SYMBOLS },
    { 0x207f, 0x207f, INK_SCRIPT_LATIN },
    { 0x2080, 0x208e, SYMBOLS },
    { 0x2090, 0x209c, INK_SCRIPT_LATIN },
    { 0x20a0, 0x20cf, SYMBOLS },
    { 0x20d0, 0x20df, SYMBOLS },
    { 0x20e0, 0x20e0, SYMBOLS },
    { 0x20e1, 0x20e2, SYMBOLS },
    { 0x20e3, 0x20e3, INK_SCRIPT_EMOJI },           /* enclosing keycap */
    { 0x20e4, 0x20f0, SYMBOLS },
    { 0x2100, 0x2129, SYMBOLS },
    { 0x212a, 0x212b, INK_SCRIPT_LATIN },
    { 0x212c, 0x2131, SYMBOLS },
    { 0x2132, 0x2132, INK_SCRIPT_LATIN },
    { 0x2133, 0x214d, SYMBOLS },
    { 0x214e, 0x214e, INK_SCRIPT_LATIN },
    { 0x214f, 0x215f, SYMBOLS },
    { 0x2160, 0x2188, INK_SCRIPT_LATIN },           /* Roman numerals */
    { 0x2189, 0x27ff, SYMBOLS },                    /* arrows, mathematics, boxes, shapes, dingbats */
    { 0x2900, 0x2bff, SYMBOLS },
    { 0x2c60, 0x2c7f, INK_SCRIPT_LATIN },
    { 0x2e00, 0x2e5d, SYMBOLS },
    { 0x2e80, 0x2e99, INK_SCRIPT_HAN },
    { 0x2e9b, 0x2ef3, INK_SCRIPT_HAN },
    { 0x2f00, 0x2fd5, INK_SCRIPT_HAN },
    { 0x2ff0, 0x2fff, SYMBOLS },
    { 0x3001, 0x3004, SYMBOLS },
    { 0x3005, 0x3005, INK_SCRIPT_HAN },
    { 0x3006, 0x3006, INK_SCRIPT_HAN },
    { 0x3007, 0x3007, INK_SCRIPT_HAN },
    { 0x3008, 0x3020, SYMBOLS },
    { 0x3021, 0x3029, INK_SCRIPT_HAN },
    { 0x302a, 0x302d, INK_SCRIPT_HAN },             /* tone marks */
    { 0x302e, 0x302f, INK_SCRIPT_HANGUL },
    { 0x3030, 0x3037, SYMBOLS },
    { 0x3038, 0x303b, INK_SCRIPT_HAN },
    { 0x303c, 0x303f, SYMBOLS },
    { 0x3041, 0x3096, INK_SCRIPT_KANA },
    { 0x3099, 0x309f, INK_SCRIPT_KANA },            /* with the sound marks */
    { 0x30a0, 0x30fa, INK_SCRIPT_KANA },
    { 0x30fb, 0x30fb, SYMBOLS },                    /* the middle dot stands in Chinese names too */
    { 0x30fc, 0x30ff, INK_SCRIPT_KANA },
    { 0x3105, 0x312f, INK_SCRIPT_HAN },             /* Bopomofo */
    { 0x3131, 0x318e, INK_SCRIPT_HANGUL },
    { 0x3190, 0x319f, SYMBOLS },
    { 0x31a0, 0x31bf, INK_SCRIPT_HAN },             /* Bopomofo */
    { 0x31c0, 0x31ef, SYMBOLS },
    { 0x31f0, 0x31ff, INK_SCRIPT_KANA },
    { 0x3200, 0x321e, INK_SCRIPT_HANGUL },
    { 0x3220, 0x325f, SYMBOLS },
    { 0x3260, 0x327e, INK_SCRIPT_HANGUL },
    { 0x327f, 0x32cf, SYMBOLS },
    { 0x32d0, 0x32fe, INK_SCRIPT_KANA },
    { 0x32ff, 0x32ff, SYMBOLS },
    { 0x3300, 0x3357, INK_SCRIPT_KANA },
    { 0x3358, 0x33ff, SYMBOLS },
    { 0x3400, 0x4dbf, INK_SCRIPT_HAN },
    { 0x4dc0, 0x4dff, SYMBOLS },
    { 0x4e00, 0x9fff, INK_SCRIPT_HAN },
    { 0xa700, 0xa721, SYMBOLS },
    { 0xa722, 0xa787, INK_SCRIPT_LATIN },
    { 0xa788, 0xa78a, SYMBOLS },
    { 0xa78b, 0xa7ca, INK_SCRIPT_LATIN },
    { 0xa7d0, 0xa7d1, INK_SCRIPT_LATIN },
    { 0xa7d3, 0xa7d3, INK_SCRIPT_LATIN },
    { 0xa7d5, 0xa7d9, INK_SCRIPT_LATIN },
    { 0xa7f2, 0xa7ff, INK_SCRIPT_LATIN },
    { 0xa960, 0xa97c, INK_SCRIPT_HANGUL },
    { 0xab30, 0xab5a, INK_SCRIPT_LATIN },
    { 0xab5b, 0xab5b, SYMBOLS },
    { 0xab5c, 0xab64, INK_SCRIPT_LATIN },
    { 0xab66, 0xab69, INK_SCRIPT_LATIN },
    { 0xab6a, 0xab6b, SYMBOLS },
    { 0xac00, 0xd7a3, INK_SCRIPT_HANGUL },
    { 0xd7b0, 0xd7c6, INK_SCRIPT_HANGUL },
    { 0xd7cb, 0xd7fb, INK_SCRIPT_HANGUL },
    { 0xf900, 0xfa6d, INK_SCRIPT_HAN },
    { 0xfa70, 0xfad9, INK_SCRIPT_HAN },
    { 0xfb00, 0xfb06, INK_SCRIPT_LATIN },
    { 0xfe0e, 0xfe0f, INK_SCRIPT_EMOJI },           /* text or emoji form of the character before */
    { 0xfe10, 0xfe19, SYMBOLS },
    { 0xfe20, 0xfe2d, INK_SCRIPT_LATIN },           /* combining half marks */
    { 0xfe30, 0xfe6b, SYMBOLS },
    { 0xff01, 0xff0f, SYMBOLS },
    { 0xff10, 0xff19, INK_SCRIPT_DIGIT },
    { 0xff1a, 0xff20, SYMBOLS },
    { 0xff21, 0xff3a, INK_SCRIPT_LATIN },
    { 0xff3b, 0xff40, SYMBOLS },
    { 0xff41, 0xff5a, INK_SCRIPT_LATIN },
    { 0xff5b, 0xff65, SYMBOLS },
    { 0xff66, 0xff9f, INK_SCRIPT_KANA },
    { 0xffa0, 0xffbe, INK_SCRIPT_HANGUL },
    { 0xffc2, 0xffc7, INK_SCRIPT_HANGUL },
    { 0xffca, 0xffcf, INK_SCRIPT_HANGUL },
    { 0xffd2, 0xffd7, INK_SCRIPT_HANGUL },
    { 0xffda, 0xffdc, INK_SCRIPT_HANGUL },
    { 0xffe0, 0xffee, SYMBOLS },
    { 0xfffc, 0xfffd, SYMBOLS },
    { 0x10780, 0x10785, INK_SCRIPT_LATIN },
    { 0x10787, 0x107b0, INK_SCRIPT_LATIN },
    { 0x107b2, 0x107ba, INK_SCRIPT_LATIN },
    { 0x16fe2, 0x16fe3, INK_SCRIPT_HAN },
    { 0x16ff0, 0x16ff1, INK_SCRIPT_HAN },
    { 0x1aff0, 0x1aff3, INK_SCRIPT_KANA },
    { 0x1aff5, 0x1affb, INK_SCRIPT_KANA },
    { 0x1affd, 0x1affe, INK_SCRIPT_KANA },
    { 0x1b000, 0x1b122, INK_SCRIPT_KANA },
    { 0x1b132, 0x1b132, INK_SCRIPT_KANA },
    { 0x1b150, 0x1b152, INK_SCRIPT_KANA },
    { 0x1b155, 0x1b155, INK_SCRIPT_KANA },
    { 0x1b164, 0x1b167, INK_SCRIPT_KANA },
    { 0x1d400, 0x1d7ff, SYMBOLS },                  /* mathematical letters and digits */
    { 0x1df00, 0x1df1e, INK_SCRIPT_LATIN },
    { 0x1df25, 0x1df2a, INK_SCRIPT_LATIN },
    { 0x1f000, 0x1f1e5, SYMBOLS },
    { 0x1f1e6, 0x1f1ff, INK_SCRIPT_EMOJI },         /* regional indicators: flags */
    { 0x1f200, 0x1f200, INK_SCRIPT_KANA },
    { 0x1f201, 0x1f3fa, SYMBOLS },
    { 0x1f3fb, 0x1f3ff, INK_SCRIPT_EMOJI },         /* skin tones */
    { 0x1f400, 0x1fbff, SYMBOLS },
    { 0x20000, 0x2a6df, INK_SCRIPT_HAN },
    { 0x2a700, 0x2b739, INK_SCRIPT_HAN },
    { 0x2b740, 0x2b81d, INK_SCRIPT_HAN },
    { 0x2b820, 0x2cea1, INK_SCRIPT_HAN },
    { 0x2ceb0, 0x2ebe0, INK_SCRIPT_HAN },
    { 0x2ebf0, 0x2ee5d, INK_SCRIPT_HAN },
    { 0x2f800, 0x2fa1d, INK_SCRIPT_HAN },
    { 0x30000, 0x3134a, INK_SCRIPT_HAN },
    { 0x31350, 0x323af, INK_SCRIPT_HAN },
    { 0xe0020, 0xe007f, INK_SCRIPT_EMOJI },         /* tags: flags of regions */
};
/* clang-format on */

static const char lower_block[] = "\xe2\x96\x81"; /* U+2581: a space, in pieces */
enum { LOWER_BLOCK_LEN = 3, LOWER_BLOCK = 0x2581 };

static unsigned script_in_ranges(uint32_t cp)
{
    size_t lo = 0, hi = sizeof(ranges) / sizeof(ranges[0]);

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (cp > ranges[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo < sizeof(ranges) / sizeof(ranges[0]) && cp >= ranges[lo].first)
        return ranges[lo].script;
    return INK_SCRIPT_OTHER;
}

static unsigned script_of_symbol(const utf8proc_property_t *p)
{
    switch (p->category) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return INK_SCRIPT_DIGIT;
    case UTF8PROC_CATEGORY_SO:
    case UTF8PROC_CATEGORY_CN: /* reserved for emoji to come */
        if (p->boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC)
            return INK_SCRIPT_EMOJI;
        return p->category == UTF8PROC_CATEGORY_SO ? INK_SCRIPT_PUNCT : INK_SCRIPT_OTHER;
    default:
        return INK_SCRIPT_PUNCT;
    }
}

static unsigned script_of_char(uint32_t cp)
{
    if (cp >= 0x4e00 && cp <= 0x9fff)
        return INK_SCRIPT_HAN;

    unsigned script = script_in_ranges(cp);
    if (script != SYMBOLS && script != INK_SCRIPT_OTHER)
        return script;

    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)cp);
    if (script == SYMBOLS)
        return script_of_symbol(p);
    switch (p->category) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return NONE;
    case UTF8PROC_CATEGORY_CC:
        return (cp >= 0x09 && cp <= 0x0d) || cp == 0x85 ? NONE : INVISIBLE;
    case UTF8PROC_CATEGORY_CF:
        return INVISIBLE;
    default:
        /* Variation selectors choose a form of the character before them. */
        return (cp >= 0xfe00 && cp <= 0xfe0f) || (cp >= 0xe0100 && cp <= 0xe01ef)
                   ? INVISIBLE
                   : INK_SCRIPT_OTHER;
    }
}

unsigned ink_script_of_text(struct ink_slice text)
{
    unsigned set = 0;

    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        size_t n = ink_utf8_decode(text.ptr + i, text.len - i, &cp);

        if (n == 0) /* the caller's text is valid; never loop on what is not */
            return set | INK_SCRIPT_OTHER;
        set |= script_of_char(cp);
        i += n;
    }
    return set & INK_SCRIPT_ALL;
}

bool ink_script_is_chinese(struct ink_slice text)
{
    unsigned set = ink_script_of_text(text);

    return (set & INK_SCRIPT_HAN) &&
           !(set & (INK_SCRIPT_KANA | INK_SCRIPT_HANGUL | INK_SCRIPT_OTHER));
}

static const struct {
    const char *name;
    unsigned script;
} names[] = {
    { "all", INK_SCRIPT_ALL },
    { "zh", INK_SCRIPT_ZH },
    { "han", INK_SCRIPT_HAN },
    { "latin", INK_SCRIPT_LATIN },
    { "latin-common", INK_SCRIPT_LATIN_COMMON },
    { "digit", INK_SCRIPT_DIGIT },
    { "punct", INK_SCRIPT_PUNCT },
    { "emoji", INK_SCRIPT_EMOJI },
    { "kana", INK_SCRIPT_KANA },
    { "hangul", INK_SCRIPT_HANGUL },
    { "other", INK_SCRIPT_OTHER },
};

static bool script_by_name(const char *s, size_t len, unsigned *out)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, s, len) == 0) {
            *out = names[i].script;
            return true;
        }
    }
    return false;
}

enum ink_status ink_script_parse(const char *spec, unsigned *out, struct ink_err *err)
{
    unsigned set = 0;

    for (const char *s = spec;;) {
        size_t len = strcspn(s, ",");
        unsigned script;

        if (!script_by_name(s, len, &script))
            return ink_err_param(
                err, INK_INVALID, "scripts", "invalid_value",
                "scripts: \"%.*s\" is none of all, zh, han, latin, latin-common, digit, punct, emoji, "
                "kana, hangul, other",
                (int)(len < 40 ? len : 40), s);
        set |= script;
        if (s[len] == '\0')
            break;
        s += len + 1;
    }
    *out = set;
    return INK_OK;
}

/* What of a piece is text: a space at its start is only where a word begins. */
static struct ink_slice without_spaces(struct ink_slice s)
{
    while (s.len >= LOWER_BLOCK_LEN && memcmp(s.ptr, lower_block, LOWER_BLOCK_LEN) == 0)
        s = (struct ink_slice){ s.ptr + LOWER_BLOCK_LEN, s.len - LOWER_BLOCK_LEN };
    return s;
}

/* The scripts of a piece, where U+2581 is a space and INVISIBLE stays visible. */
static unsigned script_of_piece(struct ink_slice piece)
{
    unsigned set = 0;

    for (size_t i = 0; i < piece.len;) {
        uint32_t cp;
        size_t n = ink_utf8_decode(piece.ptr + i, piece.len - i, &cp);

        if (n == 0)
            return INK_SCRIPT_OTHER;
        if (cp != LOWER_BLOCK)
            set |= script_of_char(cp);
        i += n;
    }
    return set;
}

static bool is_ascii(struct ink_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] >= 0x80)
            return false;
    return true;
}

static bool has_lower_case(struct ink_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] >= 'a' && s.ptr[i] <= 'z')
            return true;
    return false;
}

struct candidate {
    float score;
    int32_t id;
};

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Replaces INK_SCRIPT_LATIN by INK_SCRIPT_LATIN_COMMON for the pieces that deserve it. */
static enum ink_status mark_common_latin(const struct ink_tokenizer *t, unsigned *scripts,
                                         int32_t n, struct ink_err *err)
{
    size_t n_rest = 0;
    struct candidate *rest = ink_try_alloc((size_t)n + 1, sizeof(*rest));

    if (!rest)
        return ink_err_set(err, INK_NO_MEMORY, "out of memory for %d pieces", (int)n);
    for (int32_t id = 0; id < n; id++) {
        struct ink_slice s = without_spaces(ink_tokenizer_piece(t, id));

        if (!(scripts[id] & INK_SCRIPT_LATIN) || !is_ascii(s))
            continue;
        if (s.len <= SHORT_LATIN || !has_lower_case(s))
            scripts[id] = (scripts[id] & ~(unsigned)INK_SCRIPT_LATIN) | INK_SCRIPT_LATIN_COMMON;
        else
            rest[n_rest++] = (struct candidate){ ink_tokenizer_score(t, id), id };
    }
    qsort(rest, n_rest, sizeof(*rest), by_score);
    for (size_t i = 0; i < n_rest && i < N_COMMON_LATIN; i++)
        scripts[rest[i].id] =
            (scripts[rest[i].id] & ~(unsigned)INK_SCRIPT_LATIN) | INK_SCRIPT_LATIN_COMMON;
    free(rest);
    return INK_OK;
}

static bool is_selected(const struct ink_tokenizer *t, int32_t id, unsigned piece, unsigned wanted)
{
    if (id == ink_tokenizer_eos(t))
        return true;
    if (ink_tokenizer_is_special(t, id))
        return false;
    if (ink_tokenizer_piece_type(t, id) == INK_PIECE_BYTE)
        return true;
    if (wanted & INK_SCRIPT_LATIN)
        wanted |= INK_SCRIPT_LATIN_COMMON;
    if (wanted & INK_SCRIPT_OTHER)
        wanted |= INVISIBLE;
    return (piece & ~wanted) == 0;
}

enum ink_status ink_script_select(const struct ink_tokenizer *t, unsigned scripts, int32_t **ids,
                                  int32_t *n_out, struct ink_err *err)
{
    int32_t n = ink_tokenizer_n_pieces(t), n_selected = 0;
    unsigned *of = ink_try_alloc((size_t)n, sizeof(*of));
    int32_t *selected = ink_try_alloc((size_t)n, sizeof(*selected));
    enum ink_status st = INK_OK;

    if (!of || !selected) {
        st = ink_err_set(err, INK_NO_MEMORY, "out of memory for %d pieces", (int)n);
        goto out;
    }
    for (int32_t id = 0; id < n; id++)
        of[id] = script_of_piece(ink_tokenizer_piece(t, id));
    st = mark_common_latin(t, of, n, err);
    if (st != INK_OK)
        goto out;
    for (int32_t id = 0; id < n; id++)
        if (is_selected(t, id, of[id], scripts))
            selected[n_selected++] = id;
    *ids = selected;
    *n_out = n_selected;
    selected = NULL;
out:
    free(of);
    free(selected);
    return st;
}
