#!/usr/bin/env python3
"""What int8 weights cost a trained model, by kind of layer.

    loss_by_kind.py FOLDER PAIRS.tsv --inkstone build/inkstone [--count 300]

FOLDER is a Hugging Face mT5 folder, PAIRS.tsv has "source TAB target" lines. For each kind of matrix, only its weights
are rounded as type i8 rounds them (one scale per output channel), everything else stays f32, and the program scores the
targets. Printed: the mean change of a target token's negative log-probability, in perplexity, and its largest change.
The last rows are the real types of the whole model, which also round the embedding or the activations.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

KINDS = {
    "self-attention q, k, v": r"SelfAttention\.[qkv]\.",
    "self-attention o": r"SelfAttention\.o\.",
    "cross-attention q, k, v": r"EncDecAttention\.[qkv]\.",
    "cross-attention o": r"EncDecAttention\.o\.",
    "feed-forward wi": r"DenseReluDense\.wi",
    "feed-forward wo": r"DenseReluDense\.wo\.",
    "output head": r"^lm_head\.",
    "embedding": r"^shared\.",
    "all of these": r"SelfAttention|EncDecAttention|DenseReluDense|lm_head|shared",
}


def rounded(w):
    """One scale per output channel: a row of w."""
    scale = np.abs(w).max(axis=1, keepdims=True) / 127
    scale[scale == 0] = 1
    return (np.rint(w / scale) * scale).astype(np.float32)


def score(program, model, pairs, *options):
    lines = "".join(json.dumps({"source": s, "target": t}, ensure_ascii=False) + "\n" for s, t in pairs)
    done = subprocess.run([program, "score", "-m", model, "--jsonl", "-", *options], input=lines, text=True, encoding="utf-8", stdout=subprocess.PIPE, check=True)
    return np.array([t["logprob"] for line in done.stdout.splitlines() for t in json.loads(line)["target"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("pairs")
    parser.add_argument("--inkstone", default="build/inkstone")
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    with open(args.pairs, encoding="utf-8") as f:
        pairs = [line.rstrip("\n").split("\t")[:2] for line, _ in zip(f, range(args.count))]
    with open(os.path.join(args.folder, "inkstone.json"), encoding="utf-8") as f:
        prompt = json.load(f).get("prompt", "{text}")
    pairs = [(prompt.replace("{text}", s), t) for s, t in pairs]
    weights = load_file(os.path.join(args.folder, "model.safetensors"))

    with tempfile.TemporaryDirectory() as work:
        changed = os.path.join(work, "hf")
        shutil.copytree(args.folder, changed)

        def imported(tensors, kind):
            save_file(tensors, os.path.join(changed, "model.safetensors"), metadata={"format": "pt"})
            out = os.path.join(work, "model.gguf")
            subprocess.run([args.inkstone, "import", changed, "-o", out, "--type", kind], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return out

        exact = score(args.inkstone, imported(weights, "f32"), pairs)
        print("%d pairs, %d target tokens, perplexity %.4f" % (len(pairs), len(exact), np.exp(-exact.mean())))
        print("%-26s %10s %10s %10s" % ("rounded", "perplexity", "mean |d|", "max |d|"))

        def report(name, logprobs):
            d = np.abs(logprobs - exact)
            print("%-26s %+9.3f %% %10.4f %10.4f" % (name, 100 * (np.exp(exact.mean() - logprobs.mean()) - 1), d.mean(), d.max()), flush=True)

        for name, pattern in KINDS.items():
            tensors = {k: rounded(v) if v.ndim == 2 and re.search(pattern, k) and "relative_attention_bias" not in k else v for k, v in weights.items()}
            report(name, score(args.inkstone, imported(tensors, "f32"), pairs))
        for kind in ("i8", "q8_0", "f16"):
            report("type " + kind, score(args.inkstone, imported(weights, kind), pairs))


if __name__ == "__main__":
    main()
