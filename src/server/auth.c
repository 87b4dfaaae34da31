/* API keys, Host and Origin. Pure: header values in, a verdict out. */
#include "server/auth.h"

#include "base/alloc.h"
#include "base/slice.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255, KEY_MAX = 4096 };

static char **copy_list(const char *const *from, int n, int extra)
{
    char **list = ink_zalloc(((size_t)n + (size_t)extra + 1) * sizeof(*list));

    for (int i = 0; i < n; i++)
        list[i] = ink_strdup(from[i]);
    return list;
}

static void free_list(char **list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

enum ink_status auth_init(struct auth *a, const char *const *keys, int n_keys,
                          const char *bound_host, const char *const *hosts, int n_hosts,
                          const char *const *origins, int n_origins, struct ink_err *err)
{
    for (int i = 0; i < n_keys; i++) {
        if (keys[i][0] == '\0' || strlen(keys[i]) > KEY_MAX || strpbrk(keys[i], " \t\r\n"))
            return ink_err_set(err, INK_INVALID,
                               "--api-key: key %d must have 1 to %d characters and no white space",
                               i + 1, KEY_MAX);
    }
    for (int i = 0; i < n_origins; i++) {
        if (strncmp(origins[i], "http://", 7) != 0 && strncmp(origins[i], "https://", 8) != 0)
            return ink_err_set(err, INK_INVALID,
                               "--cors: origin %d must look like https://host:port", i + 1);
    }

    memset(a, 0, sizeof(*a));
    a->n_keys = n_keys;
    a->keys = ink_zalloc(((size_t)n_keys + 1) * sizeof(*a->keys));
    for (int i = 0; i < n_keys; i++)
        ink_sha256(keys[i], strlen(keys[i]), a->keys[i]);
    a->hosts = copy_list(hosts, n_hosts, 1);
    a->hosts[n_hosts] = ink_strdup(bound_host);
    a->n_hosts = n_hosts + 1;
    a->origins = copy_list(origins, n_origins, 0);
    a->n_origins = n_origins;
    return INK_OK;
}

void auth_release(struct auth *a)
{
    free(a->keys);
    free_list(a->hosts, a->n_hosts);
    free_list(a->origins, a->n_origins);
    memset(a, 0, sizeof(*a));
}

/* "[::1]:80" -> "::1", "name:80" -> "name"; false when it is neither. */
static bool host_name(const char *header, char out[HOST_MAX + 1])
{
    const char *start = header, *end;

    if (*header == '[') {
        start = header + 1;
        end = strchr(start, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return false;
    } else {
        end = start + strcspn(start, ":");
    }

    size_t len = (size_t)(end - start);
    if (len == 0 || len > HOST_MAX)
        return false;
    memcpy(out, start, len);
    out[len] = '\0';
    return true;
}

bool auth_is_loopback(const char *host)
{
    static const char suffix[] = ".localhost";
    struct in_addr v4;
    struct in6_addr v6;
    size_t len = strlen(host);

    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return memcmp(&v6, &in6addr_loopback, sizeof(v6)) == 0;
    return strcasecmp(host, "localhost") == 0 ||
           (len > sizeof(suffix) - 1 && strcasecmp(host + len - (sizeof(suffix) - 1), suffix) == 0);
}

static enum ink_status check_host(const struct auth *a, const struct auth_request *rq,
                                  struct ink_err *err)
{
    char name[HOST_MAX + 1];

    if (!rq->host) /* HTTP/1.0: no browser */
        return INK_OK;
    if (host_name(rq->host, name)) {
        if (auth_is_loopback(name) ||
            (rq->local_address && strcasecmp(name, rq->local_address) == 0))
            return INK_OK;
        for (int i = 0; i < a->n_hosts; i++) {
            if (strcasecmp(name, a->hosts[i]) == 0)
                return INK_OK;
        }
    }
    return ink_err_param(
        err, INK_INVALID, "Host", "forbidden_origin",
        "Host: this name is not one of the server's; the operator can add it with --allowed-host");
}

/* "https://name:443" -> "name": what a Host header of the same place would say. */
static struct ink_slice authority_of(const char *text, const char *scheme_port)
{
    size_t len = strlen(text), port = strlen(scheme_port);

    if (len > port && strcmp(text + len - port, scheme_port) == 0)
        len -= port;
    return (struct ink_slice){ text, len };
}

static bool same_place(const char *origin, const char *host)
{
    const char *port;

    if (!host)
        return false;
    if (strncasecmp(origin, "http://", 7) == 0) {
        origin += 7;
        port = ":80";
    } else if (strncasecmp(origin, "https://", 8) == 0) {
        origin += 8;
        port = ":443";
    } else {
        return false;
    }

    struct ink_slice from = authority_of(origin, port), to = authority_of(host, port);
    return from.len == to.len && strncasecmp(from.ptr, to.ptr, from.len) == 0;
}

const char *auth_cors_origin(const struct auth *a, const char *origin)
{
    for (int i = 0; origin && i < a->n_origins; i++) {
        if (strcasecmp(origin, a->origins[i]) == 0)
            return a->origins[i];
    }
    return NULL;
}

int auth_key_of(const struct auth *a, const char *authorization)
{
    uint8_t digest[INK_SHA256_LEN];
    int found = -1;

    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return -1;

    const char *key = authorization + 7 + strspn(authorization + 7, " ");
    ink_sha256(key, strlen(key), digest);
    for (int i = 0; i < a->n_keys; i++) {
        unsigned differ = 0;

        for (int k = 0; k < INK_SHA256_LEN; k++)
            differ |= (unsigned)(digest[k] ^ a->keys[i][k]);
        if (differ == 0)
            found = i;
    }
    return found;
}

static enum ink_status check_key(const struct auth *a, const char *header, struct ink_err *err)
{
    if (auth_key_of(a, header) >= 0)
        return INK_OK;
    return ink_err_param(
        err, INK_INVALID, "Authorization", "unauthorized",
        "Authorization: this server needs 'Authorization: Bearer KEY' with one of its keys");
}

enum ink_status auth_check(const struct auth *a, const struct auth_request *rq, struct ink_err *err)
{
    enum ink_status st = check_host(a, rq, err);

    if (st != INK_OK)
        return st;
    if (rq->origin && !same_place(rq->origin, rq->host) && !auth_cors_origin(a, rq->origin))
        return ink_err_param(
            err, INK_INVALID, "Origin", "forbidden_origin",
            "Origin: pages of other origins may not call; the operator can allow one with --cors");
    return a->n_keys == 0 || rq->open ? INK_OK : check_key(a, rq->authorization, err);
}
