#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>

/* The plainest HTTP client: one connection, one request, everything read until the server closes. */

int client_open(int port); /* a connected socket on loopback; fails the test otherwise */
void client_send(int fd, const char *text);
/* Reads until the server closes or `until` has come (NULL: only until it closes); caller frees. At most `wait_ms`. */
char *client_read(int fd, const char *until, int wait_ms);

/* POST of a JSON body with "Connection: close"; `extra` are further header lines or "". Caller frees the answer. */
char *client_post(int port, const char *path, const char *json, const char *extra);
char *client_get(int port, const char *path, const char *extra);

int client_status(const char *answer);
/* The body with chunked encoding undone; caller frees. */
char *client_body(const char *answer);
bool client_has_header(const char *answer, const char *line_start);

#endif
