#ifndef CLI_CSV_H
#define CLI_CSV_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Records of comma- or tab-separated text as RFC 4180 has them: a field that begins with a quote runs to the closing
 * one, delimiters and newlines included, and a doubled quote in it is one quote. What RFC 4180 forbids is read as
 * spreadsheets read it: a quote inside an unquoted field stands for itself, and so does what follows a closing quote.
 *
 * Two steps: where a record ends, which works on pieces as they are read, and what its fields are. Raw fields are
 * slices of the record, so what is not looked at can be copied byte for byte. Pure; any bytes are accepted.
 */

enum csv_state { CSV_FIELD_BEGINS, CSV_PLAIN, CSV_QUOTED, CSV_AFTER_QUOTE };

struct csv_scan {
    char delimiter;
    enum csv_state state; /* CSV_QUOTED: in a quoted field that has not ended */
};

void csv_scan_init(struct csv_scan *s, char delimiter); /* at the beginning of a record */

/* Goes through more bytes of a record. The length up to its '\n', which is included; 0 when it does not end in them. */
size_t csv_scan(struct csv_scan *s, const char *bytes, size_t len);

/* The fields of one record without its line end. A record has at least one. */
struct csv_fields {
    struct ink_slice rest;
    char delimiter;
    bool ended;
};

void csv_fields_init(struct csv_fields *f, struct ink_slice record, char delimiter);
/* The next field as it stands, quotes included; false after the last one. */
bool csv_fields_next(struct csv_fields *f, struct ink_slice *raw);

/* Adds what a raw field stands for, without quotes. */
INK_NODISCARD enum ink_status csv_decode(struct ink_buf *out, struct ink_slice raw);

/* Adds a text as a field, in quotes where it needs them: csv_decode() gives it back. */
INK_NODISCARD enum ink_status csv_encode(struct ink_buf *out, struct ink_slice text,
                                         char delimiter);

#endif
