#!/usr/bin/env python3
"""`inkstone rewrite` on one text, and its agreement with POST /v1/rewrite."""

import json
import os
import signal
import subprocess

import cli

# What differs between two answers to the same job.
OF_THE_CALL = ("id", "source_cache", "timings")


def same_part(answer):
    return {k: v for k, v in answer.items() if k not in OF_THE_CALL}


class Rewrite(cli.Case):
    def rewrite(self, *args, **keywords):
        return self.answer("rewrite", "-m", cli.model(), "--json", *args, **keywords)

    def test_json_has_the_fields_of_the_contract(self):
        r = self.rewrite("--seed", "1", cli.TEXT)
        self.assertEqual(list(r), ["id", "model", "rewrites", "seed", "usage", "timings", "cache", "source_cache", "device", "truncated", "warnings"])
        self.assertEqual(r["model"], os.path.basename(cli.model())[:-len(".gguf")])
        self.assertEqual(r["seed"], 1)
        self.assertEqual([c["index"] for c in r["rewrites"]], [0, 1, 2])
        for c in r["rewrites"]:
            self.assertEqual(list(c), ["index", "text", "finish_reason", "score"])
            self.assertTrue(c["text"])
            self.assertIn(c["finish_reason"], ("stop", "length"))
            self.assertLess(c["score"], 0)
        self.assertEqual(len({c["text"] for c in r["rewrites"]}), 3)
        self.assertNotIn(cli.TEXT, [c["text"] for c in r["rewrites"]])
        stages = r["timings"]
        self.assertAlmostEqual(sum(v for k, v in stages.items() if k != "total_ms"), stages["total_ms"],
                               delta=0.02 * stages["total_ms"] + 0.02)
        self.assertIsNone(r["truncated"])

    def test_plain_output_is_one_rewrite_a_line(self):
        want = [c["text"] for c in self.rewrite("--seed", "7", cli.TEXT)["rewrites"]]
        self.assertEqual(self.succeed("rewrite", "-m", cli.model(), "--seed", "7", cli.TEXT), "".join(t + "\n" for t in want))

    def test_a_terminal_gets_numbers(self):
        want = [c["text"] for c in self.rewrite("--seed", "7", "-n", "2", cli.TEXT)["rewrites"]]
        master, slave = self.terminal()
        done = self.run_program("rewrite", "-m", cli.model(), "--seed", "7", "-n", "2", cli.TEXT, stdout=slave)
        os.close(slave)
        shown = os.read(master, 65536).decode("utf-8")
        os.close(master)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(shown, "".join("%d. %s\r\n" % (i + 1, t) for i, t in enumerate(want)))

    def test_the_same_seed_gives_the_same_and_another_something_else(self):
        first = self.rewrite("--seed", "5", "--max-tokens", "9", cli.TEXT)
        self.assertEqual(same_part(first), same_part(self.rewrite("--seed", "5", "--max-tokens", "9", "--threads", "2", cli.TEXT)))
        self.assertNotEqual(first["rewrites"], self.rewrite("--seed", "6", "--max-tokens", "9", cli.TEXT)["rewrites"])

    def test_a_drawn_seed_is_reported_and_repeats_the_answer(self):
        first = self.rewrite(cli.TEXT)
        self.assertEqual(same_part(first), same_part(self.rewrite("--seed", str(first["seed"]), cli.TEXT)))

    def test_the_answer_equals_that_of_the_server(self):
        with cli.Server(self, "-m", cli.model()) as server:
            for args, body in (
                ([], {}),
                (["-n", "1", "--temperature", "0"], {"n": 1, "temperature": 0}),
                (["-n", "4", "--top-p", "0.5", "--top-k", "20", "--min-p", "0.01", "--repetition-penalty", "1.2", "--max-tokens", "9"],
                 {"n": 4, "top_p": 0.5, "top_k": 20, "min_p": 0.01, "repetition_penalty": 1.2, "max_tokens": 9}),
                (["--stop", "。", "--stop", "，", "--scripts", "all", "--allow-same"],
                 {"stop": ["。", "，"], "scripts": "all", "allow_same": True}),
                (["--details", "--top", "3", "-n", "2"], {"details": True, "top": 3, "n": 2}),
            ):
                with self.subTest(args):
                    status, http = server.post("/v1/rewrite", {"text": cli.TEXT, "seed": 11, "cache": "off", **body})
                    self.assertEqual(status, 200, http)
                    mine = self.rewrite("--seed", "11", *args, cli.TEXT)
                    # The engine behind the command has no cache to be off.
                    self.assertIn(mine.pop("cache"), ("off", "miss"))
                    http.pop("cache")
                    self.assertEqual(same_part(mine), same_part(http))

    def test_the_error_equals_that_of_the_server(self):
        with cli.Server(self, "-m", cli.model()) as server:
            for text in ("", "   ", (cli.TEXT + "abc def. ") * 400):
                status, http = server.post("/v1/rewrite", {"text": text})
                self.assertEqual(status, 400, http)
                done = self.run_program("rewrite", "-m", cli.model(), "--json", text)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(json.loads(done.stdout), http)
                self.one_line(done.stderr.decode("utf-8"))
                self.assertIn(http["error"]["message"], done.stderr.decode("utf-8"))

    def test_a_text_over_the_limit_is_refused_or_cut_with_a_remark(self):
        long = ("".join(cli.TEXTS) + "abc def. ") * 200
        self.refused(1, r"\d+ tokens", "rewrite", "-m", cli.model(), long)
        r = self.rewrite("-n", "1", "--on-long-input", "truncate", long)
        self.assertGreater(r["truncated"]["from"], r["truncated"]["to"])
        self.assertEqual(r["truncated"]["unit"], "tokens")
        done = self.run_program("rewrite", "-m", cli.model(), "-n", "1", "--on-long-input", "truncate", long)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode("utf-8"), r"cut from %d to %d tokens" % (r["truncated"]["from"], r["truncated"]["to"]))

    def test_details_show_every_token(self):
        r = self.rewrite("--details", "--top", "2", "-n", "1", "--temperature", "0", cli.TEXT)
        c = r["rewrites"][0]
        self.assertEqual(r["usage"]["output_tokens"], len(c["tokens"]))
        self.assertAlmostEqual(c["score"], sum(t["logprob"] for t in c["tokens"]) / len(c["tokens"]), places=4)
        for t in c["tokens"]:
            self.assertEqual(len(t["top"]), 2)
            self.assertGreaterEqual(t["top"][0]["logprob"], t["top"][1]["logprob"])
        text = self.succeed("rewrite", "-m", cli.model(), "--details", "-n", "1", "--temperature", "0", cli.TEXT)
        self.assertEqual(text.splitlines()[0], c["text"])
        self.assertIn("mean log-probability %.4f, %d tokens" % (c["score"], len(c["tokens"])), text)

    def test_max_tokens_is_kept(self):
        r = self.rewrite("--max-tokens", "4", "--seed", "3", cli.TEXT)
        self.assertLessEqual(r["usage"]["output_tokens"], 12)
        self.assertIn("length", [c["finish_reason"] for c in r["rewrites"]])

    def test_source_ids_are_the_raw_input(self):
        ids = self.answer("tokenize", "-m", cli.model(), "--json", cli.TEXT)["ids"]
        r = self.rewrite("--source-ids", ",".join(map(str, ids)), "-n", "1", "--seed", "1")
        self.assertEqual(r["usage"]["input_tokens"], len(ids))
        self.refused(1, "source_ids", "rewrite", "-m", cli.model(), "--source-ids", "2147483647")
        self.refused(1, "source_ids", "rewrite", "-m", cli.model(), "--source-ids", "")

    def test_prompt_replaces_the_template(self):
        bare = self.answer("tokenize", "-m", cli.model(), "--json", cli.TEXT)["ids"]
        r = self.rewrite("--prompt", "{text}", "-n", "1", "--seed", "1", cli.TEXT)
        self.assertEqual(r["usage"]["input_tokens"], len(bare))

    def test_a_text_that_begins_with_a_dash(self):
        self.assertEqual(len(self.rewrite("-n", "2", "--seed", "1", "--", "-5度的天气很冷。")["rewrites"]), 2)

    def test_text_that_is_no_utf8(self):
        for text in (b"\xff", b"abc\xe4\xb8", b"\xed\xa0\x80"):
            self.refused(1, "UTF-8", "rewrite", "-m", cli.model(), text)

    def test_a_deadline_ends_the_job(self):
        done = self.run_program("rewrite", "-m", cli.model(), "--timeout", "0.001", "-n", "16", "--max-tokens", "400", "--json",
                                "--temperature", "5", "--top-p", "1", cli.TEXT)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "deadline")

    def test_ctrl_c_ends_it_with_130(self):
        p = subprocess.Popen([cli.PROGRAM, "rewrite", "--threads", "1", "-m", cli.model(), "-n", "16", "--max-tokens", "500",
                              "--temperature", "5", "--top-p", "1", cli.TEXT], env=self.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # The engine's thread is there: the model is loaded, and work begins.
        cli.wait_until(lambda: p.poll() is not None or len(os.listdir("/proc/%d/task" % p.pid)) > 1, "the engine starts")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=cli.PATIENCE)
        self.assertEqual(p.returncode, 130, err)


if __name__ == "__main__":
    cli.main()
