// Encoding ahead: while a person thinks, the server tokenizes and encodes what is in the box, so that the click finds
// it ready. Only a courtesy: whatever fails here is not mentioned, and a server without the route is not asked again.

import { prepareText, RequestError } from "../base/api";

const PAUSE_MS = 300;
const GONE = ["not_found", "method_not_allowed", "unauthorized", "forbidden_origin"];

export class Preparer {
  private timer = 0;
  private call: AbortController | null = null;
  private prepared = ""; // the text and model of the last call
  private off = false;

  /** `wanted` tells what would be sent now; an empty text means nothing. */
  constructor(private readonly wanted: () => { text: string; model?: string }) {}

  /** The text changed: the older call is for nothing, and after a pause a new one is made. */
  edited(): void {
    this.stop();
    if (!this.off) this.timer = window.setTimeout(() => void this.now(), PAUSE_MS);
  }

  /** The box was left. */
  left(): void {
    if (this.timer) void this.now();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.call) this.prepared = "";
    this.call?.abort();
    this.call = null;
  }

  /** A new key, or a server that has come back. */
  restart(): void {
    this.off = false;
  }

  private async now(): Promise<void> {
    const { text, model } = this.wanted();
    const key = JSON.stringify([text, model]);

    clearTimeout(this.timer);
    this.timer = 0;
    if (this.off || text === "" || key === this.prepared) return;

    const call = new AbortController();
    this.call = call;
    this.prepared = key;
    try {
      await prepareText(text, model, call.signal);
    } catch (e) {
      if (this.call === call) this.prepared = "";
      if (e instanceof RequestError && GONE.includes(e.code)) this.off = true;
    }
    if (this.call === call) this.call = null;
  }
}
