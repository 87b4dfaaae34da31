/* Reading the rows of a table, of JSON Lines or of a text file, one at a time. */
#include "cli/row_source.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/csv.h"
#include "cli/encoding_guess.h"
#include "cli/rewrite_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HEAD_MAX = 16 * 1024 * 1024, /* a row of LINES_MAX with everything escaped */
    NAMES_SHOWN = 300,           /* bytes of the list of columns in an error */
};

struct row_source {
    const char *path, *column; /* borrowed */
    struct row_format in_format, out_format;
    struct line_reader in;
    struct stat stat;

    /* A table's columns. */
    int n_columns, text_column;
    char **keys; /* their names as JSON strings, for an output of JSON Lines; else NULL */
    char *json_column;

    struct ink_buf names; /* the output's first line */
    bool crlf;            /* line end of the column names, and of a last row that has none */
    int64_t n_rows, line; /* the next row's index, and its line in the file from 1 */
    struct ink_buf head, scratch;
    struct ink_err failed; /* why the rest cannot be read */
};

/* --- heads -------------------------------------------------------------------------------------- */

/* `text` as a JSON string; bytes that are not UTF-8 become U+FFFD. */
static enum ink_status add_json_string(struct ink_buf *out, struct ink_slice text)
{
    struct ink_buf clean;
    enum ink_status st = INK_OK;
    json_t *value = NULL;

    ink_buf_init(&clean, HEAD_MAX);
    while (st == INK_OK && text.len > 0) {
        size_t valid = ink_utf8_valid_prefix(text.ptr, text.len), bad = valid < text.len ? 1 : 0;

        st = ink_buf_add(&clean, text.ptr, valid);
        if (st == INK_OK && bad)
            st = ink_buf_adds(&clean, "\xef\xbf\xbd");
        text = (struct ink_slice){ text.ptr + valid + bad, text.len - valid - bad };
    }
    if (st == INK_OK)
        value = json_stringn(clean.ptr, clean.len);
    if (value) {
        char *dump = ink_json_dump(value);

        st = ink_buf_adds(out, dump);
        free(dump);
    }
    json_decref(value);
    ink_buf_release(&clean);
    return st;
}

static enum ink_status decode(struct row_source *s, struct ink_slice raw, struct ink_slice *text)
{
    enum ink_status st;

    ink_buf_clear(&s->scratch);
    st = csv_decode(&s->scratch, raw);
    *text = ink_buf_slice(&s->scratch);
    return st;
}

/* Fields of a table's row beyond the last column keep a place of their own. */
static enum ink_status add_json_field(struct row_source *s, int i, struct ink_slice text)
{
    enum ink_status st;

    if (i < s->n_columns) {
        st = ink_buf_addf(&s->head, "%s%s:", i > 0 ? "," : "", s->keys[i]);
    } else {
        if (i > s->n_columns)
            s->head.len--; /* the bracket that closed the list of those before */
        st = ink_buf_adds(&s->head, i == s->n_columns ? ",\"fields_beyond_columns\":[" : ",");
    }
    if (st == INK_OK)
        st = add_json_string(&s->head, text);
    if (st == INK_OK && i >= s->n_columns)
        st = ink_buf_adds(&s->head, "]");
    return st;
}

/* A field of a table's row in the output's format; `i` counts from 0. */
static enum ink_status add_field(struct row_source *s, int i, struct ink_slice raw)
{
    const struct row_format *out = &s->out_format;
    struct ink_slice text;
    enum ink_status st;

    if (out->form == ROW_TABLE && i > 0) {
        st = ink_buf_add(&s->head, &out->delimiter, 1);
        if (st != INK_OK)
            return st;
    }
    if (out->form == ROW_TABLE && out->delimiter == s->in_format.delimiter)
        return ink_buf_add(&s->head, raw.ptr, raw.len);
    st = decode(s, raw, &text);
    if (st != INK_OK)
        return st;
    return out->form == ROW_TABLE ? csv_encode(&s->head, text, out->delimiter)
                                  : add_json_field(s, i, text);
}

/* What stands for a row whose own bytes cannot be kept. */
static enum ink_status numbered_head(struct row_source *s)
{
    ink_buf_clear(&s->head);
    return ink_buf_addf(&s->head, "{\"index\":%lld", (long long)s->n_rows);
}

/* --- rows --------------------------------------------------------------------------------------- */

static enum ink_status read_table_row(struct row_source *s, struct ink_slice raw, json_t **object,
                                      struct ink_err *err)
{
    struct csv_fields fields;
    struct ink_slice field, text = { 0 };
    enum ink_status st = INK_OK;
    int n = 0;

    if (s->out_format.form == ROW_JSON)
        st = ink_buf_adds(&s->head, "{");
    csv_fields_init(&fields, raw, s->in_format.delimiter);
    for (; st == INK_OK && csv_fields_next(&fields, &field); n++) {
        if (n == s->text_column)
            text = field;
        st = add_field(s, n, field);
    }
    /* Missing fields are filled in, so that what is added stands under its own name. */
    for (int i = n; st == INK_OK && i < s->n_columns; i++)
        st = add_field(s, i, (struct ink_slice){ "", 0 });
    if (st != INK_OK)
        return ink_err_set(err, st, "no memory for the row");
    if (n != s->n_columns)
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "the row has %d field%s, the table %d column%s", n, n == 1 ? "" : "s",
                             s->n_columns, s->n_columns == 1 ? "" : "s");
    st = decode(s, text, &text);
    return st == INK_OK ? rewrite_object_of_text(text, object, err)
                        : ink_err_set(err, st, "no memory for the row");
}

static enum ink_status read_text_row(struct row_source *s, struct ink_slice raw, json_t **object,
                                     struct ink_err *err)
{
    enum ink_status st;

    if (s->out_format.form == ROW_TABLE) {
        st = csv_encode(&s->head, raw, s->out_format.delimiter);
    } else {
        st = ink_buf_adds(&s->head, "{\"text\":");
        if (st == INK_OK)
            st = add_json_string(&s->head, raw);
    }
    return st == INK_OK ? rewrite_object_of_text(raw, object, err)
                        : ink_err_set(err, st, "no memory for the row");
}

static void list_fields(const json_t *value, char out[NAMES_SHOWN])
{
    const char *name;
    json_t *field;
    size_t used = 0;

    out[0] = '\0';
    json_object_foreach((json_t *)value, name, field)
    {
        if (used < NAMES_SHOWN)
            used +=
                (size_t)snprintf(out + used, NAMES_SHOWN - used, "%s%s", used ? ", " : "", name);
    }
}

/* The text's own JSON value; what type it is is looked at with the other options of a request. */
static enum ink_status text_of_object(const struct row_source *s, const json_t *value,
                                      json_t **object, struct ink_err *err)
{
    json_t *text = json_object_get(value, s->column);

    if (!text) {
        char names[NAMES_SHOWN];

        list_fields(value, names);
        return ink_err_param(err, INK_INVALID, "text", "invalid_value",
                             "no field \"%s\"; the object has: %s", s->column, names);
    }
    *object = json_pack("{s:O}", "text", text);
    return INK_OK;
}

/* A field that is called as one of ours; NULL: none. */
static const char *field_of_ours(const json_t *value)
{
    const char *name;
    json_t *field;

    json_object_foreach((json_t *)value, name, field)
    {
        if (row_cells_is_ours(ink_slice_of(name)))
            return name;
    }
    return NULL;
}

static struct ink_slice without_brace(struct ink_slice raw)
{
    while (raw.len > 0 && strchr(" \t\r", raw.ptr[raw.len - 1]))
        raw.len--;
    raw.len--; /* the brace */
    while (raw.len > 1 && strchr(" \t\r", raw.ptr[raw.len - 1]))
        raw.len--;
    return raw;
}

static enum ink_status read_json_row(struct row_source *s, struct ink_slice raw, json_t **object,
                                     struct ink_err *err)
{
    json_t *value;
    const char *ours;
    enum ink_status st = ink_json_parse(raw.ptr, raw.len, &value, err);

    if (st != INK_OK)
        return st;
    if (json_is_string(value)) {
        st = ink_buf_addf(&s->head, "{%s:%.*s", s->json_column, (int)raw.len, raw.ptr);
        *object = json_pack("{s:O}", "text", value);
    } else if (json_is_object(value) && (ours = field_of_ours(value)) != NULL) {
        st = ink_err_param(err, INK_INVALID, "text", "invalid_value",
                           "the object already has a field \"%s\", which is ours to write", ours);
    } else if (json_is_object(value)) {
        struct ink_slice head = without_brace(raw);

        st = ink_buf_add(&s->head, head.ptr, head.len);
        if (st == INK_OK)
            st = text_of_object(s, value, object, err);
    } else {
        st = ink_err_param(err, INK_INVALID, "text", "invalid_value",
                           "a line must be a JSON object or a string");
    }
    json_decref(value);
    return st;
}

static enum ink_status read_row(struct row_source *s, struct ink_slice raw, json_t **object,
                                struct ink_err *err)
{
    switch (s->in_format.form) {
    case ROW_TABLE:
        return read_table_row(s, raw, object, err);
    case ROW_JSON:
        return read_json_row(s, raw, object, err);
    case ROW_TEXT:
        break;
    }
    return read_text_row(s, raw, object, err);
}

/* --- lines -------------------------------------------------------------------------------------- */

static bool is_blank(struct ink_slice line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t' && line.ptr[i] != '\r')
            return false;
    }
    return true;
}

/* A table's line ends cannot be trusted behind an open quote, and an over-long row cannot be kept. */
static bool fail_table(struct row_source *s, enum line_state state)
{
    if (s->in_format.form != ROW_TABLE)
        return false;
    if (s->in.skipping || state == LINE_TOO_LONG)
        (void)ink_err_set(&s->failed, INK_CORRUPT,
                          "%s: line %lld: a row longer than %d bytes; is a quote not closed?",
                          s->path, (long long)s->line, LINES_MAX);
    else if (state == LINE_READY && s->in.unclosed)
        (void)ink_err_set(&s->failed, INK_CORRUPT,
                          "%s: line %lld: a field opens with a quote that is never closed", s->path,
                          (long long)s->line);
    return s->failed.code != INK_OK;
}

/* The next line that is not empty, without its line end. */
static enum line_state next_line(struct row_source *s, struct ink_slice *line, bool *crlf)
{
    for (;;) {
        enum line_state state;
        int64_t n_lines = 1;

        if (s->failed.code != INK_OK)
            return LINE_END;
        state = lines_next(&s->in, line);
        if (fail_table(s, state))
            return LINE_END;
        if (state == LINE_END && s->in.failed)
            (void)ink_err_set(&s->failed, INK_IO, "%s: %s", s->path, strerror(s->in.failed));
        if (state == LINE_AGAIN || state == LINE_END)
            return state;
        if (state == LINE_TOO_LONG)
            *line = (struct ink_slice){ "", 0 };
        *crlf = line->len > 0 && line->ptr[line->len - 1] == '\r';
        if (*crlf)
            line->len--;
        if (s->in_format.form != ROW_TABLE)
            *crlf = false;
        else if (!s->in.whole)
            *crlf = s->crlf;
        for (const char *at = line->ptr; s->in_format.form == ROW_TABLE; at++, n_lines++) {
            at = memchr(at, '\n', line->len - (size_t)(at - line->ptr));
            if (!at)
                break;
        }
        s->line += n_lines;
        if (state == LINE_TOO_LONG || s->in_format.form == ROW_TEXT ||
            (s->in_format.form == ROW_TABLE ? line->len > 0 : !is_blank(*line)))
            return state;
    }
}

enum line_state row_source_next(struct row_source *s, struct row *row)
{
    struct ink_slice line;
    bool crlf;
    enum line_state state = next_line(s, &line, &crlf);
    enum ink_status st;

    if (state == LINE_AGAIN || state == LINE_END)
        return state;
    *row = (struct row){ .index = s->n_rows, .crlf = crlf };
    ink_buf_clear(&s->head);
    if (state == LINE_TOO_LONG)
        st = ink_err_param(&row->err, INK_INVALID, "text", "input_too_long",
                           "a line longer than %d bytes", LINES_MAX);
    else
        st = read_row(s, line, &row->object, &row->err);
    if (st != INK_OK && s->head.len == 0 && s->out_format.form == ROW_JSON)
        st = numbered_head(s);
    if (st == INK_NO_MEMORY)
        (void)ink_err_set(&s->failed, st, "%s: line %lld: no memory", s->path, (long long)s->line);
    row->head = ink_buf_slice(&s->head);
    s->n_rows++;
    return LINE_READY;
}

enum line_state row_source_wait(struct row_source *s, struct row *row)
{
    enum line_state state;

    while ((state = row_source_next(s, row)) == LINE_AGAIN)
        lines_fill(&s->in);
    return state;
}

void row_source_fill(struct row_source *s)
{
    lines_fill(&s->in);
}

/* --- opening ------------------------------------------------------------------------------------ */

static enum ink_status check_encoding(struct row_source *s, struct ink_err *err)
{
    const char *found;

    lines_fill(&s->in);
    if (s->in.failed)
        return ink_err_set(err, INK_IO, "%s: %s", s->path, strerror(s->in.failed));
    found = encoding_guess(s->in.buf.ptr, s->in.buf.len);
    if (found)
        return ink_err_set(err, INK_INVALID,
                           "%s: not UTF-8, most likely %s; convert it: iconv -f %s -t UTF-8 %s "
                           ">utf8-%s",
                           s->path, strcmp(found, "UTF-16") == 0 ? "UTF-16" : "GBK", found, s->path,
                           strrchr(s->path, '/') ? strrchr(s->path, '/') + 1 : s->path);
    return INK_OK;
}

/* "id, text, stars", as far as there is room. */
static void list_columns(struct row_source *s, struct ink_slice line, char out[NAMES_SHOWN])
{
    struct csv_fields fields;
    struct ink_slice raw, name;
    size_t used = 0;

    out[0] = '\0';
    csv_fields_init(&fields, line, s->in_format.delimiter);
    while (csv_fields_next(&fields, &raw) && used < NAMES_SHOWN && decode(s, raw, &name) == INK_OK)
        used += (size_t)snprintf(out + used, NAMES_SHOWN - used, "%s%.*s", used ? ", " : "",
                                 (int)name.len, name.ptr);
}

static enum ink_status find_column(struct row_source *s, struct ink_slice line, struct ink_err *err)
{
    struct csv_fields fields;
    struct ink_slice raw, name;
    char list[NAMES_SHOWN];

    s->text_column = -1;
    csv_fields_init(&fields, line, s->in_format.delimiter);
    for (; csv_fields_next(&fields, &raw); s->n_columns++) {
        enum ink_status st = decode(s, raw, &name);

        if (st != INK_OK)
            return ink_err_set(err, st, "%s: no memory for the column names", s->path);
        if (row_cells_is_ours(name))
            return ink_err_set(
                err, INK_INVALID,
                "%s: has a column \"%.*s\" already, which is ours to write; rename it "
                "first",
                s->path, (int)name.len, name.ptr);
        if (!ink_slice_eq(name, ink_slice_of(s->column)))
            continue;
        if (s->text_column >= 0)
            return ink_err_set(err, INK_INVALID, "%s: two columns are called \"%s\"", s->path,
                               s->column);
        s->text_column = s->n_columns;
    }
    if (s->text_column >= 0)
        return INK_OK;
    list_columns(s, line, list);
    return ink_err_set(err, INK_INVALID, "%s: no column \"%s\"; --column takes one of: %s", s->path,
                       s->column, list);
}

/* Column names as JSON keys, which must differ. */
static enum ink_status make_keys(struct row_source *s, struct ink_slice line, struct ink_err *err)
{
    struct csv_fields fields;
    struct ink_slice raw, name;
    json_t *seen = json_object();
    enum ink_status st = INK_OK;

    s->keys = ink_zalloc((size_t)s->n_columns * sizeof(*s->keys));
    csv_fields_init(&fields, line, s->in_format.delimiter);
    for (int i = 0; st == INK_OK && csv_fields_next(&fields, &raw); i++) {
        struct ink_buf key;

        ink_buf_init(&key, HEAD_MAX);
        st = decode(s, raw, &name);
        if (st == INK_OK)
            st = add_json_string(&key, name);
        if (st == INK_OK && json_object_get(seen, key.ptr))
            st = ink_err_set(
                err, INK_INVALID,
                "%s: two columns are called %s, which JSON cannot have; name the output "
                ".csv or .tsv",
                s->path, key.ptr);
        else if (st == INK_OK)
            (void)json_object_set_new(seen, key.ptr, json_true());
        s->keys[i] = ink_buf_take(&key);
        ink_buf_release(&key);
    }
    json_decref(seen);
    return st;
}

static enum ink_status read_names(struct row_source *s, struct ink_err *err)
{
    struct ink_slice line = { 0 };
    enum line_state state;
    enum ink_status st;

    while ((state = next_line(s, &line, &s->crlf)) == LINE_AGAIN)
        lines_fill(&s->in);
    if (state == LINE_END && s->failed.code != INK_OK) {
        *err = s->failed;
        return err->code;
    }
    if (state == LINE_END)
        return ink_err_set(err, INK_INVALID,
                           "%s: empty; a table begins with a line of column names", s->path);
    st = find_column(s, line, err);
    if (st == INK_OK && s->out_format.form == ROW_JSON)
        return make_keys(s, line, err);
    if (st != INK_OK)
        return st;

    struct csv_fields fields;
    struct ink_slice raw;

    csv_fields_init(&fields, line, s->in_format.delimiter);
    for (int i = 0; st == INK_OK && csv_fields_next(&fields, &raw); i++)
        st = add_field(s, i, raw);
    if (st == INK_OK)
        st = ink_buf_add(&s->names, s->head.ptr, s->head.len);
    return st;
}

/* The output's first line: the input's own names, then ours. */
static enum ink_status make_names(struct row_source *s, bool bom, int n, struct ink_err *err)
{
    bool table = s->out_format.form == ROW_TABLE;
    enum ink_status st = table && bom ? ink_buf_adds(&s->names, "\xef\xbb\xbf") : INK_OK;

    if (st == INK_OK && s->in_format.form == ROW_TABLE)
        st = read_names(s, err);
    else if (st == INK_OK && table)
        st = ink_buf_adds(&s->names, "text");
    if (st == INK_OK && table)
        st = row_cells_add_names(&s->names, s->out_format.delimiter, n);
    if (st == INK_OK && table)
        st = ink_buf_adds(&s->names, s->crlf ? "\r\n" : "\n");
    if (st == INK_NO_MEMORY)
        return ink_err_set(err, st, "%s: no memory for the column names", s->path);
    return st;
}

static enum ink_status open_file(struct row_source *s, int *fd, struct ink_err *err)
{
    if (!row_format_of(s->path, &s->in_format))
        return ink_err_set(
            err, INK_INVALID,
            "%s: the name says no format; --input takes .csv, .tsv, .jsonl, .ndjson and "
            ".txt",
            s->path);
    *fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return ink_err_set(err, errno == ENOENT ? INK_NOT_FOUND : INK_IO, "%s: %s", s->path,
                           strerror(errno));
    if (fstat(*fd, &s->stat) != 0 || S_ISDIR(s->stat.st_mode)) {
        close(*fd);
        return ink_err_set(err, INK_INVALID, "%s: a folder, not a file", s->path);
    }
    return INK_OK;
}

enum ink_status row_source_open(const char *path, const char *column, const struct row_format *out,
                                int n, struct row_source **source, struct ink_err *err)
{
    struct row_source *s = ink_zalloc(sizeof(*s));
    enum ink_status st;
    int fd = -1;
    bool bom;

    s->path = path;
    s->column = column ? column : "text";
    s->out_format = *out;
    s->line = 1;
    st = open_file(s, &fd, err);
    if (st != INK_OK) {
        free(s);
        return st;
    }
    lines_init_records(&s->in, fd, LINES_MAX, s->in_format.delimiter);
    ink_buf_init(&s->names, HEAD_MAX);
    ink_buf_init(&s->head, HEAD_MAX);
    ink_buf_init(&s->scratch, HEAD_MAX);

    st = check_encoding(s, err);
    if (st == INK_OK && s->in_format.form == ROW_JSON && out->form == ROW_TABLE)
        st = ink_err_set(err, INK_INVALID,
                         "%s: JSON objects have no columns to fill; name the output .jsonl", path);
    if (st == INK_OK) {
        struct ink_buf key;

        ink_buf_init(&key, HEAD_MAX);
        st = add_json_string(&key, ink_slice_of(s->column));
        s->json_column = ink_buf_take(&key);
        ink_buf_release(&key);
    }
    if (st == INK_OK) {
        bom = lines_skip(&s->in, "\xef\xbb\xbf");
        st = make_names(s, bom, n, err);
    }
    if (st != INK_OK) {
        row_source_close(s);
        return st;
    }
    *source = s;
    return INK_OK;
}

void row_source_close(struct row_source *s)
{
    if (!s)
        return;
    for (int i = 0; s->keys && i < s->n_columns; i++)
        free(s->keys[i]);
    free(s->keys);
    free(s->json_column);
    close(s->in.fd);
    lines_release(&s->in);
    ink_buf_release(&s->names);
    ink_buf_release(&s->head);
    ink_buf_release(&s->scratch);
    free(s);
}

/* --- what is known ------------------------------------------------------------------------------ */

struct ink_slice row_source_names(const struct row_source *s)
{
    return ink_buf_slice(&s->names);
}

const struct stat *row_source_stat(const struct row_source *s)
{
    return &s->stat;
}

int row_source_fd(const struct row_source *s)
{
    return s->in.fd;
}

enum ink_status row_source_error(const struct row_source *s, struct ink_err *err)
{
    if (s->failed.code != INK_OK)
        *err = s->failed;
    return s->failed.code;
}

int64_t row_source_estimate(const struct row_source *s)
{
    if (s->in.ended && s->in.at == s->in.buf.len)
        return s->n_rows;
    if (s->in.total == 0 || s->in.consumed == 0)
        return 0;
    return (int64_t)((double)s->in.total / (double)s->in.consumed * (double)s->n_rows + 0.5);
}
