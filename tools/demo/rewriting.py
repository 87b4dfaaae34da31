"""Reviewed rewriting of Chinese sentences: word rules (rules.txt), clause rules, and the sentence grammar (grammar.txt).

Everything here keeps the meaning: a rule that is safe only in some context carries guards for that context. All
randomness comes from the random.Random that the caller passes, so a run with the same seed gives the same sentences.
"""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
CLAUSE_MARKS = "，。！？；：、“”（）"


# ---------------------------------------------------------------- word rules

class Rule:
    """One key, what it may become, and the context it needs."""

    def __init__(self, key, targets, guards):
        self.key, self.targets = key, targets
        self.before, self.not_before, self.after, self.not_after = guards


def parse_guards(text):
    before, not_before, after, not_after = [], [], [], []
    for item in text.split():
        negative = item.startswith("!")
        side, values = item[negative], [v for v in item[negative + 1:].split(",") if v]
        if side not in "<>" or not values:
            raise ValueError("rules.txt: bad guard " + item)
        if side == "<":
            (not_before if negative else before).extend(values)
        else:
            (not_after if negative else after).extend(values)
    return before, not_before, after, not_after


def load_rules(path=os.path.join(HERE, "rules.txt")):
    """Returns (rules, fallback rules), each key -> [Rule] in file order. Fallback rules come after "# --- fallback"."""
    ordinary, fallback = {}, {}
    rules = ordinary
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line == "# --- fallback":
                rules = fallback
            if not line or line.startswith("#"):
                continue
            head, _, guard_text = line.partition("|")
            guards = parse_guards(guard_text)
            if ">" in head:
                key, _, targets = head.partition(">")
                pairs = [(key.strip(), targets.split())]
            else:
                members = head.split()
                pairs = [(m, [o for o in members if o != m]) for m in members]
            for key, targets in pairs:
                rules.setdefault(key, []).append(Rule(key, targets, guards))
    return ordinary, fallback


def tag_matches(value, token):
    """value is "@v" and the like; token is (word, tag) or None at the end of the text."""
    if token is None:
        return False
    word, tag = token
    name = value[1:]
    if name == "digit":
        return word[-1:].isdigit()
    if name.startswith("2"):
        return len(word) >= 2 and tag.startswith(name[1:])
    if len(name) == 1:
        return tag.startswith(name)
    return tag == name


class Tagged:
    """A sentence with its word boundaries: tokens are (word, tag) and join to the text."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.text = "".join(w for w, _ in tokens)
        self.starting, self.ending = {}, {}
        at = 0
        for token in tokens:
            self.starting[at] = token
            at += len(token[0])
            self.ending[at] = token

    def _side_matches(self, value, at, is_before):
        text = self.text
        if value == "^":
            return is_before and (at == 0 or text[at - 1] in CLAUSE_MARKS)
        if value == "$":
            return not is_before and (at == len(text) or text[at] in CLAUSE_MARKS)
        if value.startswith("@"):
            return tag_matches(value, self.ending.get(at) if is_before else self.starting.get(at))
        return text[:at].endswith(value) if is_before else text.startswith(value, at)

    def allows(self, rule, start, end):
        if rule.before and not any(self._side_matches(v, start, True) for v in rule.before):
            return False
        if any(self._side_matches(v, start, True) for v in rule.not_before):
            return False
        if rule.after and not any(self._side_matches(v, end, False) for v in rule.after):
            return False
        return not any(self._side_matches(v, end, False) for v in rule.not_after)

    def sites(self, rules, longest):
        """The places where rules apply: [(start, end, targets)], left to right, longest key first, no overlaps."""
        found, at, n = [], 0, len(self.text)
        while at < n:
            hit = None
            if at in self.starting:
                for length in range(min(longest, n - at), 0, -1):
                    if at + length not in self.ending:
                        continue
                    key = self.text[at:at + length]
                    if key not in rules:
                        continue
                    targets = []
                    for rule in rules[key]:
                        if self.allows(rule, at, at + length):
                            targets.extend(rule.targets)
                    # A longer key that is known but not allowed here still blocks the shorter ones inside it.
                    hit = (at, at + length, targets)
                    break
            if hit is None:
                at += 1
            else:
                if hit[2]:
                    found.append(hit)
                at = hit[1]
        return found


class WordRewriter:
    def __init__(self):
        self.rules, self.fallback = load_rules()

    def rewrite(self, tagged, rng, chance, fallback=False):
        """Applies each rule that fits with the given chance. Returns the new text (equal to the old if nothing fitted).
        fallback: uses the plainer rules that are meant for sentences where no other fits."""
        out, at = [], 0
        rules = self.fallback if fallback else self.rules
        for start, end, targets in tagged.sites(rules, max(map(len, rules))):
            if rng.random() >= chance:
                continue
            out.append(tagged.text[at:start])
            out.append(rng.choice(targets))
            at = end
        out.append(tagged.text[at:])
        return "".join(out)


# ---------------------------------------------------------------- clause rules

SUBJECT = "(?:我们|他们|她们|咱们|大家|我|你|您|他|她|爸爸|妈妈|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|老师|父亲|母亲|朋友们|同学们|孩子们)"
TIME = ("(?:(?:今天|明天|昨天|后天|前天)(?:早上|上午|中午|下午|晚上)?|每天(?:早上|上午|中午|下午|晚上)?|(?:上|下|这)?周末|[上下]周[一二三四五六日]?"
        "|[上下]个?星期[一二三四五六天日]?|[上下]个月|去年|今年|明年|前年|最近|周[一二三四五六日]|星期[一二三四五六天日]"
        "|早上|晚上|上午|下午|中午|今晚|昨晚|明晚|今早|春节|国庆节|平时|小时候|有时候|以前|刚才)")
NOT_REST = "(?!的|们|家|和|跟|与|俩|自己|这|是|，|、|就|有没有|生日|呢|。|？|！|也是|最好|为什么|怎么)"
CLAUSE = "[^，。！？；：“”]"
CONJ = "虽然|尽管|但是|可是|不过|但|因为|由于|所以|如果|要是|假如|即使|既然|只要|只有|无论|不管|除非|而且|因此|不但|不仅|为了|除了|否则|就|才|却|其实|首先|另外"
OCCUPATION = "老师|医生|护士|律师|记者|司机|厨师|会计|工程师|设计师|警察|翻译|程序员|演员|作家|画家|科学家|学生|大学生|农民|工人|军人|歌手|导游"


def clause_rewrites(text):
    """All rewrites of a sentence by one clause rule."""
    out = []

    def add(value):
        if value != text and value not in out:
            out.append(value)

    m = re.fullmatch(f"(?:因为|由于)({CLAUSE}+)，(?:所以|因此)({CLAUSE}+)。", text)
    if m:
        a, b = m.groups()
        add(f"{b}，因为{a}。")
        add(f"由于{a}，{b}。")
        if not a.startswith("没"):
            add(f"{a}，所以{b}。")
            add(f"{a}，因此{b}。")
    m = re.fullmatch(f"(?:因为|由于)({CLAUSE}+)，((?!所以|因此){CLAUSE}+)。", text)
    if m:
        a, b = m.groups()
        if not re.match(CONJ + "|也|都", b):
            add(f"{b}，因为{a}。")
            add(f"因为{a}，所以{b}。")
            add(f"由于{a}，{b}。")
    m = re.fullmatch(f"((?!{CONJ}){CLAUSE}+)，(?:是)?因为({CLAUSE}+)。", text)
    if m:
        b, a = m.groups()
        add(f"因为{a}，所以{b}。")
        add(f"由于{a}，{b}。")
        add(f"因为{a}，{b}。")
    m = re.fullmatch(f"((?!{CONJ}){CLAUSE}+)，(?:所以|因此)({CLAUSE}+)。", text)
    if m and not re.search("吧$|呢$|[啊呀]$", m.group(1)):
        a, b = m.groups()
        add(f"因为{a}，所以{b}。")
        add(f"由于{a}，{b}。")
        add(f"{b}，因为{a}。")
    m = re.fullmatch(f"(?:虽然|尽管|虽说)({CLAUSE}+)，(?:但是|可是|不过|但|可)({CLAUSE}+)。", text)
    if m:
        a, b = m.groups()
        add(f"尽管{a}，但是{b}。")
        add(f"虽然{a}，可是{b}。")
        if not re.search("^很|^也|^都", a):
            add(f"{a}，不过{b}。")
            add(f"{a}，但{b}。")
    m = re.fullmatch(f"((?!{CONJ})(?:{SUBJECT}|这|那|天气|价格|房间|工作|路|味道)?{CLAUSE}+)，(?:但是|可是|不过|但)({CLAUSE}+)。", text)
    if m and "虽" not in m.group(1) and not re.search("吧$|呢$|[啊呀吗]$|^请|^别|^不", m.group(1)):
        a, b = m.groups()
        add(f"虽然{a}，但是{b}。")
        add(f"尽管{a}，但{b}。")
    m = re.fullmatch(f"(?:如果|要是|假如)({CLAUSE}+?)(?:的话)?，({CLAUSE}+[。？])", text)
    if m:
        a, b = m.groups()
        add(f"{a}的话，{b}")
        add(f"要是{a}，{b}")
        add(f"如果{a}的话，{b}")
    m = re.fullmatch(f"((?!{CONJ}|这样|那样){CLAUSE}{{3,}})的话，({CLAUSE}+[。？])", text)
    if m:
        a, b = m.groups()
        add(f"如果{a}，{b}")
        add(f"要是{a}，{b}")
    m = re.fullmatch(f"({CLAUSE}*?)(?:不但|不仅|不光)({CLAUSE}+)，(?:而且(?:还|也)?|还|也)((?!我|你|他|她|这|那){CLAUSE}+)。", text)
    if m:
        a, b, c = m.groups()
        if re.match("会|能|很|非常|十分|有|要|可以|喜欢|爱|便宜|好|快|学|去|买", c):
            add(f"{a}不仅{b}，还{c}。")
            add(f"{a}不但{b}，而且还{c}。")
            add(f"{a}不光{b}，而且{c}。")
        else:
            add(f"{a}不仅{b}，而且{c}。")
            add(f"{a}不光{b}，而且{c}。")
    m = re.search("一边([^，。一边]{1,3})，?一边([^，。一边]{1,3})([。，])", text)
    if m:
        add(text[:m.start()] + f"边{m.group(1)}边{m.group(2)}{m.group(3)}" + text[m.end():])
    m = re.search("(?<![一旁左右前后里外上下东西南北身路周海])边([^，。边]{1,3})边([^，。边]{1,3})([。，])", text)
    if m:
        add(text[:m.start()] + f"一边{m.group(1)}一边{m.group(2)}{m.group(3)}" + text[m.end():])
    m = re.fullmatch(f"除了({CLAUSE}+?)(以外|之外)?，(.*[还也都].*)", text)
    if m:
        other = "之外" if m.group(2) == "以外" else "以外"
        add(f"除了{m.group(1)}{other}，{m.group(3)}")
        add(f"除{m.group(1)}{other}，{m.group(3)}")
    m = re.match(f"({TIME})，?({SUBJECT}){NOT_REST}(.+)$", text)
    if m and m.group(1) not in ("以前",):
        add(m.group(2) + m.group(1) + m.group(3))
    m = re.match(f"({SUBJECT})({TIME}){NOT_REST}(?!见|好|到|前|后|以|[一二两三四五六七八九十0-9])(.+)$", text)
    if m:
        add(m.group(2) + m.group(1) + m.group(3))
    m = re.fullmatch(f"(.*?)能不能({CLAUSE}+)？", text)
    if m and not m.group(2).endswith(("呢", "啊", "呀")):
        add(f"{m.group(1)}能{m.group(2)}吗？")
        add(f"{m.group(1)}可以{m.group(2)}吗？")
        add(f"{m.group(1)}可不可以{m.group(2)}？")
    m = re.fullmatch(f"(.*?)(?<!不)(可以|能)({CLAUSE}{{2,}})吗？", text)
    if m:
        add(f"{m.group(1)}能不能{m.group(3)}？")
        add(f"{m.group(1)}可不可以{m.group(3)}？")
        add(f"{m.group(1)}{'能' if m.group(2) == '可以' else '可以'}{m.group(3)}吗？")
    for yes, no in (("是", "是不是"), ("有", "有没有"), ("要", "要不要"), ("会", "会不会"), ("想", "想不想")):
        m = re.fullmatch(f"((?:{CLAUSE}*，)?(?:你|您|你们|他|她|他们|这里|这儿|那里|附近|这|那|明天|今天|房间里|店里|你家|学校)){no}({CLAUSE}+?)？", text)
        if m and not m.group(2).endswith(("呢", "啊", "的", "了")):
            add(f"{m.group(1)}{yes}{m.group(2)}吗？")
        m = re.fullmatch(f"((?:{CLAUSE}*，)?(?:你|您|你们|他|她|他们|这里|这儿|那里|附近|这|那|明天|今天|房间里|店里|你家|学校)){yes}((?!不|没){CLAUSE}+?)吗？", text)
        if m and not m.group(2).endswith("了"):
            add(f"{m.group(1)}{no}{m.group(2)}？")
    m = re.fullmatch(f"({SUBJECT})(是)?((?:坐|乘|骑|开)[^，。]{{1,4}}|走路|步行|打车)(来|去|回)的(.*)", text)
    if m:
        add(f"{m.group(1)}{'' if m.group(2) else '是'}{m.group(3)}{m.group(4)}的{m.group(5)}")
    m = re.search(f"({SUBJECT})(?:不小心|已经)?把((?!它|他|她|我|你|自己){CLAUSE}{{1,6}}?)(吃完|吃光|喝完|喝光|弄丢|打破|打碎|弄坏|摔坏|拿走|借走|卖掉|关掉|扔掉|丢掉|修好|写完|做完|忘在[^，。]{{2,5}}|放在[^，。]{{2,6}}|送给[^，。]{{2,4}})了", text)
    if m and m.start() == 0:
        add(f"{m.group(2)}被{m.group(1)}{m.group(3)}了" + text[m.end():])
    m = re.search(f"^((?!它|他|她|我|你|自己){CLAUSE}{{2,6}}?)被({SUBJECT})(吃完|吃光|喝完|喝光|弄丢|打破|打碎|弄坏|摔坏|拿走|借走|卖掉|修好)了", text)
    if m:
        add(f"{m.group(2)}把{m.group(1)}{m.group(3)}了" + text[m.end():])
    m = re.search("连([^，。连]{1,6})(都|也)", text)
    if m:
        add(text[:m.start(2)] + ("也" if m.group(2) == "都" else "都") + text[m.end(2):])
    m = re.search("(?<!如果)(?<!那)(就要|快要|马上要)([^，。]{1,6})了([。，！])", text)
    if m:
        for word in ("就要", "快要", "马上要"):
            add(text[:m.start(1)] + word + text[m.end(1):])
    m = re.search("给(我们|我|你|他|她|大家|客人|孩子|妈妈|爸爸)(做|买|准备|介绍|拍|讲|唱|写|画|带来|解释|翻译|安排|提供|开门|倒)", text)
    if m:
        add(text[:m.start()] + "为" + text[m.start() + 1:])
    m = re.search("(?<![因认以成作变])为(员工|我们|我|你|他|她|大家|客人|顾客|旅客|学生|孩子|妈妈)(做|买|准备|介绍|安排|提供|举办)", text)
    if m:
        add(text[:m.start()] + "给" + text[m.start() + 1:])
    m = re.search("让(我们|我|他|她|你|大家)(去|来|洗|做|买|写|准备|打扫|帮|带|重新|早点|多|少|在|把|给|马上)", text)
    if m:
        add(text[:m.start()] + "叫" + text[m.start() + 1:])
    m = re.fullmatch(f"((?:{SUBJECT}|我爸爸|我妈妈|他爸爸|她妈妈|我哥哥|我姐姐))(?:是)(?:一个|一名|一位)?({OCCUPATION})。", text)
    if m and m.group(1) not in ("我们", "他们", "她们", "咱们", "大家"):
        for v in (f"{m.group(1)}是一名{m.group(2)}。", f"{m.group(1)}是一位{m.group(2)}。", f"{m.group(1)}是个{m.group(2)}。"):
            add(v)
    return out


FAMILY = "爸爸|妈妈|哥哥|姐姐|弟弟|妹妹|爷爷|奶奶|朋友|同学|同事|丈夫|妻子|女儿|儿子|孩子|老板"


def clause_fallbacks(text):
    """Plainer rewrites, for sentences where nothing else fits."""
    out = []
    m = re.search(f"(我|你|他|她)的({FAMILY})(?!们|家)", text)
    if m:
        out.append(text[:m.start()] + m.group(1) + m.group(2) + text[m.end():])
    m = re.search(f"(?<![给跟和对向教帮问])(我|你|他|她)({FAMILY})(?!们|家)", text)
    if m and m.start() == 0:
        out.append(m.group(1) + "的" + m.group(2) + text[m.end():])
    m = re.search("去([一-鿿]{1,4}[院校司馆市店行场园站局])((?![，。了过的])[一-鿿]{2,}.*)$", text)
    if m:
        out.append(f"{text[:m.start()]}到{m.group(1)}去{m.group(2)}")
        out.append(f"{text[:m.start()]}到{m.group(1)}{m.group(2)}")
    m = re.search("到([一-鿿]{1,4}[院校司馆市店行场园站局])去((?![，。了过的])[一-鿿]{2,}.*)$", text)
    if m:
        out.append(f"{text[:m.start()]}去{m.group(1)}{m.group(2)}")
    m = re.search("在([^，。在]{2,6})(上班|工作)([，。了])", text)
    if m:
        out.append(f"{text[:m.start(2)]}{'工作' if m.group(2) == '上班' else '上班'}{text[m.end(2):]}")
    return out


# ---------------------------------------------------------------- grammar

def load_slots(path=os.path.join(HERE, "slots.txt")):
    """Returns (training words, held-out words): slot -> [word]."""
    train, held = {}, {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            name, _, words = line.partition(":")
            left, _, right = words.partition("||")
            train[name], held[name] = left.split(), right.split()
    return train, held


def load_blocks(path=os.path.join(HERE, "grammar.txt")):
    blocks, block = [], []
    with open(path, encoding="utf-8") as f:
        for line in list(f) + [""]:
            line = line.strip()
            if line.startswith("#"):
                continue
            if line:
                block.append(line)
            elif block:
                blocks.append(block)
                block = []
    return blocks


def choose(pattern, rng, shared):
    """Picks one alternative of every (a|b|c), where all mean the same, and of every [a|b|c], where they don't:
    shared remembers the choice, so that both sentences of a pair say the same."""
    while True:
        m = re.search(r"\[([^\[\]]*)\]", pattern)
        if not m:
            break
        if m.group(1) not in shared:
            shared[m.group(1)] = rng.choice(m.group(1).split("|"))
        pattern = pattern[:m.start()] + shared[m.group(1)] + pattern[m.end():]
    while True:
        m = re.search(r"\(([^()]*)\)", pattern)
        if not m:
            return pattern
        pattern = pattern[:m.start()] + rng.choice(m.group(1).split("|")) + pattern[m.end():]
