/* Errors as values: a small code for the program, one line of text for the person. */
#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Leaves one printable line of whole UTF-8 characters, whatever a file name or field held. */
static void make_presentable(char *text)
{
    size_t len = strlen(text);
    size_t i = 0;

    while (i < len) {
        uint32_t cp;
        size_t n = ink_utf8_decode(text + i, len - i, &cp);

        if (n == 0) {
            if (len - i < 4 && ink_utf8_is_cut(text + i, len - i)) {
                text[i] = '\0';
                return;
            }
            text[i++] = '?';
            continue;
        }
        if (cp < 0x20 || cp == 0x7f)
            text[i] = '?';
        i += n;
    }
}

static enum ink_status set_va(struct ink_err *err, enum ink_status code, const char *param,
                              const char *reason, const char *fmt, va_list ap)
{
    if (!err)
        return code;
    err->code = code;
    snprintf(err->param, sizeof(err->param), "%s", param);
    snprintf(err->reason, sizeof(err->reason), "%s", reason);
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
    make_presentable(err->text);
    return code;
}

enum ink_status ink_err_set(struct ink_err *err, enum ink_status code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_va(err, code, "", "", fmt, ap);
    va_end(ap);
    return code;
}

enum ink_status ink_err_param(struct ink_err *err, enum ink_status code, const char *param,
                              const char *reason, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    set_va(err, code, param, reason, fmt, ap);
    va_end(ap);
    return code;
}

enum ink_status ink_err_prefix(struct ink_err *err, enum ink_status code, const char *what)
{
    if (err) {
        char old[sizeof(err->text)];

        memcpy(old, err->text, sizeof(old));
        err->code = code;
        /* The head is bounded so that the old text, the real news, is never pushed out. */
        int n = snprintf(err->text, sizeof(err->text), "%.160s: ", what);
        snprintf(err->text + n, sizeof(err->text) - (size_t)n, "%.*s",
                 (int)(sizeof(err->text) - (size_t)n - 1), old);
        make_presentable(err->text);
    }
    return code;
}

const char *ink_status_name(enum ink_status code)
{
    static const char *const names[] = {
        [INK_OK] = "ok",
        [INK_INVALID] = "invalid",
        [INK_NOT_FOUND] = "not found",
        [INK_BUSY] = "busy",
        [INK_CANCELLED] = "cancelled",
        [INK_TIMEOUT] = "timeout",
        [INK_UNSUPPORTED] = "unsupported",
        [INK_CORRUPT] = "corrupt",
        [INK_IO] = "input/output error",
        [INK_NO_MEMORY] = "out of memory",
        [INK_DEVICE] = "device error",
    };
    size_t i = (size_t)code;

    return i < sizeof(names) / sizeof(names[0]) && names[i] ? names[i] : "unknown";
}
