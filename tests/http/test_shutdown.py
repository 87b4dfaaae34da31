#!/usr/bin/env python3
"""Starting beside another server, and ending: drain on SIGTERM, a second signal, a restart on the same port."""

import json
import signal
import subprocess
import threading
import time
import unittest

import inkhttp
from inkhttp import raw_post, read_all, wait_until

LONG = {"text": "abc", "n": 4, "max_tokens": 256, "scripts": "all", "temperature": 2, "top_p": 1, "timeout_ms": 600000}


class Shutdown(unittest.TestCase):
    def server(self, *args):
        return inkhttp.Server(*args, model_path=inkhttp.made_up_model())

    def connect(self, server):
        sock = server.raw()
        self.addCleanup(sock.close)
        return sock

    def test_sigterm_lets_what_runs_finish_and_refuses_the_rest(self):
        with self.server() as server:
            plain = [self.connect(server) for _ in range(3)]
            streams = [self.connect(server) for _ in range(2)]
            for s in plain:
                s.sendall(raw_post(LONG, extra="Connection: close\r\n"))
            for s in streams:
                s.sendall(raw_post({**LONG, "stream": True}, extra="Connection: close\r\n"))
            wait_until(lambda: server.metric("inkstone_http_running") == 5, "all to run")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.get("/ready").status == 503, "the drain")

            refused = server.post("/v1/rewrite", {"text": "abc"})
            self.assertEqual(refused.status, 503)
            self.assertEqual(refused.json["error"]["code"], "draining")
            self.assertRegex(refused.headers["Retry-After"], r"^[1-9]\d*$")
            self.assertEqual(server.get("/health").status, 200)

            for s in plain:
                status, _, body = read_all(s).partition(b"\r\n\r\n")
                self.assertIn(status.split()[1], (b"200", b"422"))
                json.loads(body)
            for s in streams:
                self.assertIn(b'"type":"done"', read_all(s))
            self.assertEqual(server.process.wait(inkhttp.PATIENCE), 0)

    def test_what_outlasts_the_drain_is_cut_off(self):
        with self.server("--drain-timeout", "0.3") as server:
            s = self.connect(server)
            s.sendall(raw_post({**LONG, "n": 16, "max_tokens": 512, "stream": True}))
            wait_until(lambda: server.metric("inkstone_http_running") == 1, "it to run")
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            answer = read_all(s)
            self.assertTrue(b'"draining"' in answer or b'"type":"done"' in answer, answer[-300:])
            server.process.wait(inkhttp.PATIENCE)
            self.assertLess(time.monotonic() - begun, 5 * inkhttp.SLOW)

    def test_a_second_signal_stops_at_once(self):
        for first, second, status in ((signal.SIGTERM, signal.SIGTERM, 143), (signal.SIGINT, signal.SIGINT, 130),
                                      (signal.SIGTERM, signal.SIGINT, 130)):
            with self.subTest(first=first.name, second=second.name), self.server("--drain-timeout", "3000") as server:
                s = self.connect(server)
                s.sendall(raw_post({**LONG, "n": 16, "max_tokens": 512, "stream": True}))
                wait_until(lambda: server.metric("inkstone_http_running") == 1, "it to run")
                server.process.send_signal(first)
                wait_until(lambda: server.get("/ready").status == 503, "the drain")
                self.assertIsNone(server.process.poll())
                begun = time.monotonic()
                server.process.send_signal(second)
                self.assertEqual(server.process.wait(inkhttp.PATIENCE), status)
                self.assertLess(time.monotonic() - begun, 2 * inkhttp.SLOW)
                self.assertNotIn(b'"type":"done"', read_all(s))
                server.process.returncode = 0       # it was looked at

    def test_an_idle_server_ends_at_once(self):
        for sig in (signal.SIGTERM, signal.SIGINT):
            with self.server() as server:
                self.connect(server)      # an open connection does not hold it
                begun = time.monotonic()
                server.process.send_signal(sig)
                server.process.wait(inkhttp.PATIENCE)
                self.assertLess(time.monotonic() - begun, 2 * inkhttp.SLOW)
                server.process.returncode = 0     # Ctrl-C has a status of its own; cli/test_serve has it

    def test_the_port_is_free_again_at_once(self):
        with self.server() as server:
            port = str(server.port)
            with server.raw() as s:
                s.sendall(raw_post({"text": "abc", "n": 1, "max_tokens": 4}))
                s.recv(100)
        with self.server("--port", port) as again:
            self.assertEqual(again.port, int(port))
            self.assertEqual(again.get("/health").status, 200)

    def test_a_port_in_use_is_one_clear_line(self):
        with self.server() as server:
            done = subprocess.run([inkhttp.PROGRAM, "serve", "--port", str(server.port), "-m", inkhttp.made_up_model()],
                                  env=inkhttp.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=inkhttp.PATIENCE)
            self.assertNotEqual(done.returncode, 0)
            line = done.stderr.decode("utf-8")
            self.assertEqual(line.count("\n"), 1, line)
            self.assertIn("in use", line)
            self.assertIn("pid %d" % server.process.pid, line)


if __name__ == "__main__":
    inkhttp.main()
