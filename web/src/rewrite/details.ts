// The folded details of an answer: where the time went, what would reproduce it, and how sure the model was.

import type { Answer, Candidate, Timings, TokenDetail, TokenProbability } from "../base/api";
import { byId, make } from "../base/dom";
import { t, type Key } from "../base/i18n";

const stages: [keyof Timings, Key][] = [
  ["queue_ms", "stageQueue"],
  ["tokenize_ms", "stageTokenize"],
  ["encode_ms", "stageEncode"],
  ["first_token_ms", "stageFirst"],
  ["decode_ms", "stageDecode"],
  ["other_ms", "stageOther"],
];

const cacheWords: Record<Answer["cache"], Key> = {
  miss: "cacheMiss",
  hit: "cacheHit",
  shared: "cacheShared",
  off: "cacheOff",
};

function milliseconds(v: number): string {
  return t("milliseconds", { n: v < 10 ? v.toFixed(1) : Math.round(v) });
}

function percent(logprob: number): string {
  const p = Math.exp(logprob) * 100;
  return p >= 0.1 ? `${p.toFixed(p < 10 ? 1 : 0)} %` : "< 0.1 %";
}

/** What a piece stands for; bytes are shown as they are spelled. */
function shown(piece: string): string {
  if (piece === "</s>") return t("tokenEnd");
  const text = piece.replaceAll("▁", " ");
  return text.trim() === "" ? t("tokenSpace") : text.trim();
}

interface Shade {
  text: string; // in the line
  end: boolean;
  piece: string; // in the read-out
  logprob: number;
  top: TokenProbability[];
}

/** Byte pieces that make up one character become one shade; its probability is their product. */
function shadesOf(tokens: TokenDetail[]): Shade[] {
  const out: Shade[] = [];
  let bytes: number[] = [];
  let logprob = 0;
  const flush = (): void => {
    if (bytes.length === 0) return;
    const text = new TextDecoder().decode(new Uint8Array(bytes));
    out.push({ text, end: false, piece: text, logprob, top: [] });
    bytes = [];
    logprob = 0;
  };

  tokens.forEach((token, i) => {
    const byte = /^<0x([0-9A-F]{2})>$/i.exec(token.piece);
    if (byte) {
      bytes.push(parseInt(byte[1]!, 16));
      logprob += token.logprob;
      return;
    }
    flush();
    const end = token.piece === "</s>";
    const text = end ? " ↵ " : token.piece.replaceAll("▁", " ");
    if (i === 0 && text.trim() === "") return; // the mark before the first word
    out.push({
      text: i === 0 ? text.trimStart() : text,
      end,
      piece: shown(token.piece),
      logprob: token.logprob,
      top: token.top ?? [],
    });
  });
  flush();
  return out;
}

/** 0 where the model was sure, 5 where it took a guess. */
function level(logprob: number): number {
  const p = Math.exp(logprob);
  return [0.9, 0.6, 0.35, 0.15, 0.05].filter((limit) => p < limit).length;
}

function readOut(s: Shade): string {
  const others = s.top.filter((o) => shown(o.piece) !== s.piece).slice(0, 4);
  const list = others.map((o) => `${shown(o.piece)} ${percent(o.logprob)}`).join("  ");
  return (
    t("tokenProbability", { piece: s.piece, p: percent(s.logprob) }) + (list ? t("tokenAlternatives", { list }) : "")
  );
}

function shadedLine(c: Candidate, tell: (text: string) => void): HTMLElement {
  const row = make("div", "shade-row");
  const line = make("p", "shade-line");
  const all = shadesOf(c.tokens!);
  const spans = all.map((s) => make("span", `shade shade-${level(s.logprob)}${s.end ? " shade-end" : ""}`, s.text));
  let at = -1;

  function choose(i: number): void {
    spans[at]?.classList.remove("chosen");
    at = i;
    spans[at]!.classList.add("chosen");
    tell(readOut(all[at]!));
  }

  line.lang = "zh-CN";
  line.tabIndex = 0;
  line.setAttribute("role", "application");
  line.setAttribute("aria-label", t("shadesLabel", { i: c.index + 1 }));
  line.append(...spans);
  line.addEventListener("pointerover", (e) => {
    const i = spans.indexOf(e.target as HTMLSpanElement);
    if (i >= 0) choose(i);
  });
  line.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step === undefined) return;
    e.preventDefault();
    choose(Math.min(Math.max(at + step, 0), all.length - 1));
  });
  row.append(make("span", "card-number", String(c.index + 1)), line);
  if (c.score !== null) row.append(make("span", "muted shade-score", t("scoreLabel", { score: c.score.toFixed(2) })));
  return row;
}

function showShades(answer: Answer): void {
  const lines = answer.rewrites.filter((c) => !c.error && c.tokens && c.tokens.length > 0);
  const out = byId("readout");

  byId("shades-box").hidden = lines.length === 0;
  out.textContent = t("probabilitiesHint");
  byId("shades").replaceChildren(...lines.map((c) => shadedLine(c, (text) => (out.textContent = text))));
}

export function showDetails(answer: Answer): void {
  const rows: [string, string, string?][] = [];
  const total = Math.max(answer.timings.total_ms, 0.001);

  byId("bar").replaceChildren(
    ...stages.map(([name], i) => {
      const stage = make("span", `stage stage-${i}`);
      stage.style.flexGrow = String(Math.max(answer.timings[name] / total, 0));
      return stage;
    }),
  );
  stages.forEach(([name, key], i) => rows.push([t(key), milliseconds(answer.timings[name]), `stage-${i}`]));
  rows.push([t("factTotal"), milliseconds(answer.timings.total_ms)]);
  rows.push([t("factTokens"), `${answer.usage.input_tokens} / ${answer.usage.output_tokens}`]);
  rows.push([t("factSeed"), String(answer.seed)]);
  rows.push([t("factModel"), answer.model]);
  rows.push([t("factDevice"), answer.device]);
  rows.push([t("factCache"), t(cacheWords[answer.cache])]);
  if (answer.truncated)
    rows.push([t("factTruncated"), t("factTruncatedValue", { from: answer.truncated.from, to: answer.truncated.to })]);
  if (answer.warnings.length > 0) rows.push([t("factWarnings"), answer.warnings.join("; ")]);

  byId("facts").replaceChildren(
    ...rows.map(([label, value, stage]) => {
      const row = make("div");
      const term = make("dt", "", label);
      if (stage) term.prepend(make("i", `dot ${stage}`));
      row.append(term, make("dd", "", value));
      return row;
    }),
  );
  showShades(answer);
}
