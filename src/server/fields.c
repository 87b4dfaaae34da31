/* Objects read by a table of fields. */
#include "server/fields.h"

#include "base/json.h"
#include "base/slice.h"
#include "base/utf8.h"
#include "server/json_fields.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* How many bytes of a wrong word an error shows: whole characters. */
static int shown_len(const char *word)
{
    size_t len = strlen(word);

    return (int)ink_utf8_complete_prefix(word, len < 40 ? len : 40);
}

enum ink_status field_word(const char *name, const char *const *words, const char *word,
                           unsigned *out, struct ink_err *err)
{
    char list[200] = "";
    size_t len = 0;

    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out = i;
            return INK_OK;
        }
        const char *between = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        int n = snprintf(list + len, sizeof(list) - len, "%s%s", between, words[i]);
        if (n > 0 && (size_t)n < sizeof(list) - len)
            len += (size_t)n;
    }
    return ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: '%.*s' is not %s", name,
                         shown_len(word), word, list);
}

static enum ink_status read_text(const struct field *f, const json_t *obj, void *at,
                                 struct ink_err *err)
{
    const char *text = NULL;
    size_t len = 0;
    enum ink_status st = ink_json_string(obj, f->name, &text, &len, err);

    if (st != INK_OK || !text)
        return st;
    if ((f->flags & FIELD_NOT_BLANK) && strspn(text, " \t\r\n") == len)
        return ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                             "%s: empty; write what to rewrite", f->name);
    *(struct ink_slice *)at = (struct ink_slice){ text, len };
    return INK_OK;
}

static enum ink_status read_number(const struct field *f, const json_t *obj, double *at,
                                   struct ink_err *err)
{
    enum ink_status st = ink_json_number(obj, f->name, f->min, f->max, at, err);

    if (st == INK_OK && (f->flags & FIELD_ABOVE) && !(*at > f->min))
        return ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                             "%s: %g is not above %g and at most %g", f->name, *at, f->min, f->max);
    return st;
}

static enum ink_status read_int(const struct field *f, const json_t *obj, int *at,
                                struct ink_err *err)
{
    bool any = f->flags & FIELD_MODEL_MAX;

    return field_int(obj, f->name, any ? INT_MIN : (int)f->min, any ? INT_MAX : (int)f->max, at,
                     err);
}

static enum ink_status read_word(const struct field *f, const json_t *obj, void *at,
                                 struct ink_err *err)
{
    const char *word = NULL;
    size_t len;
    unsigned place;
    enum ink_status st = ink_json_string(obj, f->name, &word, &len, err);

    if (st == INK_OK && word) {
        st = field_word(f->name, f->words, word, &place, err);
        if (st == INK_OK)
            memcpy(at, &place, sizeof(place));
    }
    return st;
}

static enum ink_status check_string(const struct field *f, const json_t *value, struct ink_err *err)
{
    size_t len = json_string_length(value);

    if (!json_is_string(value))
        return ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                             "%s: must be a string or an array of strings", f->name);
    if (len < 1 || len > FIELD_STRING_MAX)
        return ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                             "%s: a string of %zu bytes; 1 to %d are possible", f->name, len,
                             FIELD_STRING_MAX);
    return INK_OK;
}

static enum ink_status read_strings(const struct field *f, const json_t *value, const json_t **at,
                                    struct ink_err *err)
{
    enum ink_status st = INK_OK;

    if (!json_is_array(value))
        st = check_string(f, value, err);
    else if (json_array_size(value) > (size_t)f->max)
        st = ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                           "%s: %zu strings; at most %g", f->name, json_array_size(value), f->max);
    for (size_t i = 0; i < json_array_size(value) && st == INK_OK; i++)
        st = check_string(f, json_array_get(value, i), err);
    if (st == INK_OK)
        *at = value;
    return st;
}

static enum ink_status read_elements(const struct field *f, const json_t *value, const json_t **at,
                                     struct ink_err *err)
{
    size_t n = json_array_size(value);

    if (!json_is_array(value))
        return ink_err_param(err, INK_INVALID, f->name, "invalid_value", "%s: must be an array",
                             f->name);
    if (n < (size_t)f->min || n > (size_t)f->max)
        return ink_err_param(err, INK_INVALID, f->name,
                             n > (size_t)f->max ? "too_large" : "invalid_value",
                             "%s: %zu elements; %g to %g are possible", f->name, n, f->min, f->max);
    *at = value;
    return INK_OK;
}

static enum ink_status read_field(const struct field *f, const json_t *obj, void *at,
                                  struct ink_err *err)
{
    size_t len;

    switch (f->type) {
    case FIELD_TEXT:
        return read_text(f, obj, at, err);
    case FIELD_NAME:
        return ink_json_string(obj, f->name, at, &len, err);
    case FIELD_INT:
        return read_int(f, obj, at, err);
    case FIELD_LONG:
        return ink_json_int(obj, f->name, (int64_t)f->min, (int64_t)f->max, at, err);
    case FIELD_NUMBER:
        return read_number(f, obj, at, err);
    case FIELD_BOOL:
        return ink_json_bool(obj, f->name, at, err);
    case FIELD_WORD:
        return read_word(f, obj, at, err);
    case FIELD_IDS: {
        struct field_ids *ids = at;

        return field_ids(obj, f->name, (int)f->max, &ids->ids, &ids->n, err);
    }
    case FIELD_STRINGS:
        return read_strings(f, json_object_get(obj, f->name), at, err);
    case FIELD_ELEMENTS:
        return read_elements(f, json_object_get(obj, f->name), at, err);
    }
    return INK_OK;
}

/* Exactly one of the rows from `first` on that are FIELD_EITHER; `*n`: how many rows these are. */
static enum ink_status check_either(const struct field *first, size_t n_left, const json_t *obj,
                                    bool partial, size_t *n, struct ink_err *err)
{
    int n_given = 0;

    for (*n = 0; *n < n_left && (first[*n].flags & FIELD_EITHER); ++*n)
        n_given += ink_json_has(obj, first[*n].name);
    if (n_given == 1 || (n_given == 0 && partial))
        return INK_OK;
    return ink_err_param(err, INK_INVALID, first->name, "invalid_value",
                         "%s: %s; give either %s or %s", first->name,
                         n_given == 0 ? "missing" : "not alone", first->name, first[1].name);
}

enum ink_status fields_read(const struct fields *fields, const json_t *obj, bool partial, void *out,
                            struct ink_err *err)
{
    enum ink_status st = INK_OK;

    for (size_t i = 0; i < fields->n && st == INK_OK; i++) {
        const struct field *f = &fields->rows[i];

        if (ink_json_has(obj, f->name))
            st = read_field(f, obj, (char *)out + f->at, err);
        else if ((f->flags & FIELD_REQUIRED) && !partial)
            st = ink_err_param(err, INK_INVALID, f->name, "invalid_value",
                               "%s: missing; it is required", f->name);
    }
    for (size_t i = 0, n = 1; i < fields->n && st == INK_OK; i += n, n = 1) {
        if (fields->rows[i].flags & FIELD_EITHER)
            st = check_either(&fields->rows[i], fields->n - i, obj, partial, &n, err);
    }
    return st;
}

enum ink_status body_read(const struct body *body, const json_t *obj, void *out,
                          struct ink_err *err)
{
    enum ink_status st = INK_OK;

    for (int i = 0; i < BODY_TABLES && body->tables[i] && st == INK_OK; i++)
        st = fields_read(body->tables[i], obj, false, out, err);
    return st;
}
