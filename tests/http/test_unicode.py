#!/usr/bin/env python3
"""Text of every kind, however it is spelled and however its bytes arrive."""

import json
import random
import time

import inkhttp
from inkhttp import raw_post, read_all

KINDS = {
    "Chinese": "你好，世界？（测试）：“好”《书》……——",
    "beyond the basic plane": "\U0002a6a5\U00030000𠮷野家",
    "emoji with joiners": "😀👨‍👩‍👧‍👦🇨🇳👍🏽",
    "combining": "e\u0301\u0323 a\u030a n\u0303",
    "compatibility": "ﬁ Ⅷ ㎏ ａＢ１２ ①",
    "right to left": "العربية עברית \u202eabc\u202c",
    "Indic and Thai": "हिन्दी ไทย தமிழ் မြန်မာ",
    "zero width": "零\u200b宽\u200d字\u2060符\ufeff",
    "spaces": "a\u00a0b\u2003c\u3000d",
    "line ends": "一\n二\r\n三\u2028四\u2029五\t六",
    "controls": "a\u0001b\u001fc\u007fd\u0085e",
    "noncharacters": "a\ufffeb\uffffc\U0010ffffd",
    "private use": "\ue000\uf8ff\U000f0000",
    "replacement": "a\ufffdb",
    "jamo": "\u1112\u1161\u11ab 한글",
    "one character many times": "\u0301" * 300,
}


class Unicode(inkhttp.Case):
    def ids(self, body):
        answer = self.server.post("/v1/tokenize", body)
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json["ids"]

    def test_raw_and_escaped_are_the_same_text(self):
        for kind, text in KINDS.items():
            with self.subTest(kind=kind):
                raw = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8")
                escaped = json.dumps({"text": text}, ensure_ascii=True).encode("ascii")
                units = text.encode("utf-16-be")
                upper = b'{"text":"' + b"".join(b"\\u%02X%02X" % (units[i], units[i + 1]) for i in range(0, len(units), 2)) + b'"}'
                self.assertEqual(self.ids(raw), self.ids(escaped))
                self.assertEqual(self.ids(raw), self.ids(upper))

    def test_every_kind_is_rewritten_or_refused_cleanly(self):
        for kind, text in KINDS.items():
            for stream in (False, True):
                with self.subTest(kind=kind, stream=stream):
                    answer = self.server.post("/v1/rewrite", {"text": text, "n": 2, "max_tokens": 12, "scripts": "all", "seed": 1, "stream": stream})
                    self.assertIn(answer.status, (200, 422), answer.text)
                    if stream and answer.status == 200:
                        self.assertIn(inkhttp.events_of(answer.body.decode("utf-8", "strict"))[-1]["type"], ("done", "error"))
                    else:
                        answer.json

    def test_broken_text_is_refused(self):
        broken = [b'"\\ud800"', b'"\\udc00"', b'"\\ud800x"', b'"\\ud800\\ud800"', b'"\\udc00\\ud800"', b'"\\uD83D"', b'"\\u00"', b'"\\u{1f600}"',
                  b'"\\x41"', b'"\x80"', b'"\xc3"', b'"\xc0\x80"', b'"\xe0\x80\xaf"', b'"\xed\xa0\x80"', b'"\xed\xbf\xbf"', b'"\xf0\x80\x80\x80"',
                  b'"\xf4\x90\x80\x80"', b'"\xf8\x88\x80\x80\x80"', b'"\xfe"', b'"\xff"', b'"\xe4\xbd"', b'"a\x00b"', b'"a\nb"', b'"\\u0000"',
                  "\"你好\"".encode("gb18030"), "\"你好\"".encode("utf-16")]
        for value in broken:
            for path, field in (("/v1/rewrite", b"text"), ("/v1/score", b"source"), ("/v1/tokenize", b"text")):
                with self.subTest(path=path, value=value):
                    self.check_error(self.server.post(path, b'{"target":"a","' + field + b'":' + value + b"}"), 400, "invalid_json")
        for value in broken:        # also where a key is meant
            self.assertEqual(self.server.post("/v1/tokenize", b'{"text":"a",' + value + b":1}").status, 400, value)

    def test_what_an_error_repeats_is_whole(self):
        for word in ("😀" * 60, "é" * 61, "好" * 50, "a\u202eb", "\u0001\u001b[31m", "%s%n", "'\"\\"):
            for field in ("cache", "on_long_input", "scripts", "model"):
                answer = self.server.post("/v1/rewrite", {"text": "abc", field: word})
                with self.subTest(field=field, word=word):
                    self.assertIn(answer.status, (400, 404))
                    message = answer.body.decode("utf-8", "strict") and answer.json["error"]["message"]
                    self.assertNotIn("\ufffd", message)
                    self.assertNotRegex(message, "[\x00-\x1f\x7f]")

    def test_stop_strings_of_every_kind(self):
        for kind, text in KINDS.items():
            answer = self.server.post("/v1/rewrite", {"text": "abc", "n": 1, "max_tokens": 8, "seed": 2, "stop": [text[:8], text[-1]]})
            self.assertIn(answer.status, (200, 422), (kind, answer.text))

    def test_characters_cut_by_packets(self):
        """Also with a pause in the middle of a character."""
        dice = random.Random(3)
        text = "".join(KINDS.values())[:200]
        whole = self.ids({"text": text})
        body = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8")
        request = raw_post(body, "/v1/tokenize", "Connection: close\r\n")
        for _ in range(10):
            cuts = sorted(dice.sample(range(len(request) - len(body), len(request)), 5)) + [len(request)]
            with self.server.raw() as s:
                start = 0
                for cut in cuts:
                    s.sendall(request[start:cut])
                    start = cut
                    time.sleep(0.005)
                head, _, answer = read_all(s).partition(b"\r\n\r\n")
            self.assertIn(b" 200 ", head.split(b"\r\n")[0])
            self.assertEqual(json.loads(answer)["ids"], whole)

    def test_headers_and_paths_of_any_bytes(self):
        for value in (b"\xff\xfe", "中文".encode("utf-8"), b"\x01", b"\x7f"):
            with self.server.raw() as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Any: " + value + b"\r\nLast-Event-ID: " + value + b"\r\nConnection: close\r\n\r\n")
                self.assertIn(read_all(s).split(b"\r\n")[0].split()[1], (b"200", b"400"))
            with self.server.raw() as s:
                s.sendall(b"GET /" + value + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = read_all(s)
                self.assertIn(answer.split(b"\r\n")[0].split()[1], (b"404", b"400"))
                answer.decode("utf-8", "strict")
            with self.server.raw() as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: " + value + b"\r\nConnection: close\r\n\r\n")
                self.assertIn(read_all(s).split(b"\r\n")[0].split()[1], (b"403", b"400"))


if __name__ == "__main__":
    inkhttp.main()
