#!/usr/bin/env python3
"""Makes tests/golden/data/SHAPE.json and SHAPE.f32: what the reference computes for a golden shape.

    make_golden.py ASSETS_DIR OUT_DIR [SHAPE...] [--study]

Runs in the reference environment (tools/reference-env.sh). The reference is transformers in float32 with eager
attention on the weights of weights.py. The files are described in tests/golden/README.md. --study also prints how far
the reference is from float64 and what rounding the weights to f16 and bf16 does to it; nothing of that is stored.
"""

import argparse
import hashlib
import json
import os
import sys

import numpy as np
import sentencepiece
import torch
import transformers
from transformers import (MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration, UMT5Config,
                          UMT5ForConditionalGeneration)

import weights

CLASSES = {"t5": (T5Config, T5ForConditionalGeneration), "mt5": (MT5Config, MT5ForConditionalGeneration),
           "umt5": (UMT5Config, UMT5ForConditionalGeneration)}
N_TARGET = N_GREEDY = 24
N_TOP = 20
N_FIXED = 200

LENGTHS = {"tiny": (3, 5, 8, 12, 17, 31, 48, 64, 100, 150, 220, 300), "base": (9, 24, 40, 48, 60, 200)}
LENGTHS_OTHER = (3, 6, 9, 16, 27, 40, 80, 130)
TEXTS = {"mt5": "这家餐厅的味道非常好，服务也很周到。", "umt5": "这家餐厅的味道非常好，服务也很周到。",
         "t5": "The food in this restaurant was very good, and the service was friendly."}


def draw(name, n, low, high):
    """n ids in [low, high), a function of the name."""
    return [low + int((float(v) + 1.0) / 2.0 * (high - low)) for v in weights.unit("golden." + name, n)]


def build(s, tensors, dtype=torch.float32):
    config_class, model_class = CLASSES[s.model_type]
    config = config_class(**weights.config_of(s))
    config._attn_implementation = "eager"
    with torch.device("meta"):
        model = model_class(config)
    state = {name: torch.from_numpy(t).to(dtype) for name, t in tensors.items()}
    for alias in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        state[alias] = state["shared.weight"]
    if not s.has_lm_head:
        state["lm_head.weight"] = state["shared.weight"]
    model.load_state_dict(state, strict=True, assign=True)
    model.eval()
    assert (model.lm_head.weight.data_ptr() == model.shared.weight.data_ptr()) == (not s.has_lm_head)
    assert model.config._attn_implementation == "eager"
    scaled = getattr(model.config, "scale_decoder_outputs", False)
    assert scaled == (s.model_type == "t5" and not s.has_lm_head), "only T5 v1.0 scales the decoder's output"
    return model


def log_probabilities(model, encoder, targets):
    """Log-probabilities of every row's distribution, [n_targets, vocabulary], in float64."""
    inputs = torch.tensor([[0] + targets[:-1]])
    logits = model(encoder_outputs=encoder, decoder_input_ids=inputs, use_cache=False).logits[0]
    return logits, torch.log_softmax(logits.double(), -1)


def greedy(model, encoder):
    ids, gaps, token, past = [], [], torch.tensor([[0]]), None
    for _ in range(N_GREEDY):
        out = model(encoder_outputs=encoder, decoder_input_ids=token, past_key_values=past, use_cache=True)
        past = out.past_key_values
        top = torch.topk(out.logits[0, -1].double(), 2)
        ids.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        token = top.indices[:1][None]
    return ids, gaps


class Floats:
    """The .f32 file while it grows; add() returns where the values lie, counted in floats."""

    def __init__(self):
        self.parts, self.n = [], 0

    def add(self, values):
        values = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
        at = self.n
        self.parts.append(values)
        self.n += len(values)
        return at


def probe(model, ids, targets, floats):
    """Outputs of the modules inside, for one source and the first rows of its target."""
    points, hooks = [], []

    def keep(name, module):
        def hook(_, __, output):
            value = output[0] if isinstance(output, tuple) else getattr(output, "last_hidden_state", output)
            value = value[0].float()
            points.append({"name": name, "rows": value.shape[0], "width": value.shape[1], "at": floats.add(value.numpy())})
        hooks.append(module.register_forward_hook(hook))

    for short, stack in (("enc", model.encoder), ("dec", model.decoder)):
        for i, block in enumerate(stack.block):
            keep("%s.%d.attn_out" % (short, i), block.layer[0].SelfAttention)
            if short == "dec":
                keep("%s.%d.cross_out" % (short, i), block.layer[1].EncDecAttention)
            keep("%s.%d.ffn_out" % (short, i), block.layer[-1].DenseReluDense)
        keep(short + ".out", stack)
    model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0] + targets[:3]]), use_cache=False)
    for hook in hooks:
        hook.remove()
    return points


def rows_to_keep(n):
    return list(range(n)) if n <= 6 else sorted({0, 1, n // 3, n // 2, n - 2, n - 1})


def sources_of(s, assets):
    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(assets, s.vocabulary + ".spiece.model"))
    n_pieces = sp.vocab_size()
    for i, length in enumerate(LENGTHS.get(s.name, LENGTHS_OTHER)):
        yield None, draw("%s.source.%d" % (s.name, i), length - 1, 3, n_pieces) + [1]
    yield TEXTS[s.vocabulary], sp.encode(TEXTS[s.vocabulary]) + [1]


def make(s, assets, out):
    tensors = {name: weights.tensor_f32(s, name, shape) for name, shape in weights.tensor_shapes(s).items()}
    model = build(s, tensors)
    del tensors
    floats, sources = Floats(), []
    n_vocab = s.vocab_size
    fixed = sorted(set(draw(s.name + ".fixed", N_FIXED, 0, n_vocab)))
    n_gaps = n_wide = 0
    largest = 0.0
    for i, (text, ids) in enumerate(sources_of(s, assets)):
        encoder = model.encoder(input_ids=torch.tensor([ids]))
        hidden = encoder.last_hidden_state[0]
        largest = max(largest, float(hidden.abs().max()))
        rows = rows_to_keep(len(ids))
        target = draw("%s.target.%d" % (s.name, i), N_TARGET - 1, 3, n_vocab) + [1]
        logits, lp = log_probabilities(model, encoder, target)
        assert torch.isfinite(logits).all()
        top = torch.topk(logits[0], N_TOP)
        greedy_ids, gaps = greedy(model, encoder)
        _, greedy_lp = log_probabilities(model, encoder, greedy_ids)
        n_gaps += len(gaps)
        n_wide += sum(g > 4e-3 for g in gaps)
        entry = {
            "ids": ids,
            "encoder": {"rows": rows, "at": floats.add(hidden[rows].numpy()), "sum": float(hidden.double().sum()),
                        "abs_sum": float(hidden.double().abs().sum())},
            "first": {"top_ids": top.indices.tolist(), "top_at": floats.add(top.values.numpy()),
                      "fixed_at": floats.add(logits[0][fixed].numpy()),
                      "logsumexp": float(torch.logsumexp(logits[0].double(), 0))},
            "target_ids": target,
            "target_at": floats.add(lp[range(N_TARGET), target].numpy()),
            "greedy_ids": greedy_ids,
            "greedy_at": floats.add(greedy_lp[range(N_GREEDY), greedy_ids].numpy()),
            "gap_at": floats.add(gaps),
        }
        if text:
            entry["text"] = text
        sources.append(entry)
    index = {
        "shape": s.name, "vocabulary": s.vocabulary, "d_model": s.d_model, "n_vocab": n_vocab,
        "reference": "transformers %s, torch %s, float32, eager attention" % (transformers.__version__, torch.__version__.split("+")[0]),
        "fixed_ids": fixed, "sources": sources,
    }
    if s.name != "base":
        index["probe"] = {"source": 0, "target_ids": sources[0]["target_ids"][:3],
                          "points": probe(model, sources[0]["ids"], sources[0]["target_ids"], floats)}
    data = np.concatenate(floats.parts).tobytes()
    index["f32_sha256"] = hashlib.sha256(data).hexdigest()
    with open(os.path.join(out, s.name + ".f32"), "wb") as f:
        f.write(data)
    with open(os.path.join(out, s.name + ".json"), "w", encoding="utf-8") as f:
        json.dump(index, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    print("%s: %d sources, %d floats, |encoder output| <= %.3g, %d of %d greedy steps have a gap over 4e-3, distinct greedy ids %d"
          % (s.name, len(sources), floats.n, largest, n_wide, n_gaps, len({i for e in sources for i in e["greedy_ids"]})))
    return index, model


def study(s, index):
    """How far f64, and weights rounded to f16 and bf16, are from the reference."""
    tensors = {name: weights.tensor_f32(s, name, shape) for name, shape in weights.tensor_shapes(s).items()}
    reference = build(s, tensors)
    variants = []
    if s.name != "base":
        variants.append(("f64", build(s, tensors, torch.float64)))
    for kind in (torch.float16, torch.bfloat16):
        rounded = {n: torch.from_numpy(t).to(kind).float().numpy() if t.ndim == 2 else t for n, t in tensors.items()}
        variants.append((str(kind), build(s, rounded)))
    for kind, model in variants:
        worst, total, n, differ, wide = 0.0, 0.0, 0, 0, 0
        for entry in index["sources"][:3] if s.name == "base" else index["sources"]:
            ids = torch.tensor([entry["ids"]])
            a, b = reference.encoder(input_ids=ids), model.encoder(input_ids=ids)
            for targets in (entry["target_ids"], entry["greedy_ids"]):
                la, pa = log_probabilities(reference, a, targets)
                lb, pb = log_probabilities(model, b, targets)
                d = (pa - pb)[range(len(targets)), targets].abs()
                worst, total, n = max(worst, float(d.max())), total + float(d.sum()), n + len(targets)
                pair = torch.topk(la.double(), 2).values
                clear = pair[:, 0] - pair[:, 1] > 4e-2
                wide += int(clear.sum())
                differ += int(((la.argmax(-1) != lb.argmax(-1)) & clear).sum())
        print("  %-14s max |d logprob| %.3g  mean %.3g  argmax differs in %d of %d steps with a gap over 4e-2 (of %d)"
              % (kind, worst, total / n, differ, wide, n))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assets")
    parser.add_argument("out")
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--study", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(2)
    os.makedirs(args.out, exist_ok=True)
    with torch.inference_mode():
        for name in args.shapes or weights.SHAPES:
            index, model = make(weights.SHAPES[name], args.assets, args.out)
            del model
            if args.study:
                study(weights.SHAPES[name], index)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
