// What the page remembers on this device. Storage may be forbidden or full; then nothing is remembered.

import type { Language } from "./i18n";

export type Theme = "auto" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
  n: number;
  temperature: number;
  topP: number;
  maxTokens: number;
  model: string;
}

const name = "inkstone.settings";

const defaults = (): Settings => ({
  language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
  theme: "auto",
  n: 3,
  temperature: 0.8,
  topP: 0.9,
  maxTokens: 64,
  model: "",
});

function within(value: unknown, min: number, max: number, otherwise: number): number {
  return typeof value === "number" && value >= min && value <= max ? value : otherwise;
}

/** Stored settings, each checked: an older or foreign version of the page may have written them. */
export function loadSettings(): Settings {
  const d = defaults();
  try {
    const s = JSON.parse(localStorage.getItem(name) ?? "{}") as Partial<Record<keyof Settings, unknown>>;
    return {
      language: s.language === "zh" || s.language === "en" ? s.language : d.language,
      theme: s.theme === "light" || s.theme === "dark" ? s.theme : "auto",
      n: Math.round(within(s.n, 1, 5, d.n)),
      temperature: within(s.temperature, 0, 2, d.temperature),
      topP: within(s.topP, 0.1, 1, d.topP),
      maxTokens: Math.round(within(s.maxTokens, 16, 256, d.maxTokens)),
      model: typeof s.model === "string" ? s.model : "",
    };
  } catch {
    return d;
  }
}

export function saveSettings(settings: Settings): void {
  try {
    localStorage.setItem(name, JSON.stringify(settings));
  } catch {
    // Not remembered; nothing else depends on it.
  }
}
