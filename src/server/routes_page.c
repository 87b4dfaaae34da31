/* The page, embedded in the program. Files under /assets/ have their content's hash in their name. */
#include "server/router.h"

#include "server/reply.h"
#include "server/request.h"
#include "server/web_assets.h"

#include <string.h>

static const struct web_asset *find(const char *path)
{
    for (size_t i = 0; i < web_assets_n; i++) {
        if (strcmp(web_assets[i].path, path) == 0)
            return &web_assets[i];
    }
    return NULL;
}

bool page_has(const char *path)
{
    return find(path) != NULL;
}

/* If-None-Match is "*" or a list of tags, maybe weak ones. Tags are hashes, so a substring is a match. */
static bool is_known(const struct request *rq, const struct web_asset *a)
{
    const char *tags = MHD_lookup_connection_value(rq->mhd, MHD_HEADER_KIND, "If-None-Match");

    return tags && (strcmp(tags, "*") == 0 || strstr(tags, a->etag));
}

enum ink_status route_page(struct request *rq, struct ink_err *err)
{
    const struct web_asset *a = find(rq->path);

    if (!a)
        return ink_err_param(err, INK_NOT_FOUND, "", "not_found",
                             "this program was built without the page; the API is at /v1/rewrite");
    if (is_known(rq, a))
        reply_static(rq, 304, a->type, "", 0);
    else
        reply_static(rq, 200, a->type, a->data, a->len);
    reply_header(rq, "ETag", a->etag);
    reply_header(rq, "Cache-Control",
                 strncmp(a->path, "/assets/", 8) == 0 ? "public, max-age=31536000, immutable"
                                                      : "no-cache");
    return INK_OK;
}
