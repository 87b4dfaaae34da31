#!/usr/bin/env python3
"""Judges a rewriting model on the held-out and the hand-written sentences.

  evaluate.py --hf demo-hf               with transformers (the training environment)
  evaluate.py --inkstone build/inkstone --model models/inkstone-demo.gguf     with the real program, plain Python
  options: --heldout FILE --hand FILE --seed 1 --temperature 0.85 --top-p 0.9 --show N --require 0.9

Prints the share of first candidates without a fault (see checker.py). With --require, exits with 1 when the held-out
share is lower. "raw" counts every first draw; the product itself draws again (at most 3 times) when a candidate equals
its source, and so does "first candidate" here.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter

import checker

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = "这家餐厅的味道非常好，服务也很周到。"


def read(path):
    rows = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            text, _, keep = line.rstrip("\n").partition("\t")
            rows.append((text, [w for w in keep.split("|") if w]))
    return rows


class HuggingFace:
    """Samples as the product does: temperature, then top-p; a candidate that equals its source or an earlier one is drawn again."""

    def __init__(self, folder, args):
        import sentencepiece
        import torch
        from safetensors.torch import load_file
        from transformers import MT5Config, MT5ForConditionalGeneration

        self.torch, self.args = torch, args
        torch.set_num_threads(args.threads)
        self.sp = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/spiece.model")
        with open(f"{folder}/config.json", encoding="utf-8") as f:
            config = json.load(f)
        self.model = MT5ForConditionalGeneration(MT5Config(**{k: v for k, v in config.items() if k not in ("architectures", "model_type", "torch_dtype")}))
        tensors = load_file(f"{folder}/model.safetensors")
        # transformers ties the head whatever the config says; the file's own head counts.
        self.model.lm_head.weight = torch.nn.Parameter(tensors["lm_head.weight"].clone())
        self.model.load_state_dict(tensors, strict=False)
        self.model.eval()
        self.model.generation_config.update(pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
        with open(f"{folder}/inkstone.json", encoding="utf-8") as f:
            self.prompt = json.load(f)["prompt"]

    def sample(self, texts):
        torch = self.torch
        rows = [self.sp.encode(self.prompt.replace("{text}", t), add_eos=True) for t in texts]
        width = max(map(len, rows))
        ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
        how = dict(do_sample=True, temperature=self.args.temperature, top_p=self.args.top_p, top_k=0) if self.args.temperature > 0 else dict(do_sample=False)
        with torch.no_grad():
            out = self.model.generate(input_ids=ids, attention_mask=(ids != 0).long(), max_new_tokens=64, **how)
        return [self.sp.decode([i for i in row if i > 1]) for row in out.tolist()]

    def rewrites(self, texts, n):
        """Returns (candidates per text, first raw draw per text)."""
        self.torch.manual_seed(self.args.seed)
        found, raw = [[] for _ in texts], None
        for _ in range(n):
            todo = list(range(len(texts)))
            for attempt in range(4):
                drawn = []
                for i in range(0, len(todo), 64):
                    drawn += self.sample([texts[j] for j in todo[i:i + 64]])
                if raw is None:
                    raw = drawn
                left = []
                for j, text in zip(todo, drawn):
                    if attempt < 3 and (checker.plain(text) == checker.plain(texts[j]) or text in found[j] or not text):
                        left.append(j)
                    else:
                        found[j].append(text)
                todo = left
                if not todo:
                    break
        return found, raw


class Inkstone:
    """Asks the program: one text a line in, one JSON document a line out."""

    def __init__(self, program, model, args):
        self.command = [program, "rewrite", *(["-m", model] if model else []), "--seed", str(args.seed), "--temperature", str(args.temperature), "--top-p", str(args.top_p), "--json"]

    def rewrites(self, texts, n):
        done = subprocess.run(self.command + ["-n", str(n), "-"], input="\n".join(texts) + "\n", capture_output=True, encoding="utf-8", check=False)
        # Status 1 with answers: some texts got no usable candidate; those count as faults ("empty").
        if done.returncode not in (0, 1) or not done.stdout.strip():
            sys.exit(f"{self.command[0]}: exit status {done.returncode}: {done.stderr.strip()}")
        found = [[] for _ in texts]
        for at, line in enumerate(line for line in done.stdout.splitlines() if line.strip()):
            answer = json.loads(line)
            found[answer.get("index", at)] = [c["text"] for c in answer.get("rewrites") or []]
        return found, None


def judge(title, rows, model, show):
    found, raw = model.rewrites([t for t, _ in rows], 1)
    kinds, good, bad = Counter(), 0, []
    for (text, keep), candidates in zip(rows, found):
        rewrite = candidates[0] if candidates else ""
        faults = checker.check(text, rewrite, keep)
        good += not faults
        for fault in faults:
            kinds[fault.split(":")[0]] += 1
        if faults:
            bad.append((text, rewrite, faults))
    for text, rewrite, faults in bad[:show]:
        print(f"  {text}\n  -> {rewrite}  {' '.join(faults)}")
    line = f"{title}: {good} of {len(rows)} without a fault ({100 * good / len(rows):.1f} %)"
    if raw is not None:
        clean = sum(not checker.check(t, r, k) for (t, k), r in zip(rows, raw))
        line += f"; raw first draws {100 * clean / len(rows):.1f} %"
    if kinds:
        line += "; faults: " + ", ".join(f"{k} {v}" for k, v in kinds.most_common())
    print(line, flush=True)
    return good / len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hf")
    parser.add_argument("--inkstone")
    parser.add_argument("--model")
    parser.add_argument("--heldout", default=f"{HERE}/heldout.tsv")
    parser.add_argument("--hand", default=f"{HERE}/hand.txt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.85)
    parser.add_argument("--top-p", type=float, default=0.9)
    parser.add_argument("--show", type=int, default=0, help="how many faulty rewrites to print")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--require", type=float, default=0.0)
    parser.add_argument("--all", action="store_true", help="print every hand-written sentence with its rewrite")
    args = parser.parse_args()
    if bool(args.hf) == bool(args.inkstone):
        parser.error("give either --hf or --inkstone")
    random.seed(args.seed)
    model = HuggingFace(args.hf, args) if args.hf else Inkstone(args.inkstone, args.model, args)
    share = judge("held-out", read(args.heldout), model, args.show)
    hand = read(args.hand)
    judge("hand-written (no bound)", hand, model, args.show)
    if args.all:
        for (text, _), candidates in zip(hand, model.rewrites([t for t, _ in hand], 1)[0]):
            print(f"  {text} -> {candidates[0] if candidates else ''}")
    for candidate in model.rewrites([EXAMPLE], 3)[0][0]:
        print(f"example: {EXAMPLE} -> {candidate}")
    checker.report(False)
    if share < args.require:
        sys.exit(f"held-out share {share:.3f} is under {args.require}")


if __name__ == "__main__":
    main()
