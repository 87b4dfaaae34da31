// The folded details of an answer: where the time went, and what would reproduce it.

import type { Answer, Timings } from "./api";
import { make } from "./dom";
import { t, type Key } from "./i18n";

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

export function showDetails(bar: HTMLElement, facts: HTMLElement, answer: Answer): void {
  const rows: [string, string, string?][] = [];
  const total = Math.max(answer.timings.total_ms, 0.001);

  bar.replaceChildren(
    ...stages.map(([name], i) => {
      const part = make("span", `stage stage-${i}`);
      part.style.flexGrow = String(Math.max(answer.timings[name] / total, 0));
      return part;
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

  facts.replaceChildren(
    ...rows.map(([label, value, stage]) => {
      const row = make("div");
      const term = make("dt", "", label);
      if (stage) term.prepend(make("i", `dot ${stage}`));
      row.append(term, make("dd", "", value));
      return row;
    }),
  );
}
