// What was rewritten on this device, and which candidates were kept: the records, and the drawer that shows them.

import type { RewriteOptions } from "../base/api";
import { byId, make, makeButton } from "../base/dom";
import { currentLanguage, t } from "../base/i18n";
import { remember, settings } from "../base/settings";
import { Store } from "../base/store";

export interface Kept {
  text: string;
  score: number | null;
  starred: boolean;
}

export interface Entry {
  id: number;
  time: number; // milliseconds since 1970
  text: string;
  options: RewriteOptions;
  model: string;
  seed: number;
  rewrites: Kept[];
}

const ENTRIES_MAX = 500;
const CHARACTERS_MAX = 2_000_000; // of all sources and rewrites together
const SHOWN_MAX = 100;

const store = new Store<Entry>("rewrites");

function size(e: Entry): number {
  return e.text.length + e.rewrites.reduce((sum, r) => sum + r.text.length, 0);
}

function hasStar(e: Entry): boolean {
  return e.rewrites.some((r) => r.starred);
}

/** Keeps the history within its bounds: the oldest goes first, those with a star after all others. */
async function prune(): Promise<void> {
  const all = await store.all();
  const order = [...all.filter(hasStar), ...all.filter((e) => !hasStar(e))];
  let characters = 0;

  for (const [i, e] of order.entries()) {
    characters += size(e);
    if (i >= ENTRIES_MAX || characters > CHARACTERS_MAX) await store.remove(e.id);
  }
}

export async function addEntry(entry: Omit<Entry, "id">): Promise<number> {
  const id = await store.add(entry);
  await prune();
  return id;
}

/** False when the entry is no longer there. */
export async function setStar(id: number, index: number, starred: boolean): Promise<boolean> {
  const entry = await store.get(id);
  const kept = entry?.rewrites[index];
  if (!entry || !kept) return false;
  kept.starred = starred;
  await store.put(entry);
  return true;
}

export function allEntries(): Promise<Entry[]> {
  return store.all();
}

export interface DrawerActions {
  restore(entry: Entry): void;
  /** A candidate got or lost its star in the drawer. */
  starred(id: number, index: number, starred: boolean): void;
  export(): void;
}

/** The drawer at the right edge. */
export class HistoryDrawer {
  private readonly dialog = byId<HTMLDialogElement>("history");
  private readonly search = byId<HTMLInputElement>("history-search");
  private readonly starredOnly = byId<HTMLInputElement>("history-starred");
  private readonly keep = byId<HTMLInputElement>("history-keep");
  private readonly list = byId("history-list");
  private readonly clear = byId<HTMLButtonElement>("history-clear");
  private entries: Entry[] = [];
  private sure = false;

  constructor(private readonly actions: DrawerActions) {
    this.search.addEventListener("input", () => this.draw());
    this.starredOnly.addEventListener("change", () => this.draw());
    this.keep.checked = settings.keepHistory;
    this.keep.addEventListener("change", () => remember({ keepHistory: this.keep.checked }));
    byId("history-close").addEventListener("click", () => this.dialog.close());
    byId("history-export").addEventListener("click", () => this.actions.export());
    this.clear.addEventListener("click", () => void this.clearAll());
    this.dialog.addEventListener("click", (e) => {
      if (e.target === this.dialog) this.dialog.close();
    });
  }

  async open(): Promise<void> {
    this.sure = false;
    this.search.value = "";
    this.entries = await store.all();
    this.draw();
    this.dialog.showModal();
  }

  translate(): void {
    this.draw();
  }

  private found(): Entry[] {
    const words = this.search.value.trim().toLowerCase().split(/\s+/).filter((w) => w !== "");
    return this.entries.filter((e) => {
      if (this.starredOnly.checked && !hasStar(e)) return false;
      const text = [e.text, ...e.rewrites.map((r) => r.text)].join("\n").toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }

  private draw(): void {
    const found = this.found();
    const shown = found.slice(0, SHOWN_MAX);
    const more = found.length - shown.length;

    this.list.replaceChildren(...shown.map((e) => this.row(e)));
    byId("history-empty").hidden = this.entries.length > 0;
    byId("history-nothing").hidden = this.entries.length === 0 || found.length > 0;
    byId("history-more").hidden = more <= 0;
    byId("history-more").textContent = t("historyMore", { n: more });
    byId("history-count").textContent = this.entries.length > 0 ? t("historyCount", { n: found.length }) : "";
    byId<HTMLButtonElement>("history-export").disabled = this.entries.length === 0;
    this.clear.disabled = this.entries.length === 0;
    this.clear.textContent = this.sure ? t("historyClearSure", { n: this.entries.length }) : t("historyClear");
    this.clear.classList.toggle("danger", this.sure);
  }

  private row(e: Entry): HTMLLIElement {
    const row = make("li", "entry");
    const head = make("div", "entry-head");
    const when = make("time", "muted", new Date(e.time).toLocaleString(currentLanguage() === "zh" ? "zh-CN" : "en", {
      month: "numeric",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
    }));
    const list = make("ul", "entry-rewrites");
    const text = make("p", "entry-text", e.text);

    when.dateTime = new Date(e.time).toISOString();
    text.lang = list.lang = "zh-CN";
    list.append(
      ...e.rewrites.map((r, i) => {
        const item = make("li", r.starred ? "starred" : "");
        const star = makeButton("quiet star", "", () => {
          r.starred = !r.starred;
          void setStar(e.id, i, r.starred);
          this.actions.starred(e.id, i, r.starred);
          item.classList.toggle("starred", r.starred);
          star.setAttribute("aria-pressed", String(r.starred));
        });
        star.setAttribute("aria-label", t("star"));
        star.setAttribute("aria-pressed", String(r.starred));
        item.append(make("span", "", r.text), star);
        return item;
      }),
    );
    head.append(
      when,
      makeButton("quiet", t("historyRestore"), () => {
        this.dialog.close();
        this.actions.restore(e);
      }),
      makeButton("quiet", t("historyDelete"), () => void this.remove(e)),
    );
    row.append(head, text, list);
    return row;
  }

  private async remove(e: Entry): Promise<void> {
    await store.remove(e.id);
    this.entries = this.entries.filter((other) => other !== e);
    this.draw();
    this.search.focus();
  }

  private async clearAll(): Promise<void> {
    if (!this.sure) {
      this.sure = true;
      this.draw();
      return;
    }
    await store.clear();
    this.sure = false;
    this.entries = [];
    this.draw();
    this.search.focus();
  }
}
