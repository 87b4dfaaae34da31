/* Tables: where records end, what fields are, and what a run adds to a row and reads back. */
#include "unit.h"

#include "base/json.h"
#include "cli/csv.h"
#include "cli/encoding_guess.h"
#include "cli/row_cells.h"

#include <stdlib.h>
#include <string.h>

/* The length of the first record, fed in pieces of `piece` bytes; 0: it does not end. */
static size_t record_end(const char *text, size_t len, char delimiter, size_t piece)
{
    struct csv_scan scan;

    csv_scan_init(&scan, delimiter);
    for (size_t at = 0; at < len; at += piece) {
        size_t n = csv_scan(&scan, text + at, len - at < piece ? len - at : piece);

        if (n > 0)
            return at + n;
    }
    return 0;
}

static void records_end_at_newlines_outside_quotes(void **state)
{
    static const struct {
        const char *text;
        size_t end;
    } rows[] = {
        { "a,b\nc", 4 },
        { "\n", 1 },
        { "\"a\nb\",c\nd", 8 },
        { "\"a\"\"\n\",c\nd", 9 }, /* a doubled quote does not close */
        { "a\"b\nc", 4 },          /* nor does one in the middle open */
        { "\"a\"b\"\nc", 6 },      /* nor one behind the closing one */
        { "a,\"\"\nc", 5 },
        { "a\r\nb", 3 },
        { "\"a\nb", 0 },
        { "a,b", 0 },
        { "", 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].text);

        for (size_t piece = 1; piece <= len + 1; piece++)
            assert_int_equal(record_end(rows[i].text, len, ',', piece), rows[i].end);
    }
}

static void a_quote_left_open_shows(void **state)
{
    struct csv_scan scan;
    (void)state;

    csv_scan_init(&scan, ',');
    assert_int_equal(csv_scan(&scan, "a,\"b\n", 5), 0);
    assert_int_equal(scan.state, CSV_QUOTED);
}

static void fields_are_raw_and_decode(void **state)
{
    static const char record[] = ",plain,\"a,b\",\"say \"\"hi\"\"\",\"x\"y\"z,q\"r,\"open,";
    static const struct {
        const char *raw, *text;
    } want[] = {
        { "", "" },
        { "plain", "plain" },
        { "\"a,b\"", "a,b" },
        { "\"say \"\"hi\"\"\"", "say \"hi\"" },
        { "\"x\"y\"z", "xy\"z" },
        { "q\"r", "q\"r" },
        { "\"open,", "open," },
    };
    struct csv_fields fields;
    struct ink_slice raw;
    struct ink_buf text;
    size_t n = 0;
    (void)state;

    ink_buf_init(&text, 100);
    csv_fields_init(&fields, ink_slice_of(record), ',');
    for (; csv_fields_next(&fields, &raw); n++) {
        assert_true(n < sizeof(want) / sizeof(want[0]));
        assert_true(ink_slice_eq(raw, ink_slice_of(want[n].raw)));
        ink_buf_clear(&text);
        assert_int_equal(csv_decode(&text, raw), INK_OK);
        assert_string_equal(text.ptr, want[n].text);
    }
    assert_int_equal(n, sizeof(want) / sizeof(want[0]));
    ink_buf_release(&text);
}

static size_t count_fields(const char *record, char delimiter)
{
    struct csv_fields fields;
    struct ink_slice raw;
    size_t n = 0;

    csv_fields_init(&fields, ink_slice_of(record), delimiter);
    while (csv_fields_next(&fields, &raw))
        n++;
    return n;
}

static void a_record_has_one_field_more_than_delimiters(void **state)
{
    (void)state;
    assert_int_equal(count_fields("", ','), 1);
    assert_int_equal(count_fields(",", ','), 2);
    assert_int_equal(count_fields("a,b,", ','), 3);
    assert_int_equal(count_fields("a,b\tc", '\t'), 2);
}

static void encoding_quotes_what_needs_it_and_nothing_else(void **state)
{
    static const struct {
        const char *text, *field;
    } rows[] = {
        { "", "" },           { "好，的", "好，的" },         { "a,b", "\"a,b\"" },
        { "a\tb", "a\tb" },   { "a\nb", "\"a\nb\"" },         { "a\rb", "\"a\rb\"" },
        { "\"", "\"\"\"\"" }, { "a\"b\"", "\"a\"\"b\"\"\"" },
    };
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ink_buf_clear(&b);
        assert_int_equal(csv_encode(&b, ink_slice_of(rows[i].text), ','), INK_OK);
        assert_string_equal(b.ptr, rows[i].field);
    }
    ink_buf_release(&b);
}

static void encoding_is_all_or_nothing(void **state)
{
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 6);
    assert_int_equal(ink_buf_adds(&b, "ab"), INK_OK);
    assert_int_equal(csv_encode(&b, ink_slice_of("x\"yz"), ','), INK_NO_MEMORY);
    assert_string_equal(b.ptr, "ab");
    ink_buf_release(&b);
}

/* --- what a run adds ---------------------------------------------------------------------------- */

static const struct row_format csv = { ROW_TABLE, ',' }, jsonl = { ROW_JSON, 0 };

static json_t *parse(const char *text)
{
    json_t *value;

    assert_int_equal(ink_json_parse(text, strlen(text), &value, NULL), INK_OK);
    return value;
}

static void cells_are_read_back(void **state)
{
    static const struct {
        const char *answer, *table, *json;
        bool failed;
    } rows[] = {
        { "{\"rewrites\":[{\"text\":\"a,b\"},{\"text\":\"c\"}]}", "h,\"a,b\",c,77,",
          "{\"x\":1,\"rewrites\":[{\"text\":\"a,b\"},{\"text\":\"c\"}],\"rewrite_seed\":77}",
          false },
        { "{\"error\":{\"message\":\"no, \\\"never\\\"\",\"code\":\"bad\"}}",
          "h,,,77,\"bad: no, \"\"never\"\"\"",
          "{\"x\":1,\"rewrites\":[],\"rewrite_seed\":77,\"rewrite_error\":{\"message\":\"no, "
          "\\\"never\\\"\",\"code\":\"bad\"}}",
          true },
        { "{\"rewrites\":[{\"text\":\"\",\"error\":{\"message\":\"same\"}},{\"text\":\"c\"}]}",
          "h,,c,77,rewrite_1: same",
          "{\"x\":1,\"rewrites\":[{\"text\":\"\",\"error\":{\"message\":\"same\"}},{\"text\":\"c\"}],"
          "\"rewrite_seed\":77}",
          false },
    };
    struct ink_buf b;
    (void)state;

    ink_buf_init(&b, 1000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *answer = parse(rows[i].answer);

        for (int k = 0; k < 2; k++) {
            const struct row_format *format = k ? &jsonl : &csv;
            const char *head = k ? "{\"x\":1" : "h";
            uint64_t seed = 0;
            bool failed = !rows[i].failed;

            ink_buf_clear(&b);
            assert_int_equal(ink_buf_adds(&b, head), INK_OK);
            assert_int_equal(row_cells_add(&b, format, 2, 77, answer), INK_OK);
            assert_string_equal(b.ptr, k ? rows[i].json : rows[i].table);

            struct ink_slice tail = { b.ptr + strlen(head), b.len - strlen(head) };
            assert_true(row_cells_read(tail, format, 2, &seed, &failed));
            assert_int_equal(seed, 77);
            assert_int_equal(failed, rows[i].failed);
            /* What is cut off anywhere is not taken for whole. */
            for (size_t len = 0; k && len < tail.len; len++)
                assert_false(
                    row_cells_read((struct ink_slice){ tail.ptr, len }, format, 2, &seed, &failed));
        }
        json_decref(answer);
    }
    ink_buf_release(&b);
}

static void cells_of_another_run_are_refused(void **state)
{
    static const char *const tables[] = { "",
                                          ",a,b,77",
                                          ",a,b,c,77,",
                                          "a,b,77,",
                                          ",a,b,,",
                                          ",a,b,x,",
                                          ",a,b,9007199254740992,",
                                          ",a,b,-1," };
    static const char *const lines[] = { "",
                                         "}",
                                         ",\"rewrites\":[]}",
                                         ",\"rewrite_seed\":1}",
                                         ",\"rewrites\":[{\"text\":\"a\"}],\"rewrite_seed\":1}",
                                         ",\"rewrites\":[],\"rewrite_seed\":1}",
                                         ",\"rewrites\":[1,2],\"rewrite_seed\":-1}" };
    uint64_t seed;
    bool failed;
    (void)state;

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        assert_false(row_cells_read(ink_slice_of(tables[i]), &csv, 2, &seed, &failed));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_false(row_cells_read(ink_slice_of(lines[i]), &jsonl, 2, &seed, &failed));
}

static void names_of_ours_are_known(void **state)
{
    static const char *const ours[] = { "rewrites", "rewrite_1", "rewrite_16", "rewrite_seed",
                                        "rewrite_error" };
    static const char *const others[] = { "",           "rewrite", "rewrite_", "rewrite_x",
                                          "rewrite_1x", "text",    "Rewrite_1" };
    struct ink_buf b;
    (void)state;

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        assert_true(row_cells_is_ours(ink_slice_of(ours[i])));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(row_cells_is_ours(ink_slice_of(others[i])));
    ink_buf_init(&b, 100);
    assert_int_equal(row_cells_add_names(&b, '\t', 2), INK_OK);
    assert_string_equal(b.ptr, "\trewrite_1\trewrite_2\trewrite_seed\trewrite_error");
    ink_buf_release(&b);
}

static void formats_go_by_the_name(void **state)
{
    static const struct {
        const char *path;
        bool known;
        enum row_form form;
        char delimiter;
    } rows[] = {
        { "a.csv", true, ROW_TABLE, ',' },  { "x/a.TSV", true, ROW_TABLE, '\t' },
        { "a.jsonl", true, ROW_JSON, 0 },   { "a.b.ndjson", true, ROW_JSON, 0 },
        { "a.txt", true, ROW_TEXT, 0 },     { "a.json", false, ROW_TEXT, 0 },
        { "csv", false, ROW_TEXT, 0 },      { ".csv", false, ROW_TEXT, 0 },
        { "a.csv.gz", false, ROW_TEXT, 0 }, { "", false, ROW_TEXT, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row_format format = { 0 };

        assert_int_equal(row_format_of(rows[i].path, &format), rows[i].known);
        if (rows[i].known) {
            assert_int_equal(format.form, rows[i].form);
            assert_int_equal(format.delimiter, rows[i].delimiter);
        }
    }
}

/* --- encodings ---------------------------------------------------------------------------------- */

static void other_encodings_are_told_from_bad_bytes(void **state)
{
    static const struct {
        const char *bytes, *name;
    } rows[] = {
        { "", NULL },
        { "id,text\n1,plain\n", NULL },
        { "id,text\n1,这家餐厅的味道\n", NULL },
        { "id,text\n1,这家餐厅的味道\xe9\x81", NULL },   /* cut */
        { "id,text\n1,这家\xff\xfe餐厅的味道\n", NULL }, /* a bad row */
        { "1,caf\xe9\n", NULL },                         /* Latin-1: its row says so */
        { "\xff\xfei\0d\0", "UTF-16" },
        { "id,\xce\xc4\xb1\xbe\n1,\xd5\xe2\xbc\xd2\xb2\xcd\xcc\xfc\xb5\xc4\xce\xb6\xb5\xc0\n",
          "GB18030" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *name = encoding_guess(rows[i].bytes, strlen(rows[i].bytes));

        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
        else
            assert_null(name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_end_at_newlines_outside_quotes),
        cmocka_unit_test(a_quote_left_open_shows),
        cmocka_unit_test(fields_are_raw_and_decode),
        cmocka_unit_test(a_record_has_one_field_more_than_delimiters),
        cmocka_unit_test(encoding_quotes_what_needs_it_and_nothing_else),
        cmocka_unit_test(encoding_is_all_or_nothing),
        cmocka_unit_test(cells_are_read_back),
        cmocka_unit_test(cells_of_another_run_are_refused),
        cmocka_unit_test(names_of_ours_are_known),
        cmocka_unit_test(formats_go_by_the_name),
        cmocka_unit_test(other_encodings_are_told_from_bad_bytes),
    };
    return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
