#!/usr/bin/env python3
"""The page, the list of models, score and tokenize, and what operators ask."""

import concurrent.futures
import json
import os
import re
import subprocess
import time

import inkhttp
from inkhttp import TEXT, TEXTS, wait_until


class Page(inkhttp.Case):
    def test_the_page_and_all_it_loads(self):
        page = self.server.get("/")
        self.assertEqual(page.status, 200)
        self.assertEqual(page.headers["Content-Type"], "text/html; charset=utf-8")
        links = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        self.assertTrue(any(l.endswith(".js") for l in links) and any(l.endswith(".css") for l in links), links)
        for link in links:
            self.assertTrue(link.startswith("/"), link)
            asset = self.server.get(link)
            self.assertEqual(asset.status, 200, link)
            if link.startswith("/assets/"):
                self.assertIn("immutable", asset.headers["Cache-Control"])

    def test_nothing_is_inline_and_nothing_leaves(self):
        page = self.server.get("/")
        self.assertNotRegex(page.text, r"<style|<script(?![^>]*\bsrc=)|\bstyle=|\bon\w+=")
        files = [page] + [self.server.get(l) for l in re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)]
        for f in files:
            for url in re.findall(r"https?://[^\s\"'`)]+", f.text):
                self.assertTrue(url.startswith("http://www.w3.org/"), url)     # a name space, not an address

    def test_the_policy_stands_in_every_answer(self):
        for path in ("/", "/health", "/v1/models", "/nope"):
            headers = self.server.get(path).headers
            self.assertTrue(headers["Content-Security-Policy"].startswith("default-src 'self'"))
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertIsNone(headers["Server"])
            self.assertIsNone(headers["Access-Control-Allow-Origin"])

    def test_an_unchanged_page_is_not_sent_again(self):
        tag = self.server.get("/").headers["ETag"]
        for condition in (tag, "W/" + tag, '"x", ' + tag, "*"):
            again = self.server.get("/", **{"If-None-Match": condition})
            self.assertEqual((again.status, again.body), (304, b""))
        self.assertEqual(self.server.get("/", **{"If-None-Match": '"x"'}).status, 200)

    def test_head_is_get_without_the_body(self):
        for path in ("/", "/health", "/v1/models"):
            answer = self.server.request("HEAD", path)
            self.assertEqual((answer.status, answer.body), (200, b""))
            self.assertGreater(int(answer.headers["Content-Length"]), 10)


class Operators(inkhttp.Case):
    def test_health_and_ready(self):
        health = self.server.get("/health").json
        self.assertEqual(health["status"], "ok")
        self.assertRegex(health["version"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(self.server.get("/ready").status, 200)

    def test_models(self):
        listed = self.server.get("/v1/models").json
        self.assertEqual(listed["object"], "list")
        m = listed["data"][0]
        self.assertEqual(m["id"] + ".gguf", os.path.basename(inkhttp.model()))
        self.assertEqual(m["object"], "model")
        self.assertIn("rewrite", m["capabilities"])
        for field, kind in (("created", int), ("type", str), ("context", int), ("demo", bool)):
            self.assertIsInstance(m[field], kind)

    def test_metrics_are_prometheus_text_and_count(self):
        before = self.server.metric("inkstone_jobs_finished_total")
        self.server.rewrite(n=1)
        wait_until(lambda: self.server.metric("inkstone_jobs_finished_total") == before + 1, "the job to be counted", 5)
        answer = self.server.get("/metrics")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        typed, seen = {}, set()
        for line in answer.text.splitlines():
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                self.assertNotIn(name, typed)
                typed[name] = kind
            elif not line.startswith("#"):
                self.assertRegex(line, r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')
                name = re.sub(r"_(bucket|sum|count)$", "", re.match(r"[a-z_]+", line).group(0))
                seen.add(name)
        self.assertLessEqual(seen, set(typed) | {n + "_count" for n in typed})

    def health_seconds(self):
        start = time.monotonic()
        self.assertEqual(self.server.get("/health").status, 200)
        return time.monotonic() - start

    def test_health_is_quick_under_load(self):
        """Under 100 ms, beyond what a busy machine adds to a server that does nothing else."""
        idle = max(self.health_seconds() for _ in range(30))
        loaded = []
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            jobs = [pool.submit(self.server.rewrite, t, n=4, max_tokens=64, temperature=2, timeout_ms=120000) for t in TEXTS * 4]
            while not all(j.done() for j in jobs):
                loaded.append(self.health_seconds())
            for j in jobs:
                j.result()
        loaded.sort()
        self.assertLess(loaded[len(loaded) * 9 // 10], 0.1 + idle)
        print("health: idle at most %.0f ms, under load median %.1f ms, at most %.0f ms"
              % (idle * 1e3, loaded[len(loaded) // 2] * 1e3, loaded[-1] * 1e3))


class ScoreAndTokenize(inkhttp.Case):
    def command(self, *args):
        done = subprocess.run([inkhttp.PROGRAM, *args, "-m", inkhttp.model(), "--json"], env=inkhttp.environment(), check=True,
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        return json.loads(done.stdout)

    def test_tokenize_equals_the_command(self):
        for text in TEXTS[:2]:
            self.assertEqual(self.server.post("/v1/tokenize", {"text": text}).json, self.command("tokenize", text))
        ids = self.server.post("/v1/tokenize", {"text": TEXT}).json["ids"]
        plain = self.server.post("/v1/tokenize", {"text": TEXT, "add_special": False}).json["ids"]
        self.assertEqual(ids[:len(plain)], plain)
        self.assertEqual(len(ids), len(plain) + 1)

    def test_decoding_undoes_it(self):
        # Text that the demo's and T5's vocabularies both spell out.
        ids = self.server.post("/v1/tokenize", {"text": "abc"}).json["ids"]
        self.assertEqual(self.server.post("/v1/tokenize", {"ids": ids}).json["text"], "abc")

    def test_score_equals_the_command(self):
        body = {"source": TEXT, "target": "abc"}
        answer = self.server.post("/v1/score", body)
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(answer.json, self.command("score", "--source", body["source"], "--target", body["target"]))

    def test_score_sums_up_and_takes_ids(self):
        a = self.server.post("/v1/score", {"source": "abc", "target": "abc"}).json
        self.assertEqual(list(a), ["model", "source_ids", "target", "sum_logprob"])
        self.assertAlmostEqual(sum(t["logprob"] for t in a["target"]), a["sum_logprob"], places=3)
        b = self.server.post("/v1/score", {"source_ids": a["source_ids"], "target_ids": [t["id"] for t in a["target"]]}).json
        self.assertEqual(a, b)


if __name__ == "__main__":
    inkhttp.main()
