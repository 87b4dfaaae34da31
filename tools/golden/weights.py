"""The made-up weights of the golden shapes, with numpy; the twin of tests/golden/make_checkpoint.c.

The recipe stands in tests/golden/README.md, "Weights". Run as a program it checks the twin:

    weights.py MAKE_CHECKPOINT ASSETS_DIR [SHAPE...]

makes each checkpoint with the C program and compares the bytes of every tensor with these.
"""

import dataclasses
import hashlib
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

SEED = 20240229
GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    model_type: str
    vocabulary: str
    vocab_size: int
    d_model: int
    d_kv: int
    n_heads: int
    d_ff: int
    n_encoder: int
    n_decoder: int
    n_buckets: int = 32
    max_distance: int = 128
    gated: bool = True
    has_lm_head: bool = True
    has_copies: bool = False
    dtype: str = "F32"
    epsilon: float = 1e-6
    gain_embed: float = 1.75
    gain_head: float = 4.0
    gain_q: float = 2.5
    gain_wi: float = 2.5
    gain_wo: float = 1.75


# Keep in step with make_checkpoint.c.
SHAPES = {s.name: s for s in (
    Shape("tiny", "mt5", "t5", 32128, 64, 16, 4, 128, 2, 2),
    Shape("odd", "mt5", "t5", 32128, 96, 24, 5, 168, 4, 2, n_buckets=16, max_distance=64, has_copies=True, epsilon=1e-5),
    Shape("t5v10", "t5", "t5", 32128, 64, 16, 4, 128, 3, 3, gated=False, has_lm_head=False, gain_embed=4.0, gain_head=0.0,
          gain_wo=30.0),
    Shape("t5v11", "t5", "t5", 32128, 64, 32, 2, 160, 2, 3, dtype="BF16", gain_head=8.0),
    Shape("umt5", "umt5", "umt5", 256384, 64, 16, 4, 128, 2, 2),
    Shape("overflow", "mt5", "t5", 32128, 64, 16, 4, 256, 3, 3, dtype="F16", gain_head=8.0, gain_wi=250.0, gain_wo=14.0),
    Shape("mid", "mt5", "t5", 32128, 256, 64, 4, 512, 4, 4),
    Shape("base", "mt5", "mt5", 250112, 768, 64, 12, 2048, 12, 12),
)}


def mix64(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def fnv1a64(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def unit(name, n):
    """n values of a tensor, uniform in [-1, 1) on a grid of 2^-23."""
    out = np.empty(n, dtype=np.float32)
    with np.errstate(over="ignore"):
        key = mix64(np.array([(fnv1a64(name) + SEED * GOLDEN) & MASK], dtype=np.uint64))[0]
        for at in range(0, n, 1 << 20):
            i = np.arange(at + 1, min(at + (1 << 20), n) + 1, dtype=np.uint64)
            h = mix64(key + i * np.uint64(GOLDEN))
            out[at:at + len(i)] = ((h >> np.uint64(40)).astype(np.int32) - (1 << 23)).astype(np.float32) * np.float32(2.0 ** -23)
    return out


def scale_of(s, name):
    """The factor of v for a tensor; None for a norm, which is 1 + v/8."""
    width, inner = float(s.d_model), float(s.n_heads * s.d_kv)
    if name.endswith("layer_norm.weight"):
        return None
    if name.endswith("relative_attention_bias.weight"):
        return np.float32(1.5)
    if name == "shared.weight":
        return np.float32(s.gain_embed)
    if name == "lm_head.weight":
        return np.float32(s.gain_head / math.sqrt(width))
    if name.endswith(".q.weight"):
        return np.float32(s.gain_q / math.sqrt(width * s.d_kv))
    if name.endswith(".o.weight"):
        return np.float32(1.75 / math.sqrt(inner))
    if name.endswith(".wo.weight"):
        return np.float32(s.gain_wo / math.sqrt(float(s.d_ff)))
    if ".wi" in name:
        return np.float32(s.gain_wi / math.sqrt(width))
    return np.float32(1.75 / math.sqrt(width))


def tensor_shapes(s):
    """Ordered {name: shape}."""
    out, inner = {}, s.n_heads * s.d_kv

    def attention(stack, block, layer, kind, has_bias):
        at = "%s.block.%d.layer.%d." % (stack, block, layer)
        for part in "qkv":
            out[at + kind + "." + part + ".weight"] = (inner, s.d_model)
        out[at + kind + ".o.weight"] = (s.d_model, inner)
        if has_bias:
            out[at + kind + ".relative_attention_bias.weight"] = (s.n_buckets, s.n_heads)
        out[at + "layer_norm.weight"] = (s.d_model,)

    def feed_forward(stack, block, layer):
        at = "%s.block.%d.layer.%d." % (stack, block, layer)
        for part in ("wi_0", "wi_1") if s.gated else ("wi",):
            out[at + "DenseReluDense." + part + ".weight"] = (s.d_ff, s.d_model)
        out[at + "DenseReluDense.wo.weight"] = (s.d_model, s.d_ff)
        out[at + "layer_norm.weight"] = (s.d_model,)

    everywhere = s.model_type == "umt5"
    out["shared.weight"] = (s.vocab_size, s.d_model)
    if s.has_copies:
        out["encoder.embed_tokens.weight"] = out["decoder.embed_tokens.weight"] = (s.vocab_size, s.d_model)
    for i in range(s.n_encoder):
        attention("encoder", i, 0, "SelfAttention", i == 0 or everywhere)
        feed_forward("encoder", i, 1)
    out["encoder.final_layer_norm.weight"] = (s.d_model,)
    for i in range(s.n_decoder):
        attention("decoder", i, 0, "SelfAttention", i == 0 or everywhere)
        attention("decoder", i, 1, "EncDecAttention", False)
        feed_forward("decoder", i, 2)
    out["decoder.final_layer_norm.weight"] = (s.d_model,)
    if s.has_lm_head:
        out["lm_head.weight"] = (s.vocab_size, s.d_model)
    return out


def narrow_bf16(values):
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def tensor_stored(s, name, shape):
    """The tensor as stored: float32, float16, or bfloat16 as uint16."""
    source = "shared.weight" if name.endswith("embed_tokens.weight") else name
    v = unit(source, math.prod(shape))
    scale = scale_of(s, source)
    values = np.float32(1) + np.float32(0.125) * v if scale is None else scale * v
    if s.dtype == "F16":
        values = values.astype(np.float16)
    elif s.dtype == "BF16":
        values = narrow_bf16(values)
    return values.reshape(shape)


def tensor_f32(s, name, shape):
    """The stored tensor, widened to float32: what the reference computes with."""
    values = tensor_stored(s, name, shape)
    if s.dtype == "BF16":
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(np.float32)


def config_of(s):
    return {"model_type": s.model_type, "vocab_size": s.vocab_size, "d_model": s.d_model, "d_kv": s.d_kv, "num_heads": s.n_heads,
            "d_ff": s.d_ff, "num_layers": s.n_encoder, "num_decoder_layers": s.n_decoder,
            "relative_attention_num_buckets": s.n_buckets, "relative_attention_max_distance": s.max_distance,
            "layer_norm_epsilon": s.epsilon, "feed_forward_proj": "gated-gelu" if s.gated else "relu",
            "tie_word_embeddings": not s.has_lm_head, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}


def read_checkpoint(folder):
    """{name: (dtype, shape, sha256 of its bytes)} of a folder's safetensors files."""
    out = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, file), "rb") as f:
            (size,) = struct.unpack("<Q", f.read(8))
            header = json.loads(f.read(size))
            header.pop("__metadata__")
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                f.seek(8 + size + begin)
                out[name] = (entry["dtype"], tuple(entry["shape"]), hashlib.sha256(f.read(end - begin)).hexdigest())
    return out


def check(program, assets, s):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, s.name, os.path.join(assets, s.vocabulary + ".spiece.model"), folder], check=True)
        theirs = read_checkpoint(folder)
        with open(os.path.join(folder, "config.json")) as f:
            config = json.load(f)
    ours = {name: (s.dtype, shape, hashlib.sha256(tensor_stored(s, name, shape).tobytes()).hexdigest())
            for name, shape in tensor_shapes(s).items()}
    assert list(theirs) == list(ours), (s.name, set(theirs) ^ set(ours))
    for name in ours:
        assert theirs[name] == ours[name], (s.name, name, theirs[name], ours[name])
    for key, value in config_of(s).items():
        assert config[key] == value, (s.name, key, config[key], value)
    print("%s: %d tensors have the same bits" % (s.name, len(ours)))


def main():
    program, assets = sys.argv[1:3]
    for name in sys.argv[3:] or SHAPES:
        check(os.path.abspath(program), assets, SHAPES[name])


if __name__ == "__main__":
    main()
