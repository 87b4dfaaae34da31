"""Checks a rewrite of a Chinese sentence: does it differ, keep numbers, names, Latin words and negation, and is it well formed?

Plain Python without dependencies. check() returns the list of what is wrong, empty when nothing is. The checker's own
error on hand-labelled pairs (labelled.tsv) is what `checker.py` prints when it's run.
"""

import os
import re
import sys
import unicodedata
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))

# Words with a numeral or a negation sign in them that are neither.
NOT_NUMBERS = "十分 千万 万一 一边 一起 一块儿 一同 一些 一直 一定 一样 一般 一下 一点儿 一点 一会儿 万分 百分 四周 四处 三明治 千克 一旦 一共 一向 一切 半天 多半 七夕 百货 万岁 双十一 第一".split()
NOT_NEGATIONS = ("不但 不仅 不光 不过 不管 不论 不错 不少 不久 不断 不停 不得不 差不多 对不起 不好意思 不由得 禁不住 忍不住 不禁 要不是 要不然 要不 了不起 说不定 不得了 只不过 不知不觉 "
                 "特别 别人 别的 分别 区别 个别 告别 级别 性别 别墅 送别 非常 非洲 除非 无论 无线 未来 没关系 沉没 是否 能否 否则 并非 非要 未必 免不了 不客气 别客气 千万别").split()
NOT_NEGATIONS.remove("千万别")
NOT_NEGATIONS.remove("并非")
NOT_NEGATIONS.remove("未必")
A_NOT_A = re.compile(r"(有没有|可不可以|要不要|能不能|会不会|是不是|好不好|行不行|对不对|想不想|([一-鿿])[不没]\2)")
NEGATION = re.compile("[不没无别未勿莫]|并非")
NUMERALS = "零〇一二两三四五六七八九十百千万亿半"
NUMBER = re.compile(rf"\d+(?:[.,:]\d+)*|[{NUMERALS}]+(?:点[{NUMERALS}]+)?")
LATIN = re.compile(r"[A-Za-z]+(?:[-'][A-Za-z]+)*")
MARKS = "，。！？：；、"
ALLOWED = re.compile(r"[一-鿿㐀-䶿0-9A-Za-z，。！？：；、（）“”‘’《》…—～·￥¥℃°%.,:+\-/&@#'_ ]*")
INTENSE = "(?:很|非常|十分|特别|极其|更加|实在太)"
DOUBLED = re.compile(rf"{INTENSE}{INTENSE}|的的|了了|是是|在在|和和|就就|也也|都都|有有|想想要|因为由于|所以因此|虽然尽管|如果要是|但是但|不不|没没|能能|会会(?!议)|我我|他他(?!们)|得得")
SAME_CHARACTERS = {"叁": "三"}


def plain(text):
    return unicodedata.normalize("NFKC", text).strip()


def numbers(text):
    """The numbers of a text, Chinese ones as they are written; a lone 一 doesn't count, 两 counts as 二."""
    text = plain(text)
    for word in NOT_NUMBERS:
        text = text.replace(word, "·")
    found = []
    for value in NUMBER.findall(text):
        value = value.replace("两", "二")
        if value != "一":
            found.append(value)
    return Counter(found)


def negations(text):
    text = A_NOT_A.sub("·", plain(text))
    for word in NOT_NEGATIONS:
        text = text.replace(word, "·")
    return len(NEGATION.findall(text))


_known = None


def known_characters():
    """The characters that the project's rules and grammar can bring into a rewrite."""
    global _known
    if _known is None:
        _known = set()
        for name in ("rules.txt", "grammar.txt", "rewriting.py"):
            with open(os.path.join(HERE, name), encoding="utf-8") as f:
                for line in f:
                    if not line.startswith("#"):
                        _known.update(c for c in line if "一" <= c <= "鿿")
    return _known


def check(source, rewrite, keep=()):
    """Returns the faults of a rewrite as short English words. keep: words that must appear in it."""
    faults = []
    if not rewrite.strip():
        return ["empty"]
    if plain(source).rstrip("。！") == plain(rewrite).rstrip("。！"):
        faults.append("same")
    if numbers(source) != numbers(rewrite):
        faults.append("number")
    for word in keep:
        if plain(rewrite).count(plain(word)) < 1:
            faults.append("name:" + word)
    if Counter(LATIN.findall(plain(source))) != Counter(LATIN.findall(plain(rewrite))):
        faults.append("latin")
    if negations(source) != negations(rewrite):
        faults.append("negation")
    faults += malformed(source, rewrite)
    return faults


def malformed(source, rewrite):
    faults = []
    if not ALLOWED.fullmatch(rewrite) or rewrite != rewrite.strip():
        faults.append("character")
    ends = "？" if source.rstrip().endswith(("？", "?")) else "。！"
    if rewrite[-1] not in ends and (source[-1] in MARKS or rewrite[-1] in MARKS):
        faults.append("end")
    if re.search(r"[一-鿿][,!?;:]|[,!?;:][一-鿿]", rewrite) and not re.search(r"[一-鿿][,!?;:]|[,!?;:][一-鿿]", source):
        faults.append("half-width mark")
    if re.search(f"[{MARKS}][{MARKS}]|^[{MARKS}]", rewrite):
        faults.append("marks")
    if any(rewrite.count(a) != rewrite.count(b) for a, b in ("（）", "“”", "《》", "‘’")):
        faults.append("unbalanced")
    ratio = len(rewrite) / max(1, len(source))
    if ratio < 0.6 or ratio > 1.7 and len(rewrite) - len(source) > 6:
        faults.append("length")
    for m in re.finditer(r"([一-鿿]{2,})\1|([一-鿿])\2\2", rewrite.replace("越来越", "越")):
        if m.group(0) not in source:
            faults.append("repeats")
            break
    for m in DOUBLED.finditer(rewrite):
        if m.group(0) not in source:
            faults.append("doubled word")
            break
    source_characters = Counter(c for c in source if "一" <= c <= "鿿")
    rewrite_characters = Counter(c for c in rewrite if "一" <= c <= "鿿")
    known = known_characters()
    strange = [c for c in rewrite_characters if c not in source_characters and c not in known]
    if strange:
        faults.append("invented:" + "".join(strange))
    lost = [c for c in source_characters if c not in rewrite_characters and c not in known]
    if lost:
        faults.append("lost:" + "".join(lost))
    kept = sum(min(n, rewrite_characters[c]) for c, n in source_characters.items())
    if source_characters and kept / sum(source_characters.values()) < 0.45:
        faults.append("too little kept")
    return faults


def read_labelled(path=os.path.join(HERE, "labelled.tsv")):
    """Yields (is good, source, rewrite, words to keep)."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            parts = line.rstrip("\n").split("\t")
            yield parts[0] == "good", parts[1], parts[2], [w for w in (parts[3] if len(parts) > 3 else "").split("|") if w]


def report(details, path=os.path.join(HERE, "labelled.tsv")):
    """Prints the checker's own error on the labelled pairs. Returns (bad ones missed, good ones refused, pairs)."""
    rows = list(read_labelled(path))
    missed = [r for r in rows if not r[0] and not check(*r[1:])]
    refused = [r for r in rows if r[0] and check(*r[1:])]
    for title, found in (("labelled bad, called good", missed), ("labelled good, called bad", refused)):
        for _, source, rewrite, keep in found if details else []:
            print(f"{title}: {source} -> {rewrite} {' '.join(check(source, rewrite, keep))}")
    good = sum(r[0] for r in rows)
    print(f"checker: {len(rows)} labelled pairs ({good} good, {len(rows) - good} bad); {len(missed)} bad ones missed, {len(refused)} good ones refused, "
          f"error {100 * (len(missed) + len(refused)) / max(1, len(rows)):.0f} %")
    return len(missed), len(refused), len(rows)


if __name__ == "__main__":
    report(True, *sys.argv[1:2])
