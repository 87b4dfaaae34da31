/* A test's HTTP client over a plain socket. */
#include "client.h"

#include "unit.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 * 1024 * 1024 };

int client_open(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

void client_send(int fd, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the server has closed: what it said can still be read */
        text += n;
        len -= (size_t)n;
    }
}

char *client_read(int fd, const char *until, int wait_ms)
{
    int64_t end_ms = ink_clock_ms() + wait_ms;
    char *answer = ink_alloc(ANSWER_MAX + 1);
    size_t len = 0;

    answer[0] = '\0';
    while (len < ANSWER_MAX && !(until && strstr(answer, until))) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        int left_ms = (int)(end_ms - ink_clock_ms());

        if (left_ms <= 0 || poll(&p, 1, left_ms) <= 0)
            break;
        ssize_t n = recv(fd, answer + len, ANSWER_MAX - len, 0);
        if (n <= 0)
            break;
        len += (size_t)n;
        answer[len] = '\0';
    }
    return answer;
}

static char *exchange(int port, const char *request)
{
    int fd = client_open(port);

    client_send(fd, request);
    char *answer = client_read(fd, NULL, 20000);
    close(fd);
    return answer;
}

char *client_post(int port, const char *path, const char *json, const char *extra)
{
    size_t cap = strlen(json) + strlen(extra) + 512;
    char *request = ink_alloc(cap);

    (void)snprintf(
        request, cap,
        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
        "Content-Length: %zu\r\n%s\r\n%s",
        path, strlen(json), extra, json);
    char *answer = exchange(port, request);
    free(request);
    return answer;
}

char *client_get(int port, const char *path, const char *extra)
{
    char request[2048];
    const char *host = strstr(extra, "Host:") ? "" : "Host: localhost\r\n";

    (void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n%sConnection: close\r\n%s\r\n",
                   path, host, extra);
    return exchange(port, request);
}

int client_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

bool client_has_header(const char *answer, const char *line_start)
{
    const char *end = strstr(answer, "\r\n\r\n");

    for (const char *line = answer; line && end && line < end; line = strstr(line, "\r\n")) {
        line += line == answer ? 0 : 2;
        if (strncasecmp(line, line_start, strlen(line_start)) == 0)
            return true;
    }
    return false;
}

char *client_body(const char *answer)
{
    const char *at = strstr(answer, "\r\n\r\n");
    char *body = ink_zalloc(strlen(answer) + 1);
    size_t len = 0;

    if (!at)
        return body;
    at += 4;
    if (!client_has_header(answer, "Transfer-Encoding: chunked")) {
        memcpy(body, at, strlen(at));
        return body;
    }
    for (;;) {
        char *data;
        unsigned long n = strtoul(at, &data, 16);

        if (n == 0 || strncmp(data, "\r\n", 2) != 0 || strlen(data) < n + 4)
            return body;
        memcpy(body + len, data + 2, n);
        len += n;
        at = data + 2 + n + 2;
    }
}
