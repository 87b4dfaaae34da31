/* The server's promises over real sockets, with a scripted task room behind it (fake_task.h). */
#include "unit.h"

#include "client.h"
#include "fake_task.h"
#include "server/server.h"
#include "server/stream.h"

#include "base/clock.h"
#include "base/json.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct ink_server *server;
static int port;

static void start_with(struct ink_server_options options)
{
    struct ink_err err = { 0 };

    assert_int_equal(ink_server_start(&options, &server, &err), INK_OK);
    port = ink_server_port(server);
}

static int start(void **state)
{
    (void)state;
    start_with((struct ink_server_options){ .catalog = fake_catalog });
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ink_server_stop(server);
    server = NULL;
    return fake_tasks_alive(); /* a task left behind fails the test */
}

static void nap(int wait_ms)
{
    struct timespec t = { wait_ms / 1000, (wait_ms % 1000) * 1000000L };

    (void)nanosleep(&t, NULL);
}

static bool becomes(int (*value)(void), int wanted, int wait_ms)
{
    int64_t end_ms = ink_clock_ms() + wait_ms;

    while (value() != wanted) {
        if (ink_clock_ms() > end_ms)
            return false;
        nap(5);
    }
    return true;
}

static json_t *json_of(const char *answer)
{
    struct ink_err err = { 0 };
    char *body = client_body(answer);
    json_t *doc = NULL;

    assert_int_equal(ink_json_parse(body, strlen(body), &doc, &err), INK_OK);
    free(body);
    return doc;
}

static void assert_error(char *answer, int status, const char *code, const char *param)
{
    assert_int_equal(client_status(answer), status);
    json_t *doc = json_of(answer);
    const json_t *error = json_object_get(doc, "error");

    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    if (param)
        assert_string_equal(json_string_value(json_object_get(error, "param")), param);
    assert_true(json_string_length(json_object_get(error, "message")) > 5);
    json_decref(doc);
    free(answer);
}

static void rewrite_answers_with_the_whole_result(void **state)
{
    (void)state;
    char *answer = client_post(port, "/v1/rewrite", "{\"text\":\"abc\",\"n\":2,\"seed\":7}", "");
    json_t *doc = json_of(answer);
    const json_t *rewrites = json_object_get(doc, "rewrites");
    static const char *const fields[] = { "id",      "model", "rewrites", "seed",      "usage",
                                          "timings", "cache", "device",   "truncated", "warnings" };

    assert_int_equal(client_status(answer), 200);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_non_null(json_object_get(doc, fields[i]));
    assert_int_equal(json_array_size(rewrites), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rewrites, 1), "index")), 1);
    assert_int_equal(json_integer_value(json_object_get(doc, "seed")), 7);
    assert_null(json_object_get(json_array_get(rewrites, 0), "tokens"));
    assert_true(client_has_header(answer, "X-Cache: miss"));
    assert_true(client_has_header(answer, "Content-Security-Policy: default-src 'self'"));
    assert_false(client_has_header(answer, "Server:"));
    json_decref(doc);
    free(answer);
}

static void details_name_every_token_and_its_alternatives(void **state)
{
    (void)state;
    char *answer =
        client_post(port, "/v1/rewrite", "{\"text\":\"abc\",\"n\":1,\"details\":true}", "");
    json_t *doc = json_of(answer);
    const json_t *tokens =
        json_object_get(json_array_get(json_object_get(doc, "rewrites"), 0), "tokens");

    assert_int_equal(json_array_size(tokens), 4);
    const json_t *first = json_array_get(tokens, 0);
    assert_int_equal(json_integer_value(json_object_get(first, "id")), 7);
    assert_string_equal(json_string_value(json_object_get(first, "piece")), "\xe2\x96\x81");
    assert_int_equal(json_array_size(json_object_get(first, "top")), 2);
    json_decref(doc);
    free(answer);
}

/* The text of candidate `index` as a client of the stream puts it together. */
static void join_stream(const char *body, int index, char *out, size_t cap)
{
    const char *at = body;
    int id = 0;

    out[0] = '\0';
    while ((at = strstr(at, "data: ")) != NULL && strncmp(at, "data: [DONE]", 12) != 0) {
        struct ink_err err;
        json_t *ev = NULL;
        const char *end = strstr(at, "\n\n");
        char label[32];

        assert_non_null(end);
        (void)snprintf(label, sizeof(label), "id: rw-0001:%d\n", ++id);
        assert_true(strncmp(at - strlen(label), label, strlen(label)) == 0);
        assert_int_equal(ink_json_parse(at + 6, (size_t)(end - at - 6), &ev, &err), INK_OK);
        const char *type = json_string_value(json_object_get(ev, "type"));
        const char *text = json_string_value(json_object_get(ev, "text"));
        if (text && json_integer_value(json_object_get(ev, "index")) == index) {
            if (strcmp(type, "reset") == 0)
                (void)snprintf(out, cap, "%s", text);
            else if (strcmp(type, "delta") == 0)
                (void)snprintf(out + strlen(out), cap - strlen(out), "%s", text);
            else if (strcmp(type, "candidate") == 0)
                assert_string_equal(out, text);
        }
        json_decref(ev);
        at = end;
    }
    assert_non_null(at); /* ends in [DONE] */
}

static void a_stream_joins_to_the_plain_answer(void **state)
{
    (void)state;
    char *plain = client_post(port, "/v1/rewrite", "{\"text\":\"same\",\"n\":3}", "");
    char *streamed =
        client_post(port, "/v1/rewrite", "{\"text\":\"same\",\"n\":3,\"stream\":true}", "");
    char *body = client_body(streamed);
    json_t *doc = json_of(plain);

    assert_true(client_has_header(streamed, "Content-Type: text/event-stream"));
    assert_true(client_has_header(streamed, "Cache-Control: no-cache"));
    assert_true(client_has_header(streamed, "X-Accel-Buffering: no"));
    assert_non_null(strstr(body, "\"type\":\"reset\""));
    assert_non_null(strstr(body, "\"type\":\"done\""));
    for (int i = 0; i < 3; i++) {
        char joined[512];
        const json_t *c = json_array_get(json_object_get(doc, "rewrites"), (size_t)i);

        join_stream(body, i, joined, sizeof(joined));
        assert_string_equal(joined, json_string_value(json_object_get(c, "text")));
    }
    json_decref(doc);
    free(body);
    free(plain);
    free(streamed);
}

static void errors_have_the_contracts_codes(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *code, *param;
    } rows[] = {
        { "/v1/rewrite", "{\"text\":\"busy\"}", 429, "overloaded", NULL },
        { "/v1/rewrite", "{\"text\":\"fail\"}", 422, "no_usable_output", NULL },
        { "/v1/rewrite", "{\"text\":\"late\"}", 504, "deadline", "timeout_ms" },
        { "/v1/rewrite", "{\"text\":\"long\"}", 400, "input_too_long", "text" },
        { "/v1/rewrite", "{\"text\":\"a\",\"model\":\"x\"}", 404, "model_not_found", "model" },
        { "/v1/rewrite", "{\"text\":\"a\",\"n\":17}", 400, "invalid_value", "n" },
        { "/v1/rewrite", "{\"text\":\"a\",\"max_tokens\":0}", 400, "invalid_value", "max_tokens" },
        { "/v1/rewrite", "{\"text\":", 400, "invalid_json", NULL },
        { "/v1/rewrite", "[1]", 400, "invalid_json", NULL },
        { "/v1/rewrite", "", 400, "invalid_json", NULL },
        { "/v1/rewrite", "{\"text\":\"a\",\"text\":\"b\"}", 400, "invalid_json", NULL },
        { "/v1/rewrite", "{\"text\":\"\\u0000\"}", 400, "invalid_json", NULL },
        { "/v1/rewrite", "{\"text\":\"\\ud800\"}", 400, "invalid_json", NULL },
        { "/v1/rewrite", "{\"text\":\"\xff\"}", 400, "invalid_json", NULL },
        { "/v1/score", "{\"source\":\"a\"}", 400, "invalid_value", "target" },
        { "/v1/score", "{\"source\":\"a\",\"source_ids\":[1],\"target\":\"b\"}", 400,
          "invalid_value", "source" },
        { "/v1/tokenize", "{}", 400, "invalid_value", "text" },
        { "/v1/tokenize", "{\"ids\":[1,\"2\"]}", 400, "invalid_value", "ids" },
        { "/v1/nothing", "{}", 404, "not_found", NULL },
        { "/health", "{}", 405, "method_not_allowed", NULL },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_error(client_post(port, rows[i].path, rows[i].body, ""), rows[i].status,
                     rows[i].code, rows[i].param);
}

static void overload_says_when_to_come_back(void **state)
{
    (void)state;
    char *answer = client_post(port, "/v1/rewrite", "{\"text\":\"busy\"}", "");

    assert_true(client_has_header(answer, "Retry-After: 3"));
    free(answer);
}

static void a_wrong_method_is_told_the_right_one(void **state)
{
    (void)state;
    char *answer = client_get(port, "/v1/rewrite", "");

    assert_int_equal(client_status(answer), 405);
    assert_true(client_has_header(answer, "Allow: POST"));
    free(answer);
}

static void only_json_is_taken(void **state)
{
    static const char *const wrong[] = { "text/plain", "application/x-www-form-urlencoded",
                                         "application/jsonx" };
    char request[512];
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(
            request, sizeof(request),
            "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\n"
            "Content-Length: 2\r\n\r\n{}",
            wrong[i]);
        int fd = client_open(port);
        client_send(fd, request);
        assert_error(client_read(fd, NULL, 5000), 415, "unsupported_media_type", "Content-Type");
        close(fd);
    }
}

static void a_body_over_the_limit_is_refused_and_its_sender_gets_to_know(void **state)
{
    enum { BIG = 3 * 1024 * 1024 };
    char *json = malloc(BIG + 1);
    (void)state;

    assert_non_null(json);
    memset(json, 'x', BIG);
    memcpy(json, "{\"text\":\"", 9);
    json[BIG] = '\0';
    assert_error(client_post(port, "/v1/rewrite", json, ""), 413, "too_large", NULL);
    free(json);
}

static void strangers_origins_and_names_are_forbidden(void **state)
{
    static const struct {
        const char *headers;
        int status;
    } rows[] = {
        { "Host: evil.example\r\n", 403 },
        { "Host: evil.example:7860\r\n", 403 },
        { "Host: 127.0.0.1.evil.example\r\n", 403 },
        { "Host: localhost.evil.example\r\n", 403 },
        { "Host: localhost:1234\r\n", 200 },
        { "Host: 127.0.0.1\r\n", 200 },
        { "Host: [::1]:7860\r\n", 200 },
        { "Host: LOCALHOST\r\n", 200 },
        { "Host: localhost\r\nOrigin: http://evil.example\r\n", 403 },
        { "Host: localhost\r\nOrigin: null\r\n", 403 },
        { "Host: localhost:7860\r\nOrigin: http://localhost:7861\r\n", 403 },
        { "Host: localhost:7860\r\nOrigin: http://localhost:7860\r\n", 200 },
        { "Host: localhost\r\nOrigin: http://localhost:80\r\n", 200 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *answer = client_get(port, "/v1/models", rows[i].headers);

        if (client_status(answer) != rows[i].status)
            fail_msg("%s: %d, not %d", rows[i].headers, client_status(answer), rows[i].status);
        if (rows[i].status == 403)
            assert_non_null(strstr(answer, "\"forbidden_origin\""));
        free(answer);
    }
}

static void keys_are_asked_for_where_there_are_any(void **state)
{
    static const char *const keys[] = { "first-key", "second-key" };
    (void)state;

    start_with(
        (struct ink_server_options){ .catalog = fake_catalog, .api_keys = keys, .n_api_keys = 2 });
    assert_error(client_get(port, "/v1/models", ""), 401, "unauthorized", "Authorization");
    assert_error(client_get(port, "/v1/models", "Authorization: Bearer wrong\r\n"), 401,
                 "unauthorized", NULL);
    assert_error(client_get(port, "/v1/models", "Authorization: first-key\r\n"), 401,
                 "unauthorized", NULL);
    assert_error(client_get(port, "/metrics", ""), 401, "unauthorized", NULL);
    assert_error(client_post(port, "/v1/rewrite", "{\"text\":\"a\"}", ""), 401, "unauthorized",
                 NULL);

    static const char *const open[] = { "/health", "/ready" };
    for (size_t i = 0; i < 2; i++) {
        char *answer = client_get(port, open[i], "");
        assert_int_equal(client_status(answer), 200);
        free(answer);
    }
    char *answer = client_get(port, "/v1/models", "Authorization: Bearer second-key\r\n");
    assert_int_equal(client_status(answer), 200);
    free(answer);
}

static void another_origin_may_call_when_the_operator_says_so(void **state)
{
    static const char *const origins[] = { "https://page.example" };
    (void)state;

    start_with((struct ink_server_options){
        .catalog = fake_catalog, .cors_origins = origins, .n_cors_origins = 1 });
    char *answer = client_get(port, "/v1/models", "Origin: https://page.example\r\n");
    assert_int_equal(client_status(answer), 200);
    assert_true(client_has_header(answer, "Access-Control-Allow-Origin: https://page.example"));
    free(answer);

    int fd = client_open(port);
    client_send(fd, "OPTIONS /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n\r\n");
    answer = client_read(fd, NULL, 5000);
    close(fd);
    assert_int_equal(client_status(answer), 204);
    assert_true(
        client_has_header(answer, "Access-Control-Allow-Headers: Content-Type, Authorization"));
    free(answer);
    assert_error(client_get(port, "/v1/models", "Origin: https://other.example\r\n"), 403,
                 "forbidden_origin", NULL);
}

static void a_lost_client_cancels_its_task(void **state)
{
    static const char *const bodies[] = { "{\"text\":\"hang\"}",
                                          "{\"text\":\"hang\",\"stream\":true}",
                                          "{\"text\":\"slow\",\"n\":5,\"stream\":true}" };
    (void)state;

    for (size_t i = 0; i < 3; i++) {
        char request[512];
        int cancelled = fake_tasks_cancelled();
        int fd = client_open(port);

        (void)snprintf(
            request, sizeof(request),
            "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\n\r\n%s",
            strlen(bodies[i]), bodies[i]);
        client_send(fd, request);
        assert_true(becomes(fake_tasks_alive, 1, 2000));
        if (i == 2)
            free(client_read(fd, "delta", 2000));
        close(fd);
        assert_true(becomes(fake_tasks_alive, 0, 2000));
        assert_int_equal(fake_tasks_cancelled(), cancelled + 1);
    }
    char *answer = client_get(port, "/metrics", "");
    assert_non_null(strstr(answer, "inkstone_http_clients_gone_total 3\n"));
    assert_non_null(strstr(answer, "inkstone_jobs_cancelled_total{model=\"fake\"}"));
    assert_non_null(strstr(answer, "{route=\"/v1/rewrite\",code=\"499\"} 3\n"));
    free(answer);
}

static void a_silent_stream_is_pinged(void **state)
{
    (void)state;
    int fd = client_open(port);

    client_send(fd,
                "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Content-Length: 29\r\n\r\n{\"text\":\"hang\",\"stream\":true}");
    int64_t start_ms = ink_clock_ms();
    char *got = client_read(fd, ": ping\n\n", 20000);
    assert_non_null(strstr(got, ": ping\n\n"));
    assert_in_range(ink_clock_ms() - start_ms, 9500, 15000);
    free(got);
    close(fd);
    assert_true(becomes(fake_tasks_alive, 0, 2000));
}

static void a_stream_is_pinged_and_cancelled_after_a_resume_too(void **state)
{
    (void)state;
    int fd = client_open(port);

    client_send(
        fd, "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 47\r\n\r\n{\"text\":\"hang\",\"stream\":true,\"linger_ms\":60000}");
    char *first = client_read(fd, "}\n\n", 5000);
    assert_non_null(strstr(first, "id: rw-0001:1\ndata: {\"type\":\"queued\""));
    free(first);
    close(fd);

    fd = client_open(port);
    client_send(fd,
                "GET /v1/streams/rw-0001 HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n\r\n");
    int64_t start_ms = ink_clock_ms();
    char *got = client_read(fd, ": ping\n\n", 20000);
    assert_non_null(strstr(got, ": ping\n\n"));
    assert_null(strstr(got, "queued"));
    assert_in_range(ink_clock_ms() - start_ms, 9500, 15000);
    free(got);
    assert_int_equal(fake_tasks_alive(), 1);

    int fd2 = client_open(port);
    client_send(
        fd2, "DELETE /v1/streams/rw-0001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    char *deleted = client_read(fd2, NULL, 5000);
    assert_int_equal(client_status(deleted), 200);
    assert_non_null(strstr(deleted, "\"cancelled\""));
    got = client_read(fd, "[DONE]\n\n", 5000);
    assert_non_null(strstr(got, "id: rw-0001:2\ndata: {\"type\":\"error\""));
    free(deleted);
    free(got);
    close(fd);
    close(fd2);
    assert_true(becomes(fake_tasks_alive, 0, 2000));
}

static void too_many_that_linger_are_refused_and_others_are_not(void **state)
{
    static int fds[STREAMS_KEPT_MAX];
    (void)state;

    for (int i = 0; i < STREAMS_KEPT_MAX; i++) {
        fds[i] = client_open(port);
        client_send(
            fds[i],
            "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 47\r\n\r\n{\"text\":\"hang\",\"stream\":true,\"linger_ms\":60000}");
    }
    assert_true(becomes(fake_tasks_alive, STREAMS_KEPT_MAX, 20000));
    assert_error(client_post(port, "/v1/rewrite",
                             "{\"text\":\"abc\",\"stream\":true,\"linger_ms\":1000}", ""),
                 429, "overloaded", "linger_ms");
    char *plain = client_post(port, "/v1/rewrite", "{\"text\":\"abc\",\"stream\":true}", "");
    assert_int_equal(client_status(plain), 200);
    assert_non_null(strstr(plain, "[DONE]"));
    free(plain);
    for (int i = 0; i < STREAMS_KEPT_MAX; i++)
        close(fds[i]);
    assert_true(becomes(fake_tasks_alive, STREAMS_KEPT_MAX, 2000)); /* they linger */
}

static void *drain(void *left)
{
    *(int *)left = ink_server_drain(server, 10000);
    return NULL;
}

static void draining_finishes_what_runs_and_refuses_the_rest(void **state)
{
    pthread_t thread;
    int left = -1;
    (void)state;

    int fd = client_open(port);
    client_send(fd,
                "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Connection: close\r\nContent-Length: 15\r\n\r\n{\"text\":\"slow\"}");
    assert_true(becomes(fake_tasks_alive, 1, 2000));
    assert_int_equal(pthread_create(&thread, NULL, drain, &left), 0);
    nap(100);

    char *refused = client_post(port, "/v1/rewrite", "{\"text\":\"a\"}", "");
    assert_true(client_has_header(refused, "Retry-After:"));
    assert_error(refused, 503, "draining", NULL);
    assert_error(client_get(port, "/ready", ""), 503, "draining", NULL);
    char *health = client_get(port, "/health", "");
    assert_int_equal(client_status(health), 200);
    free(health);

    char *answer = client_read(fd, NULL, 10000);
    assert_int_equal(client_status(answer), 200);
    free(answer);
    close(fd);
    pthread_join(thread, NULL);
    assert_int_equal(left, 0);
}

static void stopping_cancels_what_runs_and_says_so(void **state)
{
    static const char *const bodies[] = { "{\"text\":\"hang\",\"pad\":\"12345678\"}",
                                          "{\"text\":\"hang\",\"stream\":true }" };
    int fds[2];
    (void)state;

    start_with((struct ink_server_options){ .catalog = fake_catalog });
    for (int i = 0; i < 2; i++) {
        char request[512];

        (void)snprintf(
            request, sizeof(request),
            "POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\n\r\n%s",
            strlen(bodies[i]), bodies[i]);
        fds[i] = client_open(port);
        client_send(fds[i], request);
    }
    assert_true(becomes(fake_tasks_alive, 2, 2000));
    nap(50);
    int64_t start_ms = ink_clock_ms();
    ink_server_stop(server);
    server = NULL;
    assert_in_range(ink_clock_ms() - start_ms, 0, 3000);
    assert_int_equal(fake_tasks_alive(), 0);
    for (int i = 0; i < 2; i++) {
        char *answer = client_read(fds[i], NULL, 1000);

        assert_non_null(strstr(answer, "\"draining\""));
        free(answer);
        close(fds[i]);
    }
}

static void loading_is_told_until_there_is_a_catalog(void **state)
{
    (void)state;
    start_with((struct ink_server_options){ 0 });
    assert_error(client_get(port, "/ready", ""), 503, "loading", NULL);
    assert_error(client_post(port, "/v1/rewrite", "{\"text\":\"a\"}", ""), 503, "loading", NULL);
    ink_server_set_catalog(server, fake_catalog);
    char *answer = client_get(port, "/ready", "");
    assert_int_equal(client_status(answer), 200);
    free(answer);
}

static void a_port_in_use_names_its_holder(void **state)
{
    struct ink_server *second = NULL;
    struct ink_err err = { 0 };
    char mine[32];
    (void)state;

    assert_int_equal(ink_server_start(&(struct ink_server_options){ .port = port }, &second, &err),
                     INK_BUSY);
    (void)snprintf(mine, sizeof(mine), "pid %d", (int)getpid());
    assert_non_null(strstr(err.text, mine));
    assert_null(second);
}

static void an_open_address_needs_a_key_or_a_word(void **state)
{
    static const char *const keys[] = { "k" };
    struct ink_server *s = NULL;
    struct ink_err err = { 0 };
    (void)state;

    assert_int_equal(ink_server_start(&(struct ink_server_options){ .host = "0.0.0.0" }, &s, &err),
                     INK_INVALID);
    assert_non_null(strstr(err.text, "--insecure"));
    assert_int_equal(
        ink_server_start(&(struct ink_server_options){ .host = "0.0.0.0", .insecure = true }, &s,
                         &err),
        INK_OK);
    ink_server_stop(s);
    assert_int_equal(
        ink_server_start(
            &(struct ink_server_options){ .host = "0.0.0.0", .api_keys = keys, .n_api_keys = 1 },
            &s, &err),
        INK_OK);
    ink_server_stop(s);
}

static void *ask_many(void *arg)
{
    static const char *const bodies[] = { "{\"text\":\"a\",\"stream\":true}",
                                          "{\"text\":\"same\",\"n\":5}", "{\"text\":\"fail\"}",
                                          "{\"text\":" };
    (void)arg;

    for (int i = 0; i < 25; i++) {
        char *answer = client_post(port, "/v1/rewrite", bodies[i % 4], "");

        assert_true(client_status(answer) == (i % 4 < 2 ? 200 : i % 4 == 2 ? 422 : 400));
        free(answer);
    }
    return NULL;
}

static int64_t health_ms(void)
{
    int64_t start_ms = ink_clock_ms();
    char *answer = client_get(port, "/health", "");

    assert_int_equal(client_status(answer), 200);
    free(answer);
    return ink_clock_ms() - start_ms;
}

/* Under 100 ms, beyond what a busy machine adds to a server that does nothing else. */
static void health_answers_quickly_while_many_ask(void **state)
{
    enum { N = 40 };
    pthread_t threads[8];
    int64_t idle_ms = 0;
    int n_late = 0;
    (void)state;

    for (int i = 0; i < N; i++) {
        int64_t took_ms = health_ms();

        idle_ms = took_ms > idle_ms ? took_ms : idle_ms;
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, NULL), 0);
    for (int i = 0; i < N; i++)
        n_late += health_ms() > 100 + idle_ms;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(n_late, 0, N / 4); /* three in four, on a machine that does other things, too */
}

static void one_connection_serves_many_requests(void **state)
{
    (void)state;
    int fd = client_open(port);

    for (int i = 0; i < 3; i++) {
        client_send(
            fd,
            "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 13\r\n\r\n{\"text\":\"ab\"}");
        char *answer = client_read(fd, "</s>\"]}\n", 2000);
        assert_int_equal(client_status(answer), 200);
        free(answer);
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rewrite_answers_with_the_whole_result, start, stop),
        cmocka_unit_test_setup_teardown(details_name_every_token_and_its_alternatives, start, stop),
        cmocka_unit_test_setup_teardown(a_stream_joins_to_the_plain_answer, start, stop),
        cmocka_unit_test_setup_teardown(errors_have_the_contracts_codes, start, stop),
        cmocka_unit_test_setup_teardown(overload_says_when_to_come_back, start, stop),
        cmocka_unit_test_setup_teardown(a_wrong_method_is_told_the_right_one, start, stop),
        cmocka_unit_test_setup_teardown(only_json_is_taken, start, stop),
        cmocka_unit_test_setup_teardown(
            a_body_over_the_limit_is_refused_and_its_sender_gets_to_know, start, stop),
        cmocka_unit_test_setup_teardown(strangers_origins_and_names_are_forbidden, start, stop),
        cmocka_unit_test_teardown(keys_are_asked_for_where_there_are_any, stop),
        cmocka_unit_test_teardown(another_origin_may_call_when_the_operator_says_so, stop),
        cmocka_unit_test_setup_teardown(a_lost_client_cancels_its_task, start, stop),
        cmocka_unit_test_setup_teardown(a_silent_stream_is_pinged, start, stop),
        cmocka_unit_test_setup_teardown(a_stream_is_pinged_and_cancelled_after_a_resume_too, start,
                                        stop),
        cmocka_unit_test_setup_teardown(too_many_that_linger_are_refused_and_others_are_not, start,
                                        stop),
        cmocka_unit_test_setup_teardown(draining_finishes_what_runs_and_refuses_the_rest, start,
                                        stop),
        cmocka_unit_test_teardown(stopping_cancels_what_runs_and_says_so, stop),
        cmocka_unit_test_teardown(loading_is_told_until_there_is_a_catalog, stop),
        cmocka_unit_test_setup_teardown(a_port_in_use_names_its_holder, start, stop),
        cmocka_unit_test(an_open_address_needs_a_key_or_a_word),
        cmocka_unit_test_setup_teardown(health_answers_quickly_while_many_ask, start, stop),
        cmocka_unit_test_setup_teardown(one_connection_serves_many_requests, start, stop),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
