#!/usr/bin/env python3
"""The small golden shapes: log-probabilities, greedy choices, encoder output and inner tensors against the reference.

    test_shapes.py [SHAPE [TYPE...]]

prints what was observed. Without arguments: the whole plan below.
"""

import sys

import golden
from golden import Failed, Folder, Golden, compare_scores, compare_tensors, compare_texts, expect, import_model, make_checkpoint

# Largest difference of a log-probability allowed. "exact" types: CONTRACT.md. The others lose something by design;
# their bounds, on the largest and on the mean difference, are what was measured, plus half.
TOLERANCE = {"f32": 2e-3, "f16": 2e-2, "bf16": 2e-2}

# A wider type than the file's loses nothing but time, a narrower one rounds the weights: bf16 is held to its
# tolerance where the checkpoint itself is bf16 (rounding the others' weights alone moves log-probabilities by up to 0.08).
PLAN = {
    "tiny": ("f32", "f16", "bf16", "i8", "q8_0", "q4_0"),
    "odd": ("f32", "f16", "i8", "q8_0", "q4_k"),
    "t5v10": ("f32", "f16", "i8"),
    "t5v11": ("f32", "f16", "bf16", "i8"),
    "umt5": ("f32", "i8"),
    "overflow": ("f32", "f16", "i8", "q8_0"),
    "mid": ("f32", "f16", "bf16", "i8", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k"),
}

# type: (mean, largest) loss allowed where the logits' standard deviation is 2.3 and the layers are few. Losses grow
# with the spread of the logits (twice as wide in two shapes) and with depth (24 layers in `base`).
LOSS = {
    "bf16": (0.04, 0.25),
    "i8": (0.07, 0.4),
    "q8_0": (0.11, 0.5),
    "q6_k": (0.25, 1.2),
    "q5_k": (0.5, 2.0),
    "q4_k": (0.95, 4.0),
    "q4_0": (1.1, 6.0),
}
WIDER = {"t5v11": 2.0, "overflow": 2.0, "base": 2.0}


def check_exact(g, kind, model):
    tolerance = TOLERANCE[kind]
    worst, compared, differ, steps = compare_scores(g, model, tolerance, 2 * tolerance)
    print("%-8s %-4s  log-probabilities: %d, max |d| %.3g, mean %.3g; greedy: %d of %d steps compared, %d differ" % (
        g.shape, kind, worst.n, worst.largest, worst.mean(), compared, steps, differ))
    expect(worst.largest <= tolerance, "%s %s: a log-probability is %.3g off (%s), limit %g" % (
        g.shape, kind, worst.largest, worst.where, tolerance))
    expect(differ == 0, "%s %s: %d greedy ids differ" % (g.shape, kind, differ))
    if kind == "f32":
        expect(compared >= 0.95 * steps, "%s: only %d of %d greedy steps have a gap over %g" % (g.shape, compared, steps, 2 * tolerance))
    for what, seen in compare_tensors(g, model).items():
        print("%-8s %-4s  %s: %d values, max |d| %.3g" % (g.shape, kind, what, seen.n, seen.largest))
        expect(seen.largest <= tolerance, "%s %s: %s is %.3g off (%s), limit %g" % (
            g.shape, kind, what, seen.largest, seen.where, tolerance))


def check_loss(g, kind, model):
    mean, largest = (WIDER.get(g.shape, 1.0) * bound for bound in LOSS[kind])
    worst, compared, differ, steps = compare_scores(g, model, None, 0.0)
    print("%-8s %-4s  loss: max %.3g, mean %.3g over %d log-probabilities; greedy ids equal: %d of %d" % (
        g.shape, kind, worst.largest, worst.mean(), worst.n, compared - differ, steps))
    expect(worst.largest <= largest and worst.mean() <= mean, "%s %s: the loss (max %.3g at %s, mean %.3g) is over its bounds (%g, %g)" % (
        g.shape, kind, worst.largest, worst.where, worst.mean(), largest, mean))


def is_exact(shape, kind):
    return kind in TOLERANCE and (kind != "bf16" or shape == "t5v11")


def check_shape(shape, kinds):
    g = Golden(shape)
    failures = []
    with Folder() as folder:
        checkpoint = make_checkpoint(g, folder)
        for kind in kinds:
            try:
                model = import_model(checkpoint, kind, folder)
                (check_exact if is_exact(shape, kind) else check_loss)(g, kind, model)
                if kind == "f32":
                    compare_texts(g, model)
            except Failed as failed:
                print("%s %s: %s" % (shape, kind, failed))
                failures.append("%s %s" % (shape, kind))
    return failures


def test():
    plan = PLAN
    if len(sys.argv) > 1:
        plan = {sys.argv[1]: sys.argv[2:] or PLAN[sys.argv[1]]}
    failures = [f for shape, kinds in plan.items() for f in check_shape(shape, kinds)]
    if failures:
        raise Failed(", ".join(failures))


if __name__ == "__main__":
    golden.main(test)
