/* Field readers on top of base/json.h. */
#include "server/json_fields.h"

#include "base/alloc.h"
#include "base/json.h"

#include <stdlib.h>

enum ink_status field_object(struct ink_slice body, json_t **out, struct ink_err *err)
{
    json_t *doc;
    enum ink_status st = ink_json_parse(body.ptr, body.len, &doc, err);

    if (st != INK_OK)
        return st;
    if (!json_is_object(doc)) {
        json_decref(doc);
        return ink_err_param(err, INK_INVALID, "", "invalid_json",
                             "the body must be a JSON object");
    }
    *out = doc;
    return INK_OK;
}

enum ink_status field_int(const json_t *obj, const char *name, int min, int max, int *out,
                          struct ink_err *err)
{
    int64_t v = *out;
    enum ink_status st = ink_json_int(obj, name, min, max, &v, err);

    if (st == INK_OK)
        *out = (int)v;
    return st;
}

/* The ids are read as an object's field would be, so 3.0 is fine and the message names the entry. */
static enum ink_status read_id(const json_t *value, const char *name, size_t i, int32_t *out,
                               struct ink_err *err)
{
    double d = json_number_value(value);

    if (!json_is_number(value) || !(d >= 0 && d <= INT32_MAX) || d != (double)(int32_t)d)
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s[%zu]: must be a token id, a whole number from 0", name, i);
    *out = (int32_t)d;
    return INK_OK;
}

enum ink_status field_ids(const json_t *obj, const char *name, int max, int32_t **ids, int *n,
                          struct ink_err *err)
{
    const json_t *array = json_object_get(obj, name);
    size_t len = json_array_size(array);

    if (!array || json_is_null(array))
        return INK_OK;
    if (!json_is_array(array))
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s: must be an array of token ids", name);
    if (len < 1 || len > (size_t)max)
        return ink_err_param(err, INK_INVALID, name, "invalid_value",
                             "%s: %zu ids; 1 to %d are possible", name, len, max);

    int32_t *read = ink_alloc(len * sizeof(*read));
    for (size_t i = 0; i < len; i++) {
        enum ink_status st = read_id(json_array_get(array, i), name, i, &read[i], err);

        if (st != INK_OK) {
            free(read);
            return st;
        }
    }
    *ids = read;
    *n = (int)len;
    return INK_OK;
}
