#!/usr/bin/env python3
"""Wrong command lines: status 2, one line on stderr that says what is wrong, nothing on stdout."""

import os
import re
import subprocess

import cli

COMMANDS = ["serve", "rewrite", "score", "tokenize", "import", "inspect", "bench", "doctor"]


class Usage(cli.Case):
    def test_no_command(self):
        self.refused(2, "no command given")

    def test_unknown_command_lists_the_commands(self):
        said = self.refused(2, 'unknown command "rewirte"', "rewirte")
        for name in COMMANDS:
            self.assertIn(name, said)
        self.refused(2, "unknown command", "help", "nosuch")
        self.refused(2, "unknown command", "")
        self.refused(2, "unknown command", "--nosuch")

    def test_wrong_lines(self):
        m = cli.model()
        for pattern, *args in (
            ("no text given", "rewrite"),
            ("no text given", "rewrite", "--json"),
            ("2 texts given; put one text in quotes", "rewrite", "a", "b"),
            ("2 texts given", "rewrite", "-", "b"),
            ("-n: 0 is not a whole number from 1 to 16", "rewrite", "-n", "0", "a"),
            ("-n: 17 is not", "rewrite", "-n", "17", "a"),
            ("-n needs a value", "rewrite", "a", "-n"),
            ("--temperature: -0.1 is not a number from 0 to 5", "rewrite", "--temperature", "-0.1", "a"),
            ("--temperature: hot is not", "rewrite", "--temperature=hot", "a"),
            ("--top-p: 1.01 is not", "rewrite", "--top-p", "1.01", "a"),
            ("--top-p: 0 is not", "rewrite", "--top-p", "0", "a"),
            ("--seed: 9007199254740992 is not", "rewrite", "--seed", "9007199254740992", "a"),
            ("--seed: -1 is not", "rewrite", "--seed", "-1", "a"),
            ("--max-tokens: 0 is not", "rewrite", "--max-tokens", "0", "a"),
            ("--on-long-input: cut is not one of reject|truncate", "rewrite", "--on-long-input", "cut", "a"),
            ("--compute: fast is not one of", "rewrite", "--compute", "fast", "a"),
            ("--prompt: has no {text}", "rewrite", "--prompt", "rewrite this", "a"),
            ("unknown option --jason", "rewrite", "--jason", "a"),
            ("--top is ambiguous|--to is ambiguous", "rewrite", "--to", "1", "a"),
            ("unknown option -5度.*goes after \"--\"", "rewrite", "-5度"),
            ("--unordered is for many texts", "rewrite", "--unordered", "a"),
            ("--jsonl reads standard input", "rewrite", "--jsonl", "a"),
            ("either --source-ids or a text", "rewrite", "--source-ids", "1,2", "a"),
            ("--source-ids: 1,x is not a list", "rewrite", "--source-ids", "1,x"),
            ("more than 8 times", "rewrite", *("--stop=%d" % i for i in range(9)), "a"),
            ("a source is missing", "score"),
            ("a target is missing", "score", "--source", "a"),
            ("not both", "score", "--source", "a", "--source-ids", "1", "--target", "b"),
            ('unexpected "a"', "score", "a"),
            ("--jsonl takes sources", "score", "--jsonl", "--source", "a"),
            ("no text given", "tokenize"),
            ("--ids goes with --decode", "tokenize", "--ids", "1", "a"),
            ("--decode needs --ids", "tokenize", "--decode"),
            ("--decode needs --ids", "tokenize", "--decode", "a"),
            ('unexpected "a"', "serve", "a"),
            ("--port: 65536 is not", "serve", "--port", "65536"),
            ("--host|api-key|insecure", "serve", "--host", "0.0.0.0", "--port", "0", "-m", m),
            ("an empty key", "serve", "--api-key", "", "--port", "0", "-m", m),
            ('unexpected "a"', "doctor", "a"),
            ('unexpected "a"', "bench", "a"),
            ("--runs: 0 is not", "bench", "--runs", "0"),
        ):
            with self.subTest(args):
                said = self.refused(2, pattern, *args)
                self.assertRegex(said, r"^inkstone %s: .* \(see: inkstone %s --help\)$" % (args[0], args[0]))

    def test_every_command_refuses_an_unknown_option(self):
        for name in COMMANDS:
            self.refused(2, "unknown option --no-such-option", name, "--no-such-option")

    def test_bytes_that_are_no_text_do_not_reach_the_terminal(self):
        said = self.refused(2, "unknown option", "rewrite", b"--\x1b[31m\xff\n")
        self.assertNotIn("\x1b", said)

    def test_a_locale_with_decimal_commas_changes_nothing(self):
        for name in ("de_DE.UTF-8", "zh_CN.GB18030", "nosuch", "C"):
            env = dict(self.env, LC_ALL=name, LANG=name)
            self.refused(2, "2,5 is not a number", "rewrite", "--temperature", "2,5", "a", env=env)
            answer = self.answer("rewrite", "-m", cli.model(), "--temperature", "0.5", "--seed", "1", "--json", cli.TEXT, env=env)
            self.assertEqual(len(answer["rewrites"]), 3)


class Version(cli.Case):
    def test_version_is_that_of_the_change_log(self):
        with open(os.path.join(cli.ROOT, "CHANGELOG.md"), encoding="utf-8") as f:
            version = re.search(r"^## \[(\d+\.\d+\.\d+)\]", f.read(), re.M).group(1)
        self.assertEqual(self.succeed("--version"), "inkstone %s\n" % version)

    def test_an_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "wb") as full:
            for args in (["--version"], ["--help"], ["rewrite", "--help"], ["doctor", "--port", "0", "-m", cli.model()],
                         ["rewrite", "-m", cli.model(), "--json", cli.TEXT], ["tokenize", "-m", cli.model(), cli.TEXT]):
                with self.subTest(args):
                    done = self.run_program(*args, stdout=full)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(b"standard output: No space left on device", done.stderr)

    def test_a_closed_output_is_an_error_and_nothing_else_is_written_to(self):
        for command in ('"$0" --version >&-', '"$0" rewrite -m "$1" --seed 1 --json "$2" >&-', '"$0" tokenize -m "$1" "$2" >&-'):
            done = subprocess.run(["sh", "-c", command, cli.PROGRAM, cli.model(), cli.TEXT], env=self.env, stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, timeout=cli.PATIENCE)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b"standard output", done.stderr)

    def test_closed_input_reads_as_an_error(self):
        done = subprocess.run(["sh", "-c", '"$0" rewrite -m "$1" - <&-', cli.PROGRAM, cli.model()], env=self.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=cli.PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        self.assertIn(b"standard input", done.stderr)


if __name__ == "__main__":
    cli.main()
