#include "unit.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *v;
    struct ink_err err;

    if (ink_json_parse(text, strlen(text), &v, &err) != INK_OK)
        fail_msg("%s: %s", text, err.text);
    return v;
}

static void what_is_not_strict_json_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } rows[] = {
        { "", 0 },
        { "{", 1 },
        { "{\"a\":1,\"a\":2}", 13 }, /* duplicate key */
        { "{\"a\":1,}", 8 },
        { "{'a':1}", 7 },
        { "[NaN]", 5 },
        { "[1] x", 5 },
        { "\"a\\u0000b\"", 10 }, /* NUL inside a string */
        { "\"\\ud800\"", 8 },    /* lone surrogate */
        { "\"\xff\"", 3 },       /* not UTF-8 */
        { "\"a\0b\"", 5 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *v = NULL;
        struct ink_err err;

        assert_int_equal(ink_json_parse(rows[i].text, rows[i].len, &v, &err), INK_INVALID);
        assert_string_equal(err.reason, "invalid_json");
        assert_non_null(strstr(err.text, "line"));
        assert_null(v);
    }
}

static void deep_nesting_is_refused_and_does_not_crash(void **state)
{
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH);
    json_t *v;
    struct ink_err err;
    (void)state;

    memset(text, '[', DEPTH);
    assert_int_equal(ink_json_parse(text, DEPTH, &v, &err), INK_INVALID);
    free(text);
}

static void any_value_may_be_a_document(void **state)
{
    static const char *const rows[] = { "{}", "[]", "\"你好\"", "3", "true", "null", " [1] \n" };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        json_decref(parse(rows[i]));
}

static void dumping_keeps_order_and_characters(void **state)
{
    json_t *v = parse("{\"z\": \"你\\n😀\", \"a\": [1, 2.5, true, null], \"m\": 0.1}");
    char *text = ink_json_dump(v);
    (void)state;

    assert_string_equal(text, "{\"z\":\"你\\n😀\",\"a\":[1,2.5,true,null],\"m\":0.1}");
    free(text);
    json_decref(v);
}

static void integers_are_checked(void **state)
{
    static const struct {
        const char *text;
        enum ink_status status;
        int64_t value;
    } rows[] = {
        { "{}", INK_OK, 7 },
        { "{\"n\":null}", INK_OK, 7 },
        { "{\"n\":1}", INK_OK, 1 },
        { "{\"n\":16}", INK_OK, 16 },
        { "{\"n\":3.0}", INK_OK, 3 },
        { "{\"n\":0}", INK_INVALID, 7 },
        { "{\"n\":17}", INK_INVALID, 7 },
        { "{\"n\":2.5}", INK_INVALID, 7 },
        { "{\"n\":1e300}", INK_INVALID, 7 },
        { "{\"n\":\"3\"}", INK_INVALID, 7 },
        { "{\"n\":true}", INK_INVALID, 7 },
        { "{\"n\":[3]}", INK_INVALID, 7 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *v = parse(rows[i].text);
        int64_t n = 7;
        struct ink_err err;

        assert_int_equal(ink_json_int(v, "n", 1, 16, &n, &err), rows[i].status);
        assert_int_equal(n, rows[i].value);
        if (rows[i].status != INK_OK) {
            assert_string_equal(err.param, "n");
            assert_string_equal(err.reason, "invalid_value");
        }
        json_decref(v);
    }
}

static void numbers_booleans_and_strings_are_checked(void **state)
{
    json_t *v = parse("{\"t\":0.5,\"i\":2,\"big\":9,\"b\":false,\"s\":\"好\",\"x\":{}}");
    double d = 1;
    bool b = true;
    const char *s = NULL;
    size_t len = 0;
    struct ink_err err;
    (void)state;

    assert_int_equal(ink_json_number(v, "t", 0, 2, &d, &err), INK_OK);
    assert_true(d == 0.5);
    assert_int_equal(ink_json_number(v, "i", 0, 2, &d, &err), INK_OK);
    assert_true(d == 2);
    assert_int_equal(ink_json_number(v, "big", 0, 2, &d, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "9 is not in 0..2"));
    assert_int_equal(ink_json_number(v, "s", 0, 2, &d, &err), INK_INVALID);
    assert_true(d == 2);
    assert_int_equal(ink_json_bool(v, "b", &b, &err), INK_OK);
    assert_false(b);
    assert_int_equal(ink_json_bool(v, "i", &b, &err), INK_INVALID);
    assert_int_equal(ink_json_string(v, "s", &s, &len, &err), INK_OK);
    assert_string_equal(s, "好");
    assert_int_equal(len, 3);
    assert_int_equal(ink_json_string(v, "x", &s, &len, &err), INK_INVALID);
    assert_non_null(strstr(err.text, "not an object"));
    assert_int_equal(ink_json_string(v, "missing", &s, &len, &err), INK_OK);
    assert_true(ink_json_has(v, "s"));
    assert_false(ink_json_has(v, "missing"));
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_strict_json_is_refused),
        cmocka_unit_test(deep_nesting_is_refused_and_does_not_crash),
        cmocka_unit_test(any_value_may_be_a_document),
        cmocka_unit_test(dumping_keeps_order_and_characters),
        cmocka_unit_test(integers_are_checked),
        cmocka_unit_test(numbers_booleans_and_strings_are_checked),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
