/* inkstone: a table of sub-commands. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {
    &cmd_serve,  &cmd_rewrite, &cmd_score, &cmd_tokenize,
    &cmd_import, &cmd_inspect, &cmd_bench, &cmd_doctor,
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_commands(void)
{
    cli_printf(
        "usage: inkstone COMMAND [OPTION]... [ARGUMENT]...\n\n"
        "Rewrites of Chinese text by models on your own machine, as a command and over HTTP.\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        cli_printf("  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    cli_printf("\n"
               "  inkstone help COMMAND   or   inkstone COMMAND --help   for its options\n"
               "  inkstone --version\n");
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown_command(const char *name)
{
    char known[200] = "";
    size_t used = 0;

    for (int i = 0; i < N_COMMANDS && used < sizeof(known); i++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? " " : "",
                                 commands[i]->name);
    return cli_usage_error(NULL, "unknown command \"%.40s\"; there are: %s", name, known);
}

static int help(int argc, char **argv)
{
    const struct command *cmd;

    if (argc < 3) {
        print_commands();
        return cli_finish(CLI_OK);
    }
    cmd = find_command(argv[2]);
    if (!cmd)
        return unknown_command(argv[2]);
    command_help(cmd);
    return cli_finish(CLI_OK);
}

/*
 * Whoever starts a program with stdin, stdout or stderr closed would otherwise have the next opened file take
 * that number, and output go into it. The other direction is opened, so that using it is an error.
 */
static void occupy_standard_streams(void)
{
    static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };

    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
            _exit(CLI_FAILED);
    }
}

int main(int argc, char **argv)
{
    const struct command *cmd;

    occupy_standard_streams();
    interrupt_init();
    if (argc < 2)
        return cli_usage_error(NULL,
                               "no command given; the usual ones are \"serve\" and \"rewrite\"");
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        cli_printf("inkstone %s\n", INKSTONE_VERSION);
        return cli_finish(CLI_OK);
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0)
        return help(argc, argv);
    cmd = find_command(argv[1]);
    if (!cmd)
        return unknown_command(argv[1]);
    return cmd->run(cmd, argc - 1, argv + 1);
}
