"""What the HTTP tests share: a running server, requests by http.client and by raw socket. Standard library only.

Where things are comes from the environment that CTest sets (tests/CMakeLists.txt); without it, from ../../build.
"""

import atexit
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.environ.get("INKSTONE_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("INKSTONE_BUILD_DIR") or os.path.join(ROOT, "build")
PROGRAM = os.environ.get("INKSTONE") or os.path.join(BUILD, "inkstone")
ASSETS = os.environ.get("INKSTONE_ASSETS") or os.path.join(ROOT, ".deps", "assets")
SLOW = 5 if os.environ.get("INKSTONE_SANITIZE") else 1
PATIENCE = 60 * SLOW

TEXT = "这家餐厅的味道非常好，服务也很周到。"
TEXTS = [TEXT, "今天下午三点开会。", "我昨天买了一件红色的外套。", "地铁比公交快得多。", "这本书我已经看了两遍。"]

_folder = None
_models = {}


def folder():
    """A folder of this process's own, which is also the servers' home."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="inkstone-http-")
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    return _folder


def environment():
    """The caller's, without what would lead the program to models or caches of the caller's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "INKSTONE_"))}
    env["HOME"] = folder()
    return env


def made_up_model(shape="tiny"):
    """A model with random weights. It hardly ever ends a text by itself, so a request can be made to take long."""
    if os.environ.get("INKSTONE_TEST_MODEL"):
        return os.environ["INKSTONE_TEST_MODEL"]
    if shape not in _models:
        maker = os.path.join(BUILD, "tests", "make_checkpoint")
        source, out = os.path.join(folder(), shape), os.path.join(folder(), shape + ".gguf")
        subprocess.run([maker, shape, os.path.join(ASSETS, "t5.spiece.model"), source], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([PROGRAM, "import", source, "-o", out], check=True, env=environment(), stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        _models[shape] = out
    return _models[shape]


def model():
    """What most tests serve: random weights never finish early and never repeat the source, so only the server is tested."""
    return made_up_model()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.text)


class Server:
    """`inkstone serve` on a free port until the end of the `with` block."""

    def __init__(self, *args, model_path=None):
        # One thread: the tests share the machine, and the models are small.
        command = [PROGRAM, "serve", "--port", "0", "-m", model_path or model(), "--threads", "1", "--verbose", *args]
        self.log = tempfile.TemporaryFile(dir=folder())
        self.process = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, encoding="utf-8")
        self.url = None
        for line in self.process.stdout:
            found = re.match(r"serving on (http://(\S+):(\d+))$", line)
            if found:
                self.url, self.host, self.port = found.group(1), found.group(2).strip("[]"), int(found.group(3))
                break
        if not self.url:
            raise AssertionError("the server did not start: " + self.log_text())
        # Nothing more is expected there, but a full pipe must not stop the server.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.stop()
        if kind is None and status != 0:
            raise AssertionError("the server ended with %s: %s" % (status, self.log_text()[-2000:]))
        self.log.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        return self.process.returncode

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, None, headers)

    def post(self, path, body, **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode("utf-8")
        return self.request("POST", path, body, {"Content-Type": "application/json", **headers})

    def rewrite(self, text=TEXT, **options):
        """The answer's document; the request must succeed."""
        answer = self.post("/v1/rewrite", {"text": text, **options})
        if answer.status != 200:
            raise AssertionError("%s: %s" % (answer.status, answer.text))
        return answer.json

    def stream(self, text=TEXT, **options):
        """The events of a streamed rewrite, checked for their form."""
        answer = self.post("/v1/rewrite", {"text": text, "stream": True, **options})
        if answer.status != 200:
            raise AssertionError("%s: %s" % (answer.status, answer.text))
        return events_of(answer.text)

    def raw(self):
        """A connected socket."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def metric(self, name):
        """The sum over the labels of one metric."""
        found = re.findall(r"^%s(?:\{[^}]*\})? (\S+)$" % re.escape(name), self.get("/metrics").text, re.M)
        return sum(float(v) for v in found)


def events_of(text):
    """Server-sent events: each has an id (the stream's and a number from 1) and one data line; [DONE] comes last."""
    blocks = [b for b in text.split("\n\n") if b and not b.startswith(":")]
    if blocks[-1] != "data: [DONE]" or not text.endswith("\n\n"):
        raise AssertionError("the stream does not end in [DONE]: " + text[-200:])
    events = []
    for number, block in enumerate(blocks[:-1], 1):
        found = re.fullmatch(r"id: rw-[0-9a-f]{16}:(\d+)\ndata: (\{.*\})", block)
        if not found or int(found.group(1)) != number:
            raise AssertionError("event %d: %r" % (number, block))
        events.append(json.loads(found.group(2)))
    return events


def joined(events):
    """What a client of the stream has at the end: text by candidate."""
    texts = {}
    for e in events:
        if e["type"] == "delta":
            texts[e["index"]] = texts.get(e["index"], "") + e["text"]
        elif e["type"] == "reset":
            texts[e["index"]] = e["text"]
    return texts


def raw_post(body, path="/v1/rewrite", extra=""):
    """The bytes of a POST."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode("utf-8")
    return ("POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
            % (path, len(body), extra)).encode("ascii") + body


def read_all(sock):
    """What comes until the other side closes."""
    data = b""
    try:
        while True:
            piece = sock.recv(65536)
            if not piece:
                return data
            data += piece
    except ConnectionResetError:
        return data


def wait_until(condition, what, seconds=None):
    end = time.monotonic() + (seconds or PATIENCE)
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("still waiting: " + what)
        time.sleep(0.02)


class Case(unittest.TestCase):
    """Tests against one server, started for the class with the arguments in `arguments`."""

    arguments = ()
    slow_model = False

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments, model_path=made_up_model() if cls.slow_model else None)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def check_error(self, answer, status, code, param=None):
        """An error of the contract's shape; returns its message."""
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        error = answer.json["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["code"], code, error)
        self.assertEqual(error["type"], "rate_limit_error" if status == 429 else
                         "server_error" if status >= 500 else "invalid_request_error")
        if param:
            self.assertEqual(error["param"], param, error)
        self.assertTrue(error["message"])
        return error["message"]


def main():
    if not os.access(PROGRAM, os.X_OK):
        sys.exit("%s is missing: build first" % PROGRAM)
    unittest.main(verbosity=1)
