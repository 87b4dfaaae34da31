/* The columns and fields that hold rewrites: written behind a row, and read back. */
#include "cli/row_cells.h"

#include "base/json.h"
#include "cli/csv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CELL_MAX = 64 * 1024 * 1024 };
static const uint64_t SEED_MAX = ((uint64_t)1 << 53) - 1;

bool row_format_of(const char *path, struct row_format *out)
{
    static const struct {
        const char *end;
        struct row_format format;
    } known[] = {
        { ".csv", { ROW_TABLE, ',' } }, { ".tsv", { ROW_TABLE, '\t' } },
        { ".txt", { ROW_TEXT, 0 } },    { ".jsonl", { ROW_JSON, 0 } },
        { ".ndjson", { ROW_JSON, 0 } },
    };
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t end = strlen(known[i].end);

        if (len > end && strcasecmp(path + len - end, known[i].end) == 0) {
            *out = known[i].format;
            return true;
        }
    }
    return false;
}

bool row_cells_is_ours(struct ink_slice name)
{
    static const char prefix[] = "rewrite_";
    size_t at = sizeof(prefix) - 1;

    if (ink_slice_eq(name, ink_slice_of("rewrites")) ||
        ink_slice_eq(name, ink_slice_of("rewrite_seed")) ||
        ink_slice_eq(name, ink_slice_of("rewrite_error")))
        return true;
    if (name.len <= at || memcmp(name.ptr, prefix, at) != 0)
        return false;
    while (at < name.len && isdigit((unsigned char)name.ptr[at]))
        at++;
    return at == name.len;
}

enum ink_status row_cells_add_names(struct ink_buf *out, char delimiter, int n)
{
    enum ink_status st = INK_OK;

    for (int i = 1; i <= n && st == INK_OK; i++)
        st = ink_buf_addf(out, "%crewrite_%d", delimiter, i);
    if (st == INK_OK)
        st = ink_buf_addf(out, "%crewrite_seed%crewrite_error", delimiter, delimiter);
    return st;
}

/* --- writing ------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static enum ink_status add_message(struct ink_buf *out, const char *what, const json_t *error)
{
    return ink_buf_addf(out, "%s%s: %s", out->len > 0 ? "; " : "", what, text_of(error, "message"));
}

/* The cell rewrite_error: why there is no rewrite, or which ones are missing. */
static enum ink_status add_error_cell(struct ink_buf *out, char delimiter, const json_t *answer)
{
    const json_t *error = json_object_get(answer, "error"), *c;
    struct ink_buf text;
    enum ink_status st = INK_OK;
    size_t i;

    ink_buf_init(&text, CELL_MAX);
    if (error)
        st = add_message(&text, text_of(error, "code"), error);
    json_array_foreach(json_object_get(answer, "rewrites"), i, c)
    {
        const json_t *why = json_object_get(c, "error");
        char name[32];

        snprintf(name, sizeof(name), "rewrite_%zu", i + 1);
        if (why && st == INK_OK)
            st = add_message(&text, name, why);
    }
    if (st == INK_OK)
        st = csv_encode(out, ink_buf_slice(&text), delimiter);
    ink_buf_release(&text);
    return st;
}

static enum ink_status add_table_cells(struct ink_buf *out, char delimiter, int n, uint64_t seed,
                                       const json_t *answer)
{
    const json_t *rewrites = json_object_get(answer, "rewrites");
    enum ink_status st = INK_OK;

    for (int i = 0; i < n && st == INK_OK; i++) {
        const char *text = text_of(json_array_get(rewrites, (size_t)i), "text");

        st = ink_buf_add(out, &delimiter, 1);
        if (st == INK_OK)
            st = csv_encode(out, ink_slice_of(text), delimiter);
    }
    if (st == INK_OK)
        st = ink_buf_addf(out, "%c%llu%c", delimiter, (unsigned long long)seed, delimiter);
    return st == INK_OK ? add_error_cell(out, delimiter, answer) : st;
}

static enum ink_status add_json_cells(struct ink_buf *out, uint64_t seed, const json_t *answer)
{
    const json_t *error = json_object_get(answer, "error");
    json_t *rewrites = json_object_get(answer, "rewrites");
    json_t *cells = json_object();
    bool first = out->len > 0 && out->ptr[out->len - 1] == '{';
    enum ink_status st = first ? INK_OK : ink_buf_add(out, ",", 1);
    char *text;

    (void)json_object_set_new(cells, "rewrites", rewrites ? json_incref(rewrites) : json_array());
    (void)json_object_set_new(cells, "rewrite_seed", json_integer((json_int_t)seed));
    if (error)
        (void)json_object_set_new(cells, "rewrite_error", json_deep_copy(error));
    text = ink_json_dump(cells);
    if (st == INK_OK)
        st = ink_buf_adds(out, text + 1); /* its opening brace is the head's */
    free(text);
    json_decref(cells);
    return st;
}

enum ink_status row_cells_add(struct ink_buf *out, const struct row_format *format, int n,
                              uint64_t seed, const json_t *answer)
{
    if (format->form == ROW_TABLE)
        return add_table_cells(out, format->delimiter, n, seed, answer);
    return add_json_cells(out, seed, answer);
}

/* --- reading back ------------------------------------------------------------------------------- */

static bool read_seed(struct ink_slice cell, uint64_t *seed)
{
    char text[24] = "", *end;

    if (cell.len == 0 || cell.len >= sizeof(text) || !isdigit((unsigned char)cell.ptr[0]))
        return false;
    memcpy(text, cell.ptr, cell.len);
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *seed <= SEED_MAX;
}

static bool read_table_cells(struct ink_slice tail, char delimiter, int n, uint64_t *seed,
                             bool *failed)
{
    struct csv_fields fields;
    struct ink_slice cell;
    bool has_seed = false;
    int i = 0;

    if (tail.len == 0 || tail.ptr[0] != delimiter)
        return false;
    csv_fields_init(&fields, (struct ink_slice){ tail.ptr + 1, tail.len - 1 }, delimiter);
    *failed = true;
    for (; csv_fields_next(&fields, &cell); i++) {
        if (i < n && cell.len > 0)
            *failed = false;
        if (i == n)
            has_seed = read_seed(cell, seed);
    }
    return has_seed && i == n + 2;
}

static bool read_json_cells(struct ink_slice tail, int n, uint64_t *seed, bool *failed)
{
    struct ink_buf text;
    json_t *cells = NULL;
    const json_t *rewrites, *number;
    bool comma = tail.len > 0 && tail.ptr[0] == ',', ok = false;

    ink_buf_init(&text, CELL_MAX);
    if (ink_buf_add(&text, "{", 1) == INK_OK &&
        ink_buf_add(&text, tail.ptr + comma, tail.len - comma) == INK_OK &&
        ink_json_parse(text.ptr, text.len, &cells, NULL) == INK_OK) {
        rewrites = json_object_get(cells, "rewrites");
        number = json_object_get(cells, "rewrite_seed");
        *failed = json_array_size(rewrites) == 0;
        ok = json_is_array(rewrites) && json_is_integer(number) &&
             json_integer_value(number) >= 0 && (uint64_t)json_integer_value(number) <= SEED_MAX &&
             (*failed ? json_object_get(cells, "rewrite_error") != NULL
                      : json_array_size(rewrites) == (size_t)n);
        *seed = ok ? (uint64_t)json_integer_value(number) : 0;
    }
    json_decref(cells);
    ink_buf_release(&text);
    return ok;
}

bool row_cells_read(struct ink_slice tail, const struct row_format *format, int n, uint64_t *seed,
                    bool *failed)
{
    if (format->form == ROW_TABLE)
        return read_table_cells(tail, format->delimiter, n, seed, failed);
    return read_json_cells(tail, n, seed, failed);
}
