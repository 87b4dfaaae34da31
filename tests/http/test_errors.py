#!/usr/bin/env python3
"""What is refused, and how: every field's type and range, malformed JSON, unknown routes and methods."""

import inkhttp
from inkhttp import TEXT

# field: values that must be refused
WRONG = {
    "text": [1, "", " \n", ["a"], {}, True],
    "model": [1, ["x"], {}],
    "n": [0, 17, -1, 2.5, "3", True, [], 1e300],
    "temperature": [-0.01, 5.01, "1", [], False],
    "top_p": [0, -1, 1.01, "0.9", {}],
    "top_k": [-1, 0.5, "40", [], 1e300],
    "min_p": [-0.1, 1.1, "0"],
    "repetition_penalty": [0, -1, 10.1, "1"],
    "max_tokens": [0, -1, 1.5, "64", 100000, []],
    "seed": [-1, 2 ** 53, 0.5, "1", []],
    "stop": [1, "", [""], [1], {}, ["x"] * 9],
    "stream": [1, "true", []],
    "details": [1, "yes"],
    "top": [-1, 21, "5"],
    "cache": ["on", "", 1, True],
    "timeout_ms": [0, -1, "1000", 10 ** 12],
    "on_long_input": ["cut", 1],
    "scripts": [1, "klingon", ""],
    "linger_ms": [-1, 120001, "1"],
}


class Errors(inkhttp.Case):
    def test_wrong_types_and_ranges_name_field_and_bounds(self):
        for field, values in WRONG.items():
            for value in values:
                answer = self.server.post("/v1/rewrite", {"text": TEXT, field: value})
                with self.subTest(field=field, value=value):
                    message = self.check_error(answer, 400, "invalid_value", field)
                    self.assertTrue(message.startswith(field + ":"), message)

    def test_a_missing_text_is_named(self):
        self.check_error(self.server.post("/v1/rewrite", {"n": 1}), 400, "invalid_value", "text")

    def test_malformed_json(self):
        bodies = [b"", b"{", b"nonsense", b'{"text":"a"', b'{"text":"a"}}', b'{"text":"a",}', b"{'text':'a'}", b'{"text":"a\xff"}',
                  b'{"text":"\xc0\xaf"}', b'{"text":"\xed\xa0\x80"}', b'{"text":"\\u0000"}', b'{"text":"a\\ud83d"}',
                  b'{"text":"a","text":"b"}', b'{"text":"a","n":NaN}', b'{"text":"a","n":1e999}', b'[{"text":"a"}]', b'"text"', b"null",
                  b"1", b"[" * 100000, b'\xef\xbb\xbf{"text":"a"}', b'{"text":"a"}\x00', b'\x00\x01\x02', b'{"te\nxt":"a"}']
        for body in bodies:
            with self.subTest(body=body[:40]):
                self.check_error(self.server.post("/v1/rewrite", body), 400, "invalid_json")

    def test_score_and_tokenize_fields(self):
        rows = [("/v1/score", {}, "source"), ("/v1/score", {"source": "a"}, "target"), ("/v1/score", {"source": 1, "target": "b"}, "source"),
                ("/v1/score", {"source": "a", "source_ids": [1], "target": "b"}, "source"),
                ("/v1/score", {"source_ids": [], "target": "b"}, "source_ids"),
                ("/v1/score", {"source_ids": [1], "target_ids": [1, "2"]}, "target_ids"),
                ("/v1/score", {"source_ids": [10 ** 9], "target_ids": [1]}, "source_ids"),
                ("/v1/score", {"source_ids": [1], "target_ids": [10 ** 9]}, "target_ids"),
                ("/v1/score", {"source": "a", "target": "b", "top": 21}, "top"),
                ("/v1/tokenize", {}, "text"), ("/v1/tokenize", {"text": 1}, "text"), ("/v1/tokenize", {"ids": [-1]}, "ids"),
                ("/v1/tokenize", {"ids": [10 ** 9]}, "ids"), ("/v1/tokenize", {"text": "a", "add_special": "no"}, "add_special")]
        for path, body, param in rows:
            with self.subTest(path=path, body=body):
                self.check_error(self.server.post(path, body), 400, "invalid_value", param)

    def test_unknown_models(self):
        for path, body in (("/v1/rewrite", {"text": TEXT}), ("/v1/score", {"source": "a", "target": "b"}), ("/v1/tokenize", {"text": "a"})):
            message = self.check_error(self.server.post(path, {**body, "model": "nosuch"}), 404, "model_not_found", "model")
            self.assertIn("nosuch", message)

    def test_unknown_paths(self):
        for path in ("/nope", "/v1", "/v1/rewrite/", "/V1/rewrite", "//", "/../etc/passwd", "/assets/none.js", "/%00", "/%ff", "/" + "x" * 3000):
            with self.subTest(path=path[:30]):
                self.check_error(self.server.get(path), 404, "not_found")

    def test_wrong_methods_say_which_are_right(self):
        rows = [("GET", "/v1/rewrite", "POST"), ("PUT", "/v1/rewrite", "POST"), ("DELETE", "/v1/score", "POST"), ("POST", "/health", "GET, HEAD"),
                ("POST", "/", "GET, HEAD"), ("PATCH", "/v1/models", "GET, HEAD"), ("OPTIONS", "/v1/rewrite", "POST")]
        for method, path, allow in rows:
            with self.subTest(method=method, path=path):
                answer = self.server.request(method, path, b"{}" if method != "GET" else None, {"Content-Type": "application/json"})
                self.check_error(answer, 405, "method_not_allowed")
                self.assertEqual(answer.headers["Allow"], allow)

    def test_only_json_is_taken(self):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", ""):
            for path in ("/v1/rewrite", "/v1/score", "/v1/tokenize"):
                answer = self.server.request("POST", path, b'{"text":"a"}', {"Content-Type": kind})
                self.check_error(answer, 415, "unsupported_media_type", "Content-Type")
        for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"):
            self.assertEqual(self.server.request("POST", "/v1/tokenize", b'{"text":"a"}', {"Content-Type": kind}).status, 200)

    def test_the_server_is_well_after_all_that(self):
        self.assertEqual(len(self.server.rewrite(n=2)["rewrites"]), 2)


if __name__ == "__main__":
    inkhttp.main()
