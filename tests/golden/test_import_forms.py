#!/usr/bin/env python3
"""The same checkpoint in every form that `inkstone import` reads gives the same model.

The forms: model.safetensors, sharded safetensors, and pytorch_model.bin (the zip of a pickle and raw storages that torch.save
writes), whole and sharded. The .bin is put together here without torch.
"""

import collections
import json
import os
import pickle
import shutil
import struct
import sys
import types
import zipfile

import golden
from golden import Folder, Golden, expect, import_model, make_checkpoint, score

STORAGES = {"F32": "FloatStorage", "F16": "HalfStorage", "BF16": "BFloat16Storage"}
SIZES = {"F32": 4, "F16": 2, "BF16": 2}


class Tensor:
    """Pickles as torch does: _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)."""

    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        strides, n = [], 1
        for length in reversed(self.shape):
            strides.insert(0, n)
            n *= length
        return (sys.modules["torch._utils"]._rebuild_tensor_v2,
                (self.storage, 0, tuple(self.shape), tuple(strides), False, collections.OrderedDict()))


class Storage:
    def __init__(self, kind, key, n):
        self.kind, self.key, self.n = kind, key, n


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", getattr(sys.modules["torch"], STORAGES[value.kind]), value.key, "cpu", value.n)
        return None


def pretend_torch():
    """Names for the pickler to refer to; nothing of torch is needed to write them down."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch._utils = utils
    for name in STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch", "__qualname__": name}))

    def rebuild(*_):
        raise NotImplementedError
    rebuild.__name__ = rebuild.__qualname__ = "_rebuild_tensor_v2"
    rebuild.__module__ = "torch._utils"
    utils._rebuild_tensor_v2 = rebuild
    sys.modules["torch"], sys.modules["torch._utils"] = torch, utils


def read_safetensors(path):
    """[(name, dtype, shape, bytes)]"""
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    return [(name, e["dtype"], e["shape"], data[e["data_offsets"][0]:e["data_offsets"][1]])
            for name, e in header.items() if name != "__metadata__"]


def write_bin(path, tensors):
    state, storages, keys = collections.OrderedDict(), {}, {}
    for name, kind, shape, data in tensors:
        # Equal bytes share one storage, as tied weights do.
        key = keys.setdefault((kind, data), str(len(keys)))
        storages[key] = data
        state[name] = Tensor(Storage(kind, key, len(data) // SIZES[kind]), shape)
    top = os.path.splitext(os.path.basename(path))[0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as z:
        with z.open(top + "/data.pkl", "w") as f:
            Pickler(f, protocol=2).dump(state)
        z.writestr(top + "/byteorder", "little")
        for key, data in storages.items():
            z.writestr(top + "/data/" + key, data)
        z.writestr(top + "/version", "3\n")


def copy_rest(source, target):
    os.mkdir(target)
    for name in os.listdir(source):
        if not name.endswith((".safetensors", ".safetensors.index.json")):
            shutil.copy(os.path.join(source, name), target)


def as_bin(source, target):
    copy_rest(source, target)
    write_bin(os.path.join(target, "pytorch_model.bin"), read_safetensors(os.path.join(source, "model.safetensors")))


def as_sharded_bin(source, target):
    copy_rest(source, target)
    tensors = read_safetensors(os.path.join(source, "model.safetensors"))
    shards = [tensors[0::2], tensors[1::2]]
    weight_map = {}
    for i, shard in enumerate(shards):
        name = "pytorch_model-%05d-of-%05d.bin" % (i + 1, len(shards))
        write_bin(os.path.join(target, name), shard)
        weight_map.update({t[0]: name for t in shard})
    with open(os.path.join(target, "pytorch_model.bin.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": sum(len(t[3]) for t in tensors)}, "weight_map": weight_map}, f)


def as_sharded_safetensors(source, target):
    copy_rest(source, target)
    tensors = read_safetensors(os.path.join(source, "model.safetensors"))
    weight_map = {}
    for i in range(3):
        name, header, at = "model-%05d-of-00003.safetensors" % (i + 1), {}, 0
        for tensor_name, kind, shape, data in tensors[i::3]:
            header[tensor_name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
            weight_map[tensor_name] = name
        text = json.dumps(header).encode()
        with open(os.path.join(target, name), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors[i::3]))
    with open(os.path.join(target, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": weight_map}, f)


FORMS = (as_bin, as_sharded_bin, as_sharded_safetensors)


def answers(g, checkpoint, folder):
    model = import_model(checkpoint, "f32", folder)
    got = score(model, [{"source_ids": s["ids"], "target_ids": s["target_ids"]} for s in g.sources])
    os.unlink(model)
    for answer in got:
        answer.pop("model", None)
    return got


def test():
    pretend_torch()
    for shape in ("tiny", "t5v10", "t5v11", "overflow"):
        g = Golden(shape)
        with Folder() as folder:
            checkpoint = make_checkpoint(g, folder)
            want = answers(g, checkpoint, folder)
            for form in FORMS:
                target = os.path.join(folder, form.__name__)
                form(checkpoint, target)
                expect(answers(g, target, folder) == want, "%s: the model imported %s differs from model.safetensors" % (
                    shape, form.__name__))
                shutil.rmtree(target)
        print("%-8s  %s: scores equal to model.safetensors" % (shape, ", ".join(f.__name__ for f in FORMS)))


if __name__ == "__main__":
    golden.main(test)
