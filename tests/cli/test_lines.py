#!/usr/bin/env python3
"""`inkstone rewrite -`: standard input as a stream of texts."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

import cli


class Lines(cli.Case):
    def lines(self, data, *args, status=0, **keywords):
        done = self.run_program("rewrite", "-m", cli.model(), "--max-tokens", "12", "--allow-same", *args, "-", input=data, **keywords)
        self.assertEqual(done.returncode, status, done.stderr.decode("utf-8", "replace"))
        return [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]

    def test_answers_come_in_the_order_of_the_lines(self):
        texts = [t for _ in range(8) for t in cli.TEXTS]
        answers = self.lines("".join(t + "\n" for t in texts), "-n", "2", "--seed", "1")
        self.assertEqual([a["index"] for a in answers], list(range(len(texts))))
        for a in answers:
            self.assertEqual(len(a["rewrites"]), 2)
            self.assertEqual(list(a)[:3], ["index", "id", "model"])

    def test_unordered_gives_the_same_answers(self):
        data = "".join(t + "\n" for t in cli.TEXTS * 5)
        ordered = self.lines(data, "-n", "1", "--seed", "1")
        unordered = self.lines(data, "-n", "1", "--seed", "1", "--unordered")
        self.assertEqual([a["rewrites"] for a in ordered],
                         [a["rewrites"] for a in sorted(unordered, key=lambda a: a["index"])])

    def test_a_line_gets_what_it_gets_alone(self):
        answers = self.lines("".join(t + "\n" for t in cli.TEXTS), "--seed", "9")
        self.assertEqual(answers[0]["seed"], 9)
        self.assertEqual(len({a["seed"] for a in answers}), len(answers))
        for text, a in zip(cli.TEXTS, answers):
            alone = self.answer("rewrite", "-m", cli.model(), "--max-tokens", "12", "--allow-same", "--json", "--seed", str(a["seed"]), text)
            self.assertEqual([c["text"] for c in alone["rewrites"]], [c["text"] for c in a["rewrites"]])

    def test_bad_lines_have_an_error_in_their_place(self):
        good = cli.TEXT.encode("utf-8")
        data = b"\n".join([good, b"", b"\xff\xfe", good, b"a\0b", b"x" * (1 << 20) + b"y" * 9, good])
        answers = self.lines(data, "-n", "1", "--seed", "1", status=1)
        self.assertEqual([a["index"] for a in answers], list(range(7)))
        self.assertEqual(["error" in a for a in answers], [False, True, True, False, True, True, False])
        self.assertIn("UTF-8 at byte 0", answers[2]["error"]["message"])
        self.assertIn("NUL", answers[4]["error"]["message"])
        self.assertEqual(answers[5]["error"]["code"], "input_too_long")
        for a in answers:
            if "error" in a:
                self.assertEqual(list(a["error"]), ["message", "type", "param", "code"])

    def test_failures_are_counted_on_stderr_in_one_line(self):
        done = self.run_program("rewrite", "-m", cli.model(), "-", input=b"\n\n")
        self.assertEqual(done.returncode, 1)
        self.one_line(done.stderr.decode())
        self.assertIn(b"2 of 2 texts failed", done.stderr)

    def test_only_the_newline_is_removed(self):
        for data, n in (("", 0), ("\n", 1), (cli.TEXT, 1), (cli.TEXT + "\n", 1), (cli.TEXT + "\n\n", 2)):
            answers = self.lines(data, "-n", "1", status=1 if data.startswith("\n") or data.endswith("\n\n") else 0)
            self.assertEqual(len(answers), n)

    def test_jsonl_takes_strings_and_objects(self):
        lines = [json.dumps(cli.TEXT), json.dumps({"text": cli.TEXT, "n": 1, "seed": 4}), "{", "[]", "3", '{"text": 1}', '{"n": 2}',
                 '{"text": "%s", "n": 99}' % cli.TEXT, '{"text": "a", "text": "b"}', '"\\u0000"',
                 json.dumps({"text": cli.TEXT, "details": True, "n": 1}), json.dumps({"text": cli.TEXT, "unknown": 1})]
        answers = self.lines("".join(line + "\n" for line in lines), "--jsonl", "-n", "2", "--seed", "1", status=1)
        self.assertEqual(["error" in a for a in answers],
                         [False, False, True, True, True, True, True, True, True, True, False, False])
        self.assertEqual(len(answers[0]["rewrites"]), 2)
        self.assertEqual((len(answers[1]["rewrites"]), answers[1]["seed"]), (1, 4))
        self.assertEqual(answers[2]["error"]["code"], "invalid_json")
        self.assertEqual(answers[7]["error"]["param"], "n")
        self.assertIn("tokens", answers[10]["rewrites"][0])
        self.assertNotIn("tokens", answers[11]["rewrites"][0])

    def test_an_answer_comes_before_the_next_line_is_written(self):
        p = subprocess.Popen([cli.PROGRAM, "rewrite", "--threads", "1", "-m", cli.model(), "-n", "1", "--allow-same", "-"], env=self.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        killer = threading.Timer(cli.PATIENCE, p.kill)
        killer.start()
        for i in range(3):
            p.stdin.write(cli.TEXT.encode("utf-8") + b"\n")
            p.stdin.flush()
            self.assertEqual(json.loads(p.stdout.readline())["index"], i)
        p.stdin.close()
        self.assertEqual(p.stdout.read(), b"")
        self.assertEqual(p.wait(), 0, p.stderr.read())
        killer.cancel()
        p.stdout.close()
        p.stderr.close()

    def test_ctrl_c_ends_a_stream_with_130(self):
        p = subprocess.Popen([cli.PROGRAM, "rewrite", "--threads", "1", "-m", cli.model(), "-n", "1", "--allow-same", "-"], env=self.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(cli.TEXT.encode("utf-8") + b"\n")
        p.stdin.flush()
        p.stdout.readline()     # it is at work
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=cli.PATIENCE)
        self.assertEqual(p.returncode, 130, err)

    def test_a_reader_that_leaves_ends_it(self):
        p = subprocess.Popen([cli.PROGRAM, "rewrite", "--threads", "1", "-m", cli.model(), "-n", "1", "--allow-same", "-"], env=self.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.close()
        try:
            for _ in range(2000):
                p.stdin.write(cli.TEXT.encode("utf-8") + b"\n")
                p.stdin.flush()
        except BrokenPipeError:
            pass
        try:
            p.stdin.close()
        except BrokenPipeError:
            pass
        self.assertEqual(p.wait(cli.PATIENCE), -signal.SIGPIPE, p.stderr.read())
        p.stderr.close()

    def test_an_output_without_room_ends_it(self):
        with open("/dev/full", "wb") as full:
            done = self.run_program("rewrite", "-m", cli.model(), "-n", "1", "-", input=(cli.TEXT + "\n") * 50, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.one_line(done.stderr.decode())
        self.assertIn(b"No space left on device", done.stderr)

    @unittest.skipIf(os.environ.get("INKSTONE_SANITIZE"), "sanitizers keep freed memory")
    def test_memory_does_not_grow_with_the_input(self):
        def peak(n):
            script = ("import resource, subprocess, sys\n"
                      "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
            done = subprocess.run(["/usr/bin/python3", "-c", script, cli.PROGRAM, "rewrite", "--threads", "1", "-m", cli.model(), "-n", "1",
                                   "--max-tokens", "2", "-"], input=(("好" * 100000 + "\n") * n).encode("utf-8"), env=self.env,
                                  stdout=subprocess.PIPE, check=True, timeout=cli.PATIENCE)
            return int(done.stdout)
        small, large = peak(10), peak(400)      # 3 MB and 120 MB of lines that are refused
        self.assertLess(large, small + 32 * 1024)


if __name__ == "__main__":
    cli.main()
