#!/usr/bin/env python3
"""Who may call: Host, Origin, keys, other addresses. One test a rule."""

import os
import socket
import subprocess

import inkhttp


class Loopback(inkhttp.Case):
    def status(self, **headers):
        return self.server.request("GET", "/v1/models", None, headers).status

    def test_the_host_must_be_ours(self):
        port = self.server.port
        for host in ("127.0.0.1:%d" % port, "localhost:%d" % port, "localhost", "[::1]:%d" % port, "LocalHost", "127.1.2.3"):
            self.assertEqual(self.status(Host=host), 200, host)
        for host in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1",
                     "0.0.0.0", "169.254.1.1", "[::2]", "", "localhost, evil.example", "a" * 300):
            answer = self.server.request("GET", "/v1/models", None, {"Host": host})
            self.check_error(answer, 403, "forbidden_origin", "Host")

    def test_a_foreign_origin_is_forbidden(self):
        port = self.server.port
        own = "127.0.0.1:%d" % port
        self.assertEqual(self.status(Host=own, Origin="http://" + own), 200)
        for origin in ("http://evil.example", "https://evil.example", "null", "http://127.0.0.1:1", "http://localhost:%d" % port,
                       "file://", "http://%s.evil.example" % own, ""):
            answer = self.server.request("GET", "/v1/models", None, {"Host": own, "Origin": origin})
            self.check_error(answer, 403, "forbidden_origin", "Origin")
            answer = self.server.post("/v1/rewrite", {"text": "a"}, Host=own, Origin=origin)
            self.check_error(answer, 403, "forbidden_origin", "Origin")

    def test_a_form_of_another_page_cannot_post(self):
        answer = self.server.request("POST", "/v1/rewrite", b'{"text":"a"}', {"Content-Type": "text/plain"})
        self.check_error(answer, 415, "unsupported_media_type")

    def test_there_is_no_cors(self):
        answer = self.server.request("OPTIONS", "/v1/rewrite", None,
                                     {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
        self.assertEqual(answer.status, 403)
        self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])


class Keys(inkhttp.Case):
    @classmethod
    def setUpClass(cls):
        path = os.path.join(inkhttp.folder(), "keys.txt")
        with open(path, "w", encoding="ascii") as f:
            f.write("key-from-file\nanother\n")
        cls.arguments = ("--api-key", "given", "--api-key", "@" + path)
        super().setUpClass()

    def test_without_a_key_only_the_open_routes_answer(self):
        for path in ("/", "/health", "/ready"):
            self.assertEqual(self.server.get(path).status, 200, path)
        for path in ("/v1/models", "/metrics"):
            answer = self.server.get(path)
            self.check_error(answer, 401, "unauthorized")
            self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
        for path in ("/v1/rewrite", "/v1/score", "/v1/tokenize"):
            self.check_error(self.server.post(path, {"text": "a"}), 401, "unauthorized")

    def test_every_key_opens(self):
        for key in ("given", "key-from-file", "another"):
            self.assertEqual(self.server.get("/v1/models", Authorization="Bearer " + key).status, 200)
            self.assertEqual(self.server.get("/v1/models", Authorization="bearer " + key).status, 200)

    def test_nothing_else_does(self):
        for value in ("given", "Bearer", "Bearer ", "Bearer give", "Bearer given2", "Basic given", "Bearer GIVEN", "Bearer given,another",
                      "Bearer @keys.txt"):
            self.check_error(self.server.get("/v1/models", Authorization=value), 401, "unauthorized")

    def test_a_key_does_not_excuse_a_foreign_origin(self):
        answer = self.server.get("/v1/models", Authorization="Bearer given", Origin="http://evil.example")
        self.check_error(answer, 403, "forbidden_origin")


class Options(inkhttp.Case):
    arguments = ("--cors", "https://page.example", "--allowed-host", "ink.example")

    def test_an_allowed_origin(self):
        answer = self.server.get("/v1/models", Origin="https://page.example")
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["Access-Control-Allow-Origin"], "https://page.example")
        self.assertEqual(answer.headers["Vary"], "Origin")
        asked = self.server.request("OPTIONS", "/v1/rewrite", None,
                                    {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"})
        self.assertEqual(asked.status, 204)
        self.assertIn("Authorization", asked.headers["Access-Control-Allow-Headers"])
        self.check_error(self.server.get("/v1/models", Origin="https://page.example.evil"), 403, "forbidden_origin")

    def test_an_allowed_host(self):
        self.assertEqual(self.server.request("GET", "/v1/models", None, {"Host": "ink.example:80"}).status, 200)
        self.assertEqual(self.server.request("GET", "/v1/models", None,
                                             {"Host": "ink.example", "Origin": "https://ink.example"}).status, 200)
        self.check_error(self.server.request("GET", "/v1/models", None, {"Host": "other.example"}), 403, "forbidden_origin")


class Addresses(inkhttp.Case):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def test_beyond_loopback_needs_a_key_or_a_word(self):
        for host in ("0.0.0.0", "::"):
            done = subprocess.run([inkhttp.PROGRAM, "serve", "--port", "0", "--host", host, "-m", inkhttp.model()], timeout=inkhttp.PATIENCE,
                                  env=inkhttp.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertIn(b"--api-key", done.stderr)
            self.assertIn(b"--insecure", done.stderr)

    def test_with_either_it_starts(self):
        for more in (("--insecure",), ("--api-key", "k")):
            with inkhttp.Server("--host", "0.0.0.0", *more) as server:
                self.assertEqual(server.get("/health").status, 200)

    def test_other_loopback_addresses_are_fine(self):
        with inkhttp.Server("--host", "127.0.0.2") as server:
            with socket.create_connection(("127.0.0.2", server.port), timeout=10) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.2\r\nConnection: close\r\n\r\n")
                self.assertIn(b" 200 ", inkhttp.read_all(s).split(b"\r\n")[0])


if __name__ == "__main__":
    inkhttp.main()
