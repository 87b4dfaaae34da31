// What the page remembers on this device. Storage may be forbidden or full; then nothing is remembered.

import type { Language } from "./i18n";

export type Theme = "auto" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
  n: number;
  preset: string; // "" when the temperature was set by hand
  temperature: number;
  topP: number;
  maxTokens: number;
  model: string;
  compare: boolean;
  keepHistory: boolean;
}

const settingsName = "inkstone.settings";
const draftName = "inkstone.draft";

const defaults = (): Settings => ({
  language: navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en",
  theme: "auto",
  n: 3,
  preset: "presetGeneral",
  temperature: 0.8,
  topP: 0.9,
  maxTokens: 64,
  model: "",
  compare: false,
  keepHistory: true,
});

function within(value: unknown, min: number, max: number, otherwise: number): number {
  return typeof value === "number" && value >= min && value <= max ? value : otherwise;
}

/** Stored settings, each checked: an older or foreign version of the page may have written them. */
function load(): Settings {
  const d = defaults();
  try {
    const s = JSON.parse(localStorage.getItem(settingsName) ?? "{}") as Partial<Record<keyof Settings, unknown>>;
    return {
      language: s.language === "zh" || s.language === "en" ? s.language : d.language,
      theme: s.theme === "light" || s.theme === "dark" ? s.theme : "auto",
      n: Math.round(within(s.n, 1, 5, d.n)),
      preset: typeof s.preset === "string" ? s.preset : d.preset,
      temperature: within(s.temperature, 0, 2, d.temperature),
      topP: within(s.topP, 0.1, 1, d.topP),
      maxTokens: Math.round(within(s.maxTokens, 16, 256, d.maxTokens)),
      model: typeof s.model === "string" ? s.model : "",
      compare: s.compare === true,
      keepHistory: s.keepHistory !== false,
    };
  } catch {
    return d;
  }
}

export const settings: Settings = load();

export function remember(change: Partial<Settings>): void {
  Object.assign(settings, change);
  try {
    localStorage.setItem(settingsName, JSON.stringify(settings));
  } catch {
    // Not remembered; nothing else depends on it.
  }
}

/** What is being typed survives a reload of this tab of the browser. */
export function loadDraft(): string {
  try {
    return sessionStorage.getItem(draftName) ?? "";
  } catch {
    return "";
  }
}

export function saveDraft(text: string): void {
  try {
    sessionStorage.setItem(draftName, text);
  } catch {
    // As above.
  }
}
