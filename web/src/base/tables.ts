// Files of many rows: reading text, CSV and JSON Lines that people drop on the page, and writing them for download.

import { make } from "./dom";

/** CSV as RFC 4180 has it, with any one-character separator; a lone quote inside a field is kept as it is. */
export function parseCsv(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = 0;

  const field = (): string => {
    if (text[at] !== '"') {
      const start = at;
      while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at++;
      return text.slice(start, at);
    }
    let value = "";
    for (at++; at < text.length; ) {
      const end = text.indexOf('"', at);
      if (end < 0) {
        value += text.slice(at);
        at = text.length;
        break;
      }
      value += text.slice(at, end);
      at = end + 1;
      if (text[at] !== '"') break;
      value += '"';
      at++;
    }
    const start = at;
    while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at++;
    return value + text.slice(start, at);
  };

  while (at < text.length) {
    row.push(field());
    if (text[at] === separator) {
      at++;
      if (at < text.length) continue;
      row.push("");
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  }
  return rows;
}

/** The separator that the first line has most of, outside quotes. */
export function guessSeparator(text: string): string {
  const end = text.search(/[\r\n]/);
  const line = (end < 0 ? text : text.slice(0, end)).replace(/"[^"]*"/g, "");
  let best = ",";
  for (const c of [",", "\t", ";"]) if (line.split(c).length > line.split(best).length) best = c;
  return best;
}

export function formatCsvRow(row: (string | number)[]): string {
  const fields = row.map(String).map((f) => (/[",\r\n]/.test(f) ? `"${f.replaceAll('"', '""')}"` : f));
  return `${fields.join(",")}\r\n`;
}

/** UTF-8 or UTF-16 by its mark, else UTF-8 if it is that, else GB18030, which Chinese spreadsheets still write. */
export function decodeText(bytes: Uint8Array): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("gb18030").decode(bytes);
  }
}

export function splitLines(text: string): string[] {
  return text.split(/\r\n|\n|\r/);
}

/** Hands a file to the browser's downloads. CSV gets a byte order mark, without which Excel misreads it. */
export function download(name: string, type: string, parts: string[]): void {
  const link = make("a");
  link.href = URL.createObjectURL(new Blob(type === "text/csv" ? ["\ufeff", ...parts] : parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** "inkstone-2026-01-31-0915" */
export function dated(name: string): string {
  const now = new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString();
  return `${name}-${now.slice(0, 10)}-${now.slice(11, 16).replace(":", "")}`;
}
