#!/usr/bin/env python3
"""Makes tests/golden/tokenizer/ids.bin: one hash per string and vocabulary.

usage: make_tokenizer_golden.py ASSETS_DIR STRINGS_FILE OUT_FILE [--report]

Runs in the reference environment (tools/reference-env.sh). The format and the
meaning of the two kinds of hashes: tests/golden/tokenizer/README.md. With
--report it also prints, by cause, where transformers' tokenizer and
sentencepiece differ; the README's list of differences comes from there.
"""

import argparse
import collections
import json
import os
import re
import struct
import tempfile

import numpy as np
import sentencepiece
from transformers import T5TokenizerFast

# name, unknown id, special tokens written out in text -> id
VOCABULARIES = {
    "mt5": {"<pad>": 0, "</s>": 1, "<unk>": 2},
    "umt5": {"<pad>": 0, "</s>": 1, "<s>": 2, "<unk>": 3, **{"<extra_id_%d>" % i: 256299 - i for i in range(300)}},
    "t5": {"<pad>": 0, "</s>": 1, "<unk>": 2, **{"<extra_id_%d>" % i: 32099 - i for i in range(100)}},
}
EXTRA_IDS = {"mt5": 0, "umt5": 300, "t5": 100}


def read_strings(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"INKSTR1\n"
    n, n_plain = struct.unpack("<II", data[8:16])
    at, out = 16, []
    for _ in range(n):
        (size,) = struct.unpack_from("<I", data, at)
        out.append(data[at + 4:at + 4 + size].decode("utf-8"))
        at += 4 + size
    assert at == len(data)
    return out, n_plain, data


def fnv1a(data, bits):
    prime, basis = {32: (0x01000193, 0x811C9DC5), 64: (0x100000001B3, 0xCBF29CE484222325)}[bits]
    h, mask = basis, (1 << bits) - 1
    for byte in data:
        h = ((h ^ byte) * prime) & mask
    return h


def fnv1a_many(blobs):
    """FNV-1a 32 of every byte string, vectorized over the strings."""
    order = sorted(range(len(blobs)), key=lambda i: -len(blobs[i]))
    lengths = np.array([len(blobs[i]) for i in order])
    joined = np.frombuffer(b"".join(blobs[i] for i in order), dtype=np.uint8)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    h = np.full(len(blobs), 0x811C9DC5, dtype=np.uint32)
    for at in range(int(lengths[0]) if len(blobs) else 0):
        live = int(np.searchsorted(-lengths, -at, side="left"))
        h[:live] = (h[:live] ^ joined[starts[:live] + at]) * np.uint32(0x01000193)
    out = np.empty_like(h)
    out[order] = h
    return out


def hashes(id_lists):
    return fnv1a_many([np.asarray(ids, dtype="<i4").tobytes() for ids in id_lists])


def fast_tokenizer(name, model):
    folder = tempfile.mkdtemp()
    os.symlink(os.path.abspath(model), os.path.join(folder, "spiece.model"))
    config = {"tokenizer_class": "T5Tokenizer", "extra_ids": EXTRA_IDS[name], "eos_token": "</s>", "unk_token": "<unk>",
              "pad_token": "<pad>"}
    if EXTRA_IDS[name]:
        config["additional_special_tokens"] = ["<extra_id_%d>" % i for i in range(EXTRA_IDS[name])]
    if name == "umt5":
        config["bos_token"] = "<s>"
    tokens = {t: i for t, i in VOCABULARIES[name].items()}
    config["added_tokens_decoder"] = {
        str(i): {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
        for t, i in tokens.items()}
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump(config, f)
    fast = T5TokenizerFast.from_pretrained(folder)
    for token, number in tokens.items():
        assert fast.convert_tokens_to_ids(token) == number, (name, token, fast.convert_tokens_to_ids(token))
    return fast


def split_and_encode(text, sp, specials, pattern):
    """Special tokens are cut out of the raw text first; each stretch between them is plain text of its own."""
    ids = []
    for part in pattern.split(text):
        ids.extend([specials[part]] if part in specials else sp.encode(part))
    return ids


def cause(name, text, sp, fast, got_sp, got_fast):
    if any(i < sp.vocab_size() and sp.is_byte(i) for i in got_sp):
        return "byte fallback: transformers 5 builds its T5 tokenizers with byte_fallback=False"
    if re.search(r"<0x[0-9A-F]{2}>", text):
        return "<0xNN> written out in text: transformers matches it as the byte piece, sentencepiece never does"
    if "\u2581" in text:
        return "U+2581 in the text"
    if name != "umt5" and "\u0085" in text:
        return "U+0085 kept by the charsmap: transformers splits on it as white space and drops it"
    if re.search("[\uff1c\ufe64]", text):
        return "full-width brackets: transformers finds `</s>` in the normalized text, sentencepiece never does"
    if name == "umt5" and re.search(r"\s", text):
        return "white space: umT5 keeps every space and tab, transformers splits on white space and drops it"
    normalizer = fast.backend_tokenizer.normalizer
    if normalizer and normalizer.normalize_str(text).split() != sp.normalize(text).replace("\u2581", " ").split():
        return "combining marks: transformers normalizes a whole grapheme cluster by its longest match at the start only"
    if abs(score(sp, got_sp) - score(sp, got_fast)) < 1e-3:
        return "two paths of the same score; each takes its own"
    return "other"


def score(sp, ids):
    return sum(sp.get_score(i) for i in ids if i < sp.vocab_size())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("assets")
    parser.add_argument("strings")
    parser.add_argument("out")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()

    texts, n_plain, raw = read_strings(args.strings)
    plain_columns, special_columns = [], []
    for name, specials in VOCABULARIES.items():
        model = os.path.join(args.assets, name + ".spiece.model")
        sp = sentencepiece.SentencePieceProcessor(model_file=model)
        pattern = re.compile("(" + "|".join(re.escape(t) for t in sorted(specials, key=len, reverse=True)) + ")")
        plain = [sp.encode(t) for t in texts]
        special = [split_and_encode(t, sp, specials, pattern) for t in texts[n_plain:]]
        plain_columns.append(hashes(plain))
        special_columns.append(hashes(special))
        assert int(plain_columns[-1][7]) == fnv1a(np.asarray(plain[7], dtype="<i4").tobytes(), 32)

        if args.report:
            fast = fast_tokenizer(name, model)
            for what, ours, lot in (("plain text", plain[:n_plain], texts[:n_plain]), ("special tokens", special, texts[n_plain:])):
                theirs = [e[:-1] for e in fast(lot, add_special_tokens=True)["input_ids"]]
                causes, examples = collections.Counter(), {}
                for text, a, b in zip(lot, ours, theirs):
                    if a != b:
                        why = cause(name, text, sp, fast, a, b)
                        causes[why] += 1
                        examples.setdefault(why, []).append((text[:40], [sp.id_to_piece(i) if i < sp.vocab_size() else i for i in a][:12],
                                                             fast.convert_ids_to_tokens(b)[:12]))
                print("%s, %s: %d strings, %d differ" % (name, what, len(lot), sum(causes.values())))
                for why, n in causes.most_common():
                    print("   %6d  %s" % (n, why))
                    for example in examples[why][:12 if why == "other" else 3]:
                        print("           %r\n             %r\n             %r" % example)

    with open(args.out, "wb") as f:
        f.write(b"INKTOK1\n" + struct.pack("<IIIIQ", len(texts), n_plain, len(VOCABULARIES), 0, fnv1a(raw, 64)))
        for column in plain_columns + special_columns:
            f.write(column.astype("<u4").tobytes())
    print("%s: %d bytes" % (args.out, os.path.getsize(args.out)))


if __name__ == "__main__":
    main()
