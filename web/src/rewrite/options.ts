// Style presets and sliders. A preset sets the temperature; a slider moved by hand leaves none chosen.

import type { Model, RewriteOptions } from "../base/api";
import { byId, radioGroup } from "../base/dom";
import { t, type Key } from "../base/i18n";
import { remember, settings } from "../base/settings";

const presets: [Key, number][] = [
  ["presetStrict", 0.5],
  ["presetGeneral", 0.8],
  ["presetDefault", 1.0],
  ["presetCreative", 1.2],
  ["presetWild", 1.5],
];

const sliders = [
  { id: "count", name: "n", digits: 0 },
  { id: "temperature", name: "temperature", digits: 2 },
  { id: "top-p", name: "topP", digits: 2 },
  { id: "length", name: "maxTokens", digits: 0 },
] as const;

export class Options {
  private models: Model[] = [];

  constructor() {
    for (const { id, name } of sliders) {
      byId<HTMLInputElement>(id).addEventListener("input", (e) => {
        const value = Number((e.target as HTMLInputElement).value);
        remember(name === "temperature" ? { temperature: value, preset: "" } : { [name]: value });
        this.show();
      });
    }
    byId<HTMLSelectElement>("model").addEventListener("change", (e) => {
      remember({ model: (e.target as HTMLSelectElement).value });
    });
    this.showSliders();
  }

  /** What a request takes from here. The model is named only where there is a choice. */
  now(): RewriteOptions {
    const options: RewriteOptions = {
      n: settings.n,
      temperature: settings.temperature,
      top_p: settings.topP,
      max_tokens: settings.maxTokens,
    };
    const model = this.model();
    return model === undefined ? options : { model, ...options };
  }

  model(): string | undefined {
    return this.models.length > 1 && this.models.some((m) => m.id === settings.model) ? settings.model : undefined;
  }

  /** Those of an earlier request. */
  restore(options: RewriteOptions): void {
    const preset = presets.find(([, value]) => value === options.temperature)?.[0] ?? "";
    remember({
      n: Math.min(Math.max(options.n, 1), 5),
      temperature: options.temperature,
      topP: options.top_p,
      maxTokens: options.max_tokens,
      preset,
    });
    this.show();
  }

  setModels(models: Model[]): void {
    this.models = models;
    const chosen = models.find((m) => m.id === settings.model) ?? models[0];
    byId("model").replaceChildren(...models.map((m) => new Option(`${m.id} (${m.type})`, m.id, false, m === chosen)));
    byId("model-row").hidden = models.length < 2;
  }

  show(): void {
    radioGroup(
      byId("presets"),
      presets.map(([key]) => ({ value: key as string, label: t(key) })),
      settings.preset,
      (preset) => {
        remember({ preset, temperature: presets.find(([key]) => key === preset)![1] });
        this.showSliders();
      },
    );
    this.showSliders();
  }

  private showSliders(): void {
    for (const { id, name, digits } of sliders) {
      byId<HTMLInputElement>(id).value = String(settings[name]);
      byId(`${id}-value`).textContent = settings[name].toFixed(digits);
    }
  }
}
