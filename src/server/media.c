/* Media types in headers. */
#include "server/media.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Whether `at` begins with `type` and nothing that would make it another one; the string's end ends it too. */
static bool begins(const char *at, const char *type, const char *ends)
{
    size_t len = strlen(type);

    return strncasecmp(at, type, len) == 0 && strchr(ends, at[len]) != NULL;
}

bool media_is(const char *header, const char *type)
{
    return header && begins(header, type, "; \t");
}

bool media_accepts(const char *header, const char *type)
{
    for (const char *at = header; at && *at; at = strchr(at, ',')) {
        at += strspn(at, ", \t");
        if (begins(at, type, ";, \t"))
            return true;
    }
    return false;
}
