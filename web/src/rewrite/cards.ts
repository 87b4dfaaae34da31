// The candidates, side by side. All cards are made when the request starts, each with room for about as much text as
// the source has, so nothing moves while text arrives; longer texts scroll inside their card until it is expanded.
// Texts are written once a frame, however many events came.

import type { Candidate } from "../base/api";
import { make, makeButton } from "../base/dom";
import { t } from "../base/i18n";
import { compare } from "./diff";

type State = "waiting" | "writing" | "rewriting" | "done" | "cancelled" | "failed";

interface Card {
  index: number;
  root: HTMLLIElement;
  text: HTMLParagraphElement;
  note: HTMLSpanElement;
  copy: HTMLButtonElement;
  adopt: HTMLButtonElement;
  star: HTMLButtonElement;
  expand: HTMLButtonElement;
  content: string;
  drawn: string; // what `text` shows, when it shows plain text
  state: State;
  finish: Candidate["finish_reason"] | "";
  starred: boolean;
}

export interface CardActions {
  copy(text: string): void;
  adopt(text: string): void;
  star(index: number, starred: boolean): void;
}

const LINES_MIN = 2;
const LINES_MAX = 14;

export class Cards {
  private cards: Card[] = [];
  private dirty = new Set<Card>();
  private frame = 0;
  private source = "";
  private comparing = false;

  constructor(
    private readonly list: HTMLOListElement,
    private readonly actions: CardActions,
  ) {
    addEventListener("resize", () => this.reserve());
  }

  /** `n` empty cards for rewrites of `source`. */
  reset(n: number, source: string): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.dirty.clear();
    this.source = source;
    this.cards = Array.from({ length: n }, (_, i) => this.makeCard(i));
    this.list.replaceChildren(...this.cards.map((c) => c.root));
    this.reserve();
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

  /** True when this is news. */
  finish(candidate: Candidate): boolean {
    const before = this.cards[candidate.index]?.state;
    this.change(candidate.index, (c) => {
      c.content = candidate.text;
      c.finish = candidate.finish_reason;
      c.state = candidate.error ? "failed" : "done";
    });
    return before !== "done" && before !== "failed";
  }

  setStarred(index: number, starred: boolean): void {
    this.change(index, (c) => (c.starred = starred));
  }

  /** Marks the differences to the source in all that is finished, or no longer. */
  setComparing(on: boolean): void {
    if (on === this.comparing) return;
    this.comparing = on;
    this.reserve();
    for (const c of this.cards) this.mark(c);
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

  /** Room for a text: what the source takes at this width, and some more. */
  private reserve(): void {
    const first = this.cards[0];
    if (!first) return;

    const probe = make("p", "card-text probe", this.source);
    first.root.append(probe);
    const line = parseFloat(getComputedStyle(probe).lineHeight);
    const lines = Math.round(probe.offsetHeight / line);
    probe.remove();
    const wanted = Math.ceil(lines * (this.comparing ? 1.5 : 1)) + (lines <= 6 ? 1 : 0);
    const room = Math.min(Math.max(wanted, LINES_MIN), LINES_MAX);
    this.list.style.setProperty("--room", `${room * line}px`);
    for (const c of this.cards) if (c.state === "done") this.mark(c);
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

  /** Shows what came, now. Writes first, then measures: one layout. */
  flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const c of this.dirty) this.draw(c);
    for (const c of this.dirty) {
      if (c.state === "writing") c.text.scrollTop = c.text.scrollHeight;
      else if (c.state === "done") this.offerMore(c);
    }
    this.dirty.clear();
  }

  private offerMore(c: Card): void {
    const open = c.root.classList.contains("expanded");
    c.expand.hidden = !open && c.text.scrollHeight <= c.text.clientHeight + 2;
    c.text.tabIndex = c.expand.hidden || open ? -1 : 0;
    if (!open) c.text.scrollTop = 0;
  }

  private draw(c: Card): void {
    const usable = c.state === "done";

    if (usable && this.comparing) {
      c.drawn = "";
      c.text.replaceChildren(
        ...compare(this.source, c.content).map(({ kind, text }) =>
          kind === "same" ? text : make(kind === "added" ? "ins" : "del", "", text),
        ),
      );
    } else if (c.drawn !== c.content || c.text.childNodes.length !== 1) {
      const node = c.text.firstChild;
      if (node instanceof Text && c.drawn !== "" && c.content.startsWith(c.drawn) && !node.nextSibling)
        node.appendData(c.content.slice(c.drawn.length));
      else c.text.textContent = c.content;
      c.drawn = c.content;
    }
    c.root.dataset["state"] = c.state;
    c.root.classList.toggle("starred", c.starred);
    c.note.textContent = this.noteOf(c);
    for (const button of [c.copy, c.adopt, c.star]) button.disabled = !usable;
    this.labelStar(c);
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
        if (c.finish === "length") return t("finishLength");
        return c.content.trim() === this.source.trim() ? t("unchanged") : "";
    }
  }

  private labelStar(c: Card): void {
    c.star.setAttribute("aria-pressed", String(c.starred));
    c.star.setAttribute("aria-label", t("star"));
    c.star.title = t(c.starred ? "unstar" : "star");
  }

  private label(c: Card): void {
    c.root.setAttribute("aria-label", t("candidateLabel", { i: c.index + 1 }));
    c.copy.textContent = t("copy");
    c.adopt.textContent = t("adopt");
    c.expand.textContent = t(c.root.classList.contains("expanded") ? "collapse" : "expand");
    this.labelStar(c);
  }

  private makeCard(index: number): Card {
    const card: Card = {
      index,
      root: make("li", "card"),
      text: make("p", "card-text"),
      note: make("span", "card-note muted"),
      copy: makeButton("quiet", "", () => this.actions.copy(card.content)),
      adopt: makeButton("quiet", "", () => this.actions.adopt(card.content)),
      star: makeButton("quiet star", "", () => {
        this.setStarred(index, !card.starred);
        this.actions.star(index, card.starred);
      }),
      expand: makeButton("quiet expand", "", () => {
        card.root.classList.toggle("expanded");
        this.label(card);
        this.mark(card);
      }),
      content: "",
      drawn: "",
      state: "waiting",
      finish: "",
      starred: false,
    };
    const head = make("div", "card-head");
    const foot = make("div", "card-actions");

    head.append(make("span", "card-number", String(index + 1)), card.note, card.star);
    foot.append(card.adopt, card.copy, card.expand);
    card.text.lang = "zh-CN";
    card.expand.hidden = true;
    card.root.append(head, card.text, foot);
    this.label(card);
    this.draw(card);
    return card;
  }
}
