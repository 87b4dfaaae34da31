/* Command lines by table: what is taken, what is refused, and where values go. */
#include "unit.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct target {
    bool loud, low;
    int n, choice;
    double x;
    struct option_u64 seed;
    const char *name;
    struct option_list stop;
    struct option_ids ids;
};

#define TO(member) offsetof(struct target, member)
static const struct option_row rows[] = {
    { "loud", 'l', OPTION_FLAG, NULL, 0, 0, NULL, "flag", TO(loud) },
    { "low", 0, OPTION_FLAG, NULL, 0, 0, NULL, "flag", TO(low) },
    { "number", 'n', OPTION_INT, "N", -1, 16, "3", "whole number", TO(n) },
    { "x-scale", 0, OPTION_NUMBER, "X", 0, 2.5, NULL, "number", TO(x) },
    { "seed", 0, OPTION_U64, "S", 0, 0, NULL, "seed", TO(seed) },
    { "name", 0, OPTION_STRING, "NAME", 0, 0, NULL, "text", TO(name) },
    { "mode", 0, OPTION_CHOICE, "auto|i8|i8-fast", 0, 0, "auto", "choice", TO(choice) },
    { "stop", 0, OPTION_LIST, "TEXT", 0, 0, NULL, "list", TO(stop) },
    { "ids", 0, OPTION_IDS, "IDS", 0, 0, NULL, "ids", TO(ids) },
    { 0 },
};
static const struct command cmd = { .name = "try", .summary = "s", .usage = "u", .options = rows };

/* Parses `line`, words separated by spaces ("~" stands for an empty word). */
static bool parse(const char *line, struct target *t, struct arguments *args, int *status)
{
    static char words[1024];
    static char *argv[64];
    static char name[] = "try", empty[] = "";
    int argc = 0;

    snprintf(words, sizeof(words), "%s", line);
    argv[argc++] = name;
    for (char *at = words; *at;) {
        size_t len = strcspn(at, " ");
        bool last = at[len] == '\0';

        at[len] = '\0';
        argv[argc++] = strcmp(at, "~") == 0 ? empty : at;
        at += len + (last ? 0 : 1);
    }
    argv[argc] = NULL;
    memset(t, 0, sizeof(*t));
    t->n = 3;
    t->ids.n = -1;
    return options_parse(&cmd, argc, argv, t, args, status);
}

/* What a refused line prints on stderr. */
static void refusal(const char *line, char *out, size_t cap)
{
    struct target t;
    struct arguments args;
    int status = -1, ends[2], saved = dup(2);
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    (void)fflush(stderr);
    dup2(ends[1], 2);
    bool went_on = parse(line, &t, &args, &status);
    (void)fflush(stderr);
    dup2(saved, 2);
    close(saved);
    close(ends[1]);
    n = read(ends[0], out, cap - 1);
    close(ends[0]);
    out[n > 0 ? n : 0] = '\0';
    if (went_on)
        print_message("accepted: %s\n", line);
    assert_false(went_on);
    assert_int_equal(status, CLI_USAGE);
}

static void all_spellings_of_a_value_mean_the_same(void **state)
{
    static const char *const lines[] = { "-n 7",       "-n7",      "-n=7", "--number 7",
                                         "--number=7", "--numb=7", "-ln7", "-l -n 007" };
    (void)state;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct target t;
        struct arguments args;
        int status = -1;

        assert_true(parse(lines[i], &t, &args, &status));
        assert_int_equal(t.n, 7);
        assert_int_equal(args.n, 0);
        assert_int_equal(status, CLI_OK);
    }
}

static void every_type_reaches_its_place(void **state)
{
    struct target t;
    struct arguments args;
    int status;
    (void)state;

    assert_true(parse(
        "--loud --x-scale 1e-1 --seed 9007199254740991 --name=a=b --mode i8-fast --stop x --stop ~ "
        "--ids 3,0,2147483647 --number -1",
        &t, &args, &status));
    assert_true(t.loud);
    assert_false(t.low);
    assert_true(t.x == 0.1);
    assert_true(t.seed.given && t.seed.value == 9007199254740991u);
    assert_string_equal(t.name, "a=b");
    assert_int_equal(t.choice, 2);
    assert_int_equal(t.stop.n, 2);
    assert_string_equal(t.stop.items[1], "");
    assert_int_equal(t.ids.n, 3);
    assert_int_equal(t.ids.ids[2], INT32_MAX);
    assert_int_equal(t.n, -1);
}

static void an_empty_list_of_ids_is_given_but_has_none(void **state)
{
    struct target t;
    struct arguments args;
    int status;
    (void)state;

    assert_true(parse("--ids ~", &t, &args, &status));
    assert_int_equal(t.ids.n, 0);
    assert_true(parse("", &t, &args, &status));
    assert_int_equal(t.ids.n, -1);
}

static void arguments_keep_their_order_among_options(void **state)
{
    struct target t;
    struct arguments args;
    int status;
    (void)state;

    assert_true(parse("one -n 2 - two -- -n --help", &t, &args, &status));
    assert_int_equal(args.n, 5);
    assert_string_equal(args.at[0], "one");
    assert_string_equal(args.at[1], "-");
    assert_string_equal(args.at[2], "two");
    assert_string_equal(args.at[3], "-n");
    assert_string_equal(args.at[4], "--help");
    assert_int_equal(t.n, 2);
}

static void a_wrong_line_is_refused_and_says_why(void **state)
{
    static const struct {
        const char *line, *says;
    } rows_of_lines[] = {
        { "--nosuch", "unknown option --nosuch" },
        { "-z", "unknown option -z" },
        { "-5", "unknown option -5" },
        { "--lo", "--lo is ambiguous: --loud, --low" },
        { "--n", "--n is ambiguous: --number, --name" },
        { "--=3", "is ambiguous" },
        { "--number", "--number needs a value: N" },
        { "-n", "-n needs a value: N" },
        { "-n 17", "-n: 17 is not a whole number from -1 to 16" },
        { "-n -2", "-n: -2 is not a whole number" },
        { "-n 3.0", "3.0 is not a whole number" },
        { "-n 3x", "3x is not a whole number" },
        { "-n +3", "+3 is not a whole number" },
        { "-n 0x3", "0x3 is not a whole number" },
        { "-n 99999999999999999999", "is not a whole number" },
        { "-n ~", "an empty value" },
        { "--loud=yes", "--loud takes no value" },
        { "--x-scale nan", "nan is not a number from 0 to 2.5" },
        { "--x-scale inf", "inf is not a number" },
        { "--x-scale 0x1", "0x1 is not a number" },
        { "--x-scale 1,5", "1,5 is not a number" },
        { "--x-scale 2.6", "2.6 is not a number from 0 to 2.5" },
        { "--x-scale 1e999", "is not a number" },
        { "--x-scale ~", "an empty value" },
        { "--seed -1", "--seed: -1 is not a whole number from 0" },
        { "--seed 9007199254740992", "is not a whole number from 0" },
        { "--mode i", "i is not one of auto|i8|i8-fast" },
        { "--mode ~", "is not one of" },
        { "--ids 1,,2", "1,,2 is not a list of token ids" },
        { "--ids 1,2,", "is not a list of token ids" },
        { "--ids ,1", "is not a list of token ids" },
        { "--ids 2147483648", "is not a list of token ids" },
        { "--ids -1", "is not a list of token ids" },
        { "--ids 1;2", "is not a list of token ids" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof(rows_of_lines) / sizeof(rows_of_lines[0]); i++) {
        char text[1024];

        refusal(rows_of_lines[i].line, text, sizeof(text));
        if (!strstr(text, rows_of_lines[i].says))
            print_message("%s: %s", rows_of_lines[i].line, text);
        assert_non_null(strstr(text, rows_of_lines[i].says));
        assert_non_null(strstr(text, "inkstone try"));
        /* One line: the only newline is the last character. */
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
}

static void a_list_has_an_end(void **state)
{
    char line[1024] = "", text[1024];
    size_t used = 0;
    (void)state;

    for (int i = 0; i <= OPTION_LIST_MAX; i++)
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s--stop x", i ? " " : "");
    refusal(line, text, sizeof(text));
    assert_non_null(strstr(text, "more than 16 times"));
}

static void control_characters_of_a_value_do_not_reach_the_terminal(void **state)
{
    char text[1024];
    (void)state;

    refusal("--mode \033[31m\n\xff", text, sizeof(text));
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\xff'));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void bytes_are_shown_in_the_unit_that_fits(void **state)
{
    static const struct {
        int64_t bytes;
        const char *shown;
    } sizes[] = {
        { 0, "0 B" },         { 999, "999 B" },         { 1000, "1.0 kB" },
        { 99900, "99.9 kB" }, { 123456, "123 kB" },     { 999499, "999 kB" },
        { 999500, "1.0 MB" }, { 1400000000, "1.4 GB" }, { 39000000000, "39.0 GB" },
    };
    char out[24];
    (void)state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_string_equal(cli_bytes(sizes[i].bytes, out), sizes[i].shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_spellings_of_a_value_mean_the_same),
        cmocka_unit_test(every_type_reaches_its_place),
        cmocka_unit_test(an_empty_list_of_ids_is_given_but_has_none),
        cmocka_unit_test(arguments_keep_their_order_among_options),
        cmocka_unit_test(a_wrong_line_is_refused_and_says_why),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(control_characters_of_a_value_do_not_reach_the_terminal),
        cmocka_unit_test(bytes_are_shown_in_the_unit_that_fits),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
