/* JSON in and out: Jansson with our rules, and field readers that explain what is wrong. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum ink_status ink_json_parse(const char *text, size_t len, json_t **out, struct ink_err *err)
{
    json_error_t why;
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);

    if (!v)
        return ink_err_param(err, INK_INVALID, "", "invalid_json",
                             "not valid JSON: line %d, column %d: %s", why.line, why.column,
                             why.text);
    *out = v;
    return INK_OK;
}

char *ink_json_dump(const json_t *value)
{
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
}

bool ink_json_has(const json_t *obj, const char *name)
{
    const json_t *v = json_object_get(obj, name);

    return v && !json_is_null(v);
}

static const char *type_name(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

static enum ink_status wrong_type(struct ink_err *err, const char *name, const json_t *v,
                                  const char *want)
{
    return ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: must be %s, not %s", name,
                         want, type_name(v));
}

enum ink_status ink_json_number(const json_t *obj, const char *name, double min, double max,
                                double *out, struct ink_err *err)
{
    const json_t *v = json_object_get(obj, name);

    if (!v || json_is_null(v))
        return INK_OK;
    if (!json_is_number(v))
        return wrong_type(err, name, v, "a number");
    double d = json_number_value(v);
    if (!(d >= min && d <= max))
        return ink_err_param(err, INK_INVALID, name, "invalid_value", "%s: %g is not in %g..%g",
                             name, d, min, max);
    *out = d;
    return INK_OK;
}

enum ink_status ink_json_int(const json_t *obj, const char *name, int64_t min, int64_t max,
                             int64_t *out, struct ink_err *err)
{
    const json_t *v = json_object_get(obj, name);
    int64_t n;

    if (!v || json_is_null(v))
        return INK_OK;
    if (json_is_integer(v)) {
        n = json_integer_value(v);
    } else if (json_is_real(v)) {
        double d = json_real_value(v);

        if (d != floor(d))
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: must be a whole number, not %g", name, d);
        if (fabs(d) > 9007199254740992.0)
            return ink_err_param(err, INK_INVALID, name, "invalid_value",
                                 "%s: %g is not in %lld..%lld", name, d, (long long)min,
                                 (long long)max);
        n = (int64_t)d;
    } else {
        return wrong_type(err, name, v, "a whole number");
    }
    if (n < min || n > max)
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s: %lld is not in %lld..%lld", name, (long long)n, (long long)min,
                             (long long)max);
    *out = n;
    return INK_OK;
}

enum ink_status ink_json_bool(const json_t *obj, const char *name, bool *out, struct ink_err *err)
{
    const json_t *v = json_object_get(obj, name);

    if (!v || json_is_null(v))
        return INK_OK;
    if (!json_is_boolean(v))
        return wrong_type(err, name, v, "true or false");
    *out = json_is_true(v);
    return INK_OK;
}

enum ink_status ink_json_string(const json_t *obj, const char *name, const char **out, size_t *len,
                                struct ink_err *err)
{
    const json_t *v = json_object_get(obj, name);

    if (!v || json_is_null(v))
        return INK_OK;
    if (!json_is_string(v))
        return wrong_type(err, name, v, "a string");
    *out = json_string_value(v);
    *len = json_string_length(v);
    return INK_OK;
}
