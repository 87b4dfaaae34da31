#ifndef TOKEN_SCRIPT_H
#define TOKEN_SCRIPT_H

#include "base/slice.h"
#include "base/status.h"
#include "token/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Which vocabulary entries a text of some writing system can need. Used to shrink the output head:
 * a Chinese rewrite has no use for the Cyrillic or Thai rows of a multilingual vocabulary.
 */
enum ink_script {
    INK_SCRIPT_HAN = 1 << 0,   /* and Bopomofo, the other script of Chinese */
    INK_SCRIPT_LATIN = 1 << 1, /* ASCII letters and Latin with marks */
    INK_SCRIPT_DIGIT = 1 << 2, /* 0-9, full-width, circled and the like */
    INK_SCRIPT_PUNCT = 1 << 3, /* punctuation and symbols, CJK and full-width forms included */
    INK_SCRIPT_EMOJI = 1 << 4,
    INK_SCRIPT_KANA = 1 << 5,
    INK_SCRIPT_HANGUL = 1 << 6,
    INK_SCRIPT_OTHER = 1 << 7,
    INK_SCRIPT_ALL = (1 << 8) - 1,
    /*
     * For ink_script_select(): of the pieces in ASCII letters only those that texts in another script borrow most:
     * all of one or two letters, abbreviations in capitals, and the most frequent of the rest. Every word can still be
     * spelled. A multilingual vocabulary has more Latin pieces than all others together.
     */
    INK_SCRIPT_LATIN_COMMON = 1 << 8,
    /* What Chinese text of today is made of. */
    INK_SCRIPT_ZH = INK_SCRIPT_HAN | INK_SCRIPT_LATIN_COMMON | INK_SCRIPT_DIGIT | INK_SCRIPT_PUNCT |
                    INK_SCRIPT_EMOJI,
};

/*
 * The scripts of all characters of valid UTF-8 text, as a set of enum ink_script (never LATIN_COMMON). White space and
 * invisible characters (controls, joiners, marks of direction) belong to none.
 */
unsigned ink_script_of_text(struct ink_slice text);

/* "zh", "all", or names joined by commas: "han,latin,latin-common,digit,punct,emoji,kana,hangul,other". */
INK_NODISCARD enum ink_status ink_script_parse(const char *spec, unsigned *out,
                                               struct ink_err *err);

/*
 * Whether the text may be treated as Chinese: it has Han characters, no kana or hangul,
 * and nothing of `other` scripts.
 */
bool ink_script_is_chinese(struct ink_slice text);

/*
 * The ids, ascending, whose pieces are written in `scripts` only; always includes eos, byte pieces, the bare "▁",
 * and no special ids (see ink_tokenizer_is_special). Caller frees `*ids`.
 */
INK_NODISCARD enum ink_status ink_script_select(const struct ink_tokenizer *t, unsigned scripts,
                                                int32_t **ids, int32_t *n, struct ink_err *err);

#endif
