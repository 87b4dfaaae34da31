#!/usr/bin/env python3
"""`inkstone doctor`: what it finds, what it advises, its exit status."""

import os
import socket

import cli


class Doctor(cli.Case):
    def doctor(self, *args, status=0):
        done = self.run_program("doctor", "--port", "0", *args, "--json")
        self.assertEqual(done.returncode, status, done.stdout.decode() + done.stderr.decode())
        import json
        report = json.loads(done.stdout)
        self.assertEqual(report["ok"], status == 0)
        self.assertEqual(report["ok"], all(c["status"] != "fail" for c in report["checks"]))
        return {c["name"]: c for c in report["checks"]}

    def test_a_machine_that_can_serve(self):
        checks = self.doctor("-m", cli.model())
        self.assertEqual(set(checks), {"cpu", "threads", "memory", "model", "cache", "port", "files"})
        self.assertEqual(checks["model"]["status"], "ok")
        self.assertIn(cli.model(), checks["model"]["message"])
        self.assertFalse(os.path.exists(self.path(".cache")), "it changes nothing")

    def test_plain_output_has_a_line_per_check(self):
        text = self.succeed("doctor", "--port", "0", "-m", cli.model())
        for name in ("cpu", "threads", "memory", "model", "cache", "port", "files"):
            self.assertRegex(text, r"(?m)^(ok|warn)\s+%s\s" % name)

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            check = self.doctor("-m", cli.model(), "--port", str(port), status=1)["port"]
            self.assertIn("in use", check["message"])
            self.assertIn(str(os.getpid()), check["message"])
            self.assertIn("--port", check["fix"])

    def test_an_address_that_is_not_ours(self):
        self.assertEqual(self.doctor("-m", cli.model(), "--host", "192.0.2.1", status=1)["port"]["status"], "fail")
        self.assertEqual(self.doctor("-m", cli.model(), "--host", "no.such.host.invalid", status=1)["port"]["status"], "fail")

    def test_models_that_cannot_be_used(self):
        os.makedirs(self.path("models"))
        with open(self.path("models/a-broken.gguf"), "wb") as f:
            f.write(b"GGUF but no more")
        self.env["INKSTONE_MODELS"] = self.path("models")
        done = self.run_program("doctor", "--port", "0")
        self.assertRegex(done.stdout.decode(), r"(?m)^warn\s+model\s+.*a-broken\.gguf")
        self.assertEqual(self.doctor("-m", "a-broken", status=1)["model"]["status"], "fail")
        self.assertEqual(self.doctor("-m", "nosuch", status=1)["model"]["status"], "fail")

    def test_a_cache_folder_that_cannot_be(self):
        with open(self.path("file"), "w"):
            pass
        self.env["XDG_CACHE_HOME"] = self.path("file")
        self.assertEqual(self.doctor("-m", cli.model())["cache"]["status"], "warn")


if __name__ == "__main__":
    cli.main()
