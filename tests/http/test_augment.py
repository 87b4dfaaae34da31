#!/usr/bin/env python3
"""POST /augment and /augment_batch: the mT5 WebUI family's spelling of rewriting."""


import inkhttp

# The made-up model never ends a text by itself, so max_length decides how long an answer takes.
TEXT = "今天下午三点开会。"


class Augment(inkhttp.Case):
    def one(self, text="abc", **options):
        answer = self.server.post("/augment", {"text": text, "max_length": 3, **options})
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(list(answer.json), ["augmented_texts"])
        return answer.json["augmented_texts"]

    def many(self, texts, **options):
        answer = self.server.post("/augment_batch", {"texts": texts, "max_length": 3, **options})
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertEqual(list(answer.json), ["results"])
        return answer.json["results"]

    def test_one_text(self):
        self.assertEqual([type(t) for t in self.one()], [str])
        for n in (1, 2, 5, 16, 3.0):
            texts = self.one(num_return_sequences=n, max_length=12)
            self.assertEqual(len(texts), n)
            self.assertEqual(len(set(texts)), n)
            self.assertTrue(all(texts))

    def test_it_is_the_rewrite_of_these_options(self):
        texts = self.one(TEXT, num_return_sequences=2, max_length=10, seed=11)
        alone = self.server.rewrite(TEXT, n=2, max_tokens=10, temperature=1.0, top_k=50, top_p=0.95, seed=11)
        self.assertEqual(texts, [c["text"] for c in alone["rewrites"]])
        texts = self.one(TEXT, max_length=10, seed=11, temperature=1.7, top_k=0, top_p=0.5)
        alone = self.server.rewrite(TEXT, n=1, max_tokens=10, temperature=1.7, top_k=0, top_p=0.5, seed=11)
        self.assertEqual(texts, [c["text"] for c in alone["rewrites"]])

    def test_the_cache_is_off_unless_asked_for(self):
        for body, word in (({}, "off"), ({"cache": "off"}, "off"), ({"cache": "auto"}, "miss"), ({"cache": "refresh"}, "miss")):
            answer = self.server.post("/augment", {"text": "abc", "max_length": 3, **body})
            self.assertEqual((answer.status, answer.headers["X-Cache"]), (200, word))

    def test_many_texts_in_order(self):
        texts = ["text number %d" % i for i in range(100)]
        results = self.many(texts, num_return_sequences=2, max_length=6)
        self.assertEqual([r["original"] for r in results], texts)
        for r in results:
            self.assertEqual(list(r), ["original", "augmented_texts"])
            self.assertEqual(len(r["augmented_texts"]), 2)

    def test_a_failed_text_has_none_and_an_error(self):
        texts = ["abc", "", 5, None, {"a": [1]}, "x" * 9000, "def"]
        results = self.many(texts)
        self.assertEqual([r["original"] for r in results], texts)
        self.assertEqual([len(r["augmented_texts"]) for r in results], [1, 0, 0, 0, 0, 0, 1])
        for r in results[1:-1]:
            self.assertEqual(list(r), ["original", "augmented_texts", "error"])
            self.assertEqual(set(r["error"]), {"message", "type", "param", "code"})
        self.assertEqual([r["error"]["code"] for r in results[1:-1]], ["invalid_value"] * 4 + ["input_too_long"])

    def test_seeds(self):
        options = {"num_return_sequences": 2, "max_length": 10, "seed": 5}
        first, again = self.many(["abc", "abc"], **options), self.many(["abc", "abc"], **options)
        self.assertEqual(first, again)
        self.assertNotEqual(first[0]["augmented_texts"], first[1]["augmented_texts"])
        self.assertEqual(first[0]["augmented_texts"], self.one("abc", **options))

    def test_every_field_is_checked_and_named_as_here(self):
        wrong = {"num_return_sequences": (0, 17, -1, 1.5, "2", [1], True), "temperature": (-0.1, 5.1, "1", True),
                 "max_length": (0, -1, 100000, 2.5, "x", False), "top_k": (-1, 1.5, "x"), "top_p": (0, -0.1, 1.1, "x"),
                 "seed": (-1, 2 ** 53, "x"), "cache": ("on", 1), "timeout_ms": (0, 1.5, "x"), "model": (1, [])}
        for path, text in (("/augment", {"text": "abc"}), ("/augment_batch", {"texts": ["abc", "def"]})):
            for name, values in wrong.items():
                for value in values:
                    with self.subTest(path=path, name=name, value=value):
                        message = self.check_error(self.server.post(path, {**text, name: value}), 400, "invalid_value", name)
                        self.assertTrue(message.startswith(name + ":"), message)
            self.check_error(self.server.post(path, {**text, "model": "nobody"}), 404, "model_not_found", "model")
            self.assertEqual(self.server.post(path, {**text, "max_length": 3, "seed": None, "n": "x", "max_tokens": "x", "more": 1}).status, 200)

    def test_the_text_itself(self):
        for body in ({}, {"text": None}, {"text": 5}, {"text": ["abc"]}, {"text": ""}, {"text": " \n"}):
            self.check_error(self.server.post("/augment", body), 400, "invalid_value", "text")
        self.check_error(self.server.post("/augment", {"text": "x" * 9000}), 400, "input_too_long", "text")
        for body in ({}, {"texts": None}, {"texts": "abc"}, {"texts": {}}, {"texts": []}):
            self.check_error(self.server.post("/augment_batch", body), 400, "invalid_value", "texts")
        for path in ("/augment", "/augment_batch"):
            for body in (b"", b"[]", b'"abc"', b'{"text":"\xff"}', b'{"text":"a","text":"b"}', b'{"text":"\\udc00"}'):
                self.check_error(self.server.post(path, body), 400, "invalid_json")
            self.check_error(self.server.request("POST", path, b"{}", {"Content-Type": "application/x-ndjson"}), 415,
                             "unsupported_media_type")
            self.assertEqual(self.server.get(path).headers["Allow"], "POST")

    def test_too_much_names_ndjson(self):
        self.assertIn("application/x-ndjson",
                      self.check_error(self.server.post("/augment_batch", {"texts": ["a"] * 10001}), 413, "too_large"))
        big = self.server.post("/augment_batch", b'{"texts":["a"],"pad":"%s"}' % (b"x" * 16 * 1024 * 1024))
        self.assertIn("NDJSON", self.check_error(big, 413, "too_large"))
        self.assertEqual(len(self.many([""] * 10000)), 10000)

    def test_temperature_0_has_one_text(self):
        self.assertEqual(len(self.one(temperature=0, num_return_sequences=3)), 1)

    def test_a_deadline(self):
        slow = {"max_length": 512, "num_return_sequences": 16, "timeout_ms": 1}
        self.check_error(self.server.post("/augment", {"text": "abc", **slow}), 504, "deadline")
        results = self.many(["abc", "def"], **slow)
        self.assertEqual([r["error"]["code"] for r in results], ["deadline"] * 2)

    def test_a_lost_client_costs_nothing(self):
        for path, text in (("/augment", {"text": "abc"}), ("/augment_batch", {"texts": ["abc"] * 300})):
            s = self.server.raw()
            s.sendall(inkhttp.raw_post({**text, "max_length": 500, "num_return_sequences": 8, "temperature": 2, "top_k": 0, "top_p": 1,
                                        "timeout_ms": 600000}, path))
            inkhttp.wait_until(lambda: self.server.metric("inkstone_sequences_running") > 0, "it to run")
            s.close()
            inkhttp.wait_until(lambda: self.server.metric("inkstone_http_running") == 0, "the loss to be noticed", 5 * inkhttp.SLOW)
            inkhttp.wait_until(lambda: self.server.metric("inkstone_sequences_running") == 0, "the engine to stop", 5 * inkhttp.SLOW)


if __name__ == "__main__":
    inkhttp.main()
