#!/usr/bin/env python3
"""Help: complete, on stdout, in the shape a reader expects, and in step with the manual page."""

import os
import re

import cli
from test_usage import COMMANDS


class Help(cli.Case):
    def test_the_list_has_every_command(self):
        text = self.succeed("--help")
        self.assertEqual(text, self.succeed("help"))
        self.assertEqual(text, self.succeed("-h"))
        listed = re.findall(r"^  ([a-z]+)  +\S", text, re.M)
        self.assertEqual(listed, COMMANDS)

    def test_every_command_has_help(self):
        for name in COMMANDS:
            with self.subTest(name):
                text = self.succeed(name, "--help")
                self.assertEqual(text, self.succeed("help", name))
                self.assertEqual(text, self.succeed(name, "-h"))
                self.assertTrue(text.startswith("usage: inkstone %s " % name))
                self.assertIn("  -h, --help", text)
                for line in text.splitlines():
                    self.assertEqual(line, line.rstrip())
                    self.assertLessEqual(len(line), 132, line)

    def test_help_wins_over_missing_arguments(self):
        self.assertIn("usage:", self.succeed("rewrite", "-n", "3", "--help"))

    def test_the_manual_page_knows_the_commands_and_shared_options(self):
        with open(os.path.join(cli.ROOT, "deploy", "inkstone.1"), encoding="utf-8") as f:
            page = f.read().replace("\\-", "-")
        self.assertEqual(sorted(re.findall(r"^\.TP\n\.B ([a-z]+)$", page, re.M)), sorted(COMMANDS))
        known = set()
        for name in COMMANDS:
            known.update(re.findall(r"(--[a-z][a-z-]*)", self.succeed(name, "--help")))
        for option in re.findall(r"(--[a-z][a-z-]+)", page):
            self.assertIn(option, known | {"--version", "--help"}, "in deploy/inkstone.1")
        for option in ("--model", "--compute", "--type", "--threads", "--json", "--jsonl"):
            self.assertIn(option, page)


if __name__ == "__main__":
    cli.main()
