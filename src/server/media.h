#ifndef SERVER_MEDIA_H
#define SERVER_MEDIA_H

#include <stdbool.h>

/* Media types in headers, compared without regard to case and to parameters. Pure. */

/* Whether a Content-Type is `type`; NULL is none. */
bool media_is(const char *header, const char *type);
/* Whether an Accept names `type`; "*" stands for nothing here. */
bool media_accepts(const char *header, const char *type);

#endif
