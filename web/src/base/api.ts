// The HTTP API as the page uses it: types of the answers, and the calls. Every path is relative: nothing leaves the
// page's own origin.

export interface ApiProblem {
  message: string;
  code: string;
  param?: string | null;
}

/** What a request came to when it was no answer: the server's error, or the lack of one. */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly retryAfter: number | null = null, // seconds
  ) {
    super(message);
  }
}

export interface TokenProbability {
  id: number;
  piece: string;
  logprob: number;
}

export interface TokenDetail extends TokenProbability {
  top: TokenProbability[];
}

export interface Candidate {
  index: number;
  text: string;
  finish_reason: "stop" | "length" | "cancelled" | "error";
  score: number | null;
  error?: ApiProblem;
  tokens?: TokenDetail[];
}

export interface Timings {
  queue_ms: number;
  tokenize_ms: number;
  encode_ms: number;
  first_token_ms: number;
  decode_ms: number;
  other_ms: number;
  total_ms: number;
}

export interface Answer {
  id: string;
  model: string;
  rewrites: Candidate[];
  seed: number;
  usage: { input_tokens: number; output_tokens: number };
  timings: Timings;
  cache: "miss" | "hit" | "shared" | "off";
  device: string;
  truncated: { from: number; to: number; unit: string } | null;
  warnings: string[];
}

export type StreamEvent =
  | { type: "queued"; position: number; wait_ms: number }
  | { type: "delta"; index: number; text: string }
  | { type: "reset"; index: number; reason: string; text: string }
  | ({ type: "candidate" } & Candidate)
  | ({ type: "done" } & Answer)
  | { type: "error"; error: ApiProblem };

export interface RewriteOptions {
  model?: string;
  n: number;
  temperature: number;
  top_p: number;
  max_tokens: number;
}

export interface RewriteRequest extends RewriteOptions {
  text: string;
  cache: "auto" | "refresh";
}

export type BatchResult =
  | ({ index: number } & Answer)
  | { index: number; error: ApiProblem }
  | { done: true; ok: number; failed: number };

export interface Model {
  id: string;
  capabilities: string[];
  type: string;
  context: number;
  demo: boolean;
}

const keyName = "inkstone.key";

export function setApiKey(key: string): void {
  localStorage.setItem(keyName, key);
}

function headers(): Record<string, string> {
  const key = localStorage.getItem(keyName);
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function problemOf(response: Response): Promise<RequestError> {
  const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const retryAfter = Number.isFinite(seconds) ? seconds : null;
  try {
    const { error } = (await response.json()) as { error: ApiProblem };
    return new RequestError(error.code, error.message, retryAfter);
  } catch {
    const code = { 404: "not_found", 413: "too_large", 429: "overloaded", 503: "loading" }[response.status];
    return new RequestError(code ?? "internal", `HTTP ${response.status}`, retryAfter);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...headers(), ...init.headers } });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new RequestError("network", "");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** The body as text, as it arrives. A connection that breaks is a RequestError "broken". */
async function* textOf(response: Response, signal: AbortSignal): AsyncGenerator<string> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();

  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (e) {
      if (signal.aborted) throw e;
      throw new RequestError("broken", "");
    }
    if (chunk.done) return;
    yield decoder.decode(chunk.value, { stream: true });
  }
}

export async function listModels(): Promise<Model[]> {
  const response = await send("/v1/models", {});
  return ((await response.json()) as { data: Model[] }).data;
}

/** Whether the server takes requests; false also when there is none. */
export async function isReady(): Promise<boolean> {
  try {
    return (await fetch("/ready")).ok;
  } catch {
    return false;
  }
}

/** Has the server tokenize and encode a text ahead of its rewriting. */
export async function prepareText(text: string, model: string | undefined, signal: AbortSignal): Promise<void> {
  const response = await send("/v1/rewrite/prepare", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(model ? { text, model } : { text }),
    signal,
  });
  await response.arrayBuffer();
}

/** Splits a growing text into server-sent events and hands out the data of each. */
export class EventSplitter {
  private rest = "";

  *add(text: string): Generator<string> {
    this.rest += text;
    for (;;) {
      const end = this.rest.indexOf("\n\n");
      if (end < 0) return;
      const lines = this.rest.slice(0, end).split("\n");
      this.rest = this.rest.slice(end + 2);
      const data = lines.filter((l) => l.startsWith("data:")).map((l) => l.slice(5).trimStart());
      if (data.length > 0) yield data.join("\n");
    }
  }
}

/** Streams a rewrite; resolves after "done". Throws RequestError, or an AbortError when `signal` says so. */
export async function streamRewrite(
  request: RewriteRequest,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  const response = await send("/v1/rewrite", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...request, stream: true, details: true }),
    signal,
  });
  const splitter = new EventSplitter();
  let done = false;

  for await (const text of textOf(response, signal)) {
    for (const data of splitter.add(text)) {
      if (data === "[DONE]") continue;
      const event = JSON.parse(data) as StreamEvent;
      if (event.type === "error") throw new RequestError(event.error.code, event.error.message);
      onEvent(event);
      done ||= event.type === "done";
    }
  }
  if (!done) throw new RequestError("broken", "");
}

/** Rewrites many texts in one call; results come as they finish, `index` counts from 0 within `texts`. */
export async function rewriteBatch(
  texts: string[],
  options: RewriteOptions,
  signal: AbortSignal,
  onResult: (result: Exclude<BatchResult, { done: true }>) => void,
): Promise<void> {
  const response = await send("/v1/rewrite/batch", {
    method: "POST",
    headers: { "Content-Type": "application/x-ndjson", Accept: "application/x-ndjson" },
    body: texts.map((text) => `${JSON.stringify({ text, ...options })}\n`).join(""),
    signal,
  });
  let rest = "";
  let done = false;

  for await (const text of textOf(response, signal)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (line.trim() === "") continue;
      const result = JSON.parse(line) as BatchResult | { error: ApiProblem };
      if ("done" in result) done = true;
      else if ("index" in result) onResult(result);
      else throw new RequestError(result.error.code, result.error.message);
    }
  }
  if (!done) throw new RequestError("broken", "");
}
