#!/usr/bin/env python3
"""Help: complete, on stdout, in the shape a reader expects, and in step with the manual page."""

import os
import re
import subprocess

import cli
from test_usage import COMMANDS

PAGE = os.path.join(cli.ROOT, "deploy", "inkstone.1")


def manual_page():
    with open(PAGE, encoding="utf-8") as f:
        return f.read()


def options_in_roff(help_text):
    """The options of a help text as they stand in the manual page."""
    def roff(text):
        return text.replace("\\", "\\e").replace("-", "\\-")
    out = []
    text = re.sub(r"(\n      (?:-|--)[^\n]*|\n  -\S, --[^\n]*)\n {30}", r"\1  ", "\n" + help_text)
    for names, value, about in re.findall(r"^ {2}(?:    )?((?:-\w, )?--[a-z-]+)(?: (\S+))? {1,}(?=\S)(.*)$", text, re.M):
        bold = ", ".join(names.split(", "))
        out.append(".TP\n")
        out.append('.BR "%s" " \\fI%s\\fR"\n' % (roff(bold), roff(value)) if value else '.B "%s"\n' % roff(bold))
        out.append(roff(about[0].upper() + about[1:]) + ".\n")
    return "".join(out)


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

    def test_the_manual_page_has_every_command_and_every_option(self):
        page = manual_page()
        self.assertEqual(sorted(re.findall(r"^\.TP\n\.B ([a-z]+)$", page, re.M)), sorted(COMMANDS))
        self.assertEqual(set(re.findall(r"^\.B inkstone ([a-z]+)$", page, re.M)), {*COMMANDS, "help"})
        self.assertEqual(re.findall(r"^\.SS (\S+)$", page, re.M), COMMANDS)
        for name in COMMANDS:
            # Word for word, so that ranges and defaults stay true as well.
            said = re.search(r"^\.SS %s\n(.*?)(?=^\.S[SH] )" % name, page, re.M | re.S).group(1)
            self.assertEqual(said, options_in_roff(self.succeed(name, "--help")), "deploy/inkstone.1: options of " + name)

    def test_the_manual_page_names_no_option_that_is_not(self):
        known = {"--version", "--help"}
        for name in COMMANDS:
            known.update(re.findall(r"(--[a-z][a-z-]*)", self.succeed(name, "--help")))
        for option in re.findall(r"(--[a-z][a-z-]+)", manual_page().replace("\\-", "-")):
            self.assertIn(option, known, "in deploy/inkstone.1")

    def test_the_manual_page_is_sound_roff(self):
        """Where groff is installed it has nothing to complain about."""
        try:
            done = subprocess.run(["groff", "-man", "-ww", "-Kutf8", "-Tutf8", PAGE], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except OSError:
            self.skipTest("groff is not installed")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"INKSTONE(1)", done.stdout)


if __name__ == "__main__":
    cli.main()
