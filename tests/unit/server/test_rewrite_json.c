/* Every field of a rewrite request: what is taken, what is refused, and by which name. */
#include "unit.h"

#include "server/rewrite_json.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

static enum ink_status read_call(const char *json, struct ink_rewrite_call *call, json_t **doc,
                                 struct ink_err *err)
{
    memset(err, 0, sizeof(*err));
    assert_int_equal(ink_json_parse(json, strlen(json), doc, err), INK_OK);
    ink_rewrite_call_init(call);
    return ink_rewrite_call_read(call, *doc, true, err);
}

static void defaults_are_the_contracts(void **state)
{
    struct ink_rewrite_call call;
    struct ink_err err;
    json_t *doc;
    (void)state;

    assert_int_equal(read_call("{\"text\":\"好\"}", &call, &doc, &err), INK_OK);
    assert_int_equal(call.rq.n, 3);
    assert_true(call.rq.temperature == 0.85 && call.rq.top_p == 0.9 && call.rq.min_p == 0);
    assert_true(call.rq.repetition_penalty == 1);
    assert_int_equal(call.rq.top_k, 0);
    assert_int_equal(call.rq.max_tokens, 64);
    assert_int_equal(call.rq.timeout_ms, 30000);
    assert_false(call.rq.has_seed || call.rq.details || call.stream || call.rq.allow_same);
    assert_int_equal(call.cache, INK_CACHE_AUTO);
    assert_int_equal(call.rq.on_long_input, INK_LONG_REJECT);
    assert_int_equal(call.rq.text.len, 3);
    ink_rewrite_call_release(&call);
    json_decref(doc);
}

static void every_field_is_read(void **state)
{
    static const char json[] =
        "{\"text\":\"a\",\"model\":\"m\",\"n\":16,\"temperature\":0,\"top_p\":1,\"top_k\":40,\"min_p\":0.05,"
        "\"repetition_penalty\":1.2,\"max_tokens\":128.0,\"seed\":9007199254740991,\"stop\":[\"x\",\"yy\"],"
        "\"stream\":true,\"details\":true,\"top\":0,\"cache\":\"refresh\",\"timeout_ms\":1,"
        "\"on_long_input\":\"truncate\",\"scripts\":\"all\",\"linger_ms\":120000,\"allow_same\":true,\"other\":{}}";
    struct ink_rewrite_call call;
    struct ink_err err;
    json_t *doc;
    (void)state;

    assert_int_equal(read_call(json, &call, &doc, &err), INK_OK);
    assert_string_equal(call.rq.model, "m");
    assert_int_equal(call.rq.n, 16);
    assert_true(call.rq.temperature == 0 && call.rq.top_p == 1 && call.rq.min_p == 0.05);
    assert_int_equal(call.rq.top_k, 40);
    assert_int_equal(call.rq.max_tokens, 128);
    assert_true(call.rq.has_seed && call.rq.seed == 9007199254740991U);
    assert_int_equal(call.rq.n_stop, 2);
    assert_int_equal(call.rq.stop[1].len, 2);
    assert_true(call.stream && call.rq.details && call.rq.allow_same);
    assert_int_equal(call.rq.n_top, 0);
    assert_int_equal(call.cache, INK_CACHE_REFRESH);
    assert_int_equal(call.rq.timeout_ms, 1);
    assert_int_equal(call.rq.on_long_input, INK_LONG_TRUNCATE);
    assert_string_equal(call.rq.scripts, "all");
    assert_int_equal(call.linger_ms, 120000);
    ink_rewrite_call_release(&call);
    json_decref(doc);
}

static void null_and_unknown_fields_change_nothing(void **state)
{
    static const char *const rows[] = {
        "{\"text\":\"a\",\"n\":null,\"stop\":null,\"seed\":null,\"model\":null}",
        "{\"text\":\"a\",\"N\":99,\"Temperature\":\"hot\"}", "{\"text\":\"a\",\"stop\":\"x\"}",
        "{\"source_ids\":[1,2.0,3]}"
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_rewrite_call call;
        struct ink_err err;
        json_t *doc;

        assert_int_equal(read_call(rows[i], &call, &doc, &err), INK_OK);
        assert_int_equal(call.rq.n, 3);
        assert_false(call.rq.has_seed);
        ink_rewrite_call_release(&call);
        json_decref(doc);
    }
}

static void wrong_types_and_ranges_name_the_field(void **state)
{
    static const struct {
        const char *field, *value;
    } rows[] = {
        { "text", "1" },
        { "text", "\"\"" },
        { "text", "\" \\n\\t\"" },
        { "text", "[\"a\"]" },
        { "text", "null" },
        { "n", "0" },
        { "n", "17" },
        { "n", "2.5" },
        { "n", "\"3\"" },
        { "n", "true" },
        { "n", "-1" },
        { "n", "1e300" },
        { "temperature", "-0.1" },
        { "temperature", "5.01" },
        { "temperature", "\"0.5\"" },
        { "temperature", "[]" },
        { "top_p", "0" },
        { "top_p", "1.01" },
        { "top_p", "-1" },
        { "top_p", "{}" },
        { "min_p", "-0.01" },
        { "min_p", "1.01" },
        { "min_p", "\"\"" },
        { "top_k", "-1" },
        { "top_k", "1.5" },
        { "top_k", "99999999999" },
        { "top_k", "\"40\"" },
        { "repetition_penalty", "0" },
        { "repetition_penalty", "10.5" },
        { "repetition_penalty", "true" },
        { "max_tokens", "1.5" },
        { "max_tokens", "\"64\"" },
        { "max_tokens", "99999999999" },
        { "seed", "-1" },
        { "seed", "9007199254740992" },
        { "seed", "1.5" },
        { "seed", "\"1\"" },
        { "stop", "1" },
        { "stop", "\"\"" },
        { "stop", "[\"\"]" },
        { "stop", "[1]" },
        { "stop", "{}" },
        { "stop", "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]" },
        { "stream", "1" },
        { "stream", "\"true\"" },
        { "details", "0" },
        { "allow_same", "\"no\"" },
        { "top", "-1" },
        { "top", "21" },
        { "top", "\"5\"" },
        { "cache", "\"on\"" },
        { "cache", "true" },
        { "cache", "\"\"" },
        { "timeout_ms", "0" },
        { "timeout_ms", "-5" },
        { "timeout_ms", "\"1s\"" },
        { "timeout_ms", "3600001" },
        { "on_long_input", "\"cut\"" },
        { "on_long_input", "1" },
        { "linger_ms", "-1" },
        { "linger_ms", "120001" },
        { "linger_ms", "\"1\"" },
        { "model", "5" },
        { "scripts", "5" },
        { "source_ids", "[]" },
        { "source_ids", "[-1]" },
        { "source_ids", "[\"1\"]" },
        { "source_ids", "1" },
        { "source_ids", "[1.5]" },
        { "source_ids", "[1e20]" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ink_rewrite_call call;
        struct ink_err err;
        json_t *doc;
        char json[256];
        bool is_text =
            strcmp(rows[i].field, "text") == 0 || strcmp(rows[i].field, "source_ids") == 0;

        (void)snprintf(json, sizeof(json), "{%s\"%s\":%s}", is_text ? "" : "\"text\":\"a\",",
                       rows[i].field, rows[i].value);
        if (read_call(json, &call, &doc, &err) != INK_INVALID)
            fail_msg("%s was taken", json);
        assert_string_equal(err.param, rows[i].field);
        assert_string_equal(err.reason, "invalid_value");
        assert_true(strncmp(err.text, rows[i].field, strlen(rows[i].field)) == 0);
        ink_rewrite_call_release(&call);
        json_decref(doc);
    }
}

static void later_lines_keep_the_commands_options(void **state)
{
    struct ink_rewrite_call call;
    struct ink_err err = { 0 };
    json_t *doc = json_object();
    (void)state;

    ink_rewrite_call_init(&call);
    call.rq.n = 5;
    call.rq.text = ink_slice_of("原文");
    assert_int_equal(ink_rewrite_call_read(&call, doc, false, &err), INK_OK);
    assert_int_equal(call.rq.n, 5);
    assert_int_equal(call.rq.text.len, 6);
    assert_int_equal(ink_rewrite_call_read(&call, doc, true, &err), INK_INVALID);
    ink_rewrite_call_release(&call);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contracts),
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(null_and_unknown_fields_change_nothing),
        cmocka_unit_test(wrong_types_and_ranges_name_the_field),
        cmocka_unit_test(later_lines_keep_the_commands_options),
    };
    return cmocka_run_group_tests_name("rewrite_json", tests, NULL, NULL);
}
