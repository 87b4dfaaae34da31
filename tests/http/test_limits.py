#!/usr/bin/env python3
"""Bodies, headers and connections that are too big, too slow or too many."""

import concurrent.futures
import json
import time

import inkhttp
from inkhttp import TEXT, read_all


class Limits(inkhttp.Case):
    def test_a_body_over_the_limit(self):
        for size in (1024 * 1024 + 1, 3 * 1024 * 1024, 20 * 1024 * 1024):
            self.check_error(self.server.post("/v1/rewrite", b'{"text":"' + b"x" * (size - 11) + b'"}'), 413, "too_large")

    def test_a_chunked_body_over_the_limit(self):
        with self.server.raw() as s:
            s.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            for _ in range(40):
                s.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            s.sendall(b"0\r\n\r\n")
            answer = read_all(s)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer[:100])
        self.assertIn(b'"too_large"', answer)

    def test_a_chunked_body_within_it(self):
        with self.server.raw() as s:
            body = json.dumps({"text": TEXT, "n": 1}).encode("utf-8")
            s.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            for byte in body:
                s.sendall(b"1\r\n%c\r\n" % byte)
            s.sendall(b"0\r\n\r\n")
            self.assertTrue(read_all(s).startswith(b"HTTP/1.1 200 "))

    def test_a_huge_announced_body_is_refused_before_it_comes(self):
        for extra in (b"", b"Expect: 100-continue\r\n"):
            with self.server.raw() as s:
                s.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + extra +
                          b"Content-Length: 10000000000\r\n\r\n")
                s.settimeout(5)
                self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 413 "))

    def test_a_body_of_the_largest_size_is_read(self):
        text = "长 a" * 180000      # 900 kB
        self.check_error(self.server.post("/v1/rewrite", {"text": text}), 400, "input_too_long", "text")

    def test_headers_over_the_limit(self):
        for head in (b"X-Big: " + b"y" * 100000, b"".join(b"X-%d: y\r\n" % i for i in range(20000))):
            with self.server.raw() as s:
                try:
                    s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    pass
                answer = read_all(s)
                self.assertTrue(answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 413 ", b"HTTP/1.1 400 ", b"HTTP/1.1 414 ")), answer[:60])

    def test_bytes_that_are_no_http(self):
        for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20, b"hello\r\n\r\n", b"\x00" * 4096, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
                     b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.server.raw() as s:
                s.sendall(junk)
                s.settimeout(15)
                s.shutdown(1)
                answer = read_all(s)
                self.assertNotIn(b" 200 ", answer[:20])
        self.assertEqual(self.server.get("/health").status, 200)

    def test_slow_senders_are_cut_off_and_told(self):
        """Headers that trickle for more than 10 s, and a body for more than 30 s."""
        def trickle(start, drop):
            begun = time.monotonic()
            with self.server.raw() as s:
                s.sendall(start)
                s.settimeout(0.5)
                while time.monotonic() - begun < 60:
                    try:
                        s.sendall(drop)
                        answer = s.recv(1000)
                        return answer, time.monotonic() - begun
                    except TimeoutError:
                        continue
                    except (BrokenPipeError, ConnectionResetError):
                        return b"", time.monotonic() - begun
            return None, 60

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            head = pool.submit(trickle, b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n")
            body = pool.submit(trickle, b"POST /v1/rewrite HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                        b"Content-Length: 100000\r\n\r\n", b"x")
            quick = time.monotonic()
            self.assertEqual(self.server.get("/health").status, 200)
            self.assertLess(time.monotonic() - quick, 1)
            answer, took = head.result()
            self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
            self.assertIn(b'"request_timeout"', answer)
            self.assertTrue(8 < took < 15, took)
            answer, took = body.result()
            self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
            self.assertTrue(25 < took < 40, took)

    def test_many_connections_at_once(self):
        socks = [self.server.raw() for _ in range(300)]
        try:
            self.assertEqual(self.server.get("/health").status, 200)
            for s in socks[::10]:
                s.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            for s in socks[::10]:
                self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 200 "))
        finally:
            for s in socks:
                s.close()
        inkhttp.wait_until(lambda: self.server.metric("inkstone_http_connections") <= 2, "the connections' end")

    def test_many_slow_senders_hold_up_nobody(self):
        """Half of them in their headers, half in their body, a byte a moment."""
        head = b"POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n"
        request = head + b'{"text":"abc"}'
        slow = [self.server.raw() for _ in range(60)]
        try:
            for i, s in enumerate(slow):
                s.sendall(request[:20 if i % 2 else len(head) + 3])
            for at in range(5):
                for i, s in enumerate(slow):
                    start = (20 if i % 2 else len(head) + 3) + at
                    s.sendall(request[start:start + 1])
                begun = time.monotonic()
                self.assertEqual(self.server.get("/health").status, 200)
                self.assertEqual(self.server.post("/v1/tokenize", {"text": "abc"}).status, 200)
                self.assertLess(time.monotonic() - begun, 2 * inkhttp.SLOW)
            for i, s in enumerate(slow):
                s.sendall(request[(20 if i % 2 else len(head) + 3) + 5:])
            for s in slow:
                self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 200 "))
        finally:
            for s in slow:
                s.close()

    def test_connections_beyond_the_limit_wait_or_are_closed(self):
        socks = []
        try:
            for _ in range(1100):
                socks.append(self.server.raw())
            time.sleep(0.5)
        finally:
            for s in socks:
                s.close()
        inkhttp.wait_until(lambda: self.health_or_none() == 200, "the server to answer again")
        inkhttp.wait_until(lambda: self.server.metric("inkstone_http_connections") <= 2, "the connections' end")

    def health_or_none(self):
        try:
            return self.server.get("/health").status
        except OSError:
            return None

    def test_pipelined_requests_are_answered_in_order(self):
        one = inkhttp.raw_post({"text": "abc"}, "/v1/tokenize")
        last = inkhttp.raw_post({"text": "abcd", "n": 1, "max_tokens": 4}, "/v1/rewrite", "Connection: close\r\n")
        with self.server.raw() as s:
            s.sendall(one + one + last)
            answer = read_all(s)
        self.assertEqual(answer.count(b"HTTP/1.1 200 "), 3, answer)
        self.assertLess(answer.index(b'"pieces"'), answer.index(b'"rewrites"'))


class Overload(inkhttp.Case):
    slow_model = True
    arguments = ("--queue", "4", "--parallel", "16")

    def test_beyond_the_queue_429_at_once(self):
        body = {"text": "abc", "n": 16, "max_tokens": 256, "scripts": "all", "temperature": 2, "top_p": 1, "timeout_ms": 30000 * inkhttp.SLOW}
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            jobs = [pool.submit(self.server.post, "/v1/rewrite", body) for _ in range(40)]
            answers = [j.result() for j in jobs]
        codes = [a.status for a in answers]
        self.assertIn(429, codes)
        # The queue holds 4; whether a fifth is running by then is a matter of time.
        self.assertGreaterEqual(codes.count(200) + codes.count(422), 4, codes)
        self.assertLessEqual(set(codes), {200, 422, 429})
        for a in answers:
            if a.status == 429:
                self.check_error(a, 429, "overloaded")
                self.assertRegex(a.headers["Retry-After"], r"^[1-9]\d*$")


if __name__ == "__main__":
    inkhttp.main()
