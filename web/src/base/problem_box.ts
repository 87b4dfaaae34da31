// A panel that says what went wrong and what can be done: retry (after the seconds the server asked for), or a key.

import { isReady, setApiKey } from "./api";
import { make, makeButton } from "./dom";
import { t } from "./i18n";
import { asRequestError, explain } from "./problems";
import { toast } from "./toast";

const POLL_MS = 2000;
const COMES_BACK = ["network", "broken", "loading", "draining", "cancelled"];

export class ProblemBox {
  private error: unknown = null;
  private readonly text = make("p", "problem-text");
  private readonly advice = make("p", "problem-advice");
  private readonly detail = make("p", "problem-detail muted");
  private readonly retry: HTMLButtonElement;
  private readonly keyForm = make("form", "key-form");
  private readonly key = make("input");
  private readonly keyLabel = make("label");
  private readonly keySave = make("button", "secondary");
  private canRetry = false;
  private retryAt = 0;
  private timer = 0;
  private poll = 0;

  /** `again` repeats what failed; `onKey` follows a new key. */
  constructor(
    private readonly root: HTMLElement,
    private readonly again: () => void,
    private readonly onKey: () => void,
  ) {
    const id = `${root.id}-key`;
    const said = make("div", "problem-said"); // without the button, whose countdown would be read out every second

    said.setAttribute("role", "alert");
    said.append(this.text, this.advice, this.detail);
    root.hidden = true;
    this.retry = makeButton("secondary problem-retry", "", () => this.again());
    this.key.type = "password";
    this.key.autocomplete = "off";
    this.key.id = this.keyLabel.htmlFor = id;
    this.keyForm.append(this.keyLabel, this.key, this.keySave);
    this.keyForm.addEventListener("submit", (e) => {
      e.preventDefault();
      setApiKey(this.key.value.trim());
      this.clear();
      this.onKey();
    });
    root.append(said, this.keyForm, this.retry);
  }

  get shown(): unknown {
    return this.error;
  }

  clear(): void {
    this.error = null;
    clearInterval(this.timer);
    clearTimeout(this.poll);
    this.root.hidden = true;
  }

  show(error: unknown, canRetry: boolean): void {
    this.clear();
    this.error = error;
    this.canRetry = canRetry;
    const e = asRequestError(error);
    this.retryAt = e.code === "overloaded" && e.retryAfter !== null ? Date.now() + e.retryAfter * 1000 : 0;
    if (this.retryAt > 0) this.timer = window.setInterval(() => this.showRetry(), 250);
    if (canRetry && COMES_BACK.includes(e.code)) this.watch();
    this.translate();
  }

  translate(): void {
    if (this.error === null) return;
    const problem = explain(this.error);
    this.text.textContent = problem.text;
    this.advice.textContent = problem.advice;
    this.detail.textContent = problem.detail;
    this.detail.hidden = problem.detail === "";
    this.keyForm.hidden = problem.code !== "unauthorized";
    this.keyLabel.textContent = t("apiKey");
    this.keySave.textContent = t("saveKey");
    this.retry.hidden = problem.code === "unauthorized" || !this.canRetry;
    this.root.hidden = false;
    this.showRetry();
  }

  private showRetry(): void {
    const s = Math.ceil((this.retryAt - Date.now()) / 1000);
    this.retry.disabled = s > 0;
    this.retry.textContent = s > 0 ? t("retryIn", { s }) : t("retry");
    if (s <= 0) clearInterval(this.timer);
  }

  /** Says so when the server is there again. */
  private watch(): void {
    this.poll = window.setTimeout(() => {
      const about = this.error;
      void isReady().then((ready) => {
        if (this.error !== about) return;
        if (!ready) this.watch();
        else toast(t("backOnline"));
      });
    }, POLL_MS);
  }
}
