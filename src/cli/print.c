/* What commands say: results on stdout, one line of trouble on stderr. */
#include "cli/cli.h"

#include "base/json.h"
#include "server/answer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int stdout_error; /* the first errno of a failed write; 0: none */

static void write_out(const char *s, size_t len)
{
    if (stdout_error == 0 && fwrite(s, 1, len, stdout) != len)
        stdout_error = errno ? errno : EIO;
}

void cli_printf(const char *fmt, ...)
{
    va_list ap;

    errno = 0;
    va_start(ap, fmt);
    if (stdout_error == 0 && vprintf(fmt, ap) < 0)
        stdout_error = errno ? errno : EIO;
    va_end(ap);
}

void cli_print_json(json_t *value)
{
    char *text = ink_json_dump(value);

    errno = 0;
    write_out(text, strlen(text));
    write_out("\n", 1);
    free(text);
    json_decref(value);
}

bool cli_output_failed(void)
{
    return stdout_error != 0;
}

void cli_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && stdout_error == 0)
        stdout_error = errno ? errno : EIO;
}

int cli_finish(int status)
{
    cli_flush();
    if (stdout_error == 0)
        return status;
    fprintf(stderr, "inkstone: standard output: %s\n", strerror(stdout_error));
    return status == CLI_OK ? CLI_FAILED : status;
}

int cli_usage_error(const struct command *cmd, const char *fmt, ...)
{
    char text[400];
    struct ink_err line; /* for its promise: one line of valid UTF-8 */
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)ink_err_set(&line, INK_INVALID, "%s", text);
    if (cmd)
        fprintf(stderr, "inkstone %s: %s (see: inkstone %s --help)\n", cmd->name, line.text,
                cmd->name);
    else
        fprintf(stderr, "inkstone: %s (see: inkstone --help)\n", line.text);
    return CLI_USAGE;
}

int cli_fail(const struct ink_err *err)
{
    /* What was printed so far comes first, also when both streams end in one file. */
    cli_flush();
    fprintf(stderr, "inkstone: %s\n", err->text);
    return err->code == INK_CANCELLED ? CLI_INTERRUPTED : CLI_FAILED;
}

json_t *cli_error_json(const struct ink_err *err)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "error", ink_answer_error(err));
    return o;
}

int cli_fail_json(const struct ink_err *err, bool json)
{
    if (json && err->code != INK_CANCELLED)
        cli_print_json(cli_error_json(err));
    return cli_finish(cli_fail(err));
}

const char *cli_bytes(int64_t bytes, char out[24])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
    double v = (double)bytes;
    int u = 0;

    while (v >= 999.5 && u < 6) {
        v /= 1000;
        u++;
    }
    snprintf(out, 24, u > 0 && v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
    return out;
}
