#ifndef SERVER_ERROR_WORDS_H
#define SERVER_ERROR_WORDS_H

#include "base/status.h"

/*
 * The machine-readable words of errors: an error's own reason where it has one, else the word of its status. One
 * table says which HTTP status and OpenAI type a word has.
 */
struct error_word {
    const char *word; /* "invalid_value", ... */
    int http_status;
    const char *type; /* "invalid_request_error", "rate_limit_error", "server_error" */
};

/* Never NULL: what the table does not know is "internal", 500. */
const struct error_word *error_word_of(const struct ink_err *err);

#endif
