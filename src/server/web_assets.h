#ifndef SERVER_WEB_ASSETS_H
#define SERVER_WEB_ASSETS_H

#include <stddef.h>

/* The built page, embedded at build time: one row per path. Empty when the program was built without the page. */
struct web_asset {
    const char *path; /* "/", "/assets/index-abc.js" */
    const char *type; /* media type */
    const char *etag; /* with its quotes */
    const unsigned char *data;
    size_t len;
};

extern const struct web_asset web_assets[]; /* sorted by path */
extern const size_t web_assets_n;

#endif
