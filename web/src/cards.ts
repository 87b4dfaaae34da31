// The list of candidates. A card is made when the request starts, so nothing moves while text arrives; texts are
// written once a frame, however many events came.

import type { Candidate } from "./api";
import { make } from "./dom";
import { t } from "./i18n";

type State = "waiting" | "writing" | "rewriting" | "done" | "cancelled" | "failed";

interface Card {
  root: HTMLLIElement;
  text: HTMLParagraphElement;
  note: HTMLSpanElement;
  actions: HTMLDivElement;
  content: string;
  state: State;
  finish: Candidate["finish_reason"] | "";
}

export interface CardActions {
  copy(text: string): void;
  adopt(text: string): void;
}

export class Cards {
  private cards: Card[] = [];
  private dirty = new Set<Card>();
  private frame = 0;

  constructor(
    private readonly list: HTMLOListElement,
    private readonly actions: CardActions,
  ) {}

  /** `n` empty cards. */
  reset(n: number): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.dirty.clear();
    this.cards = Array.from({ length: n }, (_, i) => this.makeCard(i));
    this.list.replaceChildren(...this.cards.map((c) => c.root));
  }

  append(index: number, text: string): void {
    this.change(index, (c) => {
      c.content += text;
      c.state = "writing";
    });
  }

  replace(index: number, text: string): void {
    this.change(index, (c) => {
      c.content = text;
      c.state = "rewriting";
    });
  }

  finish(candidate: Candidate): void {
    this.change(candidate.index, (c) => {
      c.content = candidate.text;
      c.finish = candidate.finish_reason;
      c.state = candidate.error ? "failed" : "done";
    });
  }

  /** What is not finished never will be. */
  stop(): void {
    for (const c of this.cards) {
      if (c.state === "done" || c.state === "failed") continue;
      c.state = "cancelled";
      this.mark(c);
    }
  }

  /** Takes away cards that never got any text. */
  dropEmpty(): void {
    this.flush();
    this.cards = this.cards.filter((c) => {
      const keep = c.content !== "";
      if (!keep) c.root.remove();
      return keep;
    });
  }

  texts(): string[] {
    return this.cards.filter((c) => c.state === "done").map((c) => c.content);
  }

  countDone(): number {
    return this.cards.filter((c) => c.state === "done" || c.state === "failed").length;
  }

  /** After a change of language. */
  translate(): void {
    for (const c of this.cards) {
      this.label(c);
      this.mark(c);
    }
  }

  private change(index: number, how: (card: Card) => void): void {
    const card = this.cards[index];
    if (!card) return;
    how(card);
    this.mark(card);
  }

  private mark(card: Card): void {
    this.dirty.add(card);
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const c of this.dirty) this.draw(c);
    this.dirty.clear();
  }

  private draw(c: Card): void {
    if (c.text.textContent !== c.content) c.text.textContent = c.content;
    c.root.dataset["state"] = c.state;
    c.note.textContent = this.noteOf(c);
    c.actions.hidden = c.state !== "done";
  }

  private noteOf(c: Card): string {
    switch (c.state) {
      case "waiting":
        return t("waiting");
      case "writing":
        return t("writing");
      case "rewriting":
        return t("rewriting");
      case "cancelled":
        return t("finishCancelled");
      case "failed":
        return t("finishError");
      case "done":
        return c.finish === "length" ? t("finishLength") : "";
    }
  }

  private label(c: Card): void {
    c.root.setAttribute("aria-label", t("candidateLabel", { i: Number(c.root.dataset["index"]) + 1 }));
    const [copy, adopt] = c.actions.children;
    copy!.textContent = t("copy");
    adopt!.textContent = t("adopt");
  }

  private makeCard(index: number): Card {
    const card: Card = {
      root: make("li", "card"),
      text: make("p", "card-text"),
      note: make("span", "muted card-note"),
      actions: make("div", "card-actions"),
      content: "",
      state: "waiting",
      finish: "",
    };
    const copy = make("button", "quiet");
    const adopt = make("button", "quiet");
    const foot = make("div", "card-foot");

    copy.type = adopt.type = "button";
    copy.addEventListener("click", () => this.actions.copy(card.content));
    adopt.addEventListener("click", () => this.actions.adopt(card.content));
    card.actions.append(copy, adopt);
    card.text.lang = "zh-CN";
    card.root.dataset["index"] = String(index);
    foot.append(make("span", "card-number", String(index + 1)), card.note, card.actions);
    card.root.append(card.text, foot);
    this.label(card);
    this.draw(card);
    return card;
  }
}
