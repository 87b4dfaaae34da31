#!/usr/bin/env python3
"""Makes the training pairs of the demo rewriting model, or with --heldout the 200 sentences it is judged on.

  make_data.py -o pairs.tsv [--seed 1] [--grammar 75000] [--hsk 75000] [--reviews 100000]
  make_data.py --heldout heldout.tsv

A pair is "source TAB rewrite". The same seed gives the same file.
"""

import argparse
import random
import re
import sys
import unicodedata

import checker
import packages
import rewriting
from rewriting import CLAUSE_MARKS

SURNAMES = list("王李张刘陈杨黄赵周吴徐孙朱马胡郭林何高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚") + ["欧阳", "司马", "上官", "诸葛"]
GIVEN = list("伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰红春梅建国文志宇浩博轩子涵欣怡梓晨思雨佳琪雪婷颖慧琳晓东海燕峰鹏飞龙斌波辉健俊凯旭阳天宁安康乐然若曦诗语嘉豪睿哲铭远航毅帆翔瑞林森磊晶莹洁倩云月星辰")
HELD_SURNAMES, HELD_GIVEN = list("柳岳温裴褚"), list("楠瑾昊菲蕾屹妍恺")
FOREIGN = "Anna Tom Lucy Jack Mike Linda David Peter Amy Kevin Lisa Mary Bob Alice Emma Leo Nina Sam Tony Kate Eric Helen Jason Cindy Frank Grace".split()
HELD_FOREIGN = "Oliver Sophie Victor Diana".split()
TITLES = ["先生", "女士", "老师", "医生", "师傅", "阿姨", "叔叔", "教授", "小姐", "同学"]
BRANDS = "iPhone iPad MacBook ThinkPad Kindle Switch Galaxy Mate Surface AirPods Note Pixel Watch Nova Redmi Pad Excel Word Photoshop PPT WiFi USB GPS App VIP CEO Email Python Java".split()
HELD_BRANDS = "Zenbook Xperia Lumix Corolla".split()
WEEK_NUMBERS = "两三四五六七八九"
MEASURES = {"裙子": "条", "裤子": "条", "牛仔裤": "条", "围巾": "条", "运动鞋": "双", "皮鞋": "双", "靴子": "双", "帽子": "顶", "手套": "副"}
HAN_COMMON, HAN_RARE = [], []
for _lead in range(0xB0, 0xF8):
    for _trail in range(0xA1, 0xFF):
        try:
            (HAN_COMMON if _lead < 0xD8 else HAN_RARE).append(bytes((_lead, _trail)).decode("gb2312"))
        except UnicodeDecodeError:
            pass


# ---------------------------------------------------------------- random names, numbers, Latin words

def han_word(rng, low=2, high=3):
    share = rng.choice((0.0, 0.1, 0.7))
    return "".join(rng.choice(HAN_RARE if rng.random() < share else HAN_COMMON) for _ in range(rng.randint(low, high)))


DICTIONARY = []          # nouns, names and places of the segmenter's dictionary, filled by load_dictionary()
DICTIONARY_COMMON = []
DICTIONARY_TRICKY = []   # words that hold a character which is a word with rules of its own: 颐和园, 里约, 中关村


# Words that only held-out sentences may have. Everyday ones that no text can do without (subjects, days, parts of the day) aren't kept apart.
HELD_WORDS = {word for slot, words in rewriting.load_slots()[1].items() if slot not in ("subj", "day", "fday", "pday", "part", "month", "week", "bad", "ill", "seat", "color") for word in words}
HELD_PATTERN = re.compile("|".join(sorted(HELD_WORDS, key=len, reverse=True)))


AND_WORDS = []


def load_dictionary(touched):
    """Words to put into sentences so that the model learns to copy: two to four characters, no numeral, no negation, none that a rule touches."""
    unwanted = set("不没无别未勿莫非零一二两三四五六七八九十百千万亿半的了是着过们")
    for word, count, tag in packages.dictionary():
        if not HELD_PATTERN.search(word) and tag in ("n", "nz", "ns", "nr", "nt", "nrt") and 2 <= len(word) <= 4 and word not in touched and all("一" <= c <= "鿿" and c not in unwanted for c in word):
            DICTIONARY.append(word)
            if len(word) >= 3 and ("和" in word[1:-1] or any(c in word for c in "上里中后前会能想用说带花坐元块同与跟") and tag != "n"):
                DICTIONARY_TRICKY.append(word)
                if "和" in word:
                    AND_WORDS.append(word)
            if count >= 100:
                DICTIONARY_COMMON.append(word)


def some_word(rng):
    """A word to copy: from the dictionary (rare and common ones alike), or made up."""
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(AND_WORDS if rng.random() < 0.6 else DICTIONARY_TRICKY)
    if kind < 0.25:
        return rng.choice(DICTIONARY)
    if kind < 0.5:
        return rng.choice(DICTIONARY_COMMON)
    return han_word(rng)


def latin_word(rng):
    kind = rng.random()
    letters = "abcdefghijklmnopqrstuvwxyz"
    if kind < 0.3:
        word = rng.choice(BRANDS)
    elif kind < 0.65:
        word = "".join(rng.choice(letters) for _ in range(rng.randint(2, 8)))
        word = rng.choice((word, word.capitalize(), word.upper() if len(word) < 5 else word.capitalize()))
    else:
        word = "".join(rng.choice(letters.upper()) for _ in range(rng.randint(1, 3)))
    tail = rng.random()
    if tail < 0.25:
        word += rng.choice(("", "-", " ")) + str(rng.randint(1, 999))
    elif tail < 0.35:
        word += " " + rng.choice(("Pro", "Max", "Plus", "Mini", "SE", "X", "Air"))
    return word


def person_name(rng, held=False):
    if held:
        if rng.random() < 0.15:
            return rng.choice(HELD_FOREIGN)
        return rng.choice(HELD_SURNAMES) + "".join(rng.choice(HELD_GIVEN) for _ in range(rng.randint(1, 2)))
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(FOREIGN) if rng.random() < 0.6 else "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 7))).capitalize()
    if kind > 0.85 and DICTIONARY:
        return rng.choice(DICTIONARY)
    surname = rng.choice(SURNAMES) if rng.random() < 0.6 else rng.choice(HAN_COMMON if rng.random() < 0.6 else HAN_RARE)
    if kind < 0.24:
        return rng.choice("小老阿") + surname
    if kind < 0.36:
        return surname + rng.choice(TITLES)
    return surname + "".join(rng.choice(GIVEN if rng.random() < 0.3 else HAN_RARE if rng.random() < 0.4 else HAN_COMMON) for _ in range(rng.randint(1, 2)))


def number(rng):
    kind = rng.random()
    if kind < 0.5:
        return str(rng.randint(2, 99))
    if kind < 0.75:
        return str(rng.randint(100, 9999))
    if kind < 0.9:
        return f"{rng.randint(0, 99)}.{rng.randint(1, 99)}"
    return str(rng.randint(10000, 9999999))


def price(rng):
    return rng.choice((str(rng.randint(5, 99)), str(rng.randint(100, 9999)), f"{rng.randint(1, 199)}.{rng.randint(1, 9)}", f"{rng.randint(1, 19)},{rng.randint(100, 999)}",
                       rng.choice("两三四五六七八九") + rng.choice(("百", "千", "百五十", "千六百"))))


def clock(rng):
    hour = rng.choice("一两三四五六七八九十") if rng.random() < 0.5 else str(rng.randint(1, 12))
    return rng.choice((f"{hour}点", f"{hour}点半", f"{hour}点{rng.randint(10, 59)}分", f"{rng.randint(6, 23)}:{rng.randint(10, 59)}"))


def small(rng):
    return rng.choice((rng.choice(WEEK_NUMBERS), str(rng.randint(2, 60)), "十" + rng.choice("一二三五六八"), rng.choice("二三四五") + "十"))


class Filler:
    """Fills the slots of one sentence; the same slot name gets the same word."""

    def __init__(self, rng, words, held):
        self.rng, self.words, self.held, self.memo = rng, words, held, {}

    def __call__(self, name):
        if name not in self.memo:
            self.memo[name] = self.make(name)
        return self.memo[name]

    def make(self, name):
        rng = self.rng
        if name == "mw":
            return MEASURES.get(self("cloth"), "件")
        base = name.rstrip("0123456789")
        if base == "p":
            return person_name(rng, self.held)
        if base == "sur":
            return rng.choice(HELD_SURNAMES if self.held else SURNAMES)
        if base == "n":
            return small(rng)
        if base == "price":
            return price(rng)
        if base == "clock":
            return clock(rng)
        if base == "phone":
            return "1" + "".join(rng.choice("0123456789") for _ in range(rng.choice((7, 10))))
        if base == "model":
            if self.held:
                return rng.choice(HELD_BRANDS) + rng.choice(("", " ")) + str(rng.randint(2, 99))
            return latin_word(rng)
        words = self.words[base]
        if not self.held and base in OPEN_SLOTS and rng.random() < 0.55:
            return some_word(rng) + (words[0][-1] if base == "shop" else "")
        word = rng.choice(words)
        taken = self.memo.get(base)
        while len(set(words)) > 1 and word == taken:
            word = rng.choice(words)
        return word


OPEN_SLOTS = {"dish", "city", "spot", "shop", "thing", "food", "fruit", "drink", "lose", "doc", "venue", "job", "person"}


def fill(text, filler):
    return re.sub(r"\{(\w+)\}", lambda m: filler(m.group(1)), text)


# ---------------------------------------------------------------- sentences from the packages

ALLOWED = re.compile("[一-鿿，。！？、；：“”《》（）0-9A-Za-z.%-]+")
UNWANTED = re.compile(r"(.)\1\1|[操屌妈逼傻垃圾骗尼玛]{2}|政府|共产|法轮|台独|[，。！？、；：]{2}|^[，。！？、；：]|[A-Za-z0-9.%-]{14}|杀|死|血|性爱|日本人|鬼子|tmd")


def clean_sentences(lines, rng):
    """Sentences of 6 to 42 characters out of review lines."""
    out, seen = [], set()
    for line in lines:
        line = unicodedata.normalize("NFKC", line)
        line = line.translate(str.maketrans(",!?:;()", "，！？：；（）"))
        line = re.sub(r"\s+", "", line)
        line = re.sub(r"[.…·]{2,}|~+|。{2,}", "。", line)
        line = re.sub(r"！{2,}", "！", line)
        line = re.sub(r"^\d+[.、）]", "", line)
        for sentence in re.findall("[^。！？]+[。！？]?", line):
            if not sentence.endswith(("。", "！", "？")):
                sentence += "。"
            clauses = re.split("(?<=，)", sentence)
            while clauses:
                take = rng.randint(1, 3)
                part = "".join(clauses[:take])
                clauses = clauses[take:]
                if part.endswith("，"):
                    part = part[:-1] + "。"
                if not 6 <= len(part) <= 42 or part in seen or not ALLOWED.fullmatch(part) or UNWANTED.search(part):
                    continue
                if any(part.count(a) != part.count(b) for a, b in ("“”", "（）", "《》")):
                    continue
                seen.add(part)
                out.append(part)
    return out


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.words = rewriting.WordRewriter()
        self.posseg = packages.segmenter()
        self.cache = {}
        load_dictionary(set(self.words.rules) | set(self.words.fallback))

    def tag(self, text, keep=False):
        if text in self.cache:
            return self.cache[text]
        tokens = [(w.word, w.flag) for w in self.posseg.cut(text, HMM=False)]
        if keep:
            self.cache[text] = tokens
        return tokens

    def disguise(self, tokens, strong):
        """Puts random names, numbers and unknown words into a sentence, so that copying is learned, not the words."""
        rng, out = self.rng, []
        for i, (word, tag) in enumerate(tokens):
            after = tokens[i + 1][0] if i + 1 < len(tokens) else "。"
            start = i == 0 or tokens[i - 1][0] in CLAUSE_MARKS
            if re.fullmatch(r"[0-9.]+", word) and rng.random() < 0.8:
                word, tag = number(rng), "m"
            elif word in tuple("两三四五六七八九") and i + 1 < len(tokens) and tokens[i + 1][1] == "q" and rng.random() < 0.4:
                word = rng.choice((rng.choice("两三四五六七八九"), str(rng.randint(2, 99))))
            elif word in ("他", "她") and start and after not in ("的", "们", "自己", "俩", "家", "妈妈", "爸爸", "。", "，") and rng.random() < 0.35:
                word, tag = person_name(rng), "nr"
            elif word == "我" and start and i == 0 and after not in ("的", "们", "自己", "俩", "家", "。", "，") and rng.random() < 0.06:
                word, tag = person_name(rng), "nr"
            elif tag == "ns" and len(word) == 2 and rng.random() < 0.6:
                word = some_word(rng)
            elif tag in ("n", "nz") and len(word) >= 2 and word not in self.words.rules and rng.random() < strong:
                word = latin_word(rng) if rng.random() < 0.2 else some_word(rng)
            elif re.fullmatch("[A-Za-z]+", word) and rng.random() < 0.5:
                word = latin_word(rng)
            out.append((word, tag))
        return out

    def rewrite(self, tokens, chance=0.92, clause_chance=0.8):
        """Returns a rewrite that differs, or None when no rule fits."""
        rng = self.rng
        source = text = "".join(w for w, _ in tokens)
        if rng.random() < clause_chance:
            choices = rewriting.clause_rewrites(text)
            if choices:
                text = rng.choice(choices)
                tokens = self.retag(text, tokens)
        for _ in range(3):
            result = self.words.rewrite(rewriting.Tagged(tokens), rng, chance)
            if result != source:
                return result
        choices = rewriting.clause_fallbacks(source)
        if choices and rng.random() < 0.7:
            return rng.choice(choices)
        result = self.words.rewrite(rewriting.Tagged(tokens), rng, 1.0, True)
        return result if result != source else choices[0] if choices else None

    def retag(self, text, tokens):
        """Tags a text whose words came mostly from tokens; made-up words keep their tag."""
        made = sorted({(w, t) for w, t in tokens if len(w) > 1}, key=lambda x: -len(x[0]))
        parts, at = [], 0
        starts = {}
        for w, t in made:
            where = text.find(w)
            while where >= 0:
                starts.setdefault(where, (w, t))
                where = text.find(w, where + 1)
        plain = 0
        while at < len(text):
            if at in starts:
                if plain < at:
                    parts += self.tag(text[plain:at])
                parts.append(starts[at])
                at += len(starts[at][0])
                plain = at
            else:
                at += 1
        if plain < at:
            parts += self.tag(text[plain:at])
        return parts

    def from_sentences(self, sentences, count, strong, progress):
        rng, out, tries = self.rng, [], 0
        tagged = [self.tag(s) for s in sentences]
        usable = [t for t in tagged if self.rewrite(t) is not None]
        print(f"{progress}: {len(usable)} of {len(tagged)} sentences have a rewrite", file=sys.stderr, flush=True)
        while len(out) < count and tries < count * 3:
            tries += 1
            tokens = self.disguise(rng.choice(usable), strong)
            target = self.rewrite(tokens)
            if target is None:
                continue
            source = "".join(w for w, _ in tokens)
            if rng.random() < 0.06 and out and len(source) < 24 and len(out[-1][0]) < 24:
                source, target = out[-1][0] + source, out[-1][1] + target
            out.append((source, target))
        return out

    def from_grammar(self, count):
        rng, out = self.rng, []
        train, _ = rewriting.load_slots()
        blocks = rewriting.load_blocks()
        while len(out) < count:
            block = rng.choice(blocks)
            filler = Filler(rng, train, False)
            lines = rng.sample(block, 2) if rng.random() < 0.85 else [rng.choice(block)] * 2
            shared = {}
            source, target = (fill(rewriting.choose(line, rng, shared), filler) for line in lines)
            if source == target:
                continue
            if rng.random() < 0.45:
                # The general rules on a grammar sentence, as they will meet unseen ones.
                tokens = self.disguise(self.tag(source), 0.15)
                source = "".join(w for w, _ in tokens)
                target = self.rewrite(tokens)
                if target is None:
                    continue
            out.append((source, target))
        return out


def sound(source, target):
    """Whether a pair passes the checker that the trained model is judged with (noisy marks in reviews are let through)."""
    return not any(fault not in ("half-width mark", "unbalanced") for fault in checker.check(source, target))


def common_length(a, b):
    """Length of the longest common subsequence (bit-parallel)."""
    places = {}
    for i, c in enumerate(a):
        places[c] = places.get(c, 0) | 1 << i
    full = (1 << len(a)) - 1
    row = full
    for c in b:
        hit = row & places.get(c, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(a) - bin(row).count("1")


def is_reordered(source, target):
    return common_length(source, target) < 0.7 * min(len(source), len(target))


def heldout(path, seed):
    """Draws 200 sentences: "sentence TAB word|word|…", the words that a rewrite must keep."""
    rng = random.Random(seed)
    _, held = rewriting.load_slots()
    templates = [line.strip() for line in open(f"{rewriting.HERE}/heldout.txt", encoding="utf-8") if line.strip() and not line.startswith("#")]
    lines, seen, turn = [], set(), 0
    while len(lines) < 200:
        template = templates[turn % len(templates)]
        turn += 1
        filler = Filler(rng, held, True)
        sentence = fill(template, filler)
        if sentence in seen:
            continue
        seen.add(sentence)
        keep = [filler.memo[s] for s in filler.memo if s.rstrip("0123456789") in ("p", "sur", "dish", "city", "spot", "thing", "model", "fruit", "drink", "lang", "job")]
        lines.append(sentence + "\t" + "|".join(keep))
    with open(path, "w", encoding="utf-8") as f:
        f.write("# Made by make_data.py --heldout from heldout.txt and the held-out words of slots.txt: sentence TAB words to keep\n")
        f.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output")
    parser.add_argument("--heldout")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grammar", type=int, default=75000)
    parser.add_argument("--hsk", type=int, default=75000)
    parser.add_argument("--reviews", type=int, default=100000)
    parser.add_argument("--review-sentences", type=int, default=60000, help="how many different review sentences to start from")
    parser.add_argument("--reordered", type=float, default=0.12, help="share to keep of the pairs that move whole clauses: they are the hardest to get right")
    args = parser.parse_args()
    if args.heldout:
        heldout(args.heldout, args.seed)
        return
    if not args.output:
        parser.error("-o or --heldout is needed")
    rng = random.Random(args.seed)
    maker = Maker(rng)
    pairs = maker.from_grammar(args.grammar)
    print(f"grammar: {len(pairs)} pairs", file=sys.stderr, flush=True)
    hand = {line.rstrip("\n").split("\t")[0] for line in open(f"{rewriting.HERE}/hand.txt", encoding="utf-8")}
    judged = hand | {line.split("\t")[0] for line in open(f"{rewriting.HERE}/heldout.tsv", encoding="utf-8")}
    hsk = [s for s in packages.hsk_sentences() if 4 <= len(s) <= 42 and s not in judged and not HELD_PATTERN.search(s)]
    pairs += maker.from_sentences(hsk, args.hsk, 0.4, "hsk")
    reviews = clean_sentences(packages.review_lines(), rng)
    rng.shuffle(reviews)
    reviews = [s for s in reviews if s not in judged and not HELD_PATTERN.search(s)][:args.review_sentences]
    pairs += maker.from_sentences(reviews, args.reviews, 0.3, "reviews")
    made = len(pairs)
    pairs = [p for p in pairs if p[0] != p[1] and not any(text in judged or HELD_PATTERN.search(text) for text in p) and sound(*p)]
    print(f"{made - len(pairs)} pairs dropped: refused by the checker, or with a held-out word or sentence", file=sys.stderr, flush=True)
    pairs = [p for p in pairs if not is_reordered(*p) or rng.random() < args.reordered]
    rng.shuffle(pairs)
    with open(args.output, "w", encoding="utf-8") as f:
        for source, target in pairs:
            f.write(f"{source}\t{target}\n")
    print(f"{len(pairs)} pairs in {args.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
