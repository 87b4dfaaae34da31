"""scripts/run_tests.py: its last line and its exit status, for every way a run can end."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.environ["INKSTONE_SOURCE_DIR"], "scripts", "run_tests.py")


def run(tests, *arguments):
    """Runs ctest over {name: command}; the last line and the exit status."""
    with tempfile.TemporaryDirectory() as build:
        with open(os.path.join(build, "CTestTestfile.cmake"), "w", encoding="ascii") as f:
            for name, command in tests.items():
                f.write(f'add_test("{name}" {command})\n')
                f.write(f'set_tests_properties("{name}" PROPERTIES TIMEOUT 2)\n')
        done = subprocess.run([sys.executable, SCRIPT, build, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        return done.stdout.splitlines()[-1], done.returncode


class RunTests(unittest.TestCase):
    def test_all_pass(self):
        self.assertEqual(run({"a": "true", "b": "true"}), ("2 passed, 0 failed", 0))

    def test_every_kind_of_failure_counts(self):
        tests = {"good": "true", "bad": "false", "slow": "sleep 30", "crash": "sh -c \"kill -SEGV $$\"",
                 "absent": "/no/such/program"}
        self.assertEqual(run(tests), ("1 passed, 4 failed", 1))

    def test_no_test_is_a_failure(self):
        self.assertEqual(run({}), ("0 passed, 0 failed", 1))
        self.assertEqual(run({"a": "true"}, "-R", "nothing-is-called-so"), ("0 passed, 0 failed", 1))


unittest.main()
