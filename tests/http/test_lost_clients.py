#!/usr/bin/env python3
"""A client that leaves takes its work along: the engine stops computing for it, at every stage, plain and streamed."""

import concurrent.futures
import random
import socket
import struct
import time

import inkhttp
from inkhttp import raw_post, wait_until

# With random weights a text hardly ever ends by itself: seconds of work.
LONG = {"text": "abc", "n": 16, "max_tokens": 512, "scripts": "all", "temperature": 2, "top_p": 1, "timeout_ms": 600000}


class LostClients(inkhttp.Case):
    slow_model = True

    def running(self):
        return self.server.metric("inkstone_jobs_running") + self.server.metric("inkstone_queue_length")

    def lose(self, body, after):
        """Starts a request, leaves when `after(socket)` returns; the engine must stop and the loss be counted."""
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        gone = self.server.metric("inkstone_http_clients_gone_total")
        s = self.server.raw()
        s.sendall(raw_post(body))
        after(s)
        s.close()
        wait_until(lambda: self.server.metric("inkstone_http_clients_gone_total") == gone + 1, "the loss to be noticed", 5 * inkhttp.SLOW)
        wait_until(lambda: self.running() == 0, "the engine to stop", 5 * inkhttp.SLOW)
        # The two gauges are read one after the other, and a job may move between them.
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the count", 5 * inkhttp.SLOW)
        before = self.server.metric("inkstone_decoder_steps_total")
        time.sleep(0.2)
        self.assertEqual(self.server.metric("inkstone_decoder_steps_total"), before)

    def until_running(self, _):
        wait_until(lambda: self.running() > 0, "the job to run")

    @staticmethod
    def until_text(s):
        got = b""
        while b'"delta"' not in got:
            got += s.recv(4096)

    def test_plain(self):
        self.lose(LONG, self.until_running)

    def test_score(self):
        # A score alone takes a moment only; behind these it waits in the queue.
        socks = [self.server.raw() for _ in range(8)]
        for s in socks:
            s.sendall(raw_post(LONG))
        self.until_running(None)
        ids = {"source_ids": [5] * 500, "target_ids": [7] * 500}
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        score = self.server.raw()
        score.sendall(raw_post(ids, "/v1/score"))
        wait_until(lambda: self.server.metric("inkstone_http_running") == 9, "the score to be taken")
        score.close()
        wait_until(lambda: self.server.metric("inkstone_http_running") == 8, "the loss to be noticed", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the count", 5 * inkhttp.SLOW)
        for s in socks:
            s.close()
        wait_until(lambda: self.running() == 0 and self.server.metric("inkstone_http_running") == 0, "all to end", 10 * inkhttp.SLOW)

    def test_stream_before_reading(self):
        self.lose({**LONG, "stream": True}, self.until_running)

    def test_stream_in_the_middle(self):
        self.lose({**LONG, "stream": True}, self.until_text)

    def test_reset_instead_of_close(self):
        def reset(s):
            self.until_running(s)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.lose(LONG, reset)
        self.lose({**LONG, "stream": True}, reset)

    def test_while_waiting_in_the_queue(self):
        # The first ones fill the engine; the last one leaves before its turn.
        socks = [self.server.raw() for _ in range(12)]
        for s in socks:
            s.sendall(raw_post(LONG))
        wait_until(lambda: self.server.metric("inkstone_http_running") == 12, "all to be taken")
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        socks.pop().close()
        wait_until(lambda: self.server.metric("inkstone_http_running") == 11, "the loss to be noticed", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the job's end")
        for s in socks:
            s.close()
        wait_until(lambda: self.running() == 0, "the engine to stop", 10 * inkhttp.SLOW)

    def test_in_the_middle_of_headers_or_body(self):
        whole = raw_post(LONG)
        for cut in (1, 20, 60, len(whole) - 30, len(whole) - 1):
            with self.server.raw() as s:
                s.sendall(whole[:cut])
        wait_until(lambda: self.server.metric("inkstone_http_connections") <= 1, "the connections' end")
        self.assertEqual(self.running(), 0)

    def test_at_any_moment(self):
        """Two hundred that leave after a random number of bytes sent and a random number of answers read."""
        dice = random.Random(7)
        bodies = [({**LONG, "n": 2, "max_tokens": 40}, "/v1/rewrite"), ({**LONG, "n": 2, "max_tokens": 40, "stream": True}, "/v1/rewrite"),
                  ({"source": "abc", "target": "abc" * 30}, "/v1/score"), ({"text": "abc"}, "/v1/tokenize")]

        def one(seed):
            mine = random.Random(seed)
            request = raw_post(*bodies[seed % 4])
            with self.server.raw() as s:
                s.settimeout(0.3)
                s.sendall(request[:mine.randrange(1, len(request))] if mine.random() < 0.3 else request)
                try:
                    for _ in range(mine.randrange(4)):
                        s.recv(mine.randrange(1, 400))
                except TimeoutError:
                    pass
                if mine.random() < 0.3:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            list(pool.map(one, dice.sample(range(100000), 200)))
        wait_until(lambda: self.running() == 0 and self.server.metric("inkstone_http_running") == 0, "all to end", 20 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_http_connections") <= 1, "the connections' end")
        self.assertEqual(self.server.metric("inkstone_http_streams"), 0)
        self.assertEqual(self.server.post("/v1/tokenize", {"text": "abc"}).status, 200)

    def test_others_go_on(self):
        socks = [self.server.raw() for _ in range(6)]
        for i, s in enumerate(socks):
            s.sendall(raw_post({**LONG, "max_tokens": 200, "n": 2, "stream": i % 2 == 0}))
        time.sleep(0.1)
        for s in socks[:3]:
            s.close()
        for s in socks[3:]:
            s.settimeout(inkhttp.PATIENCE)
            self.assertIn(s.recv(12).split()[1], (b"200", b"422"))
            s.close()
        wait_until(lambda: self.running() == 0, "the engine to stop", 10 * inkhttp.SLOW)

    def test_it_is_logged_as_499(self):
        self.lose(LONG, self.until_running)
        wait_until(lambda: "POST /v1/rewrite 499" in self.server.log_text(), "the log line", 5)
        self.assertNotIn("abc", self.server.log_text())     # texts stay out of the log


if __name__ == "__main__":
    inkhttp.main()
