// The HTTP API as the page uses it: types of the answers, and one streamed request.

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
  ) {
    super(message);
  }
}

export interface Candidate {
  index: number;
  text: string;
  finish_reason: "stop" | "length" | "cancelled" | "error";
  score: number | null;
  error?: ApiProblem;
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
  text: string;
  model?: string;
  n: number;
  temperature: number;
  top_p: number;
  max_tokens: number;
  cache: "auto" | "refresh";
}

export interface Model {
  id: string;
  capabilities: string[];
  type: string;
  context: number;
  max_output?: number;
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
  try {
    const body = (await response.json()) as { error: ApiProblem };
    return new RequestError(body.error.code, body.error.message);
  } catch {
    return new RequestError("internal", `HTTP ${response.status}`);
  }
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: { ...headers(), ...init.headers } });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new RequestError("network", String(e));
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function listModels(): Promise<Model[]> {
  const response = await send("/v1/models", {});
  return ((await response.json()) as { data: Model[] }).data;
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
  options: RewriteOptions,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  const response = await send("/v1/rewrite", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...options, stream: true }),
    signal,
  });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  const splitter = new EventSplitter();
  let done = false;

  for (;;) {
    let chunk;
    try {
      chunk = await reader.read();
    } catch (e) {
      if (signal.aborted) throw e;
      throw new RequestError("broken", String(e));
    }
    if (chunk.done) break;
    for (const data of splitter.add(decoder.decode(chunk.value, { stream: true }))) {
      if (data === "[DONE]") continue;
      const event = JSON.parse(data) as StreamEvent;
      if (event.type === "error") throw new RequestError(event.error.code, event.error.message);
      onEvent(event);
      done ||= event.type === "done";
    }
  }
  if (!done) throw new RequestError("broken", "the stream ended early");
}
