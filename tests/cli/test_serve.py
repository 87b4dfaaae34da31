#!/usr/bin/env python3
"""`inkstone serve`: starting, what it prints, stopping. The routes have their own tests in ../http."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import cli


class Serve(cli.Case):
    def test_it_prints_what_it_serves_and_the_address_last(self):
        with cli.Server(self, "-m", cli.model(), "--threads", "1") as server:
            text = "\n".join(server.banner)
            for pattern in (r"^inkstone \d+\.\d+\.\d+$", r"^  model    %s" % re.escape(os.path.basename(cli.model())[:-5]),
                            r"^  memory   weights ", r"^  compute  ", r"^  cpu      .*; VNNI: (yes|no); 1 thread$",
                            r"^  cache    %s" % re.escape(self.path(".cache/inkstone"))):
                self.assertRegex(text, re.compile(pattern, re.M))
            self.assertEqual(server.banner[-1], "serving on " + server.url)
            self.assertEqual(server.get("/ready")[0], 200)

    def test_port_0_is_a_free_one(self):
        with cli.Server(self, "-m", cli.model()) as one, cli.Server(self, "-m", cli.model()) as two:
            self.assertNotEqual(one.url, two.url)
            for server in (one, two):
                self.assertEqual(server.get("/health")[0], 200)

    def test_without_a_model_the_first_found_is_served(self):
        os.makedirs(self.path("models"))
        os.symlink(cli.model(), self.path("models/ours.gguf"))
        self.env["INKSTONE_MODELS"] = self.path("models")
        with cli.Server(self) as server:
            models = json.loads(server.get("/v1/models")[1])["data"]
            self.assertEqual([m["id"] for m in models], ["ours"])
            self.assertEqual(server.post("/v1/rewrite", {"text": cli.TEXT, "n": 1, "seed": 1})[0], 200)

    def test_several_models(self):
        for name in ("a", "b"):
            os.symlink(cli.model(), self.path(name + ".gguf"))
        with cli.Server(self, "-m", self.path("a.gguf"), "-m", self.path("b.gguf")) as server:
            self.assertEqual([m["id"] for m in json.loads(server.get("/v1/models")[1])["data"]], ["a", "b"])
            status, answer = server.post("/v1/rewrite", {"text": cli.TEXT, "n": 1, "model": "b", "seed": 1})
            self.assertEqual((status, answer["model"]), (200, "b"))

    def test_a_port_in_use_names_who_has_it(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            said = self.refused(1, "%d" % port, "serve", "--port", str(port), "-m", cli.model())
            self.assertIn(str(os.getpid()), said)

    def test_a_missing_model_is_refused(self):
        self.refused(1, "no such file", "serve", "--port", "0", "-m", "/nonexistent/m.gguf")
        self.refused(1, "no model \"nosuch\"", "serve", "--port", "0", "-m", "nosuch")

    def test_sigterm_ends_it_with_0_and_ctrl_c_with_130(self):
        for sig, status in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
            with cli.Server(self, "-m", cli.model()) as server:
                server.process.send_signal(sig)
                self.assertEqual(server.process.wait(cli.PATIENCE), status)

    def test_a_running_request_is_finished(self):
        with cli.Server(self, "-m", cli.model(), "--parallel", "4", "--drain-timeout", "600") as server:
            answers = []
            work = {"text": cli.TEXT, "n": 4, "max_tokens": 300, "temperature": 3, "top_p": 1, "seed": 1, "timeout_ms": 1000000}
            thread = threading.Thread(target=lambda: answers.append(server.post("/v1/rewrite", work)))
            thread.start()
            cli.wait_until(lambda: answers or b"inkstone_http_running 1" in server.get("/metrics")[1], "the request runs")
            server.process.send_signal(signal.SIGTERM)
            thread.join(cli.PATIENCE)
            self.assertEqual([status for status, _ in answers], [200], answers)
            self.assertEqual(server.process.wait(cli.PATIENCE), 0)

    def test_a_second_signal_stops_at_once(self):
        with cli.Server(self, "-m", cli.model(), "--drain-timeout", "600") as server:
            host, port = re.match(r"http://(.*):(\d+)", server.url).groups()
            # A request that never ends keeps it draining.
            with socket.create_connection((host, int(port)), timeout=cli.PATIENCE) as s:
                s.sendall(b"POST /v1/rewrite HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
                time.sleep(0.2)
                server.process.send_signal(signal.SIGINT)
                cli.wait_until(lambda: server.process.poll() is not None or "finishing" in self.said(server), "draining begins")
                if server.process.poll() is None:
                    start = time.monotonic()
                    server.process.send_signal(signal.SIGINT)
                    server.process.wait(cli.PATIENCE)
                    self.assertLess(time.monotonic() - start, 5)
                self.assertEqual(server.process.returncode, 130)

    def said(self, server):
        return server.process.stderr.readline()

    def test_keys(self):
        with open(self.path("keys"), "w") as f:
            f.write("first\r\n\nsecond\n")
        with cli.Server(self, "-m", cli.model(), "--api-key", "@" + self.path("keys"), "--api-key", "third") as server:
            body = {"text": cli.TEXT, "n": 1, "seed": 1}
            self.assertEqual(server.post("/v1/rewrite", body)[0], 401)
            self.assertEqual(server.post("/v1/rewrite", body, Authorization="Bearer @" + self.path("keys"))[0], 401)
            for key in ("first", "second", "third"):
                self.assertEqual(server.post("/v1/rewrite", body, Authorization="Bearer " + key)[0], 200)

    def test_key_files_that_cannot_be_used(self):
        self.refused(1, "--api-key: .*: No such file", "serve", "--port", "0", "-m", cli.model(), "--api-key", "@" + self.path("nosuch"))
        open(self.path("empty"), "w").close()
        self.refused(2, "has no key in it", "serve", "--port", "0", "-m", cli.model(), "--api-key", "@" + self.path("empty"))


if __name__ == "__main__":
    cli.main()
