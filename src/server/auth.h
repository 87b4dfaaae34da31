#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "base/hash.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Who may call. A web page somewhere else must not be able to use a server on
 * this machine, so the Host header has to be a name that is ours (a hostile
 * name may resolve to 127.0.0.1) and Origin, which browsers add, must be the
 * same place. Keys are compared by digest, in constant time. Read-only after start; any thread.
 */
struct auth {
    uint8_t (*keys)[INK_SHA256_LEN]; /* owned */
    int n_keys;
    char **hosts; /* owned: the bound name and --allowed-host */
    int n_hosts;
    char **origins; /* owned: --cors */
    int n_origins;
};

struct auth_request {
    const char *host, *origin, *authorization; /* header values or NULL */
    const char *local_address;                 /* numeric address the connection came in on */
    bool open;                                 /* the route needs no key */
};

/* Checks the options' strings. */
INK_NODISCARD enum ink_status auth_init(struct auth *a, const char *const *keys, int n_keys,
                                        const char *bound_host, const char *const *hosts,
                                        int n_hosts, const char *const *origins, int n_origins,
                                        struct ink_err *err);
void auth_release(struct auth *a);

/* INK_INVALID with reason "forbidden_origin" or "unauthorized". */
INK_NODISCARD enum ink_status auth_check(const struct auth *a, const struct auth_request *rq,
                                         struct ink_err *err);

/* Which of the keys an Authorization header has, or -1; -1 as well when the server has none. */
int auth_key_of(const struct auth *a, const char *authorization);

/* The origin to name in Access-Control-Allow-Origin, or NULL. */
const char *auth_cors_origin(const struct auth *a, const char *origin);

/* "127.x.x.x", "::1", "localhost" or a name below it. */
bool auth_is_loopback(const char *host);

#endif
