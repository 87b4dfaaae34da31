#!/usr/bin/env python3
"""Every command and the server work without a network, and none of them tries to reach one.

All of it runs in a network namespace with nothing but loopback, and under a guard that ends whatever makes a connection
(netguard.py). Where namespaces are not permitted, the guard alone is left; where there is no guard, the namespace.
"""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

import cli
import netguard

WHY_NO_NAMESPACE = netguard.enter_namespace()
WHY_NO_GUARD = netguard.why_no_guard()

REACHES = {
    "a TCP connection": "socket.create_connection(('127.0.0.1', 9), 1)",
    "one over IPv6": "socket.create_connection(('::1', 9), 1)",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "a name look-up": "socket.getaddrinfo('example.com', 80)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a local socket": "socket.socket(socket.AF_UNIX).connect('/run/nothing')",
    "a child's connection": "import subprocess; sys.exit(subprocess.call([sys.executable, '-c', "
                            "'import socket; socket.create_connection((\"127.0.0.1\", 9), 1)']) == -31)",
}


class Offline(cli.Case):
    def setUp(self):
        super().setUp()
        self.guarded = {} if WHY_NO_GUARD else {"preexec_fn": netguard.guard}

    def run_program(self, *args, **keywords):
        return super().run_program(*args, **self.guarded, **keywords)

    def test_the_guard_catches_what_reaches_out(self):
        if WHY_NO_GUARD:
            self.skipTest(WHY_NO_GUARD)
        for what, code in REACHES.items():
            with self.subTest(what):
                done = subprocess.run([sys.executable, "-c", "import socket, sys\n" + code], preexec_fn=netguard.guard, stderr=subprocess.PIPE)
                if "child" in what:
                    self.assertEqual(done.returncode, 1, done.stderr)
                else:
                    self.assertEqual(done.returncode, -signal.SIGSYS, done.stderr)
        done = subprocess.run([sys.executable, "-c", "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()"],
                              preexec_fn=netguard.guard)
        self.assertEqual(done.returncode, 0)

    def test_the_namespace_leads_nowhere(self):
        if WHY_NO_NAMESPACE:
            self.skipTest("no network namespace: " + WHY_NO_NAMESPACE)
        self.assertEqual(netguard.interfaces(), ["lo"])
        with self.assertRaises(OSError):
            socket.create_connection(("192.0.2.1", 80), 1)

    def test_every_command(self):
        m = cli.model()
        with open(self.path("in.csv"), "w", encoding="utf-8") as f:
            f.write("text\n%s\n" % cli.TEXT)
        cli.made_up_folder(self.path("hf"))
        demo = dict(self.env, INKSTONE_MODELS=os.path.dirname(cli.DEMO))
        ran = set()
        for args, keywords in (
            (["--version"], {}),
            (["help", "serve"], {}),
            (["rewrite", "-m", m, "--max-tokens", "8", "--json", cli.TEXT], {}),
            (["rewrite", "--seed", "3", "-n", "1", cli.TEXT], {"env": demo}),
            (["rewrite", "-m", m, "--max-tokens", "8", "-"], {"input": cli.TEXT + "\n"}),
            (["rewrite", "-m", m, "--max-tokens", "8", "--input", self.path("in.csv"), "--output", self.path("out.csv")], {}),
            (["score", "-m", m, "--source", cli.TEXT, "--target", cli.TEXTS[1], "--json"], {}),
            (["tokenize", "-m", m, "--json", cli.TEXT], {}),
            (["tokenize", "-m", m, "--decode", "--ids", "5,6,7"], {}),
            (["import", self.path("hf"), "-o", self.path("new.gguf")], {}),
            (["rewrite", "-m", self.path("hf"), "--max-tokens", "8", cli.TEXT], {}),     # imported on first use
            (["inspect", self.path("new.gguf"), "--json"], {}),
            (["bench", "-m", m, "--runs", "1", "--warmup", "0", "--max-tokens", "4", "--json"], {}),
            (["doctor", "-m", m, "--port", "0"], {}),
        ):
            with self.subTest(args):
                self.succeed(*args, **keywords)
                ran.add(args[0])
        listed = re.findall(r"^  ([a-z]+)  +\S", self.succeed("--help"), re.M)
        self.assertEqual(sorted(set(listed) - ran), ["serve"])

    def test_the_server(self):
        p = subprocess.Popen([cli.PROGRAM, "serve", "--port", "0", "--threads", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(self.env, INKSTONE_MODELS=os.path.dirname(cli.DEMO)), text=True, **self.guarded)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        port = None
        for line in p.stdout:
            found = re.match(r"serving on http://127\.0\.0\.1:(\d+)$", line)
            if found:
                port = int(found.group(1))
                break
        self.assertIsNotNone(port, p.stderr.read() if port is None else "")

        def ask(method, path, body=None, status=200):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=cli.PATIENCE)
            c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
            answer = c.getresponse()
            data = answer.read().decode("utf-8")
            c.close()
            self.assertEqual(answer.status, status, data)
            return data
        text = {"text": "我昨天在商店里买了一件红色的外套。", "n": 2, "seed": 1, "max_tokens": 32}
        ask("GET", "/health")
        ask("GET", "/ready")
        ask("GET", "/v1/models")
        ask("GET", "/metrics")
        ask("POST", "/v1/rewrite", text)
        self.assertIn("data: [DONE]", ask("POST", "/v1/rewrite", {**text, "stream": True}))
        ask("POST", "/v1/score", {"source": cli.TEXT, "target": cli.TEXTS[1]})
        ask("POST", "/v1/tokenize", {"text": cli.TEXT})
        ask("POST", "/v1/rewrite", {"text": "", "image": "http://192.0.2.1/x.png"}, 400)
        ask("GET", "/http://192.0.2.1/", status=404)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(cli.PATIENCE), 0, p.stderr.read())

    def test_no_library_for_connections_is_linked(self):
        """What opens connections in C programs has a name; none of it is loaded."""
        ldd = subprocess.run(["ldd", cli.PROGRAM], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertIn("libmicrohttpd", ldd)
        for library in ("libcurl", "libssh", "libhiredis", "libnghttp2", "libcares", "libsoup"):
            self.assertNotIn(library, ldd)


if __name__ == "__main__":
    if WHY_NO_NAMESPACE:
        print("without a network namespace: " + WHY_NO_NAMESPACE)
    if WHY_NO_GUARD:
        print("without the guard: " + WHY_NO_GUARD)
    if WHY_NO_NAMESPACE and WHY_NO_GUARD:
        print("SKIP: neither a network namespace (%s) nor a guard (%s)" % (WHY_NO_NAMESPACE, WHY_NO_GUARD))
        sys.exit(77)
    cli.main()
