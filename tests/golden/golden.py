"""What the golden tests share: checkpoints, imports, runs of the program, comparisons. Python's standard library only.

Where things are comes from the environment that CTest sets (tests/CMakeLists.txt); without it, from ../../build.
"""

import array
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get("INKSTONE_SOURCE_DIR") or os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("INKSTONE_BUILD_DIR") or os.path.join(ROOT, "build")
PROGRAM = os.environ.get("INKSTONE") or os.path.join(BUILD, "inkstone")
ASSETS = os.environ.get("INKSTONE_ASSETS") or os.path.join(ROOT, ".deps", "assets")
SLOW = 10 if os.environ.get("INKSTONE_SANITIZE") else 1     # factor on bounds of time


class Failed(Exception):
    """A check that did not hold; the text is one line."""


def run(command, **keywords):
    """The finished process; Failed with its last line of stderr when it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
    except FileNotFoundError:
        raise Failed("%s is missing: build first" % command[0]) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Failed("%s: exit status %d: %s" % (" ".join(map(str, command[:3])), done.returncode, said[-1] if said else "no message"))
    return done


def lines_of(done):
    """What a process printed, by lines (str.splitlines() would also split at U+2028 and the like)."""
    lines = done.stdout.decode("utf-8").split("\n")
    if lines.pop():
        raise Failed("the last line of the output has no end")
    return lines


def helper(name):
    path = os.path.join(BUILD, "tests", name)
    if not os.path.exists(path):
        raise Failed("%s is missing: build first" % path)
    return path


def assets_path(name):
    path = os.path.join(ASSETS, name)
    if not os.path.exists(path):
        raise Failed("%s is missing: run scripts/fetch_assets.py" % path)
    return path


class Golden:
    """The stored reference values of one shape."""

    def __init__(self, shape):
        with open(os.path.join(HERE, "data", shape + ".json"), encoding="utf-8") as f:
            self.index = json.load(f)
        with open(os.path.join(HERE, "data", shape + ".f32"), "rb") as f:
            data = f.read()
        if hashlib.sha256(data).hexdigest() != self.index["f32_sha256"]:
            raise Failed("data/%s.f32 does not belong to data/%s.json" % (shape, shape))
        self.floats = array.array("f")
        self.floats.frombytes(data)
        if sys.byteorder != "little":
            self.floats.byteswap()
        self.shape = shape
        self.sources = self.index["sources"]

    def at(self, offset, n):
        return self.floats[offset:offset + n]


class Folder:
    """A temporary folder under the build directory, removed at the end whatever happens."""

    def __enter__(self):
        os.makedirs(os.path.join(BUILD, "tests"), exist_ok=True)
        self.path = tempfile.mkdtemp(prefix="golden-", dir=os.path.join(BUILD, "tests"))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def make_checkpoint(golden, folder):
    path = os.path.join(folder, golden.shape)
    run([helper("make_checkpoint"), golden.shape, assets_path(golden.index["vocabulary"] + ".spiece.model"), path])
    return path


def import_model(checkpoint, kind, folder):
    path = os.path.join(folder, "%s-%s.gguf" % (os.path.basename(checkpoint), kind))
    run([PROGRAM, "import", checkpoint, "-o", path, "--type", kind])
    return path


def score(model, requests, options=()):
    """Answers of one `inkstone score --jsonl -` call, in order."""
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in requests)
    done = run([PROGRAM, "score", "-m", model, *options, "--jsonl", "-"], input=lines.encode("utf-8"))
    answers = [json.loads(line) for line in lines_of(done)]
    if len(answers) != len(requests):
        raise Failed("%d answers to %d requests" % (len(answers), len(requests)))
    for answer in answers:
        if "error" in answer:
            raise Failed("score: %s" % answer["error"].get("message"))
    return answers


class Worst:
    """The largest and the mean difference seen, and where the largest was."""

    def __init__(self):
        self.largest, self.total, self.n, self.where = 0.0, 0.0, 0, ""

    def see(self, got, want, where):
        if got is None or not math.isfinite(got):
            raise Failed("%s: got %r instead of %.6g" % (where, got, want))
        d = abs(got - want)
        self.total += d
        self.n += 1
        if d > self.largest:
            self.largest, self.where = d, where

    def mean(self):
        return self.total / max(self.n, 1)


def expect(condition, text):
    if not condition:
        raise Failed(text)


def compare_scores(golden, model, tolerance, gap, options=()):
    """Scores every stored source and compares. Returns (log-probabilities, steps compared, steps that differ, steps)."""
    requests = []
    for source in golden.sources:
        requests.append({"source_ids": source["ids"], "target_ids": source["target_ids"], "top": 20})
        requests.append({"source_ids": source["ids"], "target_ids": source["greedy_ids"], "top": 2})
    answers = score(model, requests, options)
    worst = Worst()
    compared = differ = steps = 0
    for i, source in enumerate(golden.sources):
        target, greedy = answers[2 * i]["target"], answers[2 * i + 1]["target"]
        for entries, ids, at, what in ((target, source["target_ids"], source["target_at"], "target"),
                                       (greedy, source["greedy_ids"], source["greedy_at"], "greedy")):
            expect([e["id"] for e in entries] == ids, "source %d: the %s ids came back changed" % (i, what))
            for pos, (entry, want) in enumerate(zip(entries, golden.at(at, len(ids)))):
                worst.see(entry["logprob"], want, "source %d, %s position %d" % (i, what, pos))
        total = sum(e["logprob"] for e in target)
        expect(abs(answers[2 * i]["sum_logprob"] - total) < 1e-3 + 1e-5 * abs(total), "source %d: sum_logprob is not the sum" % i)

        # The best of the first step, as far as their order is not a matter of rounding.
        first, lse = source["first"], source["first"]["logsumexp"]
        want_first = dict(zip(first["top_ids"], golden.at(first["top_at"], len(first["top_ids"]))))
        got_first = {t["id"]: t["logprob"] for t in target[0]["top"]}
        expect(len(got_first) == 20, "source %d: asked for 20 alternatives, got %d" % (i, len(got_first)))
        lowest = min(want_first.values()) - lse
        for token, logit in want_first.items():
            if token in got_first:
                worst.see(got_first[token], logit - lse, "source %d, first step, id %d" % (i, token))
            elif tolerance is not None:
                expect(logit - lse - lowest < 2 * tolerance, "source %d: id %d is missing from the first step's best" % (i, token))

        for pos, (entry, wide) in enumerate(zip(greedy, golden.at(source["gap_at"], len(source["greedy_ids"])))):
            steps += 1
            if wide > gap:
                compared += 1
                differ += entry["top"][0]["id"] != source["greedy_ids"][pos]
    return worst, compared, differ, steps


def compare_texts(golden, model):
    """Sources that have a text: the program's own tokenizer gives the stored ids, and so the same score."""
    for source in golden.sources:
        if "text" not in source:
            continue
        by_text, by_ids = score(model, [{"source": source["text"], "target_ids": source["target_ids"]},
                                        {"source_ids": source["ids"], "target_ids": source["target_ids"]}])
        expect(by_text["source_ids"] == source["ids"], "the ids of %r are %r" % (source["text"], by_text["source_ids"]))
        expect(by_text["target"] == by_ids["target"], "the score of a text differs from that of its ids")


def model_numbers(mode, model, pairs):
    lines = "".join("%s;%s\n" % (",".join(map(str, s)), ",".join(map(str, t))) for s, t in pairs)
    return run([helper("model_numbers"), mode, model], input=lines.encode()).stdout


def tensors(model, pairs):
    """Per pair {name: (rows, width, values)}; "logits" holds all decoder rows."""
    data = model_numbers("tensors", model, pairs)
    out = [{} for _ in pairs]
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        pair, name, rows, width = data[at:end].decode().split(" ")
        rows, width = int(rows), int(width)
        values = array.array("f")
        values.frombytes(data[end + 1:end + 1 + 4 * rows * width])
        at = end + 1 + 4 * rows * width
        into = out[int(pair)]
        if name in into:    # the next decoder row
            into[name] = (into[name][0] + rows, width, into[name][2] + values)
        else:
            into[name] = (rows, width, values)
    return out


def compare_tensors(golden, model):
    """Encoder output, first-step logits and inner points. Differences are relative to a point's size where that is over 1."""
    inside = golden.index.get("probe")
    pairs = [(s["ids"], [0]) for s in golden.sources]
    if inside:
        pairs.append((golden.sources[inside["source"]]["ids"], [0] + inside["target_ids"]))
    got = tensors(model, pairs)
    worst = {"encoder output": Worst(), "first-step logits": Worst(), "inner points": Worst()}
    for i, source in enumerate(golden.sources):
        expect("enc.out" in got[i], "no point enc.out; there are: %s" % " ".join(sorted(got[i])))
        rows, width, values = got[i]["enc.out"]
        expect((rows, width) == (len(source["ids"]), golden.index["d_model"]), "source %d: enc.out is %d x %d" % (i, rows, width))
        encoder = source["encoder"]
        want = golden.at(encoder["at"], len(encoder["rows"]) * width)
        for k, row in enumerate(encoder["rows"]):
            for c in range(width):
                worst["encoder output"].see(values[row * width + c], want[k * width + c], "source %d, row %d, column %d" % (i, row, c))
        for what, total in (("sum", sum(values)), ("abs_sum", sum(map(abs, values)))):
            expect(abs(total - encoder[what]) < 1e-3 * len(values), "source %d: %s of the encoder output is %.6g, not %.6g" % (
                i, what, total, encoder[what]))
        _, n_vocab, logits = got[i]["logits"]
        expect(n_vocab == golden.index["n_vocab"], "%d logits instead of %d" % (n_vocab, golden.index["n_vocab"]))
        first = source["first"]
        for ids, at in ((golden.index["fixed_ids"], first["fixed_at"]), (first["top_ids"], first["top_at"])):
            for token, value in zip(ids, golden.at(at, len(ids))):
                worst["first-step logits"].see(logits[token], value, "source %d, id %d" % (i, token))
    for point in inside["points"] if inside else ():
        have = got[-1].get(point["name"])
        expect(have, "no point %s; there are: %s" % (point["name"], " ".join(sorted(got[-1]))))
        want = golden.at(point["at"], point["rows"] * point["width"])
        expect((have[0], have[1]) == (point["rows"], point["width"]), "%s is %d x %d" % (point["name"], have[0], have[1]))
        size = max(1.0, math.sqrt(sum(v * v for v in want) / len(want)))
        for k, value in enumerate(want):
            worst["inner points"].see(have[2][k] / size, value / size, "%s, value %d" % (point["name"], k))
    return {what: seen for what, seen in worst.items() if seen.n}


def main(test):
    """Runs `test` and turns a Failed into one line and exit status 1."""
    start = time.monotonic()
    try:
        test()
    except Failed as failed:
        print("FAILED: %s" % failed)
        sys.exit(1)
    print("ok, %.1f s" % (time.monotonic() - start))
