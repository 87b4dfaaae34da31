#!/usr/bin/env python3
"""The demo model as users meet it: the README's sentence, and the figures of its held-out sentences."""

import os
import re
import subprocess
import unittest

import cli


class Demo(cli.Case):
    def test_the_example_gives_three_different_rewrites(self):
        for seed in ("1", "4", "7"):
            texts = [r["text"] for r in self.answer("rewrite", "-m", cli.DEMO, "--seed", seed, cli.TEXT, "--json")["rewrites"]]
            self.assertEqual(len(set(texts)), 3, texts)
            self.assertNotIn(cli.TEXT, texts)
            for text in texts:
                self.assertRegex(text, "^[\u4e00-\u9fff\uff0c\u3002\uff01]+$")

    def test_nine_of_ten_held_out_sentences_have_no_fault(self):
        # 184 of 200 were without a fault when the model was made.
        done = subprocess.run(["/usr/bin/python3", os.path.join(cli.ROOT, "tools", "demo", "evaluate.py"), "--inkstone", cli.PROGRAM,
                               "--model", cli.DEMO], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280)
        out = done.stdout.decode("utf-8", "replace")
        print("\n".join(line for line in out.splitlines() if re.match("held-out|hand-written|checker", line)))
        found = re.search(r"held-out: (\d+) of 200 without a fault", out)
        self.assertTrue(found, out)
        self.assertGreaterEqual(int(found.group(1)), 180)


if __name__ == "__main__":
    unittest.main()
