#!/usr/bin/env python3
"""POST /v1/rewrite: the answer, the stream, and that the two say the same."""

import concurrent.futures
import json

import inkhttp
from inkhttp import TEXT, TEXTS, joined, wait_until

FIELDS = ["id", "model", "rewrites", "seed", "usage", "timings", "cache", "source_cache", "device", "truncated", "warnings"]
STAGES = ["queue_ms", "tokenize_ms", "encode_ms", "first_token_ms", "decode_ms", "other_ms"]


class Rewrite(inkhttp.Case):
    def test_the_answer_has_every_field_in_order(self):
        answer = self.server.rewrite(n=3, seed=1)
        self.assertEqual(list(answer), FIELDS)
        self.assertEqual([c["index"] for c in answer["rewrites"]], [0, 1, 2])
        for c in answer["rewrites"]:
            self.assertEqual(list(c), ["index", "text", "finish_reason", "score"])
            self.assertIn(c["finish_reason"], ("stop", "length"))
            self.assertTrue(c["text"])
            self.assertLess(c["score"], 0)
        self.assertEqual(answer["seed"], 1)
        self.assertEqual(answer["cache"], "miss")
        self.assertIsNone(answer["truncated"])
        self.assertGreater(answer["usage"]["input_tokens"], 0)
        self.assertGreaterEqual(answer["usage"]["output_tokens"], 3)

    def test_candidates_differ_from_each_other_and_from_the_source(self):
        for text in TEXTS:
            texts = [c["text"] for c in self.server.rewrite(text, n=5, seed=3)["rewrites"] if "error" not in c]
            self.assertEqual(len(set(texts)), len(texts), texts)
            self.assertNotIn(text, texts)
            for t in texts:
                self.assertNotIn("<extra_id", t)
                self.assertNotIn("\ufffd", t)

    def test_stage_times_add_up(self):
        t = self.server.rewrite(n=2)["timings"]
        self.assertEqual(list(t), STAGES + ["total_ms"])
        self.assertTrue(all(v >= 0 for v in t.values()), t)
        self.assertAlmostEqual(sum(t[s] for s in STAGES), t["total_ms"], delta=max(0.02 * t["total_ms"], 0.01))

    def test_a_seed_repeats_and_its_lack_does_not(self):
        one, two = (self.server.rewrite(n=4, seed=99) for _ in range(2))
        self.assertEqual(one["rewrites"], two["rewrites"])
        seeds = {self.server.rewrite(n=1)["seed"] for _ in range(5)}
        self.assertEqual(len(seeds), 5)
        self.assertTrue(all(0 <= s < 2 ** 53 for s in seeds))
        drawn = self.server.rewrite(n=2)
        self.assertEqual(self.server.rewrite(n=2, seed=drawn["seed"])["rewrites"], drawn["rewrites"])

    def test_the_same_whatever_else_runs(self):
        alone = [self.server.rewrite(t, n=3, seed=5)["rewrites"] for t in TEXTS]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            together = list(pool.map(lambda t: self.server.rewrite(t, n=3, seed=5)["rewrites"], TEXTS * 3))
        self.assertEqual([[c["text"] for c in r] for r in together], [[c["text"] for c in r] for r in alone * 3])

    def test_temperature_0_is_greedy(self):
        texts = {self.server.rewrite(n=1, temperature=0, seed=s)["rewrites"][0]["text"] for s in (1, 2, 3)}
        self.assertEqual(len(texts), 1)

    def test_one_encoder_pass_however_many_candidates(self):
        before = self.server.metric("inkstone_encoder_passes_total")
        self.server.rewrite("No other test has this sentence, so nobody has encoded it.", n=5, seed=8)     # encodings of known texts are kept
        self.assertEqual(self.server.metric("inkstone_encoder_passes_total"), before + 1)

    def test_n_and_length_are_kept(self):
        for n in (1, 2, 16):
            self.assertEqual(len(self.server.rewrite(n=n, temperature=2)["rewrites"]), n)
        c = self.server.rewrite(n=1, max_tokens=2, seed=1, details=True)["rewrites"][0]
        self.assertLessEqual(len(c.get("tokens", [])), 2)

    def test_whole_numbers_may_be_written_as_3_0(self):
        self.assertEqual(len(self.server.rewrite(n=3.0, seed=7.0, max_tokens=16.0)["rewrites"]), 3)

    def test_unknown_fields_are_ignored_and_null_is_the_default(self):
        answer = self.server.rewrite(n=None, temperature=None, whatever={"x": [1]}, Seed=5)
        self.assertEqual(len(answer["rewrites"]), 3)

    def test_details_have_every_token(self):
        answer = self.server.rewrite(n=2, seed=4, details=True)
        for c in answer["rewrites"]:
            scored = [t["logprob"] for t in c["tokens"]]
            self.assertAlmostEqual(sum(scored) / len(scored), c["score"], places=4)
            for t in c["tokens"]:
                self.assertEqual(list(t), ["id", "piece", "logprob", "top"])
                self.assertEqual(len(t["top"]), 5)
                best = [a["logprob"] for a in t["top"]]
                self.assertEqual(best, sorted(best, reverse=True))
                self.assertLessEqual(t["logprob"], best[0] + 1e-6)
        plain = self.server.rewrite(n=2, seed=4)
        self.assertEqual([c["text"] for c in plain["rewrites"]], [c["text"] for c in answer["rewrites"]])
        few = self.server.rewrite(n=1, seed=4, details=True, top=2)
        self.assertEqual(len(few["rewrites"][0]["tokens"][0]["top"]), 2)

    def test_the_cache_field_equals_the_header(self):
        for mode, words in (("auto", ("miss", "hit", "shared")), ("refresh", ("miss",)), ("off", ("off",))):
            answer = self.server.post("/v1/rewrite", {"text": TEXT, "cache": mode})
            self.assertIn(answer.json["cache"], words)
            self.assertEqual(answer.headers["X-Cache"], answer.json["cache"])
            stream = self.server.post("/v1/rewrite", {"text": TEXT, "cache": mode, "stream": True})
            self.assertEqual(stream.headers["X-Cache"], inkhttp.events_of(stream.text)[-1]["cache"])

    def test_text_of_every_kind_is_taken(self):
        texts = ["你好，世界？（测试）：“好”", "😀👨‍👩‍👧‍👦🇨🇳", "e\u0301 ﬁ Ⅷ ㎏", "第一行\n第二行\t制表", "a" * 200, "العربية עברית ไทย",
                 "\u200b\ufeff零宽", "\U0002a6a5\U00030000"]
        for text in texts:
            answer = self.server.post("/v1/rewrite", {"text": text, "n": 1, "max_tokens": 16})
            self.assertIn(answer.status, (200, 422), (text, answer.text))
            if answer.status == 200:
                answer.json["rewrites"][0]["text"].encode("utf-8")

    def test_a_long_text_is_rejected_or_cut_never_silently(self):
        text = "这家 restaurant 的味道 is very good，服务 too。" * 200
        message = self.check_error(self.server.post("/v1/rewrite", {"text": text}), 400, "input_too_long", "text")
        self.assertRegex(message, r"\d+.*\d+")
        cut = self.server.rewrite(text, n=1, on_long_input="truncate", max_tokens=8)["truncated"]
        self.assertEqual(cut["unit"], "tokens")
        self.assertLess(cut["to"], cut["from"])

    def test_a_deadline_is_kept(self):
        answer = self.server.post("/v1/rewrite", {"text": TEXT, "n": 16, "max_tokens": 512, "temperature": 5, "top_p": 1,
                                                  "scripts": "all", "timeout_ms": 1})
        self.check_error(answer, 504, "deadline")


class Stream(inkhttp.Case):
    def test_headers_and_order(self):
        answer = self.server.post("/v1/rewrite", {"text": TEXT, "stream": True, "n": 2, "seed": 1})
        self.assertEqual(answer.status, 200)
        self.assertTrue(answer.headers["Content-Type"].startswith("text/event-stream"))
        self.assertEqual(answer.headers["Cache-Control"], "no-cache")
        self.assertEqual(answer.headers["X-Accel-Buffering"], "no")
        events = inkhttp.events_of(answer.text)
        kinds = [e["type"] for e in events]
        self.assertEqual(kinds, sorted(kinds, key=lambda k: k != "queued"))      # only before the first text
        self.assertEqual(events[-1]["type"], "done")
        self.assertEqual(list(events[-1]), ["type"] + FIELDS)
        self.assertLessEqual({e["type"] for e in events}, {"queued", "delta", "reset", "candidate", "done"})

    def test_joined_deltas_are_the_plain_answer(self):
        for text in TEXTS:
            for options in ({"n": 1, "temperature": 0}, {"n": 5, "seed": 11}, {"n": 8, "seed": 3, "temperature": 0.3}):
                plain = [c["text"] for c in self.server.rewrite(text, **options)["rewrites"]]
                events = self.server.stream(text, **options)
                texts = joined(events)
                self.assertEqual([texts.get(i, "") for i in range(len(plain))], plain)
                sent = {e["index"]: e["text"] for e in events if e["type"] == "candidate"}
                self.assertEqual([sent[i] for i in range(len(plain))], plain)
                self.assertEqual([c["text"] for c in events[-1]["rewrites"]], plain)

    def test_rare_characters_arrive_whole(self):
        # Nearly uniform draws over the whole vocabulary: byte pieces, rare letters, everything.
        for seed in range(6):
            answer = self.server.post("/v1/rewrite", {"text": TEXT, "stream": True, "n": 4, "seed": seed, "temperature": 5,
                                                      "top_p": 1, "scripts": "all", "max_tokens": 48})
            for block in answer.body.split(b"\n\n"):
                for line in block.split(b"\n"):
                    if line.startswith(b"data: {"):
                        json.loads(line[6:].decode("utf-8", "strict"))
            events = inkhttp.events_of(answer.text)
            texts = joined(events)
            for e in events:
                if e["type"] == "candidate" and "error" not in e:
                    self.assertEqual(texts.get(e["index"], ""), e["text"])

    def test_a_stop_string_is_never_seen(self):
        full = self.server.rewrite(n=1, seed=21)["rewrites"][0]["text"]
        stop = full[len(full) // 2:len(full) // 2 + 2]
        events = self.server.stream(n=1, seed=21, stop=[stop])
        text = joined(events).get(0, "")
        self.assertEqual(text.strip(), full[:full.index(stop)].strip())
        for e in events:
            if e["type"] == "delta":
                self.assertNotIn(stop, e["text"])

    def test_an_error_before_the_first_byte_is_a_plain_one(self):
        self.check_error(self.server.post("/v1/rewrite", {"text": TEXT, "stream": True, "n": 0}), 400, "invalid_value", "n")
        self.check_error(self.server.post("/v1/rewrite", {"text": TEXT, "stream": True, "model": "no"}), 404, "model_not_found")

    def test_a_stream_of_an_http_1_0_client_ends_by_closing(self):
        body = json.dumps({"text": TEXT, "stream": True, "n": 1}).encode("utf-8")
        with self.server.raw() as s:
            s.sendall(b"POST /v1/rewrite HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answer = inkhttp.read_all(s)
        head, _, rest = answer.partition(b"\r\n\r\n")
        self.assertIn(b" 200 ", head.split(b"\r\n")[0])
        self.assertNotIn(b"chunked", head.lower())
        self.assertEqual(inkhttp.events_of(rest.decode("utf-8"))[-1]["type"], "done")


class SlowStream(inkhttp.Case):
    slow_model = True

    def test_events_arrive_while_the_rest_is_computed(self):
        body = {"text": "abc", "stream": True, "n": 4, "max_tokens": 400, "scripts": "all", "temperature": 2, "top_p": 1}
        with self.server.raw() as s:
            s.sendall(inkhttp.raw_post(body))
            got = b""
            while b'"delta"' not in got:
                got += s.recv(4096)
            self.assertNotIn(b"[DONE]", got)
            running = self.server.metric("inkstone_http_streams")
            self.assertEqual(running, 1)
        wait_until(lambda: self.server.metric("inkstone_http_streams") == 0, "the stream's end")


if __name__ == "__main__":
    inkhttp.main()
