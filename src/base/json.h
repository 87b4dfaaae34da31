#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * JSON by Jansson, with the rules this program keeps everywhere: strict UTF-8,
 * no duplicate keys, no NUL inside strings, bounded depth (Jansson's 2048).
 * Values are Jansson's and reference-counted as it says. Any thread, one value at a time.
 */

/* Parses one whole document. INK_INVALID with line, column and what was expected. */
INK_NODISCARD enum ink_status ink_json_parse(const char *text, size_t len, json_t **out,
                                             struct ink_err *err);

/* One line, keys in insertion order, UTF-8 unescaped; caller frees. */
char *ink_json_dump(const json_t *value);

/*
 * A field of an object, checked. Missing or null leaves `*out` as it is (its
 * default) and is INK_OK. A wrong type or range is INK_INVALID and names field, value
 * and range. Integers may be written 3.0. Strings are borrowed from `obj`.
 */
INK_NODISCARD enum ink_status ink_json_int(const json_t *obj, const char *name, int64_t min,
                                           int64_t max, int64_t *out, struct ink_err *err);
INK_NODISCARD enum ink_status ink_json_number(const json_t *obj, const char *name, double min,
                                              double max, double *out, struct ink_err *err);
INK_NODISCARD enum ink_status ink_json_bool(const json_t *obj, const char *name, bool *out,
                                            struct ink_err *err);
INK_NODISCARD enum ink_status ink_json_string(const json_t *obj, const char *name, const char **out,
                                              size_t *len, struct ink_err *err);

/* Whether the field is there and not null. */
bool ink_json_has(const json_t *obj, const char *name);

#endif
