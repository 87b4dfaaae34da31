/* Answers as libmicrohttpd responses. */
#include "server/reply.h"

#include "base/alloc.h"
#include "base/json.h"
#include "server/answer.h"
#include "server/error_words.h"
#include "server/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char media_json[] = "application/json";

static void set_response(struct request *rq, int status, struct MHD_Response *response,
                         const char *type)
{
    if (rq->response)
        MHD_destroy_response(rq->response);
    rq->response = response;
    rq->status = status;
    reply_header(rq, "Content-Type", type);
}

void reply_header(struct request *rq, const char *name, const char *value)
{
    if (rq->response)
        (void)MHD_add_response_header(rq->response, name, value);
}

void reply_text(struct request *rq, int status, const char *type, char *text, size_t len)
{
    set_response(rq, status, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE),
                 type);
}

void reply_static(struct request *rq, int status, const char *type, const void *bytes, size_t len)
{
    /* The library only reads it; its parameter lacks the const. */
    void *borrowed = (void *)(uintptr_t)bytes;

    set_response(rq, status, MHD_create_response_from_buffer(len, borrowed, MHD_RESPMEM_PERSISTENT),
                 type);
}

void reply_json(struct request *rq, int status, json_t *value)
{
    char *text = ink_json_dump(value);

    json_decref(value);
    if (!text) {
        static const char broken[] =
            "{\"error\":{\"message\":\"the answer could not be written as JSON\","
            "\"type\":\"server_error\",\"param\":null,\"code\":\"internal\"}}\n";

        reply_static(rq, 500, media_json, broken, sizeof(broken) - 1);
        return;
    }

    /* A final newline, for people with curl. */
    size_t len = strlen(text);
    text = ink_realloc(text, len + 2);
    memcpy(text + len, "\n", 2);
    reply_text(rq, status, media_json, text, len + 1);
}

/* Who refuses for lack of room says when there will be some: "... try again in 3 s". */
static int retry_seconds(const char *text)
{
    const char *at = strstr(text, "try again in ");
    long n = at ? strtol(at + 13, NULL, 10) : 0;

    return n < 1 ? 1 : n > 3600 ? 3600 : (int)n;
}

void reply_error(struct request *rq, const struct ink_err *err)
{
    const struct error_word *w = error_word_of(err);
    json_t *doc = json_object();

    (void)json_object_set_new(doc, "error", ink_answer_error(err));
    reply_json(rq, w->http_status, doc);
    if (w->http_status == 429 || w->http_status == 503) {
        char seconds[16];

        (void)snprintf(seconds, sizeof(seconds), "%d", retry_seconds(err->text));
        reply_header(rq, "Retry-After", seconds);
    } else if (w->http_status == 401)
        reply_header(rq, "WWW-Authenticate", "Bearer");
}
