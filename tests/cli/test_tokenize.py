#!/usr/bin/env python3
"""`inkstone tokenize`: ids, pieces, and the way back."""

import json
import os
import resource
import subprocess

import cli


class Tokenize(cli.Case):
    def tokenize(self, *args, **keywords):
        return self.answer("tokenize", "-m", cli.model(), "--json", *args, **keywords)

    def test_json_has_the_fields_of_the_contract(self):
        r = self.tokenize(cli.TEXT)
        self.assertEqual(list(r), ["model", "ids", "pieces"])
        self.assertEqual(len(r["ids"]), len(r["pieces"]))
        self.assertEqual(r["pieces"][-1], "</s>")

    def test_no_special_leaves_the_end_out(self):
        self.assertEqual(self.tokenize("--no-special", cli.TEXT)["ids"] + self.tokenize("")["ids"], self.tokenize(cli.TEXT)["ids"])
        self.assertEqual(self.tokenize("--no-special", "")["ids"], [])

    def test_plain_output_is_id_and_piece(self):
        r = self.tokenize(cli.TEXT)
        lines = self.succeed("tokenize", "-m", cli.model(), cli.TEXT).splitlines()
        self.assertEqual([tuple(line.split(None, 1)) for line in lines], [(str(i), p) for i, p in zip(r["ids"], r["pieces"])])

    def test_decoding_gives_the_text_back(self):
        for text in cli.TEXTS[:1] + ["abc 123", ""]:
            ids = self.answer("tokenize", "-m", cli.DEMO, text, "--json")["ids"]
            joined = ",".join(map(str, ids))
            answer = self.answer("tokenize", "-m", cli.DEMO, "--decode", "--ids", joined, "--json")
            self.assertEqual(answer["text"].strip(), text)
            self.assertEqual(self.succeed("tokenize", "-m", cli.DEMO, "--decode", "--ids", joined), answer["text"] + "\n")

    def decoded(self, ids):
        return self.answer("tokenize", "-m", cli.model(), "--decode", "--ids", ",".join(map(str, ids)), "--json")["text"]

    def test_an_id_outside_the_vocabulary_is_named(self):
        self.refused(1, "2147483647|ids", "tokenize", "-m", cli.model(), "--decode", "--ids", "5,2147483647")

    def test_lines(self):
        data = (cli.TEXT + "\n").encode("utf-8") + b"\xff\n\n" + b"a\n"
        done = self.run_program("tokenize", "-m", cli.model(), "-", input=data)
        self.assertEqual(done.returncode, 1)
        answers = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
        self.assertEqual([a["index"] for a in answers], [0, 1, 2, 3])
        self.assertEqual(["error" in a for a in answers], [False, True, False, False])
        self.assertEqual(answers[0]["ids"], self.tokenize(cli.TEXT)["ids"])

    def test_jsonl(self):
        data = json.dumps(cli.TEXT) + "\n" + json.dumps({"text": cli.TEXT}) + "\n" + "5\n" + '"a\\nb"\n'
        done = self.run_program("tokenize", "-m", cli.model(), "--jsonl", input=data)
        answers = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
        self.assertEqual(done.returncode, 1)
        self.assertEqual(answers[0]["ids"], answers[1]["ids"])
        self.assertEqual(["error" in a for a in answers], [False, False, True, False])

    def test_jsonl_decodes_ids(self):
        ids = self.tokenize(cli.TEXT)["ids"]
        data = json.dumps({"ids": ids}) + "\n" + json.dumps(ids) + "\n" + '{"ids": "1"}\n'
        done = self.run_program("tokenize", "-m", cli.model(), "--decode", "--jsonl", input=data)
        answers = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
        self.assertEqual(done.returncode, 1)
        self.assertEqual([a.get("text") for a in answers], [self.decoded(ids)] * 2 + [None])

    def test_text_that_is_no_utf8(self):
        self.refused(1, "UTF-8", "tokenize", "-m", cli.model(), b"abc\xff")

    def test_no_weights_are_loaded(self):
        """A file cut behind its metadata cannot be opened for rewriting; its size in memory is that of a tokenizer."""
        def peak(*args):
            script = ("import resource, subprocess, sys\n"
                      "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)\n"
                      "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
            done = subprocess.run(["/usr/bin/python3", "-c", script, cli.PROGRAM, *args], env=self.env, stdout=subprocess.PIPE,
                                  check=True, timeout=cli.PATIENCE)
            return int(done.stdout)
        if not os.environ.get("INKSTONE_SANITIZE"):
            self.assertLess(peak("tokenize", "-m", cli.model(), cli.TEXT), peak("rewrite", "-m", cli.model(), "-n", "1", cli.TEXT))


if __name__ == "__main__":
    cli.main()
