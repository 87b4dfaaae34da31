#ifndef SERVER_FIELDS_H
#define SERVER_FIELDS_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a JSON object may hold, as a table: one row a field, with its type, its range, and where in a struct
 * its value goes. Requests are read by it and GET /openapi.json is written from it, defaults included, so the
 * two cannot disagree.
 *
 * Missing or null leaves the struct as it is: the default. Unknown fields are ignored.
 */
/* What stands in the struct. */
enum field_type {
    FIELD_TEXT,     /* struct ink_slice, borrowed from the object; ptr NULL: not given */
    FIELD_NAME,     /* const char *, borrowed; NULL: not given */
    FIELD_INT,      /* int */
    FIELD_LONG,     /* int64_t */
    FIELD_NUMBER,   /* double */
    FIELD_BOOL,     /* bool */
    FIELD_WORD,     /* an enum: the place in `words` */
    FIELD_IDS,      /* struct field_ids, of `min` to `max` token ids */
    FIELD_STRINGS,  /* const json_t *, borrowed: a string, or an array of up to `max` */
    FIELD_ELEMENTS, /* const json_t *, borrowed: an array of `min` to `max`, each unchecked */
};

enum field_flags {
    FIELD_REQUIRED = 1 << 0,
    FIELD_EITHER = 1 << 1,     /* with its neighbours of this flag: exactly one is required */
    FIELD_NO_DEFAULT = 1 << 2, /* left out, it means something else than any value */
    FIELD_ABOVE = 1 << 3,      /* `min` itself is too small */
    FIELD_NOT_BLANK = 1 << 4,  /* a text of more than white space */
    FIELD_MODEL_MAX = 1 << 5,  /* the model says the range, and whoever knows the model checks it */
};

enum { FIELD_STRING_MAX = 512 }; /* bytes of each of FIELD_STRINGS; at least 1 */

struct field_ids {
    int32_t *ids; /* owned by whoever has the struct; NULL: not given */
    int n;
};

struct field {
    const char *name;
    enum field_type type;
    unsigned flags;
    size_t at; /* offsetof() */
    double min, max;
    const char *const *words; /* ends in NULL */
    const char *about;        /* one sentence, for people */
};

struct fields {
    const struct field *rows;
    size_t n;
};

#define FIELDS(rows)                             \
    {                                            \
        (rows), sizeof(rows) / sizeof((rows)[0]) \
    }

/* A request's body: one struct, filled from one or more tables. */
enum { BODY_TABLES = 3 };

struct body {
    const char *name;                         /* in openapi.json */
    const struct fields *tables[BODY_TABLES]; /* NULL: no more */
    size_t size;                              /* of the struct */
    void (*init)(void *body);                 /* sets the defaults */
};

/*
 * Fills `out` from `obj`. INK_INVALID names field, value and range. With `partial`, what is required may be
 * missing: it comes from somewhere else. Ids that were read are the caller's to free, also after a failure.
 */
INK_NODISCARD enum ink_status fields_read(const struct fields *fields, const json_t *obj,
                                          bool partial, void *out, struct ink_err *err);
/* All tables of a body, after body->init(). */
INK_NODISCARD enum ink_status body_read(const struct body *body, const json_t *obj, void *out,
                                        struct ink_err *err);

/* The place of `word` in `words`. INK_INVALID lists them. */
INK_NODISCARD enum ink_status field_word(const char *name, const char *const *words,
                                         const char *word, unsigned *out, struct ink_err *err);

#endif
