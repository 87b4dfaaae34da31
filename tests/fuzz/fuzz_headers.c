/*
 * What we parse of a request's head ourselves: Host, Origin, Authorization, the path, Last-Event-ID,
 * Content-Type, Accept. One a line, in this order.
 */
#include "base/utf8.h"
#include "server/auth.h"
#include "server/media.h"
#include "server/router.h"
#include "server/stream_log.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES = 7 };

/*
 * An allocation of its own for each line, so that a sanitizer sees a byte read past it. Missing lines are
 * NULL: no such header.
 */
static void split(const uint8_t *data, size_t size, char *lines[LINES])
{
    for (int i = 0; i < LINES; i++) {
        const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
        size_t len = end ? (size_t)(end - data) : size;

        lines[i] = NULL;
        if (len > 0 || end) {
            lines[i] = malloc(len + 1);
            assert(lines[i]);
            memcpy(lines[i], data, len);
            lines[i][len] = '\0';
        }
        data += end ? len + 1 : len;
        size -= end ? len + 1 : len;
    }
}

static void check_auth(const struct auth *a, char *lines[LINES])
{
    struct auth_request rq = { .host = lines[0],
                               .origin = lines[1],
                               .authorization = lines[2],
                               .local_address = "127.0.0.1" };
    struct ink_err err = { 0 };
    int key = auth_key_of(a, lines[2]);
    const char *origin = auth_cors_origin(a, lines[1]);

    assert(key >= -1 && key < a->n_keys);
    assert(!origin || strcmp(origin, "https://page.example") == 0);
    if (auth_check(a, &rq, &err) != INK_OK) {
        assert(err.text[0] && err.reason[0] && ink_utf8_is_valid(err.text, strlen(err.text)));
        return;
    }
    /* Whoever comes through has a key, and no page of another place behind it. */
    assert(key >= 0);
    if (rq.origin && !origin)
        assert(rq.host && strstr(rq.origin, "://"));
}

/* Whatever the bytes: a verdict, and none that lets a stranger in. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const keys[] = { "one", "two" }, *const hosts[] = { "ink.example" },
                             *const origins[] = { "https://page.example" };
    char *lines[LINES], allow[ROUTE_ALLOW_CAP];
    struct ink_err err;
    struct auth a;
    int n = 0;

    split(data, size, lines);
    if (auth_init(&a, keys, 2, "127.0.0.1", hosts, 1, origins, 1, &err) != INK_OK)
        abort();
    check_auth(&a, lines);
    auth_release(&a);

    for (const char *const *method = (const char *const[]){ "GET", "POST", "HEAD", "DELETE", NULL };
         lines[3] && *method; method++) {
        const struct route *r = route_find(*method, lines[3], allow);

        assert(strlen(allow) < ROUTE_ALLOW_CAP);
        assert(!r || strcmp(r->method, strcmp(*method, "HEAD") == 0 ? "GET" : *method) == 0);
    }
    if (lines[4] && stream_event_number(lines[4], "rw-0123456789abcdef", &n))
        assert(n >= 0 && n <= 999999999);
    if (media_is(lines[5], "application/json"))
        assert(!media_is(lines[5], "application/x-ndjson") && strlen(lines[5]) >= 16);
    if (media_accepts(lines[6], "application/x-ndjson"))
        assert(strlen(lines[6]) >= 20);
    for (int i = 0; i < LINES; i++)
        free(lines[i]);
    return 0;
}
