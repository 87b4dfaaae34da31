/* Comma- and tab-separated records: their ends, their fields, and the way back. */
#include "cli/csv.h"

#include <string.h>

void csv_scan_init(struct csv_scan *s, char delimiter)
{
    *s = (struct csv_scan){ delimiter, CSV_FIELD_BEGINS };
}

static enum csv_state after(enum csv_state state, char c, char delimiter)
{
    if (state == CSV_QUOTED)
        return c == '"' ? CSV_AFTER_QUOTE : CSV_QUOTED;
    if (c == delimiter)
        return CSV_FIELD_BEGINS;
    if (c == '"' && state != CSV_PLAIN)
        return CSV_QUOTED; /* opens a field, or is the second of a doubled one */
    return CSV_PLAIN;
}

size_t csv_scan(struct csv_scan *s, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s->state == CSV_QUOTED) { /* most of a long text: straight to the next quote */
            const char *quote = memchr(bytes + i, '"', len - i);

            if (!quote)
                return 0;
            i = (size_t)(quote - bytes);
        } else if (bytes[i] == '\n') {
            return i + 1;
        }
        s->state = after(s->state, bytes[i], s->delimiter);
    }
    return 0;
}

void csv_fields_init(struct csv_fields *f, struct ink_slice record, char delimiter)
{
    *f = (struct csv_fields){ record, delimiter, false };
}

bool csv_fields_next(struct csv_fields *f, struct ink_slice *raw)
{
    enum csv_state state = CSV_FIELD_BEGINS;
    size_t i = 0;

    if (f->ended)
        return false;
    for (; i < f->rest.len; i++) {
        if (f->rest.ptr[i] == f->delimiter && state != CSV_QUOTED)
            break;
        state = after(state, f->rest.ptr[i], f->delimiter);
    }
    *raw = (struct ink_slice){ f->rest.ptr, i };
    f->ended = i == f->rest.len;
    if (!f->ended)
        f->rest = (struct ink_slice){ f->rest.ptr + i + 1, f->rest.len - i - 1 };
    return true;
}

enum ink_status csv_decode(struct ink_buf *out, struct ink_slice raw)
{
    enum ink_status st = INK_OK;
    size_t i = 1;

    if (raw.len == 0 || raw.ptr[0] != '"')
        return ink_buf_add(out, raw.ptr, raw.len);
    while (st == INK_OK && i < raw.len) {
        const char *quote = memchr(raw.ptr + i, '"', raw.len - i);
        size_t end = quote ? (size_t)(quote - raw.ptr) : raw.len;
        bool doubled = end + 1 < raw.len && raw.ptr[end + 1] == '"';

        st = ink_buf_add(out, raw.ptr + i, end - i + doubled);
        i = end + 1 + doubled;
        if (st == INK_OK && quote && !doubled) { /* the closing one: the rest stands for itself */
            if (i < raw.len)
                st = ink_buf_add(out, raw.ptr + i, raw.len - i);
            break;
        }
    }
    return st;
}

static bool needs_quotes(struct ink_slice text, char delimiter)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c == delimiter || c == '"' || c == '\n' || c == '\r')
            return true;
    }
    return false;
}

enum ink_status csv_encode(struct ink_buf *out, struct ink_slice text, char delimiter)
{
    enum ink_status st;
    size_t before = out->len;

    if (!needs_quotes(text, delimiter))
        return ink_buf_add(out, text.ptr, text.len);
    st = ink_buf_add(out, "\"", 1);
    for (size_t i = 0; st == INK_OK && i < text.len;) {
        const char *quote = memchr(text.ptr + i, '"', text.len - i);
        size_t end = quote ? (size_t)(quote - text.ptr) + 1 : text.len;

        st = ink_buf_add(out, text.ptr + i, end - i);
        if (st == INK_OK && quote)
            st = ink_buf_add(out, "\"", 1);
        i = end;
    }
    if (st == INK_OK)
        st = ink_buf_add(out, "\"", 1);
    if (st != INK_OK) { /* all or nothing, as ink_buf_add() itself */
        out->len = before;
        out->ptr[before] = '\0';
    }
    return st;
}
