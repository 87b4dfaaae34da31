#ifndef BASE_STATUS_H
#define BASE_STATUS_H

/*
 * How a call went, as a small closed set. A value is added only when some
 * caller must act differently on it; the explanation belongs in struct ink_err.
 */
enum ink_status {
    INK_OK = 0,
    INK_INVALID, /* the input is wrong; the client can fix it */
    INK_NOT_FOUND,
    INK_BUSY, /* a limit is reached; a retry may succeed */
    INK_CANCELLED,
    INK_TIMEOUT,
    INK_UNSUPPORTED,
    INK_CORRUPT, /* a file does not follow its own format */
    INK_IO,
    INK_NO_MEMORY, /* only for sizes that come from input */
    INK_DEVICE,    /* the compute backend failed */
};

/* What went wrong, for a person. `param` names the offending input where there is one. */
struct ink_err {
    enum ink_status code;
    char param[40];  /* name of a request field or option; "" if none */
    char reason[32]; /* stable machine word such as "input_too_long"; "" lets the edge choose */
    char text[400];  /* one line of valid UTF-8, safe to show to a client */
};

#define INK_NODISCARD    __attribute__((warn_unused_result))
#define INK_PRINTF(f, a) __attribute__((format(printf, f, a)))

/*
 * Fills `err` and returns `code`, so that failing reads as one line:
 *
 *     return ink_err_set(err, INK_INVALID, "max_tokens: %d is not in 1..%d", n, max);
 *
 * Control characters become '?', text that does not fit is cut at a whole
 * character. `err` may be NULL when the caller only needs the code.
 */
enum ink_status ink_err_set(struct ink_err *err, enum ink_status code, const char *fmt, ...)
    INK_PRINTF(3, 4);

/* The same for a named request field: `param` becomes part of the machine-readable error. */
enum ink_status ink_err_param(struct ink_err *err, enum ink_status code, const char *param,
                              const char *reason, const char *fmt, ...) INK_PRINTF(5, 6);

/* Puts "what: " before the text of an error that is on its way up; returns `code`. */
enum ink_status ink_err_prefix(struct ink_err *err, enum ink_status code, const char *what);

/* A short lower-case English name: "invalid", "not found", ... */
const char *ink_status_name(enum ink_status code);

#endif
