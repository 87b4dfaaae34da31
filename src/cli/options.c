/*
 * Command lines: one table of rows per command says what its options are called, what they may be, what they
 * default to and where they go; this file reads a command line by that table and prints it as help.
 */
#include "cli/cli.h"

#include "base/alloc.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t U64_MAX = ((uint64_t)1 << 53) - 1; /* what JSON numbers hold exactly */

enum { IDS_MAX = 1 << 20 }; /* of one "1,2,3": far beyond any model's context */

struct parser {
    const struct command *cmd;
    char *into;
    char shown[64]; /* the option as it was written, for messages: "--top-p" or "-n" */
};

static size_t n_options(const struct command *cmd)
{
    size_t n = 0;

    while (cmd->options[n].name)
        n++;
    return n;
}

/* --- looking options up ------------------------------------------------------------------------- */

static const struct option_row *find_letter(const struct command *cmd, char letter)
{
    for (size_t i = 0; i < n_options(cmd); i++) {
        if (cmd->options[i].letter == letter)
            return &cmd->options[i];
    }
    return NULL;
}

/* The option called `name` (of `len` bytes) or the only one that begins so; else NULL with *status set. */
static const struct option_row *find_name(const struct parser *p, const char *name, size_t len,
                                          int *status)
{
    const struct option_row *found = NULL;
    char others[200] = "";
    size_t used = 0;
    int n = 0;

    for (size_t i = 0; i < n_options(p->cmd); i++) {
        const struct option_row *o = &p->cmd->options[i];

        if (strncmp(o->name, name, len) != 0)
            continue;
        if (strlen(o->name) == len)
            return o;
        found = o;
        n++;
        if (used < sizeof(others))
            used += (size_t)snprintf(others + used, sizeof(others) - used, "%s--%s",
                                     n > 1 ? ", " : "", o->name);
    }
    if (n == 1 && len > 0)
        return found;
    if (n > 1)
        *status = cli_usage_error(p->cmd, "--%.*s is ambiguous: %s", (int)len, name, others);
    else
        *status = cli_usage_error(
            p->cmd, "unknown option --%.*s; a text that begins with \"-\" goes after \"--\"",
            (int)(len < 100 ? len : 100), name);
    return NULL;
}

/* --- reading values ----------------------------------------------------------------------------- */

static int bad_value(const struct parser *p, const char *value, const char *wanted)
{
    return cli_usage_error(p->cmd, "%s: %s%.80s%s is not %s", p->shown,
                           *value ? "" : "an empty value", value, strlen(value) > 80 ? "..." : "",
                           wanted);
}

static bool read_whole(const char *value, int64_t *out)
{
    char *end;

    if (!isdigit((unsigned char)value[*value == '-']))
        return false;
    errno = 0;
    *out = strtoll(value, &end, 10);
    return errno == 0 && *end == '\0';
}

static int set_int(const struct parser *p, const struct option_row *o, const char *value)
{
    char wanted[80];
    int64_t v;

    snprintf(wanted, sizeof(wanted), "a whole number from %.0f to %.0f", o->min, o->max);
    if (!read_whole(value, &v) || (double)v < o->min || (double)v > o->max)
        return bad_value(p, value, wanted);
    *(int *)(p->into + o->to) = (int)v;
    return CLI_OK;
}

static int set_number(const struct parser *p, const struct option_row *o, const char *value)
{
    char wanted[80];
    char *end;
    double v;

    snprintf(wanted, sizeof(wanted), "a number from %g to %g", o->min, o->max);
    errno = 0;
    v = strtod(value, &end);
    if (strspn(value, "0123456789+-.eE") != strlen(value) || *value == '\0' || *end ||
        !isfinite(v) || v < o->min || v > o->max)
        return bad_value(p, value, wanted);
    *(double *)(p->into + o->to) = v;
    return CLI_OK;
}

static int set_u64(const struct parser *p, const struct option_row *o, const char *value)
{
    int64_t v;

    if (!read_whole(value, &v) || v < 0 || (uint64_t)v > U64_MAX)
        return bad_value(p, value, "a whole number from 0 to 9007199254740991");
    *(struct option_u64 *)(p->into + o->to) = (struct option_u64){ true, (uint64_t)v };
    return CLI_OK;
}

static int set_choice(const struct parser *p, const struct option_row *o, const char *value)
{
    char wanted[200];
    const char *at = o->value;

    for (int i = 0;; i++) {
        size_t len = strcspn(at, "|");

        if (strlen(value) == len && memcmp(at, value, len) == 0) {
            *(int *)(p->into + o->to) = i;
            return CLI_OK;
        }
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    snprintf(wanted, sizeof(wanted), "one of %s", o->value);
    return bad_value(p, value, wanted);
}

static int set_list(const struct parser *p, const struct option_row *o, const char *value)
{
    struct option_list *list = (struct option_list *)(p->into + o->to);

    if (list->n == OPTION_LIST_MAX)
        return cli_usage_error(p->cmd, "%s: given more than %d times", p->shown, OPTION_LIST_MAX);
    list->items[list->n++] = value;
    return CLI_OK;
}

/* Lists of ids belong to this file: a command line is read once, and they live as long as it. */
struct kept_ids {
    struct kept_ids *next;
    int32_t ids[];
};
static struct kept_ids *all_kept_ids;

static int32_t *keep_ids(size_t n)
{
    struct kept_ids *k = ink_alloc(sizeof(*k) + n * sizeof(k->ids[0]));

    k->next = all_kept_ids;
    all_kept_ids = k;
    return k->ids;
}

static int set_ids(const struct parser *p, const struct option_row *o, const char *value)
{
    static const char wanted[] = "a list of token ids such as 1,2,3";
    struct option_ids *list = (struct option_ids *)(p->into + o->to);
    size_t n = *value ? 1 : 0;
    const char *at = value;

    for (const char *s = value; *s; s++)
        n += *s == ',';
    if (n > IDS_MAX)
        return cli_usage_error(p->cmd, "%s: more than %d ids", p->shown, IDS_MAX);

    int32_t *ids = keep_ids(n + 1);
    for (size_t i = 0; i < n; i++) {
        char *end;
        long v = 0;

        while (*at == ' ')
            at++;
        if (isdigit((unsigned char)*at)) {
            errno = 0;
            v = strtol(at, &end, 10);
        } else {
            end = (char *)at;
        }
        bool is_number = end != at && errno == 0 && v <= INT32_MAX;
        while (*end == ' ')
            end++;
        if (!is_number || *end != (i + 1 < n ? ',' : '\0'))
            return bad_value(p, value, wanted);
        ids[i] = (int32_t)v;
        at = end + 1;
    }
    *list = (struct option_ids){ ids, (int)n };
    return CLI_OK;
}

static int set_value(const struct parser *p, const struct option_row *o, const char *value)
{
    switch (o->type) {
    case OPTION_FLAG:
        *(bool *)(p->into + o->to) = true;
        return CLI_OK;
    case OPTION_INT:
        return set_int(p, o, value);
    case OPTION_NUMBER:
        return set_number(p, o, value);
    case OPTION_U64:
        return set_u64(p, o, value);
    case OPTION_STRING:
        *(const char **)(p->into + o->to) = value;
        return CLI_OK;
    case OPTION_CHOICE:
        return set_choice(p, o, value);
    case OPTION_LIST:
        return set_list(p, o, value);
    case OPTION_IDS:
        return set_ids(p, o, value);
    }
    return CLI_USAGE;
}

/* --- walking the command line ------------------------------------------------------------------- */

/* Takes the option at argv[*i] and its value; *i is left at the last word used. */
static int take_long(struct parser *p, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2;
    size_t len = strcspn(name, "=");
    int status = CLI_USAGE;
    const struct option_row *o = find_name(p, name, len, &status);

    if (!o)
        return status;
    snprintf(p->shown, sizeof(p->shown), "--%s", o->name);
    if (o->type == OPTION_FLAG) {
        if (name[len] == '=')
            return cli_usage_error(p->cmd, "%s takes no value", p->shown);
        return set_value(p, o, NULL);
    }
    if (name[len] == '=')
        return set_value(p, o, name + len + 1);
    if (*i + 1 == argc)
        return cli_usage_error(p->cmd, "%s needs a value: %s", p->shown, o->value);
    return set_value(p, o, argv[++*i]);
}

/* The same for "-n3", "-n 3" and flags in one word, "-ab". */
static int take_letters(struct parser *p, int argc, char **argv, int *i)
{
    for (const char *at = argv[*i] + 1; *at; at++) {
        const struct option_row *o = find_letter(p->cmd, *at);
        int status;

        if (!o)
            return cli_usage_error(
                p->cmd, "unknown option %.60s; a text that begins with \"-\" goes after \"--\"",
                argv[*i]);
        snprintf(p->shown, sizeof(p->shown), "-%c", *at);
        if (o->type == OPTION_FLAG) {
            status = set_value(p, o, NULL);
            if (status != CLI_OK)
                return status;
            continue;
        }
        if (at[1] != '\0')
            return set_value(p, o, at + 1 + (at[1] == '='));
        if (*i + 1 == argc)
            return cli_usage_error(p->cmd, "%s needs a value: %s", p->shown, o->value);
        return set_value(p, o, argv[++*i]);
    }
    return CLI_OK;
}

bool options_parse(const struct command *cmd, int argc, char **argv, void *into,
                   struct arguments *args, int *status)
{
    struct parser p = { cmd, into, "" };
    bool only_arguments = false;

    *args = (struct arguments){ argv + 1, 0 };
    for (int i = 1; i < argc; i++) {
        char *word = argv[i];

        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            args->at[args->n++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_arguments = true;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            command_help(cmd);
            *status = cli_finish(CLI_OK);
            return false;
        } else {
            *status =
                word[1] == '-' ? take_long(&p, argc, argv, &i) : take_letters(&p, argc, argv, &i);
            if (*status != CLI_OK)
                return false;
        }
    }
    *status = CLI_OK;
    return true;
}

/* --- help --------------------------------------------------------------------------------------- */

enum { HELP_COLUMN = 30 };

static void option_help(const struct option_row *o)
{
    char left[120];
    int used;

    if (o->letter)
        used = snprintf(left, sizeof(left), "  -%c, --%s", o->letter, o->name);
    else
        used = snprintf(left, sizeof(left), "      --%s", o->name);
    if (o->type != OPTION_FLAG)
        snprintf(left + used, sizeof(left) - (size_t)used, " %s", o->value);
    if (strlen(left) < HELP_COLUMN)
        cli_printf("%-*s%s", HELP_COLUMN, left, o->help);
    else
        cli_printf("%s\n%*s%s", left, HELP_COLUMN, "", o->help);
    if (o->type == OPTION_INT && o->max < 1e6)
        cli_printf(", %.0f-%.0f", o->min, o->max);
    else if (o->type == OPTION_NUMBER && o->max < 1e6)
        cli_printf(", %g-%g", o->min, o->max);
    if (o->preset)
        cli_printf(" (default %s)", o->preset);
    cli_printf("\n");
}

void command_help(const struct command *cmd)
{
    cli_printf("usage: inkstone %s %s\n\n%s.\n\n", cmd->name, cmd->usage, cmd->summary);
    for (size_t i = 0; i < n_options(cmd); i++)
        option_help(&cmd->options[i]);
    cli_printf("  -h, --help%*sthis text\n", HELP_COLUMN - 12, "");
    if (cmd->notes)
        cli_printf("\n%s", cmd->notes);
}
