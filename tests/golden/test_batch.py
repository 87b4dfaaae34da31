#!/usr/bin/env python3
"""A batch gives each text what it gets alone: 16 sources of 3 to 300 tokens, together and one by one, bit for bit.

Once through the model room (logits of the full vocabulary), once through `inkstone rewrite` on many lines, and once through `score`.
"""

import json

import golden
from golden import PROGRAM, Failed, Folder, Golden, expect, import_model, lines_of, make_checkpoint, model_numbers, run, score

LENGTHS = (3, 7, 12, 20, 31, 45, 60, 80, 100, 130, 160, 190, 220, 250, 280, 300)
KINDS = ("f32", "i8", "q8_0")
ALONE = (0, 4, 9, 15)       # of these the score is also asked in a process of its own
N_STEPS = 5


def ids(seed, n):
    """n ids of the T5 vocabulary, a fixed function of the seed."""
    out, state = [], seed * 2654435761 % 2**32
    for _ in range(n):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(3 + (state >> 8) % 31990)
    return out


def check_model(kind, model):
    pairs = [(ids(i + 1, n - 1) + [1], [0] + ids(i + 101, N_STEPS - 1)) for i, n in enumerate(LENGTHS)]
    print("tiny %-4s  %s" % (kind, model_numbers("batch", model, pairs).decode().strip()))


def check_score(kind, model):
    requests = [{"source_ids": ids(i + 1, n - 1) + [1], "target_ids": ids(i + 101, N_STEPS) + [1], "top": 3} for i, n in enumerate(LENGTHS)]
    together = score(model, requests)
    for i in ALONE:
        alone = score(model, [requests[i]])[0]
        for answer in (together[i], alone):
            answer.pop("index", None)
        expect(together[i] == alone, "%s: the score of source %d differs when 15 others are scored in the same call" % (kind, i))
    print("tiny %-4s  score: equal in a call of 16 sources and alone" % kind)


def rewrites(model, texts):
    command = [PROGRAM, "rewrite", "-m", model, "-n", "2", "--temperature", "0.8", "--seed", "7", "--scripts", "all", "--max-tokens", "12",
               "--details", "--jsonl", "-"]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = run(command, input=lines.encode())
    return [json.loads(line)["rewrites"] for line in lines_of(done)]


def check_rewrite(kind, model):
    words = "the hotel room was clean and the staff at breakfast were friendly but parking is expensive".split()
    texts = [" ".join(words[(3 * i + k * (k + 1)) % len(words)] for k in range(2 + 3 * i)) for i in range(16)]
    together = rewrites(model, texts)
    expect(len(together) == len(texts), "%s: %d answers to %d texts" % (kind, len(together), len(texts)))
    # Text i of a call with seed s draws with (s, i): only the first text is comparable by itself, so the others
    # are compared within a longer and a shorter call.
    for count in (1, 5, 11):
        expect(rewrites(model, texts[:count]) == together[:count], "%s: the rewrites of the first %d texts change when more follow" % (kind, count))
    print("tiny %-4s  rewrite: tokens and log-probabilities equal in calls of 1, 5, 11 and 16 texts" % kind)


def test():
    g = Golden("tiny")
    failures = []
    with Folder() as folder:
        checkpoint = make_checkpoint(g, folder)
        for kind in KINDS:
            model = import_model(checkpoint, kind, folder)
            for check in (check_model, check_score, check_rewrite):
                try:
                    check(kind, model)
                except Failed as failed:
                    print("%s %s: %s" % (kind, check.__name__, failed))
                    failures.append("%s %s" % (kind, check.__name__))
    if failures:
        raise Failed(", ".join(failures))


if __name__ == "__main__":
    golden.main(test)
