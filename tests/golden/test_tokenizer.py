#!/usr/bin/env python3
"""`inkstone tokenize` against the reference's ids on 34,193 strings (tokenizer/README.md), three vocabularies.

The token room's own unit test does the same without the program; this one goes through import, file and command.
"""

import array
import json
import os
import struct
import sys

import golden
from golden import ASSETS, HERE, PROGRAM, Folder, Golden, assets_path, expect, import_model, lines_of, make_checkpoint, run

SHAPES = {"umt5": "umt5", "t5": "tiny"}     # vocabulary: a small shape that has it


def fnv1a(data, basis=0x811C9DC5, prime=0x01000193, mask=0xFFFFFFFF):
    for byte in data:
        basis = ((basis ^ byte) * prime) & mask
    return basis


def read_strings(path):
    with open(path, "rb") as f:
        data = f.read()
    n, n_plain = struct.unpack_from("<II", data, 8)
    at, out = 16, []
    for _ in range(n):
        (size,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4:at + 4 + size].decode("utf-8"))
        at += 4 + size
    return out, n_plain


def read_hashes(n, n_plain):
    """{vocabulary: hash of what `tokenize` gives, for every string}"""
    with open(os.path.join(HERE, "tokenizer", "ids.bin"), "rb") as f:
        data = f.read()
    got = struct.unpack_from("<III", data, 8)
    expect(data[:8] == b"INKTOK1\n" and got == (n, n_plain, 3), "ids.bin is for other strings: %r" % (got,))
    columns = array.array("I")
    expect(columns.itemsize == 4, "unsigned int has not 32 bits")
    columns.frombytes(data[32:])
    out = {}
    for i, name in enumerate(("mt5", "umt5", "t5")):
        plain = columns[i * n:i * n + n_plain]
        special = columns[3 * n + i * (n - n_plain):3 * n + (i + 1) * (n - n_plain)]
        out[name] = plain + special
    return out


def mt5_model(folder):
    """A model with the mT5 vocabulary: the tiny shape's configuration, 32 wide, with 250,112 rows."""
    source = make_checkpoint(Golden("tiny"), folder)
    target = os.path.join(folder, "mt5-vocabulary")
    os.mkdir(target)
    with open(os.path.join(source, "config.json")) as f:
        config = json.load(f)
    config.update(vocab_size=250112, d_model=32, d_ff=32, d_kv=32, num_heads=1, num_layers=1, num_decoder_layers=1)
    with open(os.path.join(target, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(target, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "T5Tokenizer", "extra_ids": 0, "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}, f)
    os.symlink(assets_path("mt5.spiece.model"), os.path.join(target, "spiece.model"))

    header, at = {}, 0
    shapes = {"shared.weight": (250112, 32), "encoder.final_layer_norm.weight": (32,), "decoder.final_layer_norm.weight": (32,)}
    for stack, layers in (("encoder", ("SelfAttention", "DenseReluDense")), ("decoder", ("SelfAttention", "EncDecAttention", "DenseReluDense"))):
        for k, kind in enumerate(layers):
            name = "%s.block.0.layer.%d." % (stack, k)
            shapes[name + "layer_norm.weight"] = (32,)
            parts = ("wi_0", "wi_1", "wo") if kind == "DenseReluDense" else "qkvo"
            shapes.update({name + kind + "." + part + ".weight": (32, 32) for part in parts})
            if kind == "SelfAttention":
                shapes[name + "SelfAttention.relative_attention_bias.weight"] = (32, 1)
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(os.path.join(target, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)      # all weights zero
    return import_model(target, "q8_0", folder)


def check(vocabulary, model, strings, want):
    """U+0000 cannot be written in JSON for us; the unit test has those strings."""
    lot = [(i, s) for i, s in enumerate(strings) if "\0" not in s]
    lines = "".join(json.dumps(s, ensure_ascii=False) + "\n" for _, s in lot)
    done = run([PROGRAM, "tokenize", "-m", model, "--no-special", "--jsonl", "-"], input=lines.encode("utf-8"))
    answers = lines_of(done)
    expect(len(answers) == len(lot), "%s: %d answers to %d strings" % (vocabulary, len(answers), len(lot)))
    wrong = []
    for (i, text), answer in zip(lot, answers):
        ids = json.loads(answer).get("ids")
        if ids is None or fnv1a(struct.pack("<%di" % len(ids), *ids)) != want[i]:
            wrong.append((i, text, ids))
    print("%-4s  %d strings, %d differ" % (vocabulary, len(lot), len(wrong)))
    for i, text, ids in wrong[:5]:
        print("      string %d %r: %s" % (i, text[:60], ids and ids[:20]))
    expect(not wrong, "%s: the ids of %d strings differ from the reference's" % (vocabulary, len(wrong)))
    special = json.loads(run([PROGRAM, "tokenize", "-m", model, "--json", "hello"]).stdout)
    plain = json.loads(run([PROGRAM, "tokenize", "-m", model, "--json", "--no-special", "hello"]).stdout)
    expect(special["ids"] == plain["ids"] + [1], "%s: tokenize does not end with </s>" % vocabulary)


def test():
    with Folder() as folder:
        path = os.path.join(folder, "strings.bin")
        run([sys.executable, os.path.join(HERE, "tokenizer", "make_strings.py"), ASSETS, path])
        strings, n_plain = read_strings(path)
        want = read_hashes(len(strings), n_plain)
        for vocabulary in ("mt5", "umt5", "t5"):
            if vocabulary == "mt5":
                model = mt5_model(folder)
            else:
                model = import_model(make_checkpoint(Golden(SHAPES[vocabulary]), folder), "q8_0", folder)
            check(vocabulary, model, strings, want[vocabulary])
            os.unlink(model)


if __name__ == "__main__":
    golden.main(test)
