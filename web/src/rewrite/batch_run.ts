// Rewrites many lines, some hundred a request, so that a long file never has to be in one request, and what is done
// stays done when one of them fails. Knows nothing of the page.

import { rewriteBatch, RequestError, type RewriteOptions } from "../base/api";

const LINES_A_CALL = 500;
const CHARACTERS_A_CALL = 2_000_000;
const WAITS_MAX = 20; // times that a busy server is waited for without any line getting done

export interface LineResult {
  rewrites: string[];
  error: string; // "" when all is well
}

export interface BatchEvents {
  /** Line `i` is done. */
  line(i: number): void;
  /** The server asked to wait. */
  waiting(seconds: number): void;
}

export class BatchRun {
  readonly results: (LineResult | undefined)[];
  ok = 0;
  failed = 0;
  elapsed = 0; // seconds of earlier, interrupted goes
  private startedAt = 0;
  private startedDone = 0;
  private control: AbortController | null = null;

  constructor(
    readonly texts: string[],
    private readonly options: RewriteOptions,
    private readonly events: BatchEvents,
  ) {
    this.results = new Array<LineResult | undefined>(texts.length);
  }

  get done(): number {
    return this.ok + this.failed;
  }

  get left(): number {
    return this.texts.length - this.done;
  }

  get seconds(): number {
    return this.elapsed + (this.control ? (performance.now() - this.startedAt) / 1000 : 0);
  }

  /** Lines a second in this go; 0 while that can't be said. */
  get rate(): number {
    if (!this.control) return 0;
    const s = (performance.now() - this.startedAt) / 1000;
    return s > 0.5 ? (this.done - this.startedDone) / s : 0;
  }

  cancel(): void {
    this.control?.abort();
  }

  /** Works off what is not done yet. Throws what stopped it; an AbortError after cancel(). */
  async go(): Promise<void> {
    const control = new AbortController();

    this.control = control;
    this.startedAt = performance.now();
    this.startedDone = this.done;
    try {
      let waits = 0;
      for (;;) {
        const chunk = this.nextChunk();
        if (chunk.length === 0) return;
        const before = this.done;
        try {
          await this.send(chunk, control.signal);
          if (this.done === before) throw new RequestError("broken", "");
          waits = 0;
        } catch (e) {
          if (this.done > before) waits = 0;
          if (control.signal.aborted || !canWait(e) || ++waits > WAITS_MAX) throw e;
          const seconds = Math.min((e as RequestError).retryAfter ?? 2, 60);
          this.events.waiting(seconds);
          await pause(seconds * 1000, control.signal);
        }
      }
    } finally {
      this.elapsed += (performance.now() - this.startedAt) / 1000;
      this.control = null;
    }
  }

  private nextChunk(): number[] {
    const chunk: number[] = [];
    let characters = 0;
    for (let i = 0; i < this.texts.length && chunk.length < LINES_A_CALL && characters < CHARACTERS_A_CALL; i++) {
      if (this.results[i]) continue;
      chunk.push(i);
      characters += this.texts[i]!.length;
    }
    return chunk;
  }

  private send(chunk: number[], signal: AbortSignal): Promise<void> {
    return rewriteBatch(
      chunk.map((i) => this.texts[i]!),
      this.options,
      signal,
      (result) => {
        const i = chunk[result.index];
        if (i === undefined || this.results[i]) return;
        if ("error" in result) {
          this.results[i] = { rewrites: [], error: result.error.message };
          this.failed++;
        } else {
          const rewrites = result.rewrites.filter((c) => !c.error).map((c) => c.text);
          const why = result.rewrites.find((c) => c.error)?.error?.message ?? "";
          this.results[i] = { rewrites, error: rewrites.length > 0 ? "" : why || "no_usable_output" };
          if (rewrites.length > 0) this.ok++;
          else this.failed++;
        }
        this.events.line(i);
      },
    );
  }
}

function canWait(e: unknown): boolean {
  return e instanceof RequestError && ["overloaded", "loading", "draining"].includes(e.code);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}
