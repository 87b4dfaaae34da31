// The lines of a batch: where they come from, and the columns or fields that go with them into the results.

import { decodeText, guessSeparator, parseCsv, splitLines } from "../base/tables";

export const FILE_BYTES_MAX = 64 * 1024 * 1024;

export type FileKind = "text" | "csv" | "jsonl";

/** A file that can't be used; `line` where it is one line's fault. */
export class FileProblem extends Error {
  constructor(
    readonly what: "type" | "big" | "read" | "empty" | "json",
    readonly line = 0,
  ) {
    super(what);
  }
}

export interface Loaded {
  name: string;
  kind: FileKind;
  /** csv: the rows as they are. jsonl: one value a line. text: one row of one column a line. */
  rows: unknown[][];
  columns: string[]; // csv with a header: its names; jsonl: the fields of the first object; else empty
  width: number; // how many columns the widest row has
}

/** One text to rewrite, and where it stood. */
export interface Line {
  text: string;
  row: number;
}

function kindOf(name: string): FileKind {
  const extension = /\.([a-z]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const kind = ({ txt: "text", text: "text", md: "text", csv: "csv", tsv: "csv", jsonl: "jsonl", ndjson: "jsonl" } as const)[
    extension as "txt"
  ];
  if (!kind) throw new FileProblem("type");
  return kind;
}

function parseJsonLines(text: string): unknown[][] {
  const rows: unknown[][] = [];
  splitLines(text).forEach((line, i) => {
    if (line.trim() === "") return;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw new FileProblem("json", i + 1);
    }
    const usable = typeof value === "string" || (typeof value === "object" && value !== null && !Array.isArray(value));
    if (!usable) throw new FileProblem("json", i + 1);
    rows.push([value]);
  });
  return rows;
}

export function parseFile(name: string, bytes: Uint8Array): Loaded {
  const kind = kindOf(name);
  const text = decodeText(bytes);

  if (text.includes("\0")) throw new FileProblem("type");
  const rows: unknown[][] =
    kind === "csv"
      ? parseCsv(text, /\.tsv$/i.test(name) ? "\t" : guessSeparator(text))
      : kind === "jsonl"
        ? parseJsonLines(text)
        : splitLines(text)
            .filter((l) => l.trim() !== "")
            .map((l) => [l]);
  if (rows.length === 0) throw new FileProblem("empty");

  let columns: string[] = [];
  if (kind === "csv") columns = rows[0] as string[];
  if (kind === "jsonl") {
    const first = rows.map((r) => r[0]).find((v) => typeof v === "object");
    if (first) columns = Object.keys(first as object).filter((k) => typeof (first as Record<string, unknown>)[k] === "string");
  }
  return { name, kind, rows, columns, width: rows.reduce((w, r) => Math.max(w, r.length), 1) };
}

export async function readFile(file: File): Promise<Loaded> {
  if (file.size > FILE_BYTES_MAX) throw new FileProblem("big");
  kindOf(file.name);
  let bytes: ArrayBuffer;
  try {
    bytes = await file.arrayBuffer();
  } catch {
    throw new FileProblem("read");
  }
  return parseFile(file.name, new Uint8Array(bytes));
}

/** Whether a table's first row looks like names: short, distinct and without sentence marks. */
export function looksLikeHeader(rows: unknown[][]): boolean {
  const first = rows[0] as string[];
  const short = first.every((f) => f.length <= 24 && !/[。！？；，]/.test(f) && f.trim() !== "");
  return rows.length > 1 && short && new Set(first).size === first.length;
}

/** The column that most likely holds the sentences: one that is called so, else the one with the longest texts. */
export function guessColumn(loaded: Loaded, header: boolean): number {
  const named = header || loaded.kind === "jsonl" ? loaded.columns : [];
  const known = named.findIndex((n) => /^(text|sentence|content|source|review|句子|原文|文本|内容|正文|评论|评价)$/i.test(n.trim()));
  if (known >= 0 || loaded.kind !== "csv") return Math.max(known, 0);
  const length = (c: number): number =>
    loaded.rows.slice(header ? 1 : 0, 50).reduce((sum, r) => sum + String(r[c] ?? "").length, 0);
  let best = 0;
  for (let c = 1; c < loaded.width; c++) if (length(c) > length(best)) best = c;
  return best;
}

/** The texts of a column, without the rows where it is empty. */
export function linesOf(loaded: Loaded, column: number, header: boolean): Line[] {
  const out: Line[] = [];
  loaded.rows.forEach((row, i) => {
    if (loaded.kind === "csv" && header && i === 0) return;
    let value: unknown = row[loaded.kind === "csv" ? column : 0];
    if (loaded.kind === "jsonl" && typeof value === "object")
      value = (value as Record<string, unknown>)[loaded.columns[column] ?? "text"];
    if (typeof value === "string" && value.trim() !== "") out.push({ text: value.trim(), row: i });
  });
  return out;
}
