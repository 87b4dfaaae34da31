// The functions of the page, one tab each. Adding one: a panel in index.html and a Tab in main.ts's list.

import type { Model } from "./api";
import { byId, makeButton } from "./dom";
import { t, type Key } from "./i18n";

export interface Tab {
  id: string; // its panel is #tab-<id>, its address #<id>
  name: Key;
  /** After a change of language. */
  translate(): void;
  /** The server's models, once they are known and whenever they change. */
  onModels(models: Model[]): void;
  /** The models could not be listed. */
  onModelsFailed(error: unknown): void;
}

export class TabBar {
  private buttons: HTMLButtonElement[] = [];

  constructor(
    private readonly bar: HTMLElement,
    private readonly tabs: Tab[],
  ) {
    this.buttons = tabs.map((tab) => {
      const button = makeButton("tab", "", () => this.open(tab.id));
      button.id = `tab-${tab.id}-button`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", `tab-${tab.id}`);
      return button;
    });
    bar.append(...this.buttons);
    bar.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (step === undefined) return;
      const at = this.buttons.indexOf(document.activeElement as HTMLButtonElement);
      const next = (at + step + tabs.length) % tabs.length;
      this.open(tabs[next]!.id);
      this.buttons[next]!.focus();
    });
    const asked = location.hash.slice(1);
    this.open(tabs.some((tab) => tab.id === asked) ? asked : tabs[0]!.id);
  }

  open(id: string): void {
    this.tabs.forEach((tab, i) => {
      const chosen = tab.id === id;
      byId(`tab-${tab.id}`).hidden = !chosen;
      this.buttons[i]!.setAttribute("aria-selected", String(chosen));
      this.buttons[i]!.tabIndex = chosen ? 0 : -1;
    });
    if (this.tabs.length > 1) history.replaceState(null, "", `#${id}`);
  }

  translate(): void {
    this.tabs.forEach((tab, i) => (this.buttons[i]!.textContent = t(tab.name)));
    this.bar.setAttribute("aria-label", t("tabs"));
  }
}
