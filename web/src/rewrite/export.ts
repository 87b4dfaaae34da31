// Rewrites as a file: the current results, the kept ones or the whole history; JSON Lines, CSV or plain text.

import { byId } from "../base/dom";
import { t } from "../base/i18n";
import { dated, download, formatCsvRow } from "../base/tables";
import { allEntries, type Entry } from "./history";

type Format = "jsonl" | "csv" | "txt";
type Scope = "current" | "starred" | "all";

interface Row {
  source: string;
  rewrite: string;
  starred: boolean;
  score: number | null;
  model: string;
  temperature: number;
  top_p: number;
  seed: number;
  time: string;
}

export function rowsOf(entries: Entry[], starredOnly: boolean): Row[] {
  return entries.flatMap((e) =>
    e.rewrites
      .filter((r) => r.starred || !starredOnly)
      .map((r) => ({
        source: e.text,
        rewrite: r.text,
        starred: r.starred,
        score: r.score,
        model: e.model,
        temperature: e.options.temperature,
        top_p: e.options.top_p,
        seed: e.seed,
        time: new Date(e.time).toISOString(),
      })),
  );
}

const types: Record<Format, string> = { jsonl: "application/x-ndjson", csv: "text/csv", txt: "text/plain" };

function write(rows: Row[], format: Format): string[] {
  if (format === "jsonl") return rows.map((r) => `${JSON.stringify(r)}\n`);
  if (format === "txt") return rows.map((r) => `${r.rewrite.replace(/\s*\n\s*/g, " ")}\n`);
  const names = ["source", "rewrite", "starred", "score", "model", "temperature", "top_p", "seed", "time"] as const;
  return [formatCsvRow([...names]), ...rows.map((r) => formatCsvRow(names.map((n) => String(r[n] ?? ""))))];
}

/** The dialog. `current` gives what is on the page now, null when there is nothing. */
export class ExportDialog {
  private readonly dialog = byId<HTMLDialogElement>("export-dialog");
  private readonly form = byId<HTMLFormElement>("export-form");
  private readonly save = byId<HTMLButtonElement>("export-save");
  private entries: Entry[] = [];

  constructor(private readonly current: () => Entry | null) {
    this.form.addEventListener("change", () => this.draw());
    this.form.addEventListener("submit", () => {
      const rows = this.rows();
      const format = this.chosen("format") as Format;
      if (rows.length > 0) download(`${dated("inkstone")}.${format}`, types[format], write(rows, format));
    });
    byId("export-close").addEventListener("click", () => this.dialog.close());
  }

  async open(scope: Scope): Promise<void> {
    const now = this.current();
    this.entries = await allEntries();
    for (const input of this.form.querySelectorAll<HTMLInputElement>("input[name=scope]")) {
      input.checked = input.value === scope;
      if (input.value === "current") input.disabled = !now;
    }
    this.draw();
    this.dialog.showModal();
  }

  private chosen(name: string): string {
    return this.form.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)!.value;
  }

  private rows(): Row[] {
    const scope = this.chosen("scope") as Scope;
    const now = this.current();
    if (scope === "current") return now ? rowsOf([now], false) : [];
    return rowsOf(this.entries, scope === "starred");
  }

  private draw(): void {
    const n = this.rows().length;
    this.save.disabled = n === 0;
    byId("export-count").textContent = n > 0 ? t("exportCount", { n }) : t("exportNothing");
  }
}
