#!/usr/bin/env python3
"""Writes the strings of the tokenizer golden test, the same bytes every time.

usage: make_strings.py ASSETS_DIR OUT_FILE

ASSETS_DIR is what scripts/fetch_assets.py filled. Needs Python's standard
library only, and nothing in it whose answer depends on the Python version
(no `unicodedata`, no `random`). The format of OUT_FILE and what the golden
hashes mean: README.md beside this file.
"""

import json
import os
import struct
import sys

MASK = (1 << 64) - 1


class Draw:
    """A splitmix64 stream."""

    def __init__(self, seed):
        self.state = seed & MASK

    def bits(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return self.bits() % n

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def pick(self, items):
        return items[self.below(len(items))]


def read_text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def is_scalar(code):
    return code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


# ---- pieces of a sentencepiece model, without protobuf ----------------------

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Yields (field number, value) of one protobuf message; values are int or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError("wire type %d" % kind)
        yield key >> 3, value


def pieces_of(path):
    with open(path, "rb") as f:
        data = f.read()
    out = []
    for number, value in fields(data):
        if number == 1:
            out.append(next(v for n, v in fields(value) if n == 1).decode("utf-8"))
    return out


# ---- the groups of strings --------------------------------------------------

def sentences(assets):
    for i, entry in enumerate(json.loads(read_text(os.path.join(assets, "hsk_sentences.json")))):
        yield entry["chinese"]
        if i % 4 == 0 and entry["traditional"] != entry["chinese"]:
            yield entry["traditional"]
        if i % 5 == 0:
            yield entry["translation"]["en"]
        if i % 10 == 0:
            yield entry["pinyin"]


def reviews(assets):
    for name in ("reviews_pos.txt", "reviews_neg.txt"):
        lines = read_text(os.path.join(assets, name)).split("\n")
        for line in lines[::6]:
            yield line


def unicode_rows():
    """64 neighbouring characters at a time: all of the BMP and plane 1, samples of the rest."""
    rows = list(range(0x0000, 0x20000, 64))
    rows += range(0x20000, 0x32400, 256)
    rows += range(0xE0000, 0xE0200, 64)
    rows += range(0xF0000, 0x110000, 64 * 128)
    rows += [0x10FFC0]
    for start in rows:
        text = "".join(chr(c) for c in range(start, start + 64) if is_scalar(c))
        if text:
            yield text


def unicode_pairs():
    """Every character of the busy blocks beside letters, a space, its neighbour and itself."""
    for low, high in ((0x0000, 0x3400), (0xA4D0, 0xAC00), (0xF900, 0x10000), (0x1F000, 0x1FB00)):
        for code in range(low, high, 2):
            a, b = chr(code), chr(code + 1)
            yield "a%sb %s%s" % (a, b, a)


SKIN = ["", "\U0001F3FB", "\U0001F3FC", "\U0001F3FD", "\U0001F3FE", "\U0001F3FF"]
ZWJ = "\u200D"
VS16 = "\uFE0F"


def emoji():
    people = ["\U0001F468", "\U0001F469", "\U0001F9D1"]
    jobs = ["\u2695", "\u2696", "\u2708", "\U0001F33E", "\U0001F373", "\U0001F393", "\U0001F3A4", "\U0001F3EB",
            "\U0001F4BB", "\U0001F52C", "\U0001F680", "\U0001F692", "\U0001F9BD"]
    for person in people:
        for tone in SKIN:
            for job in jobs:
                tail = VS16 if ord(job) < 0x3000 else ""
                yield person + tone + ZWJ + job + tail
    for a in people:
        for b in people:
            yield a + ZWJ + "\u2764" + VS16 + ZWJ + b
            yield a + ZWJ + "\u2764" + VS16 + ZWJ + "\U0001F48B" + ZWJ + b
            yield a + ZWJ + b + ZWJ + "\U0001F467" + ZWJ + "\U0001F466"
    for i in range(26):
        for j in range(0, 26, 3):
            yield chr(0x1F1E6 + i) + chr(0x1F1E6 + j)
    yield "".join(chr(0x1F1E6 + i % 26) for i in range(31))
    for key in "0123456789#*":
        yield key + VS16 + "\u20E3"
        yield key + "\u20E3"
    for region in ("gbeng", "gbsct", "gbwls", "usca"):
        yield "\U0001F3F4" + "".join(chr(0xE0000 + ord(c)) for c in region) + "\U000E007F"
    for hand in range(0x1F446, 0x1F451):
        for tone in SKIN:
            yield "好评" + chr(hand) + tone + "！"
    for code in (0x2600, 0x2601, 0x260E, 0x263A, 0x2640, 0x2642, 0x2665, 0x2708, 0x27A1, 0x2B50):
        for tail in ("", "\uFE0E", VS16):
            yield chr(code) + tail + " ok " + chr(code) + tail + chr(code)
    draw = Draw(11)
    for _ in range(200):
        yield "".join(chr(draw.between(0x1F300, 0x1F6FF)) + draw.pick(["", "", VS16, ZWJ, " ", "很好"])
                      for _ in range(draw.between(1, 12)))


def nfkc_traps():
    fixed = [
        "ﾊﾟﾋﾟﾌﾟﾍﾟﾎﾟ ｶﾞｷﾞｸﾞ ﾊ゚ｶ゛", "ＡＢＣａｂｃ０１２３！？（）", "①②③⑩⑳㉑㊿", "㈠㈡㈢㊀㊁㊂", "㎏㎡㎥㏄㏑㎜", "㍻㍼㍽㍾㋿",
        "ﬁ ﬂ ﬀ ﬃ ﬄ ﬅ ﬆ", "ﷺ ﷻ ﷲ ﻻ ﻼ", "Å Å Å", "é é è è ñ ñ", "ḍ̇ ḍ̇ ḍ̇", "가 각 각 ᄀᆨ ﾡﾢ",
        "½ ⅓ ¼ ⅛ ⅐", "x² x³ x⁻¹ H₂O", "™ ® © ℠ ℡ № ℃ ℉ Ω K", "… ‥ ․ ﹒ 。 ｡", "´ ¨ ¸ ˙ ῾ ΅", "ſ ẛ ẛ̣ ΐ ΰ",
        "\u1E9B\u0323 \u03D3\u0301", "か\u3099 が ハ\u309A パ", "\u0344\u0958\u2126\u212A\u212B", "豈更車賈滑 \uFA0E\uFA0F 𠔜",
        "｢ﾃｽﾄ｣､ﾃｽﾄ｡", "〜～∼˜", "－‐‑‒–—―ー－", "＂＇｀´‘’“”„‟", "\u00A0\u2002\u2003\u2007\u202F\u205F\u3000a",
        "a\u00ADb\u200Bc\u200Cd\u200De\u2060f\uFEFFg", "\u202Eabc\u202C \u2066x\u2069", "𝐀𝑩𝒞𝔇𝔼𝖋𝗀𝚑 𝟎𝟙𝟚𝟯", "🄰🅰🆎🈁🈴 ㍐",
        "Ⅷ ⅷ ↉ ⒈ ⑴ ⓐ Ⓐ", "ǆ ǅ Ǆ ĳ Ĳ ŉ ŀ", "\u0e33 \u0eb3 \u0edc", "\u0f77 \u0f79 \u0f81", "ﭏ ﬡ ﬢ יִ", "﹙﹚﹛﹜ ︵︶ ︷︸",
        "\u2A0C \u222D \u2A74 \u2A76", "\uFDFC \uFE70 \uFE72", "\u1100\u1161\u11A8\u11A9 \uAC00\u11A8",
    ]
    yield from fixed
    pool = "".join(fixed)
    draw = Draw(22)
    for _ in range(1400):
        yield "".join(draw.pick(pool) + draw.pick(["", "", "", " ", "\u0301", "\u3099", "中", "a"])
                      for _ in range(draw.between(1, 24)))


def controls():
    for code in list(range(0, 33)) + list(range(127, 162)) + [0x200B, 0x200E, 0x2028, 0x2029, 0x2060, 0xFEFF, 0xFFFC,
                                                              0xFFFD, 0xFFFE, 0xFFFF, 0xE0001, 0x10FFFF]:
        c = chr(code)
        yield c
        yield "前%s后" % c
        yield "%sword %s word%s" % (c, c, c)
        yield "a%s%s%sb" % (c, c, c)


SPACES = [" ", "\t", "\n", "\r", "\u00A0", "\u1680", "\u2000", "\u2009", "\u200B", "\u2028", "\u202F", "\u3000", "\u2581"]


def space_runs():
    for space in SPACES:
        for n in (1, 2, 3, 7, 33):
            yield space * n
            yield space * n + "你好"
            yield "你好" + space * n
            yield "hello" + space * n + "world"
            yield space * n + "a" + space * n + "好" + space * n
    draw = Draw(33)
    for _ in range(150):
        yield "".join(draw.pick(SPACES) if draw.below(2) else draw.pick("ab好的。1") for _ in range(draw.between(1, 40)))


def combining():
    draw = Draw(44)
    marks = list(range(0x300, 0x370)) + list(range(0x483, 0x488)) + list(range(0x591, 0x5BE)) + \
        list(range(0x64B, 0x660)) + list(range(0x93A, 0x950)) + list(range(0xE31, 0xE3B)) + list(range(0x20D0, 0x20F1)) + \
        [0x3099, 0x309A, 0xFE20, 0x1D165]
    bases = "aeiouAnsZ中文字かハกक가ب\u05D0 1"
    for _ in range(500):
        yield "".join(draw.pick(bases) + "".join(chr(draw.pick(marks)) for _ in range(draw.below(6)))
                      for _ in range(draw.between(1, 16)))
    for n in (10, 40, 200):
        yield "z" + "\u0301" * n + "好"


def mixtures():
    """Random characters from scripts that people really mix, and from anywhere."""
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x620, 0x64A), (0x900, 0x97F),
              (0xE00, 0xE5B), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0x4E00, 0x9FFF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
              (0xFF00, 0xFFEF), (0x1F300, 0x1F64F), (0x20000, 0x2A6DF)]
    draw = Draw(55)
    for _ in range(1000):
        out = []
        for _ in range(draw.between(1, 10)):
            low, high = draw.pick(ranges)
            out.append("".join(chr(draw.between(low, high)) for _ in range(draw.between(1, 6))))
        yield draw.pick(["", " "]).join(out)
    for _ in range(500):
        codes = (draw.below(0x110000) for _ in range(draw.between(1, 30)))
        yield "".join(chr(c) for c in codes if is_scalar(c))


def piece_chains(assets):
    """Vocabulary pieces in a row: near-ties and long matches of the best-path search."""
    draw = Draw(66)
    for name in ("mt5", "umt5", "t5"):
        pieces = pieces_of(os.path.join(assets, name + ".spiece.model"))
        for _ in range(900):
            yield "".join(draw.pick(pieces) for _ in range(draw.between(1, 12))).replace("\u2581", " ")
        for _ in range(100):
            yield "".join(draw.pick(pieces) for _ in range(draw.between(1, 6)))


def plain_ascii():
    fixed = [
        "", "a", "The quick brown fox jumps over the lazy dog.", "http://example.com/a?b=c&d=%E4%BD%A0#e", "user.name+tag@mail.example.org",
        "int main(void) { return 0; }\n", "{\"k\": [1, 2.5e-3, null]}", "<p class=\"x\">&nbsp;&amp;</p>", "C:\\dir\\file.txt", "$9.99 -- 50% off!!!",
        "3.14159265358979323846", "2024-02-29T23:59:59Z", "iPhone15的价格是5999元，没有优惠。", "这家餐厅的味道非常好，服务也很周到。",
        "请将以下句子用不同方式表达，保持原意不变：早餐很丰盛，价格稍微高了点。", "WiFi信号不好 5G/4G 切换 OK", "a" * 100, "ab" * 60, "的" * 80,
        "<0x41>", "<0xE4><0xBD><0xA0>", "[eod]", "[web] x [translate]y", "\u2581", "\u2581a\u2581 \u2581\u2581b", "\u2581\u2581\u2581", "\u2047 \u2047",
    ]
    yield from fixed
    draw = Draw(77)
    words = "the of and to in is it was for on with as at by from rewrite model server token price hotel 2 10 1999 3.5".split()
    for _ in range(300):
        yield " ".join(draw.pick(words) for _ in range(draw.between(1, 15)))
    for _ in range(300):
        yield "".join(chr(draw.between(0x20, 0x7E)) for _ in range(draw.between(1, 40)))


LONG = 10000


def long_texts(assets):
    lines = read_text(os.path.join(assets, "reviews_pos.txt")).split("\n")
    whole = "".join(lines)
    yield whole[:LONG]
    yield whole[LONG:2 * LONG]
    yield "\n".join(lines[:400])[:LONG]
    sentences_en = [e["translation"]["en"] for e in json.loads(read_text(os.path.join(assets, "hsk_sentences.json")))]
    yield " ".join(sentences_en)[:LONG]
    yield "".join(sentences_en).replace(" ", "")[:LONG]
    yield "a" * LONG
    yield "好" * LONG
    yield " " * LONG
    yield "x " * (LONG // 2)
    yield "哈" * 5000 + "ha" * 2500
    yield "\U0001F600" * LONG
    yield "\u3099" * LONG
    yield "\uFDFA" * LONG
    draw = Draw(88)
    yield "".join(chr(draw.between(0x20000, 0x2A6DF)) for _ in range(LONG))
    yield "".join(chr(draw.between(0x20, 0x7E)) for _ in range(LONG))
    yield "".join(chr(draw.between(0x4E00, 0x9FFF)) for _ in range(LONG))


def specials():
    """Special tokens written out in text."""
    marks = ["</s>", "<pad>", "<unk>", "<s>", "<extra_id_0>", "<extra_id_1>", "<extra_id_99>", "<extra_id_299>"]
    for mark in marks:
        for frame in ("%s", "%s%s", "%s %s", "a%sb", "a %s b", "你好%s世界", "你好 %s 世界", " %s", "%s ", "  %s  ", "x%s", "%sx", "%s.", "(%s)",
                      "%s\u3000%s", "价格%s元。", "ＡＢ%s①", "\u2581%s", "%s\u2581"):
            yield frame.replace("%s", mark)
    yield "<extra_id_00> <extra_id_100> <extra_id_300> <extra_id_-1> <extra_id_> <extra_id_1"
    yield "< /s> </ s> </S> <PAD> <Pad> <<pad>> <pad></s> </s"
    yield "<extra_id_1><extra_id_10><extra_id_1>0>"
    yield "＜extra_id_0＞ ＜/s＞"
    draw = Draw(99)
    parts = ["这家餐厅", "很好，", "hello", " world", " ", "12", "。", "味道", "the price is", "?", "房间 "]
    for _ in range(400):
        yield "".join(draw.pick(marks) if draw.below(3) == 0 else draw.pick(parts) for _ in range(draw.between(2, 14)))
    for i in range(100):
        yield "<extra_id_%d>" % i
        yield "我们<extra_id_%d>去<extra_id_%d>。" % (i, (i * 7 + 3) % 100)


def names_special(text):
    return any(mark in text for mark in ("<extra_id_", "</s>", "<s>", "<pad>", "<unk>"))


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: make_strings.py ASSETS_DIR OUT_FILE")
    assets, out = sys.argv[1:]
    plain = []
    for group in (sentences(assets), reviews(assets), unicode_rows(), unicode_pairs(), emoji(), nfkc_traps(), controls(),
                  space_runs(), combining(), mixtures(), piece_chains(assets), plain_ascii(), long_texts(assets)):
        plain.extend(group)
    # A chain of pieces can spell a special token by chance: such strings belong to the special section.
    special = [text for text in plain if names_special(text)] + list(specials())
    plain = [text for text in plain if not names_special(text)]

    temporary = out + ".tmp"
    with open(temporary, "wb") as f:
        f.write(b"INKSTR1\n" + struct.pack("<II", len(plain) + len(special), len(plain)))
        for text in plain + special:
            data = text.encode("utf-8")
            f.write(struct.pack("<I", len(data)) + data)
    os.replace(temporary, out)


if __name__ == "__main__":
    main()
