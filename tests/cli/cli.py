"""What the command line tests share: running the program, a model to run it on, a server. Standard library only.

Where things are comes from the environment that CTest sets (tests/CMakeLists.txt); without it, from ../../build.
"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = os.environ.get("INKSTONE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("INKSTONE_BUILD_DIR") or os.path.join(ROOT, "build")
PROGRAM = os.environ.get("INKSTONE") or os.path.join(BUILD, "inkstone")
ASSETS = os.environ.get("INKSTONE_ASSETS") or os.path.join(ROOT, ".deps", "assets")
PATIENCE = 300 if os.environ.get("INKSTONE_SANITIZE") else 120

TEXT = "这家餐厅的味道非常好，服务也很周到。"
TEXTS = [TEXT, "今天下午三点开会。", "我昨天买了一件红色的外套。", "地铁比公交快得多。", "这本书我已经看了两遍。"]


def environment(home, **more):
    """The caller's, without what would lead the program to models or caches of the caller's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "INKSTONE_"))}
    env.update(HOME=home, **more)
    return env


def one_thread(args):
    """Tests run side by side on few processors, where a second computing thread mostly waits for its turn."""
    if args and args[0] in ("rewrite", "score", "serve", "bench") and "--threads" not in args and "-m" in args:
        return [args[0], "--threads", "1", *args[1:]]
    return list(args)


class Case(unittest.TestCase):
    """A test with a folder of its own, which is also the program's home."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="inkstone-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = environment(self.folder)

    def terminal(self):
        """Both ends of a pseudo-terminal; the test is skipped where there is none, as in a chroot without /dev/pts."""
        try:
            return pty.openpty()
        except OSError as e:
            self.skipTest("no pseudo-terminal here: %s" % e)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *args, **keywords):
        keywords.setdefault("env", self.env)
        keywords.setdefault("timeout", PATIENCE)
        keywords.setdefault("stdout", subprocess.PIPE)
        if "input" not in keywords:
            keywords.setdefault("stdin", subprocess.DEVNULL)
        if isinstance(keywords.get("input"), str):
            keywords["input"] = keywords["input"].encode("utf-8")
        return subprocess.run([PROGRAM, *one_thread(args)], stderr=subprocess.PIPE, **keywords)

    def succeed(self, *args, **keywords):
        """Standard output as text."""
        done = self.run_program(*args, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr.decode("utf-8", "replace"))
        return done.stdout.decode("utf-8")

    def answer(self, *args, **keywords):
        """The one JSON document of a command that succeeds."""
        return json.loads(self.succeed(*args, **keywords))

    def refused(self, status, pattern, *args, **keywords):
        """The command fails with `status` and one line on stderr that matches; nothing on stdout. Returns the line."""
        done = self.run_program(*args, **keywords)
        said = done.stderr.decode("utf-8")
        self.assertEqual(done.returncode, status, "%r: %s" % (args, said))
        self.assertEqual(done.stdout, b"", args)
        self.one_line(said)
        self.assertRegex(said, pattern, args)
        return said

    def one_line(self, text):
        self.assertTrue(text.endswith("\n"), text)
        self.assertEqual(text.count("\n"), 1, text)


# Its vocabulary spells Chinese, which the made-up model's does not.
DEMO = os.path.join(ROOT, "models", "inkstone-demo.gguf")

_model = None


def model():
    """What most tests run: made-up weights never finish early and never repeat the source, so only the program is tested."""
    global _model
    if _model is None:
        _model = os.environ.get("INKSTONE_TEST_MODEL") or made_up_model()
    return _model


def made_up_folder(out):
    """A Hugging Face checkpoint folder of the shape "tiny"."""
    maker = os.path.join(BUILD, "tests", "make_checkpoint")
    subprocess.run([maker, "tiny", os.path.join(ASSETS, "t5.spiece.model"), out], check=True, stdout=subprocess.DEVNULL)
    return out


def made_up_model():
    folder = tempfile.mkdtemp(prefix="inkstone-cli-model-")
    import atexit
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    out = os.path.join(folder, "made-up.gguf")
    subprocess.run([PROGRAM, "import", made_up_folder(os.path.join(folder, "hf")), "-o", out], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


class Server:
    """`inkstone serve --port 0` until the end of the `with` block."""

    def __init__(self, case, *args):
        self.process = subprocess.Popen([PROGRAM, *one_thread(["serve", "--port", "0", *args])], env=case.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        self.banner = []
        for line in self.process.stdout:
            self.banner.append(line.rstrip("\n"))
            found = re.match(r"serving on (http://\S+)$", line)
            if found:
                self.url = found.group(1)
                return
        raise AssertionError("the server did not start: " + self.process.stderr.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def post(self, path, body, **headers):
        """(status, JSON)"""
        data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **headers})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            with e:
                return e.code, json.load(e)

    def get(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as e:
            with e:
                return e.code, e.read()


def wait_until(condition, what, seconds=None):
    end = time.monotonic() + (seconds or PATIENCE)
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("still waiting: " + what)
        time.sleep(0.01)


def main():
    if not os.access(PROGRAM, os.X_OK):
        sys.exit("%s is missing: build first" % PROGRAM)
    unittest.main(verbosity=1)
