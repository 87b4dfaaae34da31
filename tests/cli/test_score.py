#!/usr/bin/env python3
"""`inkstone score`: log-probabilities, their sum, and agreement between its ways of asking."""

import json
import math

import cli

TARGET = "这家店的菜很好吃，服务很好。"


class Score(cli.Case):
    def score(self, *args):
        return self.answer("score", "-m", cli.model(), "--json", *args)

    def ids(self, text, *args):
        return self.answer("tokenize", "-m", cli.model(), "--json", *args, text)["ids"]

    def test_json_has_the_fields_of_the_contract(self):
        r = self.score("--source", cli.TEXT, "--target", TARGET)
        self.assertEqual(list(r), ["model", "source_ids", "target", "sum_logprob"])
        for t in r["target"]:
            self.assertEqual(list(t), ["id", "piece", "logprob"])
            self.assertLessEqual(t["logprob"], 0)
        self.assertAlmostEqual(r["sum_logprob"], sum(t["logprob"] for t in r["target"]), places=3)

    def test_source_and_target_are_tokenized_as_said(self):
        r = self.score("--source", cli.TEXT, "--target", TARGET)
        self.assertEqual(r["source_ids"], self.ids(cli.TEXT))
        eos = self.ids(TARGET)[-1:]
        self.assertEqual([t["id"] for t in r["target"]], self.ids(TARGET, "--no-special") + eos)
        self.assertEqual(r["target"][-1]["piece"], "</s>")

    def test_ids_are_used_exactly_as_given(self):
        text = self.score("--source", cli.TEXT, "--target", TARGET)
        ids = ",".join(map(str, text["source_ids"])), ",".join(str(t["id"]) for t in text["target"])
        self.assertEqual(self.score("--source-ids", ids[0], "--target-ids", ids[1]), text)
        short = self.score("--source-ids", "5,6", "--target-ids", "7")
        self.assertEqual((short["source_ids"], [t["id"] for t in short["target"]]), ([5, 6], [7]))

    def test_the_most_probable_tokens_bound_the_chosen_one(self):
        r = self.score("--source", cli.TEXT, "--target", TARGET, "--top", "5")
        for t in r["target"]:
            probabilities = [a["logprob"] for a in t["top"]]
            self.assertEqual(len(probabilities), 5)
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertGreaterEqual(probabilities[0], t["logprob"] - 1e-5)
            self.assertLessEqual(sum(map(math.exp, probabilities)), 1.0001)

    def test_plain_output_has_a_line_per_token_and_the_sum(self):
        r = self.score("--source", cli.TEXT, "--target", TARGET)
        lines = self.succeed("score", "-m", cli.model(), "--source", cli.TEXT, "--target", TARGET).splitlines()
        self.assertEqual(len(lines), len(r["target"]) + 1)
        for line, t in zip(lines, r["target"]):
            number, i, piece = line.split(None, 2)
            self.assertEqual((int(i), piece), (t["id"], t["piece"]))
            self.assertAlmostEqual(float(number), t["logprob"], places=4)
        self.assertRegex(lines[-1], "sum of %d tokens$" % len(r["target"]))

    def test_jsonl_answers_every_line_with_one_model(self):
        single = self.score("--source", cli.TEXT, "--target", TARGET)
        ids = {"source_ids": single["source_ids"], "target_ids": [t["id"] for t in single["target"]]}
        lines = [{"source": cli.TEXT, "target": TARGET}, ids, {"source": cli.TEXT, "target_ids": ids["target_ids"], "top": 2},
                 {"source": cli.TEXT}, {"target": TARGET}, {"source": cli.TEXT, "source_ids": [1], "target": TARGET}, [],
                 {"source_ids": [1.5], "target": "a"}, {"source_ids": [-1], "target": "a"}, {"source_ids": [2**31], "target": "a"},
                 {"source_ids": [99999999], "target": "a"}, {"source": cli.TEXT, "target": TARGET, "images": ["a"]},
                 {"source": cli.TEXT, "target": TARGET}]
        data = "".join(json.dumps(line) + "\n" for line in lines) + "{\n"
        done = self.run_program("score", "-m", cli.model(), "--jsonl", "-", input=data)
        self.assertEqual(done.returncode, 1)
        answers = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
        self.assertEqual([a["index"] for a in answers], list(range(len(lines) + 1)))
        self.assertEqual(["error" in a for a in answers], [False] * 3 + [True] * 9 + [False, True])
        for i in (0, 1, 12):
            self.assertEqual({k: v for k, v in answers[i].items() if k != "index"}, single)
        self.assertEqual(len(answers[2]["target"][0]["top"]), 2)
        self.one_line(done.stderr.decode())

    def test_the_last_line_needs_no_newline(self):
        done = self.run_program("score", "-m", cli.model(), "--jsonl", input=json.dumps({"source_ids": [5], "target_ids": [6]}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["index"], 0)

    def test_ids_outside_the_vocabulary_are_named(self):
        self.refused(1, "source_ids.*2147483647|2147483647", "score", "-m", cli.model(), "--source-ids", "2147483647", "--target-ids", "1")
        self.refused(1, "target", "score", "-m", cli.model(), "--source-ids", "5", "--target-ids", "")


if __name__ == "__main__":
    cli.main()
