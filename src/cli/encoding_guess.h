#ifndef CLI_ENCODING_GUESS_H
#define CLI_ENCODING_GUESS_H

#include <stddef.h>

/*
 * The name that iconv has for what the beginning of a file seems to be written in, when that is not UTF-8: "UTF-16" or
 * "GB18030" (which covers GBK and GB 2312). NULL for UTF-8, for text with only a few bad bytes, and for what cannot be
 * told: those rows have errors of their own. Pure.
 */
const char *encoding_guess(const char *bytes, size_t len);

#endif
