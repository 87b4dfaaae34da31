"""scripts/run_tests.py: its last line and its exit status, for every way a run can end."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.environ["INKSTONE_SOURCE_DIR"], "scripts", "run_tests.py")


class Result(tuple):
    """(the last line, the exit status), and all that was printed."""

    def __new__(cls, output, status):
        made = super().__new__(cls, (output.splitlines()[-1], status))
        made.output = output
        return made


def run(tests, *arguments):
    """Runs ctest over {name: command}."""
    with tempfile.TemporaryDirectory() as build:
        with open(os.path.join(build, "CTestTestfile.cmake"), "w", encoding="ascii") as f:
            for name, command in tests.items():
                f.write(f'add_test("{name}" {command})\n')
                f.write(f'set_tests_properties("{name}" PROPERTIES TIMEOUT 2 SKIP_RETURN_CODE 77)\n')
        done = subprocess.run([sys.executable, SCRIPT, build, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        return Result(done.stdout, done.returncode)


class RunTests(unittest.TestCase):
    def test_all_pass(self):
        self.assertEqual(run({"a": "true", "b": "true"}), ("2 passed, 0 failed", 0))

    def test_every_kind_of_failure_counts(self):
        tests = {"good": "true", "bad": "false", "slow": "sleep 30", "crash": "sh -c \"kill -SEGV $$\"",
                 "absent": "/no/such/program"}
        self.assertEqual(run(tests), ("1 passed, 4 failed", 1))

    def test_a_skipped_test_is_named_with_its_reason_and_not_counted(self):
        skips = "sh -c \"echo first; echo SKIP: no such thing here; exit 77\""
        result = run({"a": "true", "b": skips})
        self.assertEqual(result, ("1 passed, 0 failed", 0))
        self.assertIn("\nskipped: b: SKIP: no such thing here\n", result.output)
        self.assertEqual(run({"b": skips}), ("0 passed, 0 failed", 1))

    def test_no_test_is_a_failure(self):
        self.assertEqual(run({}), ("0 passed, 0 failed", 1))
        self.assertEqual(run({"a": "true"}, "-R", "nothing-is-called-so"), ("0 passed, 0 failed", 1))


unittest.main()
