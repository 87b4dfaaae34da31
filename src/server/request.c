/*
 * What handlers ask of a request, and its waiting without holding a thread.
 *
 * When a request has nothing to send, its connection parks: it is suspended, and the
 * task's waker, or the server's ticker when a ping is due or the client has left,
 * unparks it. `parked` makes each suspend meet exactly one resume:
 *
 *     io thread                            waker
 *     suspend; parked = true               (the event is already readable)
 *     event there after all? -> unpark     unpark
 *
 * Whoever turns `parked` from true to false resumes; an event that comes
 * between the look and the parking is seen by the second look.
 */
#include "server/request.h"

#include "server/state.h"

#include <string.h>

const char *request_header(const struct request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->mhd, MHD_HEADER_KIND, name);
}

const char *request_path_id(const struct request *rq)
{
    size_t fixed = strcspn(rq->route->path, "{");

    return rq->route->path[fixed] ? rq->path + fixed : "";
}

int request_key(const struct request *rq)
{
    return auth_key_of(&rq->server->auth, request_header(rq, "Authorization"));
}

void request_unpark(void *arg)
{
    struct request *rq = arg;

    if (atomic_exchange(&rq->parked, false))
        MHD_resume_connection(rq->mhd);
}

void request_park(struct request *rq, bool (*has_more)(struct request *rq))
{
    MHD_suspend_connection(rq->mhd);
    atomic_store(&rq->parked, true);
    if (has_more(rq) || atomic_load(&rq->gone) || atomic_load(&rq->server->stopping))
        request_unpark(rq);
}

void request_explain_end(struct ink_server *s, struct ink_err *err)
{
    if (err->code == INK_CANCELLED && atomic_load(&s->stopping))
        (void)ink_err_param(err, INK_BUSY, "", "draining",
                            "the server is shutting down; try again in 5 s");
}
