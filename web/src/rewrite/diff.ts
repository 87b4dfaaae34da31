// What changed between a source and its rewrite, word by word.

export interface Change {
  kind: "same" | "added" | "removed";
  text: string;
}

const CELLS_MAX = 1_000_000; // of the table; beyond it the differing middle is shown as replaced

let segmenter: Intl.Segmenter | null | undefined;

/** Words where the browser can tell them apart, else characters. */
export function wordsOf(text: string): string[] {
  if (segmenter === undefined)
    segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter("zh", { granularity: "word" }) : null;
  return segmenter ? Array.from(segmenter.segment(text), (s) => s.segment) : Array.from(text);
}

/**
 * The longest common subsequence of words, as runs. Removed words come before the added ones that replace them.
 */
export function compare(before: string, after: string): Change[] {
  const a = wordsOf(before);
  const b = wordsOf(after);
  const out: Change[] = [];
  const push = (kind: Change["kind"], text: string): void => {
    const last = out[out.length - 1];
    if (text === "") return;
    if (last?.kind === kind) last.text += text;
    else out.push({ kind, text });
  };

  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }

  push("same", a.slice(0, start).join(""));
  for (const c of middle(a.slice(start, endA), b.slice(start, endB))) push(c.kind, c.text);
  push("same", a.slice(endA).join(""));
  return removedFirst(out);
}

function middle(a: string[], b: string[]): Change[] {
  const width = b.length + 1;
  const out: Change[] = [];

  if (a.length * b.length > CELLS_MAX || a.length === 0 || b.length === 0)
    return [
      { kind: "removed", text: a.join("") },
      { kind: "added", text: b.join("") },
    ];

  // common[i][j]: the longest common subsequence of a from i and b from j on
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);

  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push({ kind: "same", text: a[i]! });
      i++;
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) {
      out.push({ kind: "removed", text: a[i++]! });
    } else {
      out.push({ kind: "added", text: b[j++]! });
    }
  }
  out.push({ kind: "removed", text: a.slice(i).join("") }, { kind: "added", text: b.slice(j).join("") });
  return out;
}

/** Between two unchanged runs, one removed and one added run at most, in this order. */
function removedFirst(changes: Change[]): Change[] {
  const out: Change[] = [];
  let removed = "";
  let added = "";
  const flush = (): void => {
    if (removed) out.push({ kind: "removed", text: removed });
    if (added) out.push({ kind: "added", text: added });
    removed = added = "";
  };

  for (const c of changes) {
    if (c.kind === "removed") removed += c.text;
    else if (c.kind === "added") added += c.text;
    else {
      flush();
      out.push(c);
    }
  }
  flush();
  return out;
}
