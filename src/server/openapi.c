/*
 * GET /openapi.json: the route table, the tables of fields, and the shapes of answers below as an OpenAPI 3.1
 * document.
 */
#include "server/router.h"

#include "base/alloc.h"
#include "server/fields.h"
#include "server/reply.h"
#include "server/request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What answers look like. A shape is a list of "name:type" ("name?:type" where it may be missing); a type is
 * string, number, integer, boolean, any, or a shape, with [] for an array of it and |null where null is
 * possible.
 */
static const struct {
    const char *name, *members;
} shapes[] = {
    { "Rewrite", "id:string model:string rewrites:Candidate[] seed:integer usage:Usage "
                 "timings:Timings cache:string source_cache:string device:string "
                 "truncated:Truncated|null warnings:string[]" },
    { "Prepared", "id:string model:string state:string usage:Usage timings:Timings "
                  "source_cache:string device:string truncated:Truncated|null warnings:string[]" },
    { "Candidate", "index:integer text:string finish_reason:string score:number|null error?:Error "
                   "tokens?:Token[]" },
    { "Token", "id:integer piece:string logprob:number top?:Alternative[]" },
    { "Alternative", "id:integer piece:string logprob:number" },
    { "Usage", "input_tokens:integer output_tokens:integer" },
    { "Timings", "queue_ms:number tokenize_ms:number encode_ms:number first_token_ms:number "
                 "decode_ms:number other_ms:number total_ms:number" },
    { "Truncated", "from:integer to:integer unit:string" },
    { "QueuedEvent", "type:string position:integer wait_ms:integer" },
    { "DeltaEvent", "type:string index:integer text:string" },
    { "ResetEvent", "type:string index:integer reason:string text:string" },
    { "CandidateEvent", "type:string index:integer text:string finish_reason:string "
                        "score:number|null error?:Error tokens?:Token[]" },
    { "DoneEvent", "type:string id:string model:string rewrites:Candidate[] seed:integer "
                   "usage:Usage timings:Timings cache:string source_cache:string device:string "
                   "truncated:Truncated|null warnings:string[]" },
    { "ErrorEvent", "type:string error:Error" },
    { "StreamEnd", "id:string state:string" },
    { "Batch", "id:string model:string results:any[] usage:Usage timings:Timings" },
    { "Augmented", "augmented_texts:string[]" },
    { "AugmentedBatch", "results:AugmentedText[]" },
    { "AugmentedText", "original:any augmented_texts:string[] error?:Error" },
    { "Score", "model:string source_ids:integer[] target:Token[] sum_logprob:number" },
    { "Tokens", "model:string ids?:integer[] pieces?:string[] text?:string" },
    { "Models", "object:string data:Model[]" },
    { "Model", "id:string object:string created:integer owned_by:string capabilities:string[] "
               "type:string context:integer max_output:integer demo:boolean device:string" },
    { "Health", "status:string state:string version:string uptime_s:number" },
    { "Ready", "status:string models:integer" },
    { "OpenAPI", "openapi:string info:any servers:any paths:any components:any" },
    { "Failure", "error:Error" },
    { "Error", "message:string type:string param:string|null code:string" },
};

/* Takes the reference to `value`. */
static void put(json_t *o, const char *key, json_t *value)
{
    (void)json_object_set_new(o, key, value); /* a missing key shows in the document */
}

static json_t *strings(const char *const *words)
{
    json_t *a = json_array();

    for (; *words; words++)
        (void)json_array_append_new(a, json_string(*words));
    return a;
}

static json_t *ref(const char *name)
{
    char path[80];

    (void)snprintf(path, sizeof(path), "#/components/schemas/%s", name);
    return json_pack("{s:s}", "$ref", path);
}

/* --- answers ---------------------------------------------------------------------------------- */

static json_t *type_schema(const char *type)
{
    char name[40];
    size_t len = strcspn(type, "[|");

    (void)snprintf(name, sizeof(name), "%.*s", (int)len, type);
    json_t *schema = strcmp(name, "any") == 0        ? json_object()
                     : isupper((unsigned char)*name) ? ref(name)
                                                     : json_pack("{s:s}", "type", name);
    if (strncmp(type + len, "[]", 2) == 0)
        schema = json_pack("{s:s, s:o}", "type", "array", "items", schema);
    if (strstr(type + len, "|null"))
        schema = json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
    return schema;
}

static json_t *shape_schema(const char *members)
{
    json_t *properties = json_object(), *required = json_array();
    char *text = ink_strdup(members), *rest = NULL;

    for (char *m = strtok_r(text, " ", &rest); m; m = strtok_r(NULL, " ", &rest)) {
        char *type = strchr(m, ':');
        bool optional = type[-1] == '?';

        type[optional ? -1 : 0] = '\0';
        put(properties, m, type_schema(type + 1));
        if (!optional)
            (void)json_array_append_new(required, json_string(m));
    }
    free(text);
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                     required, "additionalProperties", 0);
}

/* --- bodies ----------------------------------------------------------------------------------- */

static void set_range(json_t *schema, const struct field *f, bool whole)
{
    const char *lowest = f->flags & FIELD_ABOVE ? "exclusiveMinimum" : "minimum";

    put(schema, lowest, whole ? json_integer((json_int_t)f->min) : json_real(f->min));
    if (!(f->flags & FIELD_MODEL_MAX))
        put(schema, "maximum", whole ? json_integer((json_int_t)f->max) : json_real(f->max));
}

static json_t *one_string(void)
{
    return json_pack("{s:s, s:i, s:i}", "type", "string", "minLength", 1, "maxLength",
                     FIELD_STRING_MAX);
}

/* Its type and range; `*fallback`: the default, from a struct that was just made. */
static json_t *value_schema(const struct field *f, const void *at, json_t **fallback)
{
    json_t *schema = json_object();
    unsigned place;

    *fallback = NULL;
    switch (f->type) {
    case FIELD_TEXT:
        put(schema, "type", json_string("string"));
        if (f->flags & FIELD_NOT_BLANK)
            put(schema, "pattern", json_string("\\S"));
        break;
    case FIELD_NAME:
        put(schema, "type", json_string("string"));
        break;
    case FIELD_INT:
        put(schema, "type", json_string("integer"));
        set_range(schema, f, true);
        *fallback = json_integer(*(const int *)at);
        break;
    case FIELD_LONG:
        put(schema, "type", json_string("integer"));
        set_range(schema, f, true);
        *fallback = json_integer(*(const int64_t *)at);
        break;
    case FIELD_NUMBER:
        put(schema, "type", json_string("number"));
        set_range(schema, f, false);
        *fallback = json_real(*(const double *)at);
        break;
    case FIELD_BOOL:
        put(schema, "type", json_string("boolean"));
        *fallback = json_boolean(*(const bool *)at);
        break;
    case FIELD_WORD:
        put(schema, "enum", strings(f->words));
        memcpy(&place, at, sizeof(place));
        *fallback = json_string(f->words[place]);
        break;
    case FIELD_IDS:
        put(schema, "type", json_string("array"));
        put(schema, "items",
            json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 0, "maximum", INT32_MAX));
        put(schema, "minItems", json_integer((json_int_t)f->min));
        put(schema, "maxItems", json_integer((json_int_t)f->max));
        break;
    case FIELD_STRINGS:
        put(schema, "anyOf",
            json_pack("[o, {s:s, s:o, s:i}]", one_string(), "type", "array", "items", one_string(),
                      "maxItems", (int)f->max));
        break;
    case FIELD_ELEMENTS:
        put(schema, "type", json_string("array"));
        put(schema, "items", json_object());
        put(schema, "minItems", json_integer((json_int_t)f->min));
        put(schema, "maxItems", json_integer((json_int_t)f->max));
        break;
    }
    return schema;
}

static json_t *field_schema(const struct field *f, const void *at)
{
    json_t *fallback, *schema = value_schema(f, at, &fallback);

    /* null is the default wherever there is one. */
    if (!(f->flags & (FIELD_REQUIRED | FIELD_EITHER)))
        schema = json_pack("{s:[o, {s:s}]}", "anyOf", schema, "type", "null");
    put(schema, "description", json_string(f->about));
    if (fallback && !(f->flags & FIELD_NO_DEFAULT))
        put(schema, "default", fallback);
    else
        json_decref(fallback);
    return schema;
}

/* One rule for each run of fields of which exactly one is wanted. */
static void add_either(json_t *rules, const struct fields *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        json_t *choice = json_array();

        for (; i < fields->n && (fields->rows[i].flags & FIELD_EITHER); i++)
            (void)json_array_append_new(choice,
                                        json_pack("{s:[s]}", "required", fields->rows[i].name));
        if (json_array_size(choice) > 0)
            (void)json_array_append_new(rules, json_pack("{s:O}", "oneOf", choice));
        json_decref(choice);
    }
}

static json_t *body_schema(const struct body *body)
{
    json_t *properties = json_object(), *required = json_array(), *rules = json_array();
    char *made = ink_zalloc(body->size);

    body->init(made);
    for (int t = 0; t < BODY_TABLES && body->tables[t]; t++) {
        const struct fields *fields = body->tables[t];

        for (size_t i = 0; i < fields->n; i++) {
            const struct field *f = &fields->rows[i];

            put(properties, f->name, field_schema(f, made + f->at));
            if (f->flags & FIELD_REQUIRED)
                (void)json_array_append_new(required, json_string(f->name));
        }
        add_either(rules, fields);
    }
    free(made);

    json_t *schema = json_pack("{s:s, s:o}", "type", "object", "properties", properties);
    if (json_array_size(required) > 0)
        put(schema, "required", json_incref(required));
    if (json_array_size(rules) > 0)
        put(schema, "allOf", json_incref(rules));
    json_decref(required);
    json_decref(rules);
    return schema;
}

/* --- routes ----------------------------------------------------------------------------------- */

/* One server-sent event: each has an id and JSON, but for the last one, whose data is "[DONE]". */
static json_t *event_schema(void)
{
    json_t *events = json_array();

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (strstr(shapes[i].name, "Event"))
            (void)json_array_append_new(events, ref(shapes[i].name));
    }
    return json_pack("{s:s, s:{s:{s:s}, s:{s:s, s:s, s:{s:o}}}, s:[s]}", "type", "object",
                     "properties", "id", "type", "string", "data", "type", "string",
                     "contentMediaType", "application/json", "contentSchema", "anyOf", events,
                     "required", "data");
}

static const char media_events[] = "text/event-stream", media_lines[] = "application/x-ndjson";

static json_t *content(const char *gives)
{
    if (strcmp(gives, media_events) == 0)
        return json_pack("{s:{s:o}}", gives, "schema", event_schema());
    return strchr(gives, '/') ? json_pack("{s:{s:{s:s}}}", gives, "schema", "type", "string")
                              : json_pack("{s:{s:o}}", "application/json", "schema", ref(gives));
}

static bool can_stream(const struct route *r)
{
    for (int t = 0; r->takes && t < BODY_TABLES && r->takes->tables[t]; t++) {
        for (size_t i = 0; i < r->takes->tables[t]->n; i++) {
            if (strcmp(r->takes->tables[t]->rows[i].name, "stream") == 0)
                return true;
        }
    }
    return false;
}

/* Which errors a route may answer with beside those of any other; "default" has the rest. */
static void add_errors(json_t *responses, const struct route *r)
{
    static const struct {
        int status;
        unsigned flags; /* of a route that has any of them */
        const char *about;
    } rows[] = {
        { 400, ROUTE_JSON, "A field is wrong: which, its value and its range." },
        { 404, ROUTE_JSON, "No such model." },
        { 413, ROUTE_JSON, "The body is too large." },
        { 415, ROUTE_JSON, "The body is not application/json." },
        { 422, ROUTE_JSON, "None of the outputs can be used." },
        { 429, ROUTE_JSON, "Too much is waiting; Retry-After says when to come back." },
        { 503, ROUTE_MODEL,
          "Models load, or the server drains; Retry-After says when to come back." },
        { 504, ROUTE_JSON, "Not done within timeout_ms." },
    };
    bool has_id = strchr(r->path, '{') != NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char status[8];

        if (!(r->flags & rows[i].flags))
            continue;
        (void)snprintf(status, sizeof(status), "%d", rows[i].status);
        put(responses, status,
            json_pack("{s:s, s:o}", "description", rows[i].about, "content", content("Failure")));
    }
    if (has_id)
        put(responses, "404",
            json_pack("{s:s, s:o}", "description", "Unknown, or expired.", "content",
                      content("Failure")));
    put(responses, "default",
        json_pack("{s:s, s:o}", "description", "Any other error.", "content", content("Failure")));
}

static json_t *parameters(const struct route *r)
{
    json_t *list = json_array();

    if (r->flags & ROUTE_LINES)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:{s:s, s:[s, s]}, s:s}", "name", "ordered", "in", "query",
                            "schema", "type", "string", "enum", "0", "1", "description",
                            "Answer lines in the order of the texts, not as they finish."));
    if (!strchr(r->path, '{'))
        return list;
    (void)json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s}, s:s}", "name", "id", "in",
                                                "path", "required", 1, "schema", "type", "string",
                                                "description", "The answer's id."));
    if (strcmp(r->gives, media_events) == 0)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:{s:s}, s:s}", "name", "Last-Event-ID", "in", "header",
                            "schema", "type", "string", "description",
                            "The last event that was read, as <id>:<n> or <n>."));
    return list;
}

static json_t *body_content(const struct route *r)
{
    json_t *kinds = json_pack("{s:{s:o}}", "application/json", "schema", ref(r->takes->name));

    if (r->flags & ROUTE_LINES)
        put(kinds, media_lines, json_pack("{s:{s:s}}", "schema", "type", "string"));
    return kinds;
}

static json_t *operation(const struct route *r)
{
    json_t *answers = content(r->gives), *responses = json_object();
    json_t *o = json_pack("{s:s, s:o}", "summary", r->about, "parameters", parameters(r));

    if (can_stream(r) && !(r->flags & ROUTE_BATCH))
        put(answers, media_events, json_pack("{s:o}", "schema", event_schema()));
    if (r->flags & ROUTE_LINES)
        put(answers, media_lines, json_pack("{s:{s:s}}", "schema", "type", "string"));
    put(responses, "200", json_pack("{s:s, s:o}", "description", r->about, "content", answers));
    add_errors(responses, r);
    put(o, "responses", responses);
    if (r->takes)
        put(o, "requestBody", json_pack("{s:b, s:o}", "required", 1, "content", body_content(r)));
    if (!(r->flags & ROUTE_OPEN))
        put(o, "security", json_pack("[{}, {s:[]}]", "key"));
    return o;
}

static json_t *paths(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < routes_n; i++) {
        char method[8] = "";
        json_t *path = json_object_get(all, routes[i].path);

        for (size_t k = 0; routes[i].method[k] && k + 1 < sizeof(method); k++)
            method[k] = (char)tolower((unsigned char)routes[i].method[k]);
        if (!path) {
            path = json_object();
            put(all, routes[i].path, path);
        }
        put(path, method, operation(&routes[i]));
    }
    return all;
}

static json_t *schemas(void)
{
    json_t *all = json_object();

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        put(all, shapes[i].name, shape_schema(shapes[i].members));
    for (size_t i = 0; i < routes_n; i++) {
        if (routes[i].takes)
            put(all, routes[i].takes->name, body_schema(routes[i].takes));
    }
    return all;
}

enum ink_status route_openapi(struct request *rq, struct ink_err *err)
{
    (void)err;
    reply_json(rq, 200,
               json_pack("{s:s, s:{s:s, s:s, s:{s:s}}, s:[{s:s}], s:o, s:{s:{s:{s:s, s:s}}, s:o}}",
                         "openapi", "3.1.0", "info", "title", "Inkstone", "version",
                         INKSTONE_VERSION, "license", "name", "MIT", "servers", "url", "/", "paths",
                         paths(), "components", "securitySchemes", "key", "type", "http", "scheme",
                         "bearer", "schemas", schemas()));
    return INK_OK;
}
