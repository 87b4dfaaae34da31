/*
 * Tables of any bytes: however a record arrives its end is the same, its fields make it up again, and a field that is
 * decoded, encoded and decoded is what it was.
 */
#include "base/buf.h"
#include "cli/csv.h"
#include "cli/encoding_guess.h"
#include "cli/row_cells.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t end_of(const char *text, size_t len, char delimiter, size_t piece, bool *open)
{
    struct csv_scan scan;

    csv_scan_init(&scan, delimiter);
    for (size_t at = 0; at < len; at += piece) {
        size_t n = csv_scan(&scan, text + at, len - at < piece ? len - at : piece);

        if (n > 0)
            return at + n;
    }
    *open = scan.state == CSV_QUOTED;
    return 0;
}

static void check_field(struct ink_slice raw, char delimiter)
{
    struct ink_buf text, again, field;

    ink_buf_init(&text, raw.len + 1);
    ink_buf_init(&again, raw.len + 1);
    ink_buf_init(&field, 2 * raw.len + 3);
    assert(csv_decode(&text, raw) == INK_OK);
    assert(text.len <= raw.len);
    assert(csv_encode(&field, ink_buf_slice(&text), delimiter) == INK_OK);
    assert(csv_decode(&again, ink_buf_slice(&field)) == INK_OK);
    assert(ink_slice_eq(ink_buf_slice(&text), ink_buf_slice(&again)));
    ink_buf_release(&text);
    ink_buf_release(&again);
    ink_buf_release(&field);
}

static void check_record(struct ink_slice record, char delimiter)
{
    struct csv_fields fields;
    struct ink_slice raw;
    size_t len = 0, n = 0;

    csv_fields_init(&fields, record, delimiter);
    for (; csv_fields_next(&fields, &raw); n++) {
        assert(raw.len == 0 || raw.ptr == record.ptr + len + n);
        len += raw.len;
        check_field(raw, delimiter);
    }
    assert(n > 0 && len + n - 1 == record.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const struct row_format forms[] = { { ROW_TABLE, ',' }, { ROW_TABLE, '\t' }, { ROW_JSON, 0 } };
    uint64_t seed;
    bool failed;

    for (int k = 0; k < 2; k++) {
        char delimiter = k ? '\t' : ',';

        for (size_t at = 0; at < size;) {
            size_t left = size - at;
            bool open = false, open2 = false;
            size_t n = end_of(text + at, left, delimiter, left, &open);

            assert(n == end_of(text + at, left, delimiter, 1, &open2) && open == open2);
            assert(n == 0 || text[at + n - 1] == '\n');
            check_record((struct ink_slice){ text + at, n ? n - 1 : left }, delimiter);
            at += n ? n : left;
        }
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        (void)row_cells_read((struct ink_slice){ text, size }, &forms[i], 2, &seed, &failed);
    (void)encoding_guess(text, size);
    return 0;
}
