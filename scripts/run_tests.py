#!/usr/bin/env python3
"""Runs ctest in a build folder; the last line of output is "N passed, N failed".

usage: scripts/run_tests.py BUILD_DIR [CTEST_ARGUMENT...]

A test that could not be run counts as failed. One that ends with status 77 says that this machine cannot run
it, and why on its last line; it is named before the count and is in neither number. Exit status: 0 when at
least one test ran and none failed, 1 otherwise. The details are in BUILD_DIR/test-results.xml (JUnit).
"""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    report = os.path.join(build, "test-results.xml")
    if os.path.exists(report):
        os.remove(report)

    status = subprocess.call([
        "ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error", "--output-junit", report, "-j2",
        *sys.argv[2:]])

    passed, failed, skipped = 0, [], []
    if os.path.exists(report):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            outcome = case.get("status")
            if outcome == "run":
                passed += 1
            elif outcome == "disabled":
                skipped.append("disabled: " + case.get("name"))
            elif case.find("skipped") is not None and case.find("skipped").get("message") == "SKIP_RETURN_CODE=77":
                said = (case.findtext("system-out") or "").strip().splitlines()
                skipped.append("skipped: %s: %s" % (case.get("name"), said[-1] if said else "no reason given"))
            else:
                failed.append(case.get("name"))
    for line in skipped:
        print(line)
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    sys.exit(0 if status == 0 and passed and not failed else 1)


main()
