#!/usr/bin/env python3
"""`inkstone import` and `inspect`: the values in the file are the checkpoint's, in every type; what is wrong is one line."""

import json
import os
import pickle
import random
import signal
import struct
import subprocess
import time
import zipfile

import cli

TYPES = ("i8", "f32", "f16", "bf16", "q8_0", "q4_0", "q4_k", "q5_k", "q6_k")
D_MODEL, D_KV, HEADS, D_FF, ROWS, LAYERS = 256, 256, 2, 256, 40, (1, 2)
CONFIG = {"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"], "vocab_size": ROWS, "d_model": D_MODEL,
          "d_kv": D_KV, "d_ff": D_FF, "num_heads": HEADS, "num_layers": LAYERS[0], "num_decoder_layers": LAYERS[1],
          "feed_forward_proj": "gated-gelu", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}


# --- a checkpoint ---------------------------------------------------------------------------------------

def shapes():
    """{Hugging Face name: (GGUF name, shape)}"""
    inner, out = HEADS * D_KV, {"shared.weight": ("token_embd.weight", (ROWS, D_MODEL)),
                                "lm_head.weight": ("output.weight", (ROWS, D_MODEL))}
    for side, short, n in (("encoder", "enc", LAYERS[0]), ("decoder", "dec", LAYERS[1])):
        out[side + ".final_layer_norm.weight"] = (short + ".output_norm.weight", (D_MODEL,))
        for i in range(n):
            at, to = "%s.block.%d.layer." % (side, i), "%s.blk.%d." % (short, i)
            parts = [("0.SelfAttention", "attn", "0.layer_norm")]
            if side == "decoder":
                parts.append(("1.EncDecAttention", "cross_attn", "1.layer_norm"))
            for name, gguf, norm in parts:
                out[at + norm + ".weight"] = (to + gguf + "_norm.weight", (D_MODEL,))
                for c in "qkv":
                    out["%s%s.%s.weight" % (at, name, c)] = ("%s%s_%s.weight" % (to, gguf, c), (inner, D_MODEL))
                out[at + name + ".o.weight"] = (to + gguf + "_o.weight", (D_MODEL, inner))
            if i == 0:
                out[at + "0.SelfAttention.relative_attention_bias.weight"] = (to + "attn_rel_b.weight", (32, HEADS))
            last = at + str(len(parts))
            out[last + ".layer_norm.weight"] = (to + "ffn_norm.weight", (D_MODEL,))
            out[last + ".DenseReluDense.wi_0.weight"] = (to + "ffn_gate.weight", (D_FF, D_MODEL))
            out[last + ".DenseReluDense.wi_1.weight"] = (to + "ffn_up.weight", (D_FF, D_MODEL))
            out[last + ".DenseReluDense.wo.weight"] = (to + "ffn_down.weight", (D_MODEL, D_FF))
    return out


def count(shape):
    n = 1
    for d in shape:
        n *= d
    return n



# Exact in bfloat16, so that every source type holds the same values. A tensor is a byte string of indexes.
VALUES = [(i % 255 - 127) / 128.0 for i in range(256)]
PACKED = {"F32": [struct.pack("<f", v) for v in VALUES], "F16": [struct.pack("<e", v) for v in VALUES],
          "F64": [struct.pack("<d", v) for v in VALUES], "BF16": [struct.pack("<f", v)[2:] for v in VALUES]}


def weights(seed=1):
    random_bytes = random.Random(seed).randbytes
    return {name: random_bytes(count(shape)) for name, (_, shape) in shapes().items()}


def pack(dtype, indexes):
    return b"".join(map(PACKED[dtype].__getitem__, indexes))


def safetensors(path, tensors, dtype="F32"):
    header, data = {}, []
    at = 0
    for name, values in tensors.items():
        raw = pack(dtype, values)
        header[name] = {"dtype": dtype, "shape": list(shapes()[name][1]), "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def field(number, value):
    """A protocol buffer field."""
    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def spiece(path):
    pieces = [("<pad>", 0.0, 3), ("</s>", 0.0, 3), ("<unk>", 0.0, 2)]
    pieces += [("\u2581" + chr(0x4E00 + i), -1.0 - i, 1) for i in range(30)]
    out = b"".join(field(1, field(1, t.encode()) + field(2, s) + field(3, k)) for t, s, k in pieces)
    out += field(2, field(3, 1) + field(40, 2) + field(41, (1 << 64) - 1) + field(42, 1) + field(43, 0))
    with open(path, "wb") as f:
        f.write(out + field(3, field(1, b"identity")))


class Reference:
    """Stands in a pickle for something of torch."""

    def __init__(self, module, name):
        self.__module__, self.__qualname__, self.__name__ = module, name, name


class Pickler(pickle._Pickler):
    """torch.save's pickles without torch: storages by persistent id, names that nobody has imported."""
    dispatch = dict(pickle._Pickler.dispatch)

    def persistent_id(self, obj):
        return obj[1:] if isinstance(obj, tuple) and obj and obj[0] == "a storage" else None

    def save_reference(self, obj):
        self.write(b"c%s\n%s\n" % (obj.__module__.encode(), obj.__name__.encode()))

    dispatch[Reference] = save_reference


class Call:
    def __init__(self, module, name, *args):
        self.callee, self.args = Reference(module, name), args

    def __reduce__(self):
        return None


def save_call(pickler, obj):
    pickler.save_reference(obj.callee)
    pickler.save(obj.args)
    pickler.write(b"R")


Pickler.dispatch[Call] = save_call


def torch_tensor(key, shape, elements=None, offset=0, stride=None, storage="FloatStorage"):
    if stride is None:
        stride = [1] * len(shape)
        for d in reversed(range(len(shape) - 1)):
            stride[d] = stride[d + 1] * shape[d + 1]
    n = count(shape) if elements is None else elements
    return Call("torch._utils", "_rebuild_tensor_v2",
                ("a storage", "storage", Reference("torch", storage), key, "cpu", n), offset, tuple(shape), tuple(stride),
                False, Call("collections", "OrderedDict"))


def torch_zip(path, state, storages, compression=zipfile.ZIP_STORED, byteorder=b"little"):
    import io
    buffer = io.BytesIO()
    Pickler(buffer, 2).dump(state)
    with zipfile.ZipFile(path, "w", compression) as z:
        z.writestr("pytorch_model/data.pkl", buffer.getvalue())
        z.writestr("pytorch_model/byteorder", byteorder)
        for key, raw in storages.items():
            z.writestr("pytorch_model/data/" + key, raw)


def torch_legacy(path, state, storages):
    """As torch wrote before 1.6: pickles, then each storage with its number of elements. {key: (elements, bytes)}"""
    import io
    buffer = io.BytesIO()
    Pickler(buffer, 2).dump(state)
    with open(path, "wb") as f:
        f.write(pickle.dumps(0x1950a86a20f9469cfc6c, 2) + pickle.dumps(1001, 2))
        f.write(pickle.dumps({"protocol_version": 1001, "little_endian": True,
                              "type_sizes": {"short": 2, "int": 4, "long": 4}}, 2))
        f.write(buffer.getvalue() + pickle.dumps(list(storages), 2))
        for n, raw in storages.values():
            f.write(struct.pack("<q", n) + raw)


# --- reading GGUF -----------------------------------------------------------------------------------------

class Gguf:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.raw = f.read()
        self.at = 8
        n_tensors, n_keys = self.take("<QQ")
        self.keys = {}
        for _ in range(n_keys):
            name = self.string()
            self.keys[name] = self.value(*self.take("<I"))
        self.tensors = {}
        for _ in range(n_tensors):
            name = self.string()
            n_dims, = self.take("<I")
            ne = self.take("<%dQ" % n_dims)
            self.tensors[name] = (*self.take("<IQ"), ne)
        self.data = (self.at + 31) // 32 * 32

    def take(self, layout):
        out = struct.unpack_from(layout, self.raw, self.at)
        self.at += struct.calcsize(layout)
        return out

    def string(self):
        n, = self.take("<Q")
        self.at += n
        return self.raw[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            item, n = self.take("<IQ")
            return [self.value(item) for _ in range(n)]
        return self.take("<" + {0: "B", 1: "b", 4: "I", 5: "i", 6: "f", 7: "?"}[kind])[0]

    def row(self, name, r):
        """The tensor's type and the values of one row; None for types that are not taken apart here."""
        kind, offset, ne = self.tensors[name]
        n, at = ne[0], self.data + offset

        def read(layout, row_bytes):
            return struct.unpack_from("<" + layout, self.raw, at + r * row_bytes)
        if kind == 0:
            return "f32", read("%df" % n, 4 * n)
        if kind == 1:
            return "f16", read("%de" % n, 2 * n)
        if kind == 30:
            return "bf16", struct.unpack("<%df" % n, struct.pack("<%dI" % n, *(b << 16 for b in read("%dH" % n, 2 * n))))
        if kind == 24:
            scale = self.row(name + "_scale", 0)[1][r]
            return "i8", [q * scale for q in read("%db" % n, n)]
        if kind == 8:
            blocks = read("e32b" * (n // 32), 34 * (n // 32))
            return "q8_0", [blocks[b] * q for b in range(0, len(blocks), 33) for q in blocks[b + 1:b + 33]]
        if kind == 2:
            out, blocks = [], read("e16B" * (n // 32), 18 * (n // 32))
            for b in range(0, len(blocks), 17):
                d, q = blocks[b], blocks[b + 1:b + 17]
                out += [d * ((x & 15) - 8) for x in q] + [d * ((x >> 4) - 8) for x in q]
            return "q4_0", out
        return {12: "q4_k", 13: "q5_k", 14: "q6_k"}[kind], None


# The largest error as a part of the row's or block's largest value. Values of one row reach 127/128.
LOSS = {"f32": 0, "f16": 0, "bf16": 0, "i8": 0.5 / 127 + 1e-6, "q8_0": 0.5 / 127 + 1e-3, "q4_0": 0.13}


class Import(cli.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.path("checkpoint")
        os.mkdir(self.folder)
        self.put("config.json", json.dumps(CONFIG))
        spiece(os.path.join(self.folder, "spiece.model"))
        self.out = self.path("m.gguf")

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def check_values(self, tensors, wanted_type):
        g = Gguf(self.out)
        for source, (name, shape) in shapes().items():
            self.assertEqual(g.tensors[name][2], tuple(reversed(shape)), name)
            n_rows = shape[0] if len(shape) == 2 else 1
            for r in (0, n_rows // 2, n_rows - 1):
                kind, values = g.row(name, r)
                wanted = [VALUES[i] for i in tensors[source][r * shape[-1]:(r + 1) * shape[-1]]]
                if values is not None:
                    self.assertEqual(len(values), len(wanted))
                    worst = max(abs(a - b) for a, b in zip(values, wanted))
                    self.assertLessEqual(worst, LOSS[kind], "%s row %d as %s" % (name, r, kind))
            if "norm" in name or "rel_b" in name:
                self.assertEqual(kind, "f32", name)
            elif wanted_type in ("f32", "f16", "bf16", "q8_0", "q6_k") or name not in ("token_embd.weight", "output.weight"):
                self.assertEqual(kind, wanted_type, name)
        return g

    def test_every_type_holds_the_checkpoints_values(self):
        tensors = weights()
        safetensors(os.path.join(self.folder, "model.safetensors"), tensors)
        for kind in TYPES:
            with self.subTest(kind):
                said = self.succeed("import", self.folder, "-o", self.out, "--type", kind)
                self.assertEqual(said.count("\n"), 1)
                self.assertRegex(said, r"m\.gguf: mt5 as %s, .* own output head" % kind)
                g = self.check_values(tensors, kind)
                self.assertEqual(g.keys["general.architecture"], "t5")
                self.assertEqual(g.keys["t5.block_count"], 1)
                self.assertEqual(g.keys["t5.decoder_block_count"], 2)
                self.assertEqual(g.keys["t5.attention.key_length"], D_KV)
                self.assertEqual(g.keys["t5.logit_scale"], 1.0)
                self.assertEqual(len(g.keys["tokenizer.ggml.tokens"]), ROWS)
                self.assertEqual(g.keys["tokenizer.ggml.tokens"][3], "\u2581\u4e00")
                self.assertEqual(g.keys["tokenizer.ggml.tokens"][-1], "[PAD%d]" % (ROWS - 1))
                self.assertEqual(g.keys["tokenizer.ggml.token_type"][:4], [3, 3, 2, 1])
        self.assertEqual(Gguf(self.out).row("output.weight", 0)[0], "q6_k")

    def test_every_source_type_and_container_gives_the_same_values(self):
        tensors = weights(7)
        names = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage", "F64": "DoubleStorage"}
        for dtype in PACKED:
            with self.subTest(dtype):
                path = os.path.join(self.folder, "model.safetensors")
                safetensors(path, tensors, dtype)
                self.succeed("import", self.folder, "-o", self.out, "--type", "f32")
                first = self.check_values(tensors, "f32").keys["inkstone.weights_sha256"]
                os.remove(path)
                state = {n: torch_tensor(str(i), shapes()[n][1], storage=names[dtype]) for i, n in enumerate(tensors)}
                path = os.path.join(self.folder, "pytorch_model.bin")
                torch_zip(path, state, {str(i): pack(dtype, v) for i, v in enumerate(tensors.values())},
                          zipfile.ZIP_DEFLATED if dtype == "F16" else zipfile.ZIP_STORED)
                self.succeed("import", self.folder, "-o", self.out, "--type", "f32")
                self.assertEqual(self.check_values(tensors, "f32").keys["inkstone.weights_sha256"], first)
                os.remove(path)

    def test_the_older_torch_format_is_read(self):
        tensors, path = weights(3), os.path.join(self.folder, "pytorch_model.bin")
        state = {n: torch_tensor(str(94000 + i), shapes()[n][1], storage="HalfStorage") for i, n in enumerate(tensors)}
        storages = {str(94000 + i): (len(v), pack("F16", v)) for i, v in enumerate(tensors.values())}
        # The embedding and the head are parts of one storage; storages come in another order than tensors.
        both = len(tensors["shared.weight"])
        state["shared.weight"] = torch_tensor("7", shapes()["shared.weight"][1], 2 * both, 0, storage="HalfStorage")
        state["lm_head.weight"] = torch_tensor("7", shapes()["lm_head.weight"][1], 2 * both, both, storage="HalfStorage")
        for i, n in enumerate(tensors):
            if n in ("shared.weight", "lm_head.weight"):
                del storages[str(94000 + i)]
        storages["7"] = (2 * both, pack("F16", tensors["shared.weight"] + tensors["lm_head.weight"]))
        storages = dict(sorted(storages.items(), reverse=True))
        torch_legacy(path, state, storages)
        self.succeed("import", self.folder, "-o", self.out, "--type", "f32")
        self.check_values(tensors, "f32")
        os.remove(self.out)

        def no(pattern):
            self.refused(1, r"pytorch_model\.bin: " + pattern, "import", self.folder, "-o", self.out)

        size = os.path.getsize(path)
        with open(path, "r+b") as f:
            f.truncate(size - 10)
        no("truncated: tensor ")
        with open(path, "r+b") as f:
            f.truncate(30)
        no("damaged pickle: it ends too early")
        torch_legacy(path, state, {k: v for k, v in storages.items() if k != "7"})
        no("the storages of 2 of %d tensors are missing" % len(tensors))
        torch_legacy(path, state, {**storages, "7": (3, b"abcdef")})
        no(r"tensor (shared|lm_head)\.weight: its storage has 3 elements, not %d" % (2 * both))
        torch_legacy(path, state, {**storages, "8": (0, b"")})
        no("storage 8 belongs to no tensor")
        torch_legacy(path, {**state, "x": Call("os", "system", "true")}, storages)
        no("the pickle holds more than a dictionary of tensors: it names os.system")

    def test_tensors_may_share_a_storage(self):
        tensors = weights(9)
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            state, at, total = {}, 0, sum(map(len, tensors.values()))
            for name, values in tensors.items():
                state[name] = torch_tensor("0", shapes()[name][1], elements=total, offset=at)
                at += len(values)
            torch_zip(os.path.join(self.folder, "pytorch_model.bin"), state,
                      {"0": b"".join(pack("F32", v) for v in tensors.values())}, compression)
            self.succeed("import", self.folder, "-o", self.out, "--type", "f32")
            self.check_values(tensors, "f32")

    def test_broken_torch_files_are_one_line(self):
        tensors, path = weights(), os.path.join(self.folder, "pytorch_model.bin")
        q = "encoder.block.0.layer.0.SelfAttention.q.weight"
        good = {n: torch_tensor("all", shapes()[n][1], elements=max(map(len, tensors.values()))) for n in tensors}
        storages = {"all": bytes(4 * max(map(len, tensors.values())))}
        shape = shapes()[q][1]

        def write(**change):
            torch_zip(path, {**good, **change}, storages)

        def no(status, pattern):
            self.refused(status, pattern, "import", self.folder, "-o", self.out)
            self.assertFalse(os.path.exists(self.out))
            self.assertEqual([n for n in os.listdir(os.path.dirname(self.out)) if ".tmp" in n], [])

        write(x=Call("os", "system", "touch " + self.path("pwned")))
        no(1, r"pytorch_model\.bin: the pickle holds more than .*: it names os\.system at byte \d+$")
        self.assertFalse(os.path.exists(self.path("pwned")))
        write(**{q: torch_tensor("all", shape, stride=(1, shape[0]))})
        no(1, r"tensor %s: not stored contiguously" % q)
        write(**{q: torch_tensor("gone", shape)})
        no(1, r"tensor %s: its member pytorch_model/data/gone is not in the zip" % q)
        write(**{q: torch_tensor("all", shape, elements=1 << 40)})
        no(1, r"tensor %s: its member pytorch_model/data/all has \d+ bytes" % q)
        write(**{q: torch_tensor("all", shape, elements=10)})
        no(1, r"tensor %s: larger than its storage of 10 elements" % q)
        write(**{q: torch_tensor("all", shape, storage="LongStorage", elements=10)})
        no(1, r"tensor %s: larger than its storage" % q)
        write(**{q: torch_tensor("../../etc/passwd", shape)})
        no(1, r"tensor %s: its member .* is not in the zip" % q)
        torch_zip(path, good, storages, byteorder=b"big")
        no(1, r"big-endian")
        torch_zip(path, [1, 2], storages)
        no(1, r"its value is no dictionary")
        with open(path, "wb") as f:
            f.write(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
        no(1, r"not a torch checkpoint")
        write()
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) // 2)
        no(1, r"truncated or damaged zip")

    def test_a_truncated_safetensors_names_file_and_tensor(self):
        path = os.path.join(self.folder, "model.safetensors")
        safetensors(path, weights())
        with open(path, "r+b") as f:
            f.truncate(os.path.getsize(path) - 1000)
        self.refused(1, r"model\.safetensors: truncated: tensor \S+ ends at byte", "import", self.folder, "-o", self.out)

    def test_wrong_usage_is_status_2(self):
        self.refused(2, r"-o FILE\.gguf is needed", "import", self.folder)
        self.refused(2, r"which folder", "import", "-o", self.out)
        self.refused(2, r"one folder at a time", "import", self.folder, self.folder, "-o", self.out)
        self.refused(2, r"q3 is not one of i8\|f32", "import", self.folder, "-o", self.out, "--type", "q3")
        self.refused(1, r"no such folder", "import", self.path("nothing"), "-o", self.out)

    def test_json_is_one_document(self):
        safetensors(os.path.join(self.folder, "model.safetensors"), weights())
        report = self.answer("import", self.folder, "-o", self.out, "--json")
        self.assertEqual(report["type"], "i8")
        self.assertEqual(report["bytes"], os.path.getsize(self.out))
        self.assertEqual(report["weights"], sum(count(s) for _, s in shapes().values()))
        self.assertEqual(report["tensors"], len(shapes()))

    def test_an_interrupt_leaves_nothing(self):
        fifo = os.path.join(self.folder, "README.md")     # opening it would block a careless reader
        os.mkfifo(fifo)
        safetensors(os.path.join(self.folder, "model.safetensors"), weights())
        self.succeed("import", self.folder, "-o", self.out)
        os.remove(self.out)
        process = subprocess.Popen([cli.PROGRAM, "import", self.folder, "-o", self.out, "--type", "q4_k", "-t", "1"],
                                   env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
        if process.returncode == 0:        # it was quicker than the signal
            self.assertTrue(os.path.exists(self.out))
        else:
            self.assertIn(process.returncode, (130, -signal.SIGINT), said)
            self.assertFalse(os.path.exists(self.out))
            self.assertEqual(out, b"")
        self.assertEqual([n for n in os.listdir(os.path.dirname(self.out)) if ".tmp" in n], [])


class Inspect(cli.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.path("checkpoint")
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(CONFIG, f)
        with open(os.path.join(self.folder, "inkstone.json"), "w", encoding="utf-8") as f:
            json.dump({"name": "A \x1b[31mname", "prompt": "\u6539\u5199\uff1a{text}", "demo": True, "license": "MIT"}, f)
        spiece(os.path.join(self.folder, "spiece.model"))
        safetensors(os.path.join(self.folder, "model.safetensors"), weights())
        self.out = self.path("m.gguf")
        self.succeed("import", self.folder, "-o", self.out)

    def test_json_says_what_is_in_the_file(self):
        x = self.answer("inspect", self.out, "--json")
        self.assertEqual((x["architecture"], x["family"], x["type"], x["demo"], x["license"]), ("t5", "mt5", "i8", True, "MIT"))
        self.assertEqual(x["prompt"], "\u6539\u5199\uff1a{text}")
        self.assertEqual(x["bytes"], os.path.getsize(self.out))
        self.assertEqual(x["weights"], sum(count(s) for _, s in shapes().values()))
        self.assertEqual(x["tensors"], len(shapes()))
        self.assertRegex(x["sha256"], "^[0-9a-f]{64}$")
        self.assertEqual(x["model"], {"vocabulary": ROWS, "context": 512, "width": D_MODEL, "feed_forward": D_FF,
                                      "heads": HEADS, "head_width": D_KV, "encoder_layers": 1, "decoder_layers": 2,
                                      "activation": "gelu_tanh", "own_head": True})
        self.assertEqual(x["tokenizer"], {"kind": "t5", "pieces": ROWS, "unused": ROWS - 33, "bytes": 0,
                                          "charsmap_bytes": 0, "pad": 0, "eos": 1, "unk": 2, "bos": None})
        types = {t["role"]: t["type"] for t in x["types"]}
        self.assertEqual(types["embedding"], "q8_0")
        self.assertEqual(types["attention"], "i8")
        self.assertEqual(types["norm"], "f32")
        self.assertEqual(sum(t["weights"] for t in x["types"] if t["role"] != "scales"), x["weights"])
        self.assertGreater(x["memory"]["file"], 0)
        self.assertGreater(x["memory"]["kv"], 0)
        self.assertTrue(x["memory"]["compute"])
        self.assertIsNone(self.answer("inspect", self.out, "--json", "--no-load")["memory"])

    def test_text_has_no_control_characters(self):
        said = self.succeed("inspect", self.out)
        self.assertNotIn("\x1b", said)
        for part in ("t5 (mt5)", "i8", "encoder layers", "tokenizer: t5", "memory on cpu", "keys and values"):
            self.assertIn(part, said)

    def test_what_cannot_be_read_or_loaded_is_one_line(self):
        self.refused(1, r"config\.json: not a GGUF file", "inspect", os.path.join(self.folder, "config.json"))
        self.refused(1, r"nothing", "inspect", self.path("nothing"))
        self.refused(2, r"which file", "inspect")
        with open(self.out, "rb") as f:
            raw = f.read()
        with open(self.out, "wb") as f:
            f.write(raw[:-5000])
        self.refused(1, r"m\.gguf: truncated: tensor output\.weight", "inspect", self.out)
        # A tensor under another name: the file can be read, the model cannot be loaded.
        with open(self.out, "wb") as f:
            f.write(raw.replace(b"dec.output_norm.weight", b"dec.output_morn.weight"))
        done = self.run_program("inspect", self.out, "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dec.output_norm.weight", json.loads(done.stdout)["error"]["message"])


if __name__ == "__main__":
    cli.main()
