#!/usr/bin/env python3
"""Streams that are cut and resumed (`linger_ms`, GET and DELETE /v1/streams/{id}), and what becomes of their work."""

import concurrent.futures
import json
import random
import re
import signal
import time
import unittest

import inkhttp
from inkhttp import raw_post, wait_until

LINGER = {"stream": True, "linger_ms": 60000}
# With random weights nothing ends by itself: as many tokens as asked for.
SHORT = {"text": "abc", "n": 3, "max_tokens": 24, "scripts": "all", "temperature": 2, "top_p": 1, "seed": 5, **LINGER}
LONG = {"text": "abc", "n": 4, "max_tokens": 500, "scripts": "all", "temperature": 2, "top_p": 1, "timeout_ms": 600000, **LINGER}

EVENT = re.compile(rb"id: (rw-[0-9a-f]{16}):(\d+)\ndata: (\{[^\n]*\})\n\n")
DONE = b"data: [DONE]\n\n"


class Reader:
    """One connection that reads a stream piece by piece and may leave at any byte."""

    def __init__(self, server, request):
        self.sock = server.raw()
        self.sock.sendall(request)
        self.file = self.sock.makefile("rb")
        status = self.file.readline()
        self.status = int(status.split()[1])
        self.headers = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, _, value = line.decode("latin-1").partition(":")
            self.headers[name.lower()] = value.strip()
        self.body = b""

    @property
    def id(self):
        return self.headers["x-stream-id"]

    def piece(self):
        """One chunk; False at the end."""
        size = int(self.file.readline() or b"0", 16)
        self.body += self.file.read(size)
        self.file.readline()
        return size > 0

    def events(self):
        return EVENT.findall(self.body)

    def until(self, condition):
        while not condition(self):
            if not self.piece():
                raise AssertionError("the stream ended early: %r" % self.body[-300:])
        return self

    def rest(self):
        while self.piece():
            pass
        self.close()
        return self.body

    def close(self):
        self.file.close()
        self.sock.close()


def resume_bytes(stream_id, last=None, extra=""):
    if last is not None:
        extra += "Last-Event-ID: %s\r\n" % last
    return ("GET /v1/streams/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n" % (stream_id, extra)).encode("latin-1")


def without_pings(body):
    return body.replace(b": ping\n\n", b"")


class StreamCase(inkhttp.Case):
    def start(self, body=SHORT, extra=""):
        return Reader(self.server, raw_post(body, extra=extra))

    def resume(self, stream_id, last=None):
        return Reader(self.server, resume_bytes(stream_id, last))

    def whole(self, stream_id):
        """Every byte of a stream that lingers, from its first event."""
        reader = self.resume(stream_id)
        self.assertEqual(reader.status, 200)
        return without_pings(reader.rest())

    def running(self):
        return self.server.metric("inkstone_jobs_running") + self.server.metric("inkstone_queue_length")

    def check_whole(self, body):
        """Numbered from 1 without a gap, and complete."""
        self.assertTrue(body.endswith(DONE), body[-200:])
        numbers = [int(n) for _, n, _ in EVENT.findall(body)]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))
        self.assertEqual(EVENT.sub(b"", body), DONE)


class Resume(StreamCase):
    def test_the_id_is_known_from_the_first_byte(self):
        reader = self.start()
        self.assertRegex(reader.id, r"^rw-[0-9a-f]{16}$")
        body = without_pings(reader.rest())
        self.check_whole(body)
        events = EVENT.findall(body)
        self.assertEqual({e[0].decode() for e in events}, {reader.id})
        self.assertEqual(json.loads(events[-1][2])["id"], reader.id)
        self.assertEqual(json.loads(events[-1][2])["warnings"], [])

    def test_after_any_event_the_rest_is_the_same_bytes(self):
        reader = self.start()
        whole = without_pings(reader.rest())
        self.assertEqual(self.whole(reader.id), whole)
        ends = [m.end() for m in EVENT.finditer(whole)]
        for k in [0, 1, 2, len(ends) // 2, len(ends) - 1, len(ends)]:
            for last in ("%s:%d" % (reader.id, k), "%d" % k):
                again = self.resume(reader.id, last)
                self.assertEqual(again.headers["content-type"], "text/event-stream; charset=utf-8")
                self.assertEqual(again.headers["cache-control"], "no-cache")
                self.assertEqual(again.id, reader.id)
                self.assertEqual(without_pings(again.rest()), whole[ends[k - 1] if k else 0:], k)
        # What a client without an id yet sends.
        self.assertEqual(without_pings(self.resume(reader.id, "").rest()), whole)

    def test_a_stream_cut_while_it_runs_goes_on(self):
        for wanted, inside in ((1, 0), (2, 7), (9, 0), (23, 30)):
            with self.subTest(events=wanted, bytes_of_the_next=inside):
                reader = self.start(LONG)
                reader.until(lambda r: len(r.events()) >= wanted)
                stream_id, n = reader.id, len(reader.events())
                reader.close()
                # The client counts what arrived whole; the rest of a cut event it never saw.
                end = [m.end() for m in EVENT.finditer(reader.body)][n - 1]
                seen = reader.body[:end + inside]
                n = len(EVENT.findall(seen))
                kept = without_pings(seen[:[m.end() for m in EVENT.finditer(seen)][n - 1]])
                again = self.resume(stream_id, "%s:%d" % (stream_id, n))
                rest = without_pings(again.rest())
                self.check_whole(kept + rest)
                self.assertEqual(self.whole(stream_id), kept + rest)

    def test_the_work_goes_on_while_nobody_reads(self):
        reader = self.start({**LONG, "max_tokens": 60})
        reader.until(lambda r: len(r.events()) >= 3).close()
        wait_until(lambda: self.running() == 0, "the job to finish")
        body = self.whole(reader.id)
        self.check_whole(body)
        self.assertIn(b'"type":"done"', body)

    def test_two_readers_get_the_same_events(self):
        first = self.start(LONG)
        first.until(lambda r: len(r.events()) >= 2)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            others = [pool.submit(self.whole, first.id) for _ in range(3)]
            body = without_pings(first.rest())
            self.check_whole(body)
            for other in others:
                self.assertEqual(other.result(), body)

    def test_resumed_and_cut_again(self):
        reader = self.start(LONG)
        reader.until(lambda r: len(r.events()) >= 1)
        stream_id, kept = reader.id, b""
        for _ in range(6):
            reader.close()
            found = list(EVENT.finditer(reader.body))
            kept += without_pings(reader.body[:found[-1].end()])
            reader = self.resume(stream_id, EVENT.findall(kept)[-1][1].decode())
            reader.until(lambda r: len(r.events()) >= 1)
        self.check_whole(kept + without_pings(reader.rest()))

    def test_an_error_event_is_kept_too(self):
        reader = self.start({**LONG, "timeout_ms": 300})
        body = without_pings(reader.rest())
        self.assertIn(b'"type":"error"', body)
        self.assertEqual(self.whole(reader.id), body)

    def test_details_and_many_candidates(self):
        reader = self.start({**SHORT, "n": 16, "details": True, "top": 20})
        self.assertEqual(without_pings(reader.rest()), self.whole(reader.id))

    def test_fifty_cut_and_resumed_at_random(self):
        def one(seed):
            dice = random.Random(seed)
            reader = self.start({**SHORT, "n": 2, "max_tokens": 40, "seed": seed})
            stream_id, kept = reader.id, b""
            for _ in range(dice.randrange(1, 4)):
                target = dice.randrange(1, 3000)
                while len(reader.body) < target and reader.piece():
                    pass
                reader.close()
                found = list(EVENT.finditer(reader.body))
                kept += without_pings(reader.body[:found[-1].end()]) if found else b""
                events = EVENT.findall(kept)
                time.sleep(dice.random() * 0.3)
                reader = self.resume(stream_id, "%s:%s" % (stream_id, events[-1][1].decode()) if events else None)
                self.assertEqual(reader.status, 200)
            self.check_whole(kept + without_pings(reader.rest()))
            return stream_id, kept + without_pings(reader.body)

        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            done = list(pool.map(one, range(50)))
        for stream_id, body in done:
            self.assertEqual(self.whole(stream_id), body)
        wait_until(lambda: self.server.metric("inkstone_http_streams") == 0, "the readers' end")


class End(StreamCase):
    def test_without_linger_the_job_ends_with_its_reader(self):
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        reader = self.start({**LONG, "linger_ms": 0})
        reader.until(lambda r: len(r.events()) >= 2)
        self.check_error(self.server.get("/v1/streams/" + reader.id), 404, "not_found", "id")     # also while it runs
        reader.close()
        wait_until(lambda: self.running() == 0, "the engine to stop", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the count", 5 * inkhttp.SLOW)
        self.check_error(self.server.get("/v1/streams/" + reader.id), 404, "not_found", "id")

    def test_when_the_time_is_over_it_is_cancelled(self):
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        reader = self.start({**LONG, "n": 16, "max_tokens": 512, "linger_ms": 1500})
        reader.until(lambda r: len(r.events()) >= 2).close()
        wait_until(lambda: self.running() == 0, "the engine to stop", 5 * inkhttp.SLOW)
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the count")
        self.check_error(self.server.get("/v1/streams/" + reader.id), 404, "not_found", "id")

    def test_a_finished_result_stays_for_that_time(self):
        reader = self.start({**SHORT, "linger_ms": 2000})
        whole = without_pings(reader.rest())
        time.sleep(1)
        self.assertEqual(self.whole(reader.id), whole)      # which also starts the clock again
        time.sleep(1.3)
        self.assertEqual(self.whole(reader.id), whole)
        wait_until(lambda: self.server.get("/v1/streams/" + reader.id).status == 404 or time.sleep(2.5), "its end", 20)

    def test_delete_cancels_and_tells_who_reads(self):
        cancelled = self.server.metric("inkstone_jobs_cancelled_total")
        reader = self.start({**LONG, "n": 16})
        reader.until(lambda r: len(r.events()) >= 2)
        answer = self.server.request("DELETE", "/v1/streams/" + reader.id)
        self.assertEqual((answer.status, answer.json), (200, {"id": reader.id, "state": "cancelled"}))
        body = without_pings(reader.rest())
        self.assertTrue(body.endswith(DONE))
        self.assertEqual(json.loads(EVENT.findall(body)[-1][2])["error"]["code"], "cancelled")
        wait_until(lambda: self.server.metric("inkstone_jobs_cancelled_total") == cancelled + 1, "the count")
        self.assertEqual(self.running(), 0)
        for method in ("GET", "DELETE"):
            self.check_error(self.server.request(method, "/v1/streams/" + reader.id), 404, "not_found", "id")

    def test_delete_without_a_reader(self):
        reader = self.start({**LONG, "n": 16})
        reader.until(lambda r: len(r.events()) >= 2).close()
        self.assertEqual(self.server.request("DELETE", "/v1/streams/" + reader.id).json["state"], "cancelled")
        wait_until(lambda: self.running() == 0, "the engine to stop", 5 * inkhttp.SLOW)
        done = self.start()
        done.rest()
        self.assertEqual(self.server.request("DELETE", "/v1/streams/" + done.id).json["state"], "finished")

    def test_wrong_ids(self):
        for stream_id in ("rw-0000000000000000", "x", "rw-", "%2e%2e", "%F0%9F%98%80", "x" * 90):
            for method in ("GET", "DELETE"):
                self.check_error(self.server.request(method, "/v1/streams/" + stream_id), 404, "not_found")
        for path in ("/v1/streams", "/v1/streams/", "/v1/streams/a/b", "/v1/streams/%00"):
            self.check_error(self.server.get(path), 404, "not_found")
        answer = self.server.post("/v1/streams/rw-0000000000000000", {})
        self.check_error(answer, 405, "method_not_allowed")
        self.assertEqual(answer.headers["Allow"], "GET, HEAD, DELETE")

    def test_wrong_last_event_ids(self):
        reader = self.start()
        n = len(EVENT.findall(reader.rest()))
        other = self.start()
        other.rest()
        for last in ("x", "-1", "1.5", "+1", "0x1", str(n + 1), reader.id, reader.id + ":", reader.id + ":x", "%s:%d" % (reader.id, n + 1),
                     other.id + ":1", "1 2", "9" * 30, ":1", "1:1", "\xff"):
            answer = self.resume(reader.id, last)
            self.assertEqual(answer.status, 400, last)
            answer.close()
        self.check_error(self.server.get("/v1/streams/" + reader.id, **{"Last-Event-ID": "x"}), 400, "invalid_value", "Last-Event-ID")
        self.assertEqual(self.server.metric("inkstone_http_streams"), 0)

    def test_head_reads_nothing(self):
        reader = self.start()
        whole = without_pings(reader.rest())
        answer = self.server.request("HEAD", "/v1/streams/" + reader.id)
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertEqual(self.whole(reader.id), whole)

    def test_a_plain_answer_does_not_linger(self):
        body = {k: v for k, v in SHORT.items() if k != "stream"}
        answer = self.server.post("/v1/rewrite", body)
        self.assertEqual(answer.status, 200)
        self.check_error(self.server.get("/v1/streams/" + answer.json["id"]), 404, "not_found", "id")


class Bounds(StreamCase):
    def test_the_one_left_first_is_dropped(self):
        ids = []
        for i in range(257):
            reader = self.start({**SHORT, "n": 1, "max_tokens": 2, "seed": i})
            reader.rest()
            ids.append(reader.id)
            if i == 0:
                time.sleep(0.3)
        wait_until(lambda: self.server.metric("inkstone_http_streams") == 0, "the readers' end")
        self.assertEqual(self.server.metric("inkstone_http_streams_kept"), 256)
        self.assertGreater(self.server.metric("inkstone_http_streams_kept_bytes"), 256 * 100)
        self.assertEqual(self.server.get("/v1/streams/" + ids[0]).status, 404)
        self.assertEqual(self.server.get("/v1/streams/" + ids[-1]).status, 200)
        for i in ids[1:]:
            self.server.request("DELETE", "/v1/streams/" + i)
        self.assertEqual(self.server.metric("inkstone_http_streams_kept"), 0)


class Keys(StreamCase):
    arguments = ("--api-key", "one", "--api-key", "two")

    def test_only_the_starters_key_comes_back(self):
        reader = self.start(extra="Authorization: Bearer one\r\n")
        whole = without_pings(reader.rest())
        path = "/v1/streams/" + reader.id
        self.check_error(self.server.get(path), 401, "unauthorized")
        for method in ("GET", "DELETE"):
            self.check_error(self.server.request(method, path, None, {"Authorization": "Bearer two"}), 404, "not_found", "id")
        self.assertEqual(self.server.get(path, Authorization="Bearer one").body, whole)
        self.assertEqual(self.server.request("DELETE", path, None, {"Authorization": "Bearer one"}).status, 200)


class Shutdown(unittest.TestCase):
    def test_a_drain_waits_for_work_that_lingers(self):
        with inkhttp.Server() as server:
            reader = Reader(server, raw_post({**LONG, "n": 8, "max_tokens": 300}))
            reader.until(lambda r: len(r.events()) >= 2).close()
            wait_until(lambda: server.metric("inkstone_http_running") == 0, "the reader's end")
            finished = server.metric("inkstone_jobs_finished_total")
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: server.get("/ready").status == 503, "the drain")
            # It can still be read while it runs.
            again = Reader(server, resume_bytes(reader.id))
            self.assertEqual(again.status, 200)
            self.assertIn(b'"type":"done"', again.rest())
            self.assertEqual(finished, 0)
            self.assertEqual(server.process.wait(inkhttp.PATIENCE), 0)

    def test_what_lingers_beyond_the_drain_is_cancelled(self):
        with inkhttp.Server("--drain-timeout", "0.3") as server:
            reader = Reader(server, raw_post({**LONG, "n": 16}))
            reader.until(lambda r: len(r.events()) >= 2).close()
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(inkhttp.PATIENCE)
            self.assertTrue(0.2 < time.monotonic() - begun < 5 * inkhttp.SLOW)

    def test_a_finished_one_does_not_hold_it(self):
        with inkhttp.Server() as server:
            reader = Reader(server, raw_post({**SHORT, "linger_ms": 120000}))
            reader.rest()
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(inkhttp.PATIENCE)
            self.assertLess(time.monotonic() - begun, 3 * inkhttp.SLOW)


if __name__ == "__main__":
    inkhttp.main()
