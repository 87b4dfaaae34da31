"""The demo model's unigram vocabulary: about 5,600 short pieces, byte fallback, and an NFKC charsmap that leaves the
full-width Chinese marks ，！？：；（）… alone.

sentencepiece's own nmt_nfkc turns those marks into half-width ones, which would come out in every rewrite. So the
charsmap is compiled from rules written here: Unicode's NFKC (from Python's unicodedata) and the usual clean-up of
control characters and spaces, minus those marks. It's stored in spiece.model like any other.
"""

import unicodedata

KEPT_MARKS = set("，！？：；（）…～“”‘’—《》、。")
PIECES = 5600


def charsmap_rules():
    """Yields (source characters, target characters) as strings."""
    blank = [0x09, 0x0A, 0x0C, 0x0D, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD]
    dropped = [*range(0x01, 0x09), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F]
    for code in blank:
        yield chr(code), " "
    for code in dropped:
        yield chr(code), ""
    special = set(blank) | set(dropped)
    for code in range(0x80, 0x2FA20):
        if code in special or 0xD800 <= code < 0xE000 or 0xAC00 <= code < 0xD7A4:
            continue
        char = chr(code)
        if char in KEPT_MARKS:
            continue
        normal = unicodedata.normalize("NFKC", char)
        if normal != char:
            yield char, normal
        parts = unicodedata.normalize("NFD", char)
        if len(parts) > 1 and unicodedata.normalize("NFC", parts) == char:
            yield parts, unicodedata.normalize("NFKC", char)


def write_charsmap(path):
    def hexes(text):
        return " ".join(f"{ord(c):X}" for c in text)

    with open(path, "w", encoding="ascii") as f:
        for source, target in charsmap_rules():
            f.write(f"{hexes(source)}\t{hexes(target)}\n")


def required_characters():
    """The 3,755 characters of GB 2312 level 1 and what else must have a piece of its own."""
    out = []
    for lead in range(0xB0, 0xD8):
        for trail in range(0xA1, 0xFF):
            try:
                out.append(bytes((lead, trail)).decode("gb2312"))
            except UnicodeDecodeError:
                pass
    return "".join(out) + "".join(chr(c) for c in range(0x21, 0x7F)) + "，。！？：；（）、“”‘’《》…—～·¥℃"


def train(sentences, prefix, folder):
    """Trains the vocabulary into prefix.model. sentences: an iterable of str; folder: where the rule file goes."""
    import sentencepiece

    rules = f"{folder}/charsmap.tsv"
    write_charsmap(rules)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_prefix=prefix, model_type="unigram", vocab_size=PIECES, normalization_rule_tsv=rules,
        byte_fallback=True, required_chars=required_characters(), character_coverage=0.992, max_sentencepiece_length=2, split_digits=True,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, pad_piece="<pad>", eos_piece="</s>", unk_piece="<unk>", num_threads=2,
        seed_sentencepiece_size=200000, shuffle_input_sentence=False, minloglevel=2)
