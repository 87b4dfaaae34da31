#!/usr/bin/env python3
"""POST /v1/rewrite/batch: an array or lines in, a document or lines out; order, errors in place, bounds, back-pressure."""

import json
import re
import signal
import socket
import threading
import time
import unittest

import inkhttp
from inkhttp import wait_until

PATH = "/v1/rewrite/batch"
LINES = "application/x-ndjson"
# What the made-up model never ends by itself: as long as it says.
SHORT = {"n": 1, "max_tokens": 3, "scripts": "all"}
LONG = {"n": 2, "max_tokens": 400, "scripts": "all", "temperature": 2, "top_p": 1, "timeout_ms": 600000}


def line(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8") + b"\n"


def resident(server, peak=False):
    """Bytes of the server's memory, now or at most so far."""
    with open("/proc/%d/status" % server.process.pid) as f:
        found = re.search(r"^%s:\s+(\d+) kB" % ("VmHWM" if peak else "VmRSS"), f.read(), re.M)
    return int(found.group(1)) * 1024


class Feed:
    """A request whose lines are sent and whose answers are read at the same time, by the same caller."""

    def __init__(self, server, query="", length=None, version="1.1", extra=""):
        self.sock = server.raw()
        self.chunked = length is None
        framing = "Transfer-Encoding: chunked" if self.chunked else "Content-Length: %d" % length
        self.sock.sendall(("POST %s%s HTTP/%s\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nAccept: %s\r\n%s\r\n%s\r\n"
                           % (PATH, query, version, LINES, LINES, framing, extra)).encode("ascii"))
        self.status, self.headers, self.buffer, self.ended = None, {}, b"", False
        self.raw_buffer = b""

    def send(self, data):
        self.sock.sendall(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

    def finish(self):
        if self.chunked:
            self.sock.sendall(b"0\r\n\r\n")

    def close(self):
        self.sock.close()

    def _more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise EOFError("the connection ended before the answer")
        self.raw_buffer += piece

    def _raw_until(self, mark):
        while mark not in self.raw_buffer:
            self._more()
        found, _, self.raw_buffer = self.raw_buffer.partition(mark)
        return found

    def head(self):
        text = self._raw_until(b"\r\n\r\n").decode("ascii").split("\r\n")
        self.status = int(text[0].split()[1])
        self.headers = {k.lower(): v for k, v in (h.split(": ", 1) for h in text[1:])}
        return self.status

    def _fill(self):
        size = int(self._raw_until(b"\r\n"), 16)
        while len(self.raw_buffer) < size + 2:
            self._more()
        assert self.raw_buffer[size:size + 2] == b"\r\n"
        self.buffer += self.raw_buffer[:size]
        self.raw_buffer = self.raw_buffer[size + 2:]
        self.ended = size == 0

    def next(self):
        """The next answer; None after the last."""
        if self.status is None:
            self.head()
        while b"\n" not in self.buffer:
            if self.ended:
                assert self.buffer == b""
                return None
            self._fill()
        found, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(found.decode("utf-8"))

    def rest(self):
        answers = []
        while (a := self.next()) is not None:
            answers.append(a)
        return answers


class Batch(inkhttp.Case):
    def post(self, body, accept=None, query="", **headers):
        return self.server.post(PATH + query, body, **({"Accept": accept} if accept else {}), **headers)

    def post_lines(self, lines, accept=LINES, query=""):
        body = lines if isinstance(lines, bytes) else b"".join(line(v) for v in lines)
        return self.server.request("POST", PATH + query, body, {"Content-Type": LINES, **({"Accept": accept} if accept else {})})

    def document(self, texts, **options):
        answer = self.post({"texts": texts, **SHORT, **options})
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        return answer.json

    def answers(self, answer):
        """The lines of an answer without the last, which is checked."""
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(answer.headers["Content-Type"], LINES)
        self.assertTrue(answer.text.endswith("}\n"))
        lines = [json.loads(l) for l in answer.text.split("\n")[:-1]]
        self.check_last(lines)
        return lines[:-1]

    def check_last(self, lines):
        failed = sum("error" in l for l in lines[:-1])
        self.assertEqual(lines[-1], {"done": True, "ok": len(lines) - 1 - failed, "failed": failed})
        self.assertEqual(sorted(l["index"] for l in lines[:-1]), list(range(len(lines) - 1)))

    def check_item_error(self, item, index, code, param=None):
        self.assertEqual(set(item), {"index", "error"})
        self.assertEqual(item["index"], index)
        self.assertEqual(set(item["error"]), {"message", "type", "param", "code"})
        self.assertEqual(item["error"]["code"], code, item)
        if param:
            self.assertEqual(item["error"]["param"], param, item)

    def counts(self):
        text = self.server.get("/metrics").text
        return {k: int(v) for k, v in re.findall(r'^inkstone_batch_texts_total\{result="(\w+)"\} (\d+)$', text, re.M)}


class Array(Batch):
    def test_the_document(self):
        done = self.document(["abc", "今天下午三点开会。"], n=2, details=True, top=1)
        self.assertEqual(list(done), ["id", "model", "results", "usage", "timings"])
        self.assertTrue(done["id"].startswith("rb-"))
        single = self.server.rewrite("abc", **SHORT)
        self.assertEqual(done["model"], single["model"])
        for i, r in enumerate(done["results"]):
            self.assertEqual(list(r), ["index", *single])
            self.assertEqual((r["index"], len(r["rewrites"])), (i, 2))
            self.assertEqual(len(r["rewrites"][0]["tokens"]), 3)
        for key in ("input_tokens", "output_tokens"):
            self.assertEqual(done["usage"][key], sum(r["usage"][key] for r in done["results"]))
        stages = dict(done["timings"])
        self.assertEqual(list(stages), list(single["timings"]))
        total = stages.pop("total_ms")
        self.assertLess(abs(sum(stages.values()) - total), 0.02 * total)

    def test_bad_texts_fail_in_their_place(self):
        bad = ["", "  \n", 5, None, True, {"text": "abc"}, ["abc"], 1.5, "x" * 9000]
        texts = [t for b in bad for t in (b, "abc")]
        results = self.document(texts)["results"]
        self.assertEqual([r["index"] for r in results], list(range(len(texts))))
        for i, r in enumerate(results):
            if i % 2:
                self.assertEqual(r["rewrites"][0]["finish_reason"], "length")
            elif isinstance(texts[i], str):
                self.check_item_error(r, i, "input_too_long" if len(texts[i]) > 10 else "invalid_value", "text")
            else:
                self.check_item_error(r, i, "invalid_value", "texts")
                self.assertIn("texts[%d]" % i, r["error"]["message"])
        self.assertEqual(self.document([1, 2])["usage"], {"input_tokens": 0, "output_tokens": 0})

    def test_what_is_wrong_with_the_call_itself(self):
        for texts in (None, "abc", {}, 3, True):
            self.check_error(self.post({"texts": texts}), 400, "invalid_value", "texts")
        self.check_error(self.post({}), 400, "invalid_value", "texts")
        self.check_error(self.post({"texts": []}), 400, "invalid_value", "texts")
        for body in (b"", b"[]", b'"abc"', b'{"texts":["abc"]', b'{"texts":["abc"],"texts":[]}', b'{"texts":["\\ud800"]}',
                     b'{"texts":["\xff"]}', b'{"texts":["a\\u0000"]}'):
            self.check_error(self.post(body), 400, "invalid_json")

    def test_options_are_checked_once(self):
        wrong = {"n": (0, 17, 1.5, "3", [1]), "temperature": (-0.1, 5.1, "1", True), "top_p": (0, -1, 1.1, "x"), "top_k": (-1, 1.5, "x"),
                 "min_p": (-0.1, 1.1, "x"), "repetition_penalty": (0, 11, "x"), "max_tokens": (0, -1, 100000, 2.5, "x"),
                 "seed": (-1, 2 ** 53, 1.5, "x"), "stop": (1, [1], "", [""] * 2, ["a"] * 9), "details": (1, "true"),
                 "stream": (1, "x"), "cache": ("on", 1), "timeout_ms": (0, -5, 1.5, "x"), "on_long_input": ("cut", 1), "top": (-1, 21, "x"),
                 "allow_same": (1, "x"), "linger_ms": (-1, 120001, "x"), "scripts": ("latin1", 1), "model": (1, [])}
        for name, values in wrong.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    self.check_error(self.post({"texts": ["abc", ""], name: value}), 400, "invalid_value", name)
        self.check_error(self.post({"texts": ["abc"], "model": "nobody"}), 404, "model_not_found", "model")
        self.document(["abc"], n=1.0, seed=None, unknown={"a": [1]}, text="not this", source_ids=[1])

    def test_seeds(self):
        texts = ["abc", "abc", "def", "abc"]
        options = {"n": 2, "max_tokens": 12, "scripts": "all", "temperature": 1.5, "top_p": 1}
        first = self.document(texts, seed=42, **options)["results"]
        again = self.document(texts, seed=42, **options)["results"]
        self.assertEqual(first[0]["seed"], 42)
        self.assertEqual(len({r["seed"] for r in first}), len(texts))
        for a, b, text in zip(first, again, texts):
            self.assertEqual(a["rewrites"], b["rewrites"])
            alone = self.server.rewrite(text, seed=a["seed"], **options)
            self.assertEqual(alone["rewrites"], a["rewrites"])
        self.assertNotEqual(first[0]["rewrites"], first[1]["rewrites"])

    def test_500_texts_in_order(self):
        texts = ["text number %d" % i for i in range(500)]
        results = self.document(texts, seed=1)["results"]
        self.assertEqual([r["index"] for r in results], list(range(500)))
        for i in (0, 250, 499):
            self.assertEqual(self.server.rewrite(texts[i], **SHORT, seed=results[i]["seed"])["rewrites"], results[i]["rewrites"])

    def test_too_many_texts_name_ndjson(self):
        many = {"texts": ["a"] * 10001}
        self.assertIn("application/x-ndjson", self.check_error(self.post(many), 413, "too_large"))
        message = self.check_error(self.post({"texts": [0] * 200000}), 413, "too_large")
        self.assertIn("application/x-ndjson", message)
        # 10,000 are taken; none of these needs the model.
        done = self.document([""] * 10000)
        self.assertEqual([r["index"] for r in done["results"]], list(range(10000)))

    def test_too_many_bytes_name_ndjson(self):
        limit = 16 * 1024 * 1024
        body = line({"texts": ["abc"], **SHORT})
        self.assertIn("NDJSON", self.check_error(self.post(body + b" " * (limit + 1 - len(body))), 413, "too_large"))
        self.assertEqual(self.post(body + b" " * (limit - len(body))).status, 200)

    def test_the_answer_as_lines(self):
        body = {"texts": ["abc", 3, "def"] * 5, **SHORT}
        for query in ("?ordered=1", "?ordered=true"):
            found = self.answers(self.post(body, accept=LINES, query=query))
            self.assertEqual([a["index"] for a in found], list(range(15)))
        self.assertEqual(len(self.answers(self.post(body, accept="text/html, application/x-ndjson;q=0.9"))), 15)
        for wrong in ("2", "yes", ""):
            self.check_error(self.post(body, accept=LINES, query="?ordered=" + wrong), 400, "invalid_value", "ordered")
        self.assertEqual(self.post(body, accept="*/*").headers["Content-Type"], "application/json")

    def test_cache_words(self):
        self.assertEqual([r["cache"] for r in self.document(["abc", "def"], cache="off")["results"]], ["off", "off"])
        self.assertEqual(self.document(["abc"])["results"][0]["cache"], "miss")

    def test_method_type_and_key(self):
        self.assertEqual(self.server.get(PATH).headers["Allow"], "POST")
        answer = self.server.request("POST", PATH, b"{}", {"Content-Type": "text/plain"})
        self.assertIn(LINES, self.check_error(answer, 415, "unsupported_media_type"))
        answer = self.server.request("POST", PATH, b'"abc"\n', {"Content-Type": LINES, "Accept": LINES, "Origin": "http://evil.example"})
        self.check_error(answer, 403, "forbidden_origin")


class Lines(Batch):
    def test_one_answer_a_line(self):
        found = self.answers(self.post_lines([{"text": "abc", **SHORT}, {"text": "def", **SHORT, "n": 2}, {"text": "ghi", **SHORT, "seed": 5}]))
        found.sort(key=lambda a: a["index"])
        self.assertEqual([len(a["rewrites"]) for a in found], [1, 2, 1])
        self.assertEqual(found[2]["seed"], 5)
        self.assertEqual(found[2]["rewrites"], self.server.rewrite("ghi", **SHORT, seed=5)["rewrites"])

    def test_a_bare_string_is_a_text(self):
        found = self.answers(self.post_lines([{"text": "abc", **SHORT}, "abc"], query="?ordered=1"))
        self.assertEqual(len(found[1]["rewrites"]), 3)

    def test_bad_lines_fail_in_their_place(self):
        bad = [(b"", "invalid_json"), (b"  ", "invalid_json"), (b"\r", "invalid_json"), (b"{", "invalid_json"), (b"abc", "invalid_json"),
               (b"5", "invalid_value"), (b"null", "invalid_value"), (b'["abc"]', "invalid_value"), (b'""', "invalid_value"), (b"{}", "invalid_value"),
               (b'{"text":5}', "invalid_value"), (b'{"text":"a","n":0}', "invalid_value"), (b'{"text":"a","max_tokens":99999}', "invalid_value"),
               (b'{"text":"a","text":"b"}', "invalid_json"), (b'"\xff\xfe"', "invalid_json"), (b'"\\ud800"', "invalid_json"),
               (b'"a\\u0000b"', "invalid_json"), (b'"a\x00b"', "invalid_json"), (b'{"text":"a"} x', "invalid_json"),
               (b'{"text":"a","model":"nobody"}', "model_not_found"), (b'{"text":"%s"}' % (b"a" * 9000), "input_too_long"),
               (b'{"text":"%s"}' % (b"a" * 1024 * 1024), "input_too_long"), (b"[" * 3000, "invalid_json")]
        good = line({"text": "abc", **SHORT})
        body = b"".join(b + b"\n" + good for b, _ in bad)
        for accept in (LINES, None):
            answer = self.post_lines(body, accept, "?ordered=1")
            found = self.answers(answer) if accept else answer.json["results"]
            self.assertEqual([a["index"] for a in found], list(range(2 * len(bad))))
            for i, (text, code) in enumerate(bad):
                with self.subTest(line=text[:30], accept=accept):
                    self.check_item_error(found[2 * i], 2 * i, code)
                    self.assertEqual(found[2 * i + 1]["rewrites"][0]["finish_reason"], "length")

    def test_ends_of_lines(self):
        one = line({"text": "abc", **SHORT})[:-1]
        for body, n in ((one, 1), (one + b"\n", 1), (one + b"\r\n" + one + b"\r\n", 2), (one + b"\n" + one, 2), (b"", 0)):
            with self.subTest(body=body[-20:]):
                found = self.answers(self.post_lines(body))
                self.assertEqual([("error" in a) for a in found], [False] * n)
        # An empty line is a line, as for the command: indexes stay those of the input.
        found = self.answers(self.post_lines(one + b"\n\n" + one + b"\n\n", query="?ordered=1"))
        self.assertEqual([("error" in a) for a in found], [False, True, False, True])

    def test_a_document_of_lines(self):
        answer = self.post_lines([{"text": "abc", **SHORT}, "", {"text": "def", **SHORT}], accept=None)
        self.assertEqual(answer.status, 200)
        self.assertEqual(list(answer.json), ["id", "model", "results", "usage", "timings"])
        self.assertEqual([("error" in r) for r in answer.json["results"]], [False, True, False])
        self.assertEqual(self.post_lines(b"", accept=None).json["results"], [])
        self.check_error(self.post_lines(b"\n" * 10001, accept=None), 413, "too_large")
        self.assertEqual(len(self.post_lines(b"\n" * 10000, accept=None).json["results"]), 10000)
        self.check_error(self.post_lines(b" " * (16 * 1024 * 1024 + 1), accept=None), 413, "too_large")

    def test_more_than_an_array_may_have(self):
        body = b'"\n' * 30000
        self.assertEqual(len(self.answers(self.post_lines(body))), 30000)

    def test_500_lines_in_order(self):
        lines = [{"text": "text number %d" % i, **SHORT, "max_tokens": 1 + i % 7, "seed": i} for i in range(500)]
        found = self.answers(self.post_lines(lines, query="?ordered=1"))
        self.assertEqual([a["index"] for a in found], list(range(500)))
        self.assertEqual([a["seed"] for a in found], list(range(500)))

    def test_answers_come_while_the_upload_goes_on(self):
        for query in ("", "?ordered=1"):
            feed = Feed(self.server, query)
            for i in range(5):
                feed.send(line({"text": "abc", **SHORT}))
                self.assertEqual(feed.next()["index"], i)
            self.assertEqual(feed.headers["content-type"], LINES)
            self.assertEqual(feed.headers["transfer-encoding"], "chunked")
            self.assertEqual(feed.headers["connection"], "close")
            self.assertEqual(feed.headers["x-content-type-options"], "nosniff")
            feed.send(b'{"te')              # a line may come in pieces
            time.sleep(0.05)
            feed.send(b'xt":5}')
            feed.finish()                   # and without its end
            self.assertEqual(feed.next()["error"]["param"], "text")
            self.assertEqual(feed.next(), {"done": True, "ok": 5, "failed": 1})
            self.assertIsNone(feed.next())
            self.assertEqual(feed.sock.recv(1), b"")
            feed.close()

    def test_with_a_content_length(self):
        body = b"".join(line({"text": "abc", **SHORT}) for _ in range(20))
        feed = Feed(self.server, length=len(body))
        feed.send(body[:30])
        feed.send(body[30:])
        self.check_last(feed.rest())
        feed.close()

    def test_expect_continue(self):
        body = line({"text": "abc", **SHORT})
        feed = Feed(self.server, length=len(body), extra="Expect: 100-continue\r\n")
        self.assertEqual(feed._raw_until(b"\r\n\r\n"), b"HTTP/1.1 100 Continue")
        feed.send(body)
        self.assertEqual(feed.next()["index"], 0)
        feed.close()

    def test_http_1_0(self):
        body = line({"text": "abc", **SHORT})
        feed = Feed(self.server, length=len(body), version="1.0")
        feed.send(body)
        self.assertEqual(feed.head(), 200)
        self.assertNotIn("transfer-encoding", feed.headers)
        self.assertTrue(inkhttp.read_all(feed.sock).endswith(b'{"done":true,"ok":1,"failed":0}\n'))
        feed.close()

    def test_the_next_request_needs_a_new_connection(self):
        connection = self.server.connect()
        connection.request("POST", PATH, line({"text": "abc", **SHORT}), {"Content-Type": LINES, "Accept": LINES})
        answer = connection.getresponse()
        answer.read()
        self.assertTrue(answer.will_close)
        connection.request("GET", "/health")        # http.client opens another by itself
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_it_is_logged_and_counted(self):
        before = self.counts()
        self.answers(self.post_lines([{"text": "abc", **SHORT}, ""]))
        after = self.counts()
        self.assertEqual([after[k] - before[k] for k in ("ok", "failed", "cancelled")], [1, 1, 0])
        wait_until(lambda: "POST /v1/rewrite/batch 200" in self.server.log_text(), "the log line", 5)
        self.assertEqual(self.server.metric("inkstone_http_clients_gone_total"), 0)


class Bounds(Batch):
    """Memory stays where it is, whatever clients send or do not read."""

    def setUp(self):
        self.answers(self.post_lines([{"text": "abc", **SHORT}] * 200))      # what grows once has grown

    def quiet(self):
        wait_until(lambda: self.server.metric("inkstone_batches_running") == 0, "the batches' end")
        self.assertEqual(self.server.metric("inkstone_batch_file_bytes"), 0)
        self.assertEqual(self.server.metric("inkstone_batch_body_bytes"), 0)

    def test_200_megabytes_of_lines(self):
        n, pad = 2000, "x" * 100000
        one = line({"text": "abc", **SHORT, "pad": pad})
        before = resident(self.server)
        feed = Feed(self.server)

        def send():
            for _ in range(n):
                feed.send(one)
            feed.finish()

        sender = threading.Thread(target=send)
        sender.start()
        answers = feed.rest()
        sender.join()
        feed.close()
        self.check_last(answers)
        self.assertEqual(answers[-1]["ok"], n)
        grown = resident(self.server, peak=True) - before
        print("200 MB sent, memory grew by %.1f MB at most" % (grown / 1e6))
        self.assertLess(grown, (40 if inkhttp.SLOW == 1 else 400) * 1000000)  # a sanitizer keeps 256 MB of freed memory aside
        self.quiet()

    def test_the_window_closes_while_there_is_enough_to_do(self):
        feed = Feed(self.server, length=10 ** 12)
        feed.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        one = line({"text": "abc", **LONG, "pad": "x" * 10000})
        feed.sock.setblocking(False)
        sent, quiet_since = 0, time.monotonic()
        while time.monotonic() - quiet_since < 1 and sent < 10 ** 8:
            try:
                sent += feed.sock.send(one)
                quiet_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        print("%.1f MB accepted before the window closed" % (sent / 1e6))
        self.assertLess(sent, 16 * 10 ** 6)
        self.assertEqual(self.server.get("/health").status, 200)
        feed.close()
        wait_until(lambda: self.server.metric("inkstone_sequences_running") == 0, "the engine to stop")
        self.quiet()

    def test_a_client_that_reads_only_at_the_end(self):
        n = 150000
        before = resident(self.server)
        feed = Feed(self.server)
        bad = b'"' + b"x" * 300 + b"\n"
        for _ in range(n // 200):
            feed.send(bad * 200)
        in_file = self.server.metric("inkstone_batch_file_bytes")
        feed.finish()
        count = 0
        feed.head()
        while (a := feed.next()) is not None:
            last, count = a, count + 1
        self.assertEqual((count, last), (n + 1, {"done": True, "ok": 0, "failed": n}))
        grown = resident(self.server, peak=True) - before
        print("%.1f MB waited in a file, memory grew by %.1f MB at most" % (in_file / 1e6, grown / 1e6))
        self.assertGreater(in_file, 1000000)
        self.assertLess(grown, (40 if inkhttp.SLOW == 1 else 400) * 1000000)  # a sanitizer keeps 256 MB of freed memory aside
        feed.close()
        self.quiet()

    def test_an_array_whose_client_does_not_read(self):
        before = resident(self.server)
        s = self.server.raw()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        n = 5000
        body = line({"texts": ["abc"] * n, **SHORT, "details": True, "top": 20})
        s.sendall(("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                   % (PATH, len(body))).encode("ascii") + body)
        ok = self.counts()["ok"]
        # It goes on until what waits is enough, and then stands still.
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 0.5 * inkhttp.SLOW:
            now = self.server.metric("inkstone_decoder_steps_total")
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.02)
        self.assertLess(self.counts()["ok"] - ok, n)
        self.assertLess(resident(self.server, peak=True) - before, (60 if inkhttp.SLOW == 1 else 300) * 1000000)
        s.close()
        self.quiet()


class Others(Batch):
    """A batch beside single requests and other batches; clients that leave."""

    def test_single_requests_are_answered_beside_it(self):
        feed = Feed(self.server)
        for _ in range(400):
            feed.send(line({"text": "abc", **SHORT, "max_tokens": 40}))
        for _ in range(5):
            self.assertEqual(self.server.post("/v1/rewrite", {"text": "abc", **SHORT}).status, 200)
        self.assertGreater(self.server.metric("inkstone_batches_running"), 0)
        feed.finish()
        self.check_last(feed.rest())
        feed.close()

    def test_many_batches_at_once(self):
        results = {}

        def one(i):
            if i % 3 == 0:
                results[i] = self.document(["text %d" % i] * 20, seed=i)["results"]
            else:
                lines = [{"text": "text %d" % i, **SHORT, "seed": k} for k in range(20)]
                results[i] = self.answers(self.post_lines(lines, query="?ordered=%d" % (i % 2)))

        threads = [threading.Thread(target=one, args=(i,)) for i in range(30)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(results), 30)
        self.assertTrue(all(len(r) == 20 and not any("error" in a for a in r) for r in results.values()))

    def lose(self, begin):
        """A client leaves in the middle: all that ran for it is cancelled."""
        before, gone = self.counts(), self.server.metric("inkstone_http_clients_gone_total")
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        sock = begin()
        wait_until(lambda: self.server.metric("inkstone_sequences_running") > 0, "the batch to run")
        sock.close()
        wait_until(lambda: self.server.metric("inkstone_http_clients_gone_total") == gone + 1, "the loss to be noticed", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_batches_running") == 0, "the batch's end", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_sequences_running") + self.server.metric("inkstone_queue_length") == 0,
                   "the engine to stop", 5 * inkhttp.SLOW)
        now = self.counts()["cancelled"] - before["cancelled"]
        self.assertGreater(now, 1)
        self.assertEqual(self.server.metric("inkstone_jobs_cancelled_total") - cancelled, now)
        steps = self.server.metric("inkstone_decoder_steps_total")
        time.sleep(0.2)
        self.assertEqual(self.server.metric("inkstone_decoder_steps_total"), steps)

    def test_a_client_of_an_array_leaves(self):
        def begin():
            s = self.server.raw()
            s.sendall(inkhttp.raw_post({"texts": ["abc"] * 500, **LONG}, PATH))
            return s
        self.lose(begin)

    def test_a_client_of_lines_leaves(self):
        def begin():
            feed = Feed(self.server)
            for _ in range(500):
                feed.send(line({"text": "abc", **LONG, "pad": "x" * 3000}))     # more than is taken in
            return feed
        self.lose(begin)

    def test_a_client_leaves_after_its_last_line(self):
        def begin():
            feed = Feed(self.server)
            for _ in range(20):
                feed.send(line({"text": "abc", **LONG}))
            feed.finish()
            return feed
        self.lose(begin)

    def test_a_broken_chunk_ends_it(self):
        feed = Feed(self.server)
        feed.send(line({"text": "abc", **LONG}) * 5)
        wait_until(lambda: self.server.metric("inkstone_sequences_running") > 0, "the batch to run")
        feed.sock.sendall(b"this is no chunk\r\n")
        wait_until(lambda: self.server.metric("inkstone_batches_running") == 0, "the batch's end", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_sequences_running") == 0, "the engine to stop", 5 * inkhttp.SLOW)
        feed.close()
        self.assertEqual(self.server.get("/health").status, 200)

    def test_a_deadline_is_each_texts_own(self):
        # Many more than can be done in the time of one: each has its time from when it begins.
        done = self.document(["abc"] * 300, max_tokens=60, timeout_ms=20000 * inkhttp.SLOW)
        self.assertFalse(any("error" in r for r in done["results"]))
        late = self.document(["abc"] * 3, **{**LONG, "max_tokens": 512, "n": 16, "timeout_ms": 1})
        self.assertEqual([r["error"]["code"] for r in late["results"]], ["deadline"] * 3)


class SmallQueue(Batch):
    arguments = ("--queue", "2", "--parallel", "2")

    def test_a_full_queue_is_no_error_of_a_line(self):
        found = self.answers(self.post_lines([{"text": "abc", **SHORT, "n": 1 + i % 3} for i in range(100)]))
        self.assertFalse(any("error" in a for a in found))

    def test_a_single_request_gets_its_turn(self):
        feed = Feed(self.server)
        for _ in range(200):
            feed.send(line({"text": "abc", **SHORT, "max_tokens": 20}))
        self.assertEqual(feed.next()["index"], 0)
        answers = [self.server.post("/v1/rewrite", {"text": "abc", **SHORT}).status for _ in range(10)]
        self.assertEqual(answers, [200] * 10)
        feed.finish()
        self.check_last([{"index": 0}] + feed.rest())
        feed.close()


class Drain(unittest.TestCase):
    def server(self, *args):
        return inkhttp.Server(*args, model_path=inkhttp.made_up_model())

    def check_split(self, results):
        """Some were finished, the rest were refused because of the drain, and nothing else."""
        codes = [r["error"]["code"] if "error" in r else "ok" for r in results]
        self.assertEqual(set(codes), {"ok", "draining"}, codes[:20])

    def begin(self, server):
        wait_until(lambda: server.metric("inkstone_sequences_running") > 0, "the batch to run")
        server.process.send_signal(signal.SIGTERM)

    def test_an_array(self):
        with self.server() as server:
            s = server.raw()
            s.sendall(inkhttp.raw_post({"texts": ["abc"] * 2000, **SHORT, "max_tokens": 30, "n": 4}, PATH, "Connection: close\r\n"))
            self.begin(server)
            head, _, body = inkhttp.read_all(s).partition(b"\r\n\r\n")
            text, rest = b"", body
            while rest:
                size, _, rest = rest.partition(b"\r\n")
                text += rest[:int(size, 16)]
                rest = rest[int(size, 16) + 2:]
            results = json.loads(text.decode("utf-8"))["results"]
            self.assertEqual([r["index"] for r in results], list(range(2000)))
            self.check_split(results)
            self.assertEqual(server.process.wait(inkhttp.PATIENCE), 0)
            s.close()

    def test_lines(self):
        with self.server() as server:
            feed = Feed(server)
            for _ in range(500):
                feed.send(line({"text": "abc", **SHORT, "max_tokens": 30, "n": 4}))
            feed.finish()
            self.begin(server)
            answers = feed.rest()
            self.check_split(answers[:-1])
            self.assertEqual(answers[-1]["ok"] + answers[-1]["failed"], 500)
            self.assertEqual(server.process.wait(inkhttp.PATIENCE), 0)
            feed.close()

    def test_lines_without_an_end(self):
        with self.server() as server:
            feed = Feed(server)
            for _ in range(20):
                feed.send(line({"text": "abc", **SHORT, "max_tokens": 30, "n": 4}))
            self.begin(server)
            answers = feed.rest()
            self.assertEqual(sorted(a["index"] for a in answers[:-1]), list(range(20)))
            self.assertEqual(answers[-1]["error"]["code"], "draining")      # not "done": its input was not
            self.assertEqual(server.process.wait(inkhttp.PATIENCE), 0)
            feed.close()

    def test_what_outlasts_the_drain_is_cut_off(self):
        with self.server("--drain-timeout", "0.3") as server:
            feed = Feed(server)
            for _ in range(20):
                feed.send(line({"text": "abc", **LONG, "n": 16, "max_tokens": 512}))
            begun = time.monotonic()
            self.begin(server)
            answers = feed.rest()
            self.assertIn("draining", [a["error"]["code"] for a in answers if "error" in a])
            server.process.wait(inkhttp.PATIENCE)
            self.assertLess(time.monotonic() - begun, 10 * inkhttp.SLOW)
            feed.close()

    def test_a_client_that_does_not_read_does_not_hold_the_server(self):
        with self.server("--drain-timeout", "0.3") as server:
            feed = Feed(server)
            feed.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(100):
                feed.send(b'"\n' * 1000)
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(inkhttp.PATIENCE)
            self.assertLess(time.monotonic() - begun, 30 * inkhttp.SLOW)
            feed.close()


if __name__ == "__main__":
    inkhttp.main()
