// Batch mode: lines from a box or a file, their progress, their results as a table and as files.

import type { RewriteOptions } from "../base/api";
import { byId, make } from "../base/dom";
import { duration, t } from "../base/i18n";
import { onSendKey } from "../base/ime";
import { ProblemBox } from "../base/problem_box";
import { dated, download, formatCsvRow, splitLines } from "../base/tables";
import { announce, toast } from "../base/toast";
import { BatchRun } from "./batch_run";
import { FILE_BYTES_MAX, FileProblem, guessColumn, linesOf, looksLikeHeader, readFile, type Line, type Loaded } from "./lines";

const ROWS_SHOWN = 200;
const DRAW_MS = 200;

type Outcome = "none" | "running" | "done" | "cancelled" | "stopped";

export class Batch {
  private readonly box = byId<HTMLTextAreaElement>("lines");
  private readonly go = byId<HTMLButtonElement>("batch-go");
  private readonly column = byId<HTMLSelectElement>("column");
  private readonly header = byId<HTMLInputElement>("header-row");
  private readonly body = byId("batch-rows");
  private readonly problem: ProblemBox;
  private file: Loaded | null = null;
  private lines: Line[] = []; // of the run
  private origin: Loaded | null = null; // the file of the run
  private originHeader = false;
  private originColumn = 0;
  private run: BatchRun | null = null;
  private outcome: Outcome = "none";
  private failedOnly = false;
  private waitingFor = 0;
  private fresh: number[] = []; // lines done since the last drawing
  private shown = 0;
  private timer = 0;

  constructor(
    private readonly options: () => RewriteOptions,
    private readonly onStart: () => void,
    onKey: () => void,
  ) {
    this.problem = new ProblemBox(byId("batch-problem"), () => this.resume(), () => {
      onKey();
      this.resume();
    });
    byId("batch-form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.start();
    });
    onSendKey(this.box, () => this.start(), true);
    this.box.addEventListener("input", () => this.showCount());
    byId("batch-cancel").addEventListener("click", () => this.cancel());
    byId("batch-continue").addEventListener("click", () => this.resume());
    byId<HTMLInputElement>("file").addEventListener("change", (e) => {
      const input = e.target as HTMLInputElement;
      const file = input.files?.[0];
      if (file) void this.load(file);
      input.value = "";
    });
    byId("choose-file").addEventListener("click", () => byId("file").click());
    byId("remove-file").addEventListener("click", () => this.setFile(null));
    this.column.addEventListener("change", () => this.showCount());
    this.header.addEventListener("change", () => {
      this.showColumns();
      this.showCount();
    });
    byId("save-csv").addEventListener("click", () => this.saveCsv());
    byId("save-jsonl").addEventListener("click", () => this.saveJsonl());
    for (const id of ["show-all", "show-failed"])
      byId(id).addEventListener("click", () => {
        this.failedOnly = id === "show-failed";
        this.redrawRows();
        this.draw();
      });
    addEventListener("beforeunload", (e) => {
      if (this.running) e.preventDefault();
    });
  }

  get running(): boolean {
    return this.outcome === "running";
  }

  cancel(): void {
    this.run?.cancel();
  }

  // --- the input ---------------------------------------------------------------------------------

  async load(file: File): Promise<void> {
    try {
      const loaded = await readFile(file);
      this.setFile(loaded);
    } catch (e) {
      toast(this.explainFile(e));
    }
  }

  private explainFile(e: unknown): string {
    if (!(e instanceof FileProblem)) return t("errorFileRead");
    switch (e.what) {
      case "type":
        return t("errorFileType");
      case "big":
        return t("errorFileBig", { mb: FILE_BYTES_MAX / 1024 / 1024 });
      case "read":
        return t("errorFileRead");
      case "empty":
        return t("errorFileEmpty");
      case "json":
        return t("errorFileJson", { line: e.line });
    }
  }

  private setFile(loaded: Loaded | null): void {
    this.file = loaded;
    byId("paste").hidden = loaded !== null;
    byId("file-chip").hidden = loaded === null;
    if (loaded) {
      byId("file-name").textContent = loaded.name;
      this.header.checked = loaded.kind === "csv" && looksLikeHeader(loaded.rows);
      byId("header-row-line").hidden = loaded.kind !== "csv";
      this.showColumns();
      this.column.value = String(guessColumn(loaded, this.header.checked));
      byId("remove-file").focus();
    }
    this.showCount();
  }

  private showColumns(): void {
    const loaded = this.file;
    if (!loaded) return;
    const chosen = this.column.value;
    const n = loaded.kind === "csv" ? loaded.width : loaded.columns.length;
    const named = loaded.kind === "jsonl" || this.header.checked;
    const name = (i: number): string => (named && loaded.columns[i]) || t("columnNumber", { i: i + 1 });
    this.column.replaceChildren(...Array.from({ length: n }, (_, i) => new Option(name(i), String(i))));
    if (chosen !== "" && Number(chosen) < n) this.column.value = chosen;
    byId("column-line").hidden = n < 2;
  }

  private inputLines(): Line[] {
    if (this.file) return linesOf(this.file, Number(this.column.value || 0), this.header.checked);
    return splitLines(this.box.value).flatMap((text, row) => (text.trim() ? [{ text: text.trim(), row }] : []));
  }

  private showCount(): void {
    byId("line-counter").textContent = t("lineCount", { n: this.inputLines().length });
  }

  // --- the work ----------------------------------------------------------------------------------

  start(): void {
    if (this.running) return;
    const lines = this.inputLines();
    if (lines.length === 0) {
      (this.file ? this.column : this.box).focus();
      toast(t("errorNoLines"));
      return;
    }
    this.lines = lines;
    this.origin = this.file;
    this.originHeader = this.header.checked;
    this.originColumn = Number(this.column.value || 0);
    this.run = new BatchRun(
      lines.map((l) => l.text),
      this.options(),
      {
        line: (i) => {
          this.waitingFor = 0;
          this.fresh.push(i);
          this.timer ||= window.setTimeout(() => this.draw(), DRAW_MS);
        },
        waiting: (seconds) => {
          this.waitingFor = seconds;
          this.draw();
        },
      },
    );
    this.failedOnly = false;
    this.redrawRows();
    this.resume();
    this.onStart();
  }

  private resume(): void {
    if (this.running || !this.run) return;
    void this.work(this.run);
  }

  private async work(run: BatchRun): Promise<void> {
    const ticking = window.setInterval(() => this.draw(), 1000);

    this.outcome = "running";
    this.waitingFor = 0;
    this.problem.clear();
    this.draw();
    try {
      await run.go();
      this.outcome = "done";
    } catch (e) {
      const cancelled = e instanceof DOMException && e.name === "AbortError";
      this.outcome = cancelled ? "cancelled" : "stopped";
      if (!cancelled) this.problem.show(e, true);
    }
    clearInterval(ticking);
    this.draw();
    announce(byId("batch-status").textContent);
  }

  // --- showing -----------------------------------------------------------------------------------

  translate(): void {
    this.problem.translate();
    this.showColumns();
    this.showCount();
    this.redrawRows();
    this.draw();
  }

  private status(run: BatchRun): string {
    if (this.waitingFor > 0 && this.running) return t("batchWaiting", { s: this.waitingFor });
    switch (this.outcome) {
      case "none":
        return "";
      case "running":
        return t("batchBusy");
      case "done":
        return t("batchDone", { time: duration(run.seconds, true) });
      case "cancelled":
        return t("batchCancelled", { n: run.done });
      case "stopped":
        return t("batchStopped", { n: run.done });
    }
  }

  private draw(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    const run = this.run;
    const busy = this.running;

    this.go.disabled = busy;
    this.go.classList.toggle("busy", busy);
    byId("batch-go-text").textContent = busy ? t("batchBusy") : t("startBatch");
    byId("batch-form").setAttribute("aria-busy", String(busy));
    byId("batch-cancel").hidden = !busy;
    byId("batch-empty").hidden = run !== null;
    byId("batch-work").hidden = run === null;
    byId("batch-status").textContent = run ? this.status(run) : "";
    for (const id of ["save-csv", "save-jsonl"]) byId<HTMLButtonElement>(id).disabled = !run || run.done === 0;
    if (!run) return;

    const total = run.texts.length;
    const bar = byId("batch-bar");
    const rate = run.rate;
    const facts = [t("batchStatus", { done: run.done, total })];
    if (busy && rate > 0) {
      facts.push(t("batchRate", { rate: rate < 10 ? rate.toFixed(1) : Math.round(rate) }));
      facts.push(t("batchLeft", { time: duration(run.left / rate) }));
    }
    byId("batch-facts").textContent = facts.join(" · ");
    byId("batch-ok").textContent = t("batchOk", { n: run.ok });
    byId("batch-failed").textContent = t("batchFailed", { n: run.failed });
    byId("batch-failed").classList.toggle("some", run.failed > 0);
    bar.setAttribute("aria-valuemax", String(total));
    bar.setAttribute("aria-valuenow", String(run.done));
    (bar.firstElementChild as HTMLElement).style.width = `${(run.done / total) * 100}%`;
    byId("batch-continue").hidden = busy || run.left === 0 || this.outcome === "stopped";
    byId("batch-continue").textContent = t("continueBatch", { n: run.left });
    byId("show-all").setAttribute("aria-pressed", String(!this.failedOnly));
    byId("show-failed").setAttribute("aria-pressed", String(this.failedOnly));
    for (const i of this.fresh) this.addRow(i);
    this.fresh = [];
    this.showRowsNote();
  }

  private showRowsNote(): void {
    const n = this.failedOnly ? (this.run?.failed ?? 0) : (this.run?.done ?? 0);
    byId("rows-note").hidden = n <= ROWS_SHOWN;
    byId("rows-note").textContent = t("rowsShown", { n: ROWS_SHOWN });
  }

  private redrawRows(): void {
    const run = this.run;
    this.body.replaceChildren();
    this.shown = 0;
    this.fresh = [];
    for (let i = 0; run && i < run.results.length && this.shown < ROWS_SHOWN; i++) if (run.results[i]) this.addRow(i);
  }

  private addRow(i: number): void {
    const result = this.run?.results[i];
    if (!result || this.shown >= ROWS_SHOWN || (this.failedOnly && !result.error)) return;
    this.shown++;

    const row = make("tr", result.error ? "failed" : "");
    const number = make("td", "row-number", String(this.lines[i]!.row + 1));
    const source = make("td", "row-source", this.lines[i]!.text);
    const out = make("td", "row-rewrites");
    row.dataset["i"] = String(i);
    source.lang = "zh-CN";
    if (result.error) out.append(make("p", "row-error", result.error));
    else out.append(...result.rewrites.map((text) => Object.assign(make("p", "", text), { lang: "zh-CN" })));
    row.append(number, source, out);

    // In the order of the lines, which is nearly the order in which they come.
    let after = this.body.lastElementChild as HTMLElement | null;
    while (after && Number(after.dataset["i"]) > i) after = after.previousElementSibling as HTMLElement | null;
    if (after) after.after(row);
    else this.body.prepend(row);
  }

  // --- files -------------------------------------------------------------------------------------

  private name(): string {
    return this.origin ? `${this.origin.name.replace(/\.[^.]+$/, "")}-rewritten` : dated("inkstone-batch");
  }

  /** Every row of a table with its other columns, then the rewrites and the error. */
  private saveCsv(): void {
    const run = this.run;
    if (!run) return;
    const table = this.origin?.kind === "csv" ? this.origin : null;
    const n = run.results.reduce((most, r) => Math.max(most, r?.rewrites.length ?? 0), 1);
    const names = [...Array.from({ length: n }, (_, i) => `rewrite_${i + 1}`), "error"];
    const results = (i: number | undefined): string[] => {
      const r = i === undefined ? undefined : run.results[i];
      return [...Array.from({ length: n }, (_, k) => r?.rewrites[k] ?? ""), r?.error ?? ""];
    };
    const out: string[] = [];

    if (table) {
      const atRow = new Map(this.lines.map((l, i) => [l.row, i]));
      const padded = (row: unknown[]): string[] => Array.from({ length: table.width }, (_, c) => String(row[c] ?? ""));
      const head = this.originHeader
        ? padded(table.rows[0]!)
        : Array.from({ length: table.width }, (_, c) => (c === this.originColumn ? "text" : `column_${c + 1}`));
      out.push(formatCsvRow([...head, ...names]));
      table.rows.forEach((row, r) => {
        if (this.originHeader && r === 0) return;
        out.push(formatCsvRow([...padded(row), ...results(atRow.get(r))]));
      });
    } else {
      out.push(formatCsvRow(["text", ...names]));
      this.lines.forEach((l, i) => out.push(formatCsvRow([l.text, ...results(i)])));
    }
    download(`${this.name()}.csv`, "text/csv", out);
  }

  /** One object a finished line, with the fields or columns that the line came with. */
  private saveJsonl(): void {
    const run = this.run;
    if (!run) return;
    const out = this.lines.flatMap((l, i) => {
      const r = run.results[i];
      if (!r) return [];
      const result = r.error ? { index: i, text: l.text, error: r.error } : { index: i, text: l.text, rewrites: r.rewrites };
      return [`${JSON.stringify({ ...this.fieldsOf(l), ...result })}\n`];
    });
    download(`${this.name()}.jsonl`, "application/x-ndjson", out);
  }

  private fieldsOf(line: Line): object {
    const row = this.origin?.rows[line.row];
    if (!row || this.origin?.kind === "text") return {};
    if (this.origin?.kind === "jsonl") return typeof row[0] === "object" ? (row[0] as object) : {};
    if (!this.originHeader) return {};
    return Object.fromEntries(this.origin!.columns.map((name, c) => [name, row[c] ?? ""]));
  }
}
