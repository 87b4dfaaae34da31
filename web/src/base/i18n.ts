// The page's two languages. Elements with data-t (their text), data-t-label, data-t-description, data-t-title or
// data-t-placeholder are kept in step.

import { en } from "../words/en";
import { zh, type Key } from "../words/zh";

export type { Key };
export type Language = "zh" | "en";

let language: Language = "zh";

export function currentLanguage(): Language {
  return language;
}

export function t(key: Key, values: Record<string, string | number> = {}): string {
  const text = (language === "zh" ? zh : en)[key];
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? ""));
}

export function translateTree(root: ParentNode): void {
  for (const el of root.querySelectorAll<HTMLElement>("[data-t]")) el.textContent = t(el.dataset["t"] as Key);
  for (const el of root.querySelectorAll<HTMLElement>("[data-t-label]"))
    el.setAttribute("aria-label", t(el.dataset["tLabel"] as Key));
  for (const el of root.querySelectorAll<HTMLElement>("[data-t-description]"))
    el.setAttribute("aria-description", t(el.dataset["tDescription"] as Key));
  for (const el of root.querySelectorAll<HTMLElement>("[data-t-title]")) el.title = t(el.dataset["tTitle"] as Key);
  for (const el of root.querySelectorAll<HTMLTextAreaElement>("[data-t-placeholder]"))
    el.placeholder = t(el.dataset["tPlaceholder"] as Key);
}

export function setLanguage(next: Language): void {
  language = next;
  document.documentElement.lang = next === "zh" ? "zh-CN" : "en";
  translateTree(document);
}

/** "18 秒", "3 分 20 秒"; with `tenths` "0.4 秒" where that is much. */
export function duration(seconds: number, tenths = false): string {
  const s = Math.max(0, Math.round(seconds));
  if (tenths && seconds < 10) return t("secondsShort", { n: Math.max(0, seconds).toFixed(1) });
  if (s < 60) return t("secondsShort", { n: s });
  if (s < 3600) return t("minutesShort", { m: Math.floor(s / 60), s: s % 60 });
  return t("hoursShort", { h: Math.floor(s / 3600), m: Math.floor((s % 3600) / 60) });
}
