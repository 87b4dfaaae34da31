#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

/*
 * Sets a request's answer. What stands in every answer (content security policy and the like) is added when it is
 * queued. A later call replaces an earlier answer.
 */
struct request;

/* Takes the reference to `value`. */
void reply_json(struct request *rq, int status, json_t *value);
/* `type` and `bytes` are static: they outlive the server. */
void reply_static(struct request *rq, int status, const char *type, const void *bytes, size_t len);
/* Takes `text`, which free() releases. */
void reply_text(struct request *rq, int status, const char *type, char *text, size_t len);
/* The contract's error document; the one place where a status becomes an HTTP code. */
void reply_error(struct request *rq, const struct ink_err *err);
void reply_header(struct request *rq, const char *name, const char *value);

#endif
