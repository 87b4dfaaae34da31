#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/status.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What every sub-command is made of. Adding one: a file cmd_<name>.c that defines `const struct command cmd_<name>`,
 * its declaration below, its row in main.c's table.
 *
 * A command's `run` reads its options with options_parse() into a struct of its own, does its work through the
 * rooms below, and returns an exit status. It prints results on stdout, and everything else on stderr.
 * Commands run on the main thread, once per process; memory that lives until the end need not be freed.
 */

/* Exit statuses; 0 is success. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

enum option_type {
    OPTION_FLAG,   /* bool: no value */
    OPTION_INT,    /* int, min..max */
    OPTION_NUMBER, /* double, min..max */
    OPTION_U64,    /* struct option_u64, 0..2^53-1 */
    OPTION_STRING, /* const char *, borrowed from argv */
    OPTION_CHOICE, /* int: the index of the value in `value`, which lists them as "auto|exact|i8" */
    OPTION_LIST,   /* struct option_list: may be given several times */
    OPTION_IDS,    /* struct option_ids: "1,2,3" */
};

/* One option of a command; the help text is made of these rows. */
struct option_row {
    const char *name; /* without "--" */
    char letter;      /* also "-n"; 0: none */
    enum option_type type;
    const char *value;  /* what help calls the value ("N", "FILE"); CHOICE: its values */
    double min, max;    /* INT, NUMBER: allowed range, ends included */
    const char *preset; /* the default, for the help text only; NULL: nothing to say */
    const char *help;   /* one line, no full stop */
    size_t to; /* offsetof() in the command's own struct, which holds the defaults beforehand */
};

struct option_u64 {
    bool given;
    uint64_t value;
};

enum { OPTION_LIST_MAX = 16 };
struct option_list {
    const char *items[OPTION_LIST_MAX];
    int n;
};

struct option_ids {
    const int32_t *ids; /* the parser's; valid until the process ends */
    int n;              /* -1 when not given: set it before parsing; an empty list is 0 */
};

struct command {
    const char *name;
    const char *summary; /* one line for the list of commands, no full stop */
    const char *usage;   /* what follows the name: "[OPTION]... TEXT|-" */
    const char *notes;   /* paragraphs after the options; ends in a newline; NULL: none */
    const struct option_row *options; /* ends with a row without a name */
    /* argv[0] is the command's name */
    int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command cmd_serve, cmd_rewrite, cmd_score, cmd_tokenize, cmd_import,
    cmd_inspect, cmd_doctor, cmd_bench;

/* The arguments that are not options, in order; borrowed from argv. */
struct arguments {
    char **at;
    int n;
};

/*
 * Reads `--name VALUE`, `--name=VALUE`, `-xVALUE`, `-x VALUE`, and unambiguous beginnings of long names; `--` ends
 * the options; options and arguments may be mixed. Reorders argv. `-h` and `--help` print the help text on stdout.
 *
 * Returns true when the command shall go on. Otherwise help was printed, or one line on stderr says what is wrong, and
 * the command returns *status at once.
 */
bool options_parse(const struct command *cmd, int argc, char **argv, void *into,
                   struct arguments *args, int *status);

/* The help text of a command on stdout. */
void command_help(const struct command *cmd);

/* "inkstone CMD: message; try ..." on stderr; returns CLI_USAGE. */
int cli_usage_error(const struct command *cmd, const char *fmt, ...) INK_PRINTF(2, 3);

/* "inkstone: message" on stderr; returns CLI_FAILED, or CLI_INTERRUPTED when err->code is INK_CANCELLED. */
int cli_fail(const struct ink_err *err);

/* The same for a job under --json: with `json`, the error object goes to stdout as well. */
int cli_fail_json(const struct ink_err *err, bool json);

/*
 * Text for a person on stdout. Errors are remembered by stdio: end with cli_finish().
 */
void cli_printf(const char *fmt, ...) INK_PRINTF(1, 2);

/* One line of JSON on stdout; takes over `value`'s reference. */
void cli_print_json(json_t *value);

/* Writes out what stdout holds so far, for whoever reads along. */
void cli_flush(void);

/* The same at the end. Returns `status`, or CLI_FAILED with a line on stderr when stdout could not be written. */
int cli_finish(int status);

/* Whether a write to stdout has failed, so that a long job may stop early. */
bool cli_output_failed(void);

/* {"error":{"message","type","param","code"}} as the HTTP interface writes it; the caller's reference. */
json_t *cli_error_json(const struct ink_err *err);

/* "1.4 GB", "3.2 MB", "17 B": bytes for a person, decimal units, into `out`, which it returns. */
const char *cli_bytes(int64_t bytes, char out[24]);

/*
 * One line on stderr that is rewritten in place, only when stderr is a terminal; nothing otherwise.
 *
 *     importing encoder.block.3.layer.0.SelfAttention.q.weight   41 %  120 MB/s  0:07 left
 *
 * Cheap to call often: it draws at most ten times a second. `unit` NULL: `done` and `total` are bytes.
 * `total` 0: unknown. progress_end() wipes the line.
 */
struct progress {
    const char *verb;
    const char *unit;
    int64_t start_ns, drawn_ns;
    int64_t from; /* done before the start, which says nothing about the speed; 0 */
    bool visible;
};

void progress_begin(struct progress *p, const char *verb, const char *unit);
void progress_update(struct progress *p, int64_t done, int64_t total, const char *what);
void progress_end(struct progress *p);

/*
 * Ctrl-C. Until interrupt_catch() it ends the process at once with status 130. Afterwards the first one (or the first
 * SIGTERM) makes interrupt_pending() true and interrupt_fd() readable, and the second ends the process at once.
 */
void interrupt_init(void);    /* main.c, before anything else */
bool interrupt_catch(void);   /* whether it was so already */
void interrupt_release(void); /* back to ending at once, now if one has come */
bool interrupt_pending(void);
/* What interrupt_pending() reads, for jobs that look themselves. */
const atomic_bool *interrupt_flag(void);
int interrupt_fd(void);     /* -1 before interrupt_catch() */
int interrupt_signal(void); /* the last one seen: SIGINT, SIGTERM, or 0 */

#endif
