/*
 * Sentence and clause ends of Chinese and Western text, one character at a time: a cut is possible where a mark, with
 * whatever closes after it, is complete.
 */
#include "task/text_limits.h"

#include "base/utf8.h"

#include <stdint.h>

static bool is_blank(uint32_t cp)
{
    return cp == ' ' || (cp >= 0x09 && cp <= 0x0D) || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F ||
           cp == 0x205F || cp == 0x3000;
}

static bool is_one_of(uint32_t cp, const uint32_t *set)
{
    while (*set && *set != cp)
        set++;
    return *set != 0;
}

/* 。！？!?…｡ and line ends */
static const uint32_t sentence_marks[] = { 0x3002, 0xFF01, 0xFF1F, '!',    '?',
                                           0x2026, 0xFF61, '\n',   0x2029, 0 };
/* ，、；：,;: */
static const uint32_t clause_marks[] = { 0xFF0C, 0x3001, 0xFF1B, 0xFF1A, ',', ';', ':', 0 };
/* ” ’ 」 』 ） 》 】 " ' ) ] */
static const uint32_t closing_marks[] = { 0x201D, 0x2019, 0x300D, 0x300F, 0xFF09, 0x300B,
                                          0x3011, '"',    '\'',   ')',    ']',    0 };

static bool is_digit(uint32_t cp)
{
    return cp >= '0' && cp <= '9';
}

/* Whether a cut of this kind is possible right after `cp`, which stands before `next` (0 at the end of the text). */
static bool ends_at(uint32_t before, uint32_t cp, uint32_t next, enum text_cut kind)
{
    if (is_one_of(cp, sentence_marks))
        return true;
    if (cp == '.' && (next == 0 || is_blank(next)))
        return true;
    if (kind != TEXT_CUT_CLAUSE || !is_one_of(cp, clause_marks))
        return false;
    return !(is_digit(before) && is_digit(next)); /* 1,000 and 12:30 stay whole */
}

size_t text_last_cut(struct ink_slice text, size_t max, enum text_cut kind)
{
    size_t at = 0, best = 0;
    uint32_t before = 0, cp = 0, next;
    bool after_mark = false;

    while (at < text.len) {
        size_t n = ink_utf8_decode(text.ptr + at, text.len - at, &cp);

        if (n == 0 || at + n > max)
            break;
        at += n;
        if (kind == TEXT_CUT_CHARACTER) {
            best = at;
            continue;
        }
        if (ink_utf8_decode(text.ptr + at, text.len - at, &next) == 0)
            next = 0;
        after_mark =
            ends_at(before, cp, next, kind) || (after_mark && is_one_of(cp, closing_marks));
        /* What closes after a mark, or repeats it, belongs to it. */
        if (after_mark && !is_one_of(next, closing_marks) && !is_one_of(next, sentence_marks))
            best = at;
        before = cp;
    }
    return best;
}

size_t text_blank_prefix(struct ink_slice text)
{
    size_t at = 0;
    uint32_t cp;

    for (size_t n; (n = ink_utf8_decode(text.ptr + at, text.len - at, &cp)) > 0 && is_blank(cp);)
        at += n;
    return at;
}

size_t text_without_blank_end(struct ink_slice text)
{
    size_t len = text.len;

    while (len > 0) {
        size_t at = len - 1;
        uint32_t cp;

        while (at > 0 && ((unsigned char)text.ptr[at] & 0xC0) == 0x80)
            at--;
        if (ink_utf8_decode(text.ptr + at, len - at, &cp) == 0 || !is_blank(cp))
            break;
        len = at;
    }
    return len;
}
