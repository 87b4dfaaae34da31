#ifndef TASK_TEXT_LIMITS_H
#define TASK_TEXT_LIMITS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/* Where a text can be cut, and what of it is white space. Pure; text is valid UTF-8. */

enum text_cut {
    TEXT_CUT_SENTENCE, /* after 。！？!?… or a line, or a full stop before a space; closing quotes and brackets included */
    TEXT_CUT_CLAUSE,   /* also after ，、；：,;: */
    TEXT_CUT_CHARACTER, /* anywhere between characters */
};

/* The longest prefix of at most `max` bytes that ends at such a place; 0 if there is none. */
size_t text_last_cut(struct ink_slice text, size_t max, enum text_cut kind);

/* Bytes of white space at the start (Unicode's White_Space). */
size_t text_blank_prefix(struct ink_slice text);
/* `text` without white space at its end. */
size_t text_without_blank_end(struct ink_slice text);

#endif
