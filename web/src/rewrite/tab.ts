// The tab 改写: one text with its candidates as they are written, or many lines at once (batch.ts).

import { RequestError, streamRewrite, type Answer, type Model, type RewriteRequest } from "../base/api";
import { byId, copyText, fitBox, makeButton, radioGroup, typeInto } from "../base/dom";
import { t } from "../base/i18n";
import { onSendKey } from "../base/ime";
import { ProblemBox } from "../base/problem_box";
import { loadDraft, remember, saveDraft, settings } from "../base/settings";
import type { Tab } from "../base/tabs";
import { announce, toast } from "../base/toast";
import { Batch } from "./batch";
import { Cards } from "./cards";
import { showDetails } from "./details";
import { ExportDialog } from "./export";
import { addEntry, HistoryDrawer, setStar, type Entry } from "./history";
import { Options } from "./options";
import { Preparer } from "./prepare";

const examples = [
  "这家餐厅的味道非常好，服务也很周到。",
  "明天早上九点我们在火车站门口见面。",
  "这双鞋穿起来很舒服，就是价格有点贵。",
];

const UNDO_MAX = 50;

type Mode = "single" | "batch";

export class RewriteTab implements Tab {
  readonly id = "rewrite";
  readonly name = "tabRewrite";

  private readonly source = byId<HTMLTextAreaElement>("source");
  private readonly go = byId<HTMLButtonElement>("go");
  private readonly options = new Options();
  private readonly cards: Cards;
  private readonly problem: ProblemBox;
  private readonly preparer: Preparer;
  private readonly history: HistoryDrawer;
  private readonly exporter: ExportDialog;
  private readonly batch: Batch;
  private mode: Mode = "single";
  private running: AbortController | null = null;
  private lastRequest: RewriteRequest | null = null;
  private lastAnswer: Answer | null = null;
  private entry: Entry | null = null; // what the cards show; id 0 while it is not stored
  private undoStack: string[] = []; // the box's texts before something was put into it
  private modelsError: unknown = null; // what kept the models from being listed
  private say: () => string = () => ""; // the status line, said anew after a change of language

  /** `reload` asks for the models again. */
  constructor(reload: () => void) {
    this.cards = new Cards(byId<HTMLOListElement>("list"), {
      copy: (text) => void this.copy(text),
      adopt: (text) => this.put(text, t("adopted")),
      star: (index, starred) => void this.star(index, starred),
    });
    this.cards.setComparing(settings.compare);
    this.problem = new ProblemBox(
      byId("problem"),
      () => this.lastRequest && void this.run(this.lastRequest),
      () => {
        this.preparer.restart();
        reload();
        if (this.lastRequest) void this.run(this.lastRequest);
      },
    );
    this.preparer = new Preparer(() => {
      const model = this.options.model();
      const text = this.source.value.trim();
      return model === undefined ? { text } : { text, model };
    });
    this.history = new HistoryDrawer({
      restore: (entry) => this.restore(entry),
      starred: (id, index, starred) => {
        const kept = this.entry?.id === id ? this.entry.rewrites[index] : undefined;
        if (!kept) return;
        kept.starred = starred;
        this.cards.setStarred(index, starred);
      },
      export: () => void this.exporter.open("all"),
    });
    this.exporter = new ExportDialog(() => this.entry);
    this.batch = new Batch(
      () => this.options.now(),
      () => this.scrollTo("batch-results"),
      reload,
    );
    this.wire();
    this.setSource(loadDraft());
  }

  // --- what the frame calls ----------------------------------------------------------------------

  translate(): void {
    this.options.show();
    this.showMode();
    this.showCounter();
    this.showRunning();
    this.showAnswer();
    this.showExamples();
    this.problem.translate();
    this.cards.translate();
    this.history.translate();
    this.batch.translate();
  }

  onModels(models: Model[]): void {
    this.options.setModels(models.filter((m) => m.capabilities.includes("rewrite")));
    if (this.modelsError !== null && this.problem.shown === this.modelsError) this.problem.clear();
    this.modelsError = null;
    this.showEmpty();
  }

  onModelsFailed(error: unknown): void {
    if (this.running || (this.problem.shown !== null && this.problem.shown !== this.modelsError)) return;
    this.modelsError = error;
    this.problem.show(error, false);
    this.showEmpty();
  }

  // --- telling -----------------------------------------------------------------------------------

  private tell(what: () => string): void {
    this.say = what;
    this.showStatus();
  }

  /** While it works, the button says the same. */
  private showStatus(): void {
    byId("status").textContent = this.say();
    byId("go-text").textContent = this.running ? this.say() : t("start");
  }

  private async copy(text: string): Promise<void> {
    toast((await copyText(text)) ? t("copied") : t("copyFailed"));
  }

  private showRunning(): void {
    const busy = this.running !== null;
    this.go.disabled = busy;
    this.go.classList.toggle("busy", busy);
    this.showStatus();
    byId("form").setAttribute("aria-busy", String(busy));
    byId("cancel").hidden = !busy;
    byId("again").hidden = busy;
    byId<HTMLButtonElement>("again").disabled = !this.lastRequest;
    byId<HTMLButtonElement>("copy-all").disabled = busy || this.cards.texts().length === 0;
    byId<HTMLButtonElement>("export").disabled = busy || !this.entry;
  }

  private showAnswer(): void {
    const box = byId<HTMLDetailsElement>("details");
    box.classList.toggle("unready", !this.lastAnswer);
    if (this.lastAnswer && box.open) showDetails(this.lastAnswer);
  }

  private showEmpty(): void {
    const empty = this.lastRequest === null && this.entry === null && this.problem.shown === null;
    byId("empty").hidden = !empty;
    byId("details").hidden = this.running === null && this.lastAnswer === null;
  }

  /** In one column the results lie below the form, out of sight. */
  private scrollTo(id: string): void {
    if (!matchMedia("(max-width: 60rem)").matches) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    byId(id).scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  }

  // --- the request -------------------------------------------------------------------------------

  private submit(): void {
    if (this.running) return;
    const text = this.source.value.trim();
    if (text === "") {
      this.source.focus();
      toast(t("errorEmpty"));
      return;
    }
    void this.run({ text, ...this.options.now(), cache: "auto" });
  }

  private async run(request: RewriteRequest): Promise<void> {
    if (this.running) return;
    const control = new AbortController();
    const started = performance.now();

    this.running = control;
    this.lastRequest = request;
    this.lastAnswer = null;
    this.entry = null;
    this.problem.clear();
    this.showEmpty();
    this.cards.reset(request.n, request.text);
    this.showAnswer();
    this.tell(() => t("thinking"));
    this.showRunning();
    this.scrollTo("results");

    try {
      await streamRewrite(request, control.signal, (event) => {
        switch (event.type) {
          case "queued":
            if (event.position > 0) this.tellQueued(event.position, event.wait_ms);
            break;
          case "delta":
            this.cards.append(event.index, event.text);
            break;
          case "reset":
            this.cards.replace(event.index, event.text);
            break;
          case "candidate": {
            const news = this.cards.finish(event);
            const i = this.cards.countDone();
            this.tell(() => t("progress", { i, n: request.n }));
            if (news && !event.error) announce(t("candidateDone", { i: event.index + 1, text: event.text }));
            break;
          }
          case "done": {
            for (const c of event.rewrites) this.cards.finish(c);
            this.lastAnswer = event;
            break;
          }
        }
      });
    } catch (e) {
      this.cards.stop();
      this.cards.dropEmpty();
      if (control.signal.aborted) {
        this.tell(() => t("cancelled"));
      } else {
        this.tell(() => t("failed"));
        this.problem.show(e instanceof Error && !(e instanceof RequestError) ? new RequestError("broken", e.message) : e, true);
      }
    }
    this.cards.flush();
    this.running = null;
    const answer = this.lastAnswer as Answer | null; // the event handler has set it
    if (answer) {
      const s = ((performance.now() - started) / 1000).toFixed(1);
      const n = answer.rewrites.filter((c) => !c.error).length;
      this.tell(() => t("done", { n, s }));
      void this.keep(request, answer);
    }
    this.showEmpty();
    this.showAnswer();
    this.showRunning();
  }

  private tellQueued(n: number, wait: number): void {
    const s = Math.ceil(wait / 1000);
    this.tell(() => (s > 0 ? t("queuedWait", { n, s }) : t("queued", { n })));
  }

  // --- kept on this device -----------------------------------------------------------------------

  private async keep({ text, cache: _, ...options }: RewriteRequest, answer: Answer): Promise<void> {
    const rewrites = answer.rewrites.map((c) => ({ text: c.text, score: c.score, starred: false }));
    const { model, seed } = answer;
    const record = { time: Date.now(), text, options, model, seed, rewrites };
    const entry: Entry = { id: 0, ...record };

    this.entry = entry;
    if (settings.keepHistory) entry.id = await addEntry(record);
  }

  private async star(index: number, starred: boolean): Promise<void> {
    const entry = this.entry;
    const kept = entry?.rewrites[index];
    if (!entry || !kept) return;
    kept.starred = starred;
    if (entry.id > 0 && (await setStar(entry.id, index, starred))) return;
    const { id: _, ...record } = entry; // not in the history, or deleted from it
    entry.id = starred ? await addEntry(record) : 0;
  }

  /** An earlier rewrite, as it was. */
  private restore(entry: Entry): void {
    this.running?.abort();
    this.setMode("single");
    this.put(entry.text);
    this.options.restore(entry.options);
    this.lastRequest = { text: entry.text, ...entry.options, cache: "auto" };
    this.lastAnswer = null;
    this.entry = entry;
    this.problem.clear();
    this.cards.reset(entry.rewrites.length, entry.text);
    entry.rewrites.forEach((r, index) => {
      this.cards.finish({ index, text: r.text, score: r.score, finish_reason: "stop" });
      this.cards.setStarred(index, r.starred);
    });
    this.tell(() => "");
    this.showEmpty();
    this.showAnswer();
    this.showRunning();
  }

  // --- the box -----------------------------------------------------------------------------------

  private showCounter(): void {
    byId("counter").textContent = t("characters", { n: [...this.source.value.trim()].length });
    byId<HTMLButtonElement>("undo").disabled = this.undoStack.length === 0;
  }

  private setSource(text: string): void {
    typeInto(this.source, text);
    fitBox(this.source);
    this.showCounter();
  }

  /** Puts a text into the box, so that it can be undone. */
  private put(text: string, told = ""): void {
    if (text !== this.source.value) {
      this.undoStack.push(this.source.value);
      if (this.undoStack.length > UNDO_MAX) this.undoStack.shift();
    }
    this.setSource(text);
    this.source.focus();
    if (told) toast(told, () => this.undo());
  }

  private undo(): void {
    const before = this.undoStack.pop();
    if (before === undefined) return;
    this.setSource(before);
    this.source.focus();
  }

  private showExamples(): void {
    byId("examples").replaceChildren(
      ...examples.map((text) => {
        const button = makeButton("example", text, () => {
          this.put(text);
          this.submit();
        });
        button.lang = "zh-CN";
        return button;
      }),
    );
  }

  // --- mode --------------------------------------------------------------------------------------

  private setMode(mode: Mode): void {
    this.mode = mode;
    this.showMode();
  }

  private showMode(): void {
    radioGroup<Mode>(
      byId("mode"),
      [
        { value: "single", label: t("modeSingle") },
        { value: "batch", label: t("modeBatch") },
      ],
      this.mode,
      (mode) => this.setMode(mode),
    );
    const batch = this.mode === "batch";
    byId("form").hidden = byId("results").hidden = batch;
    byId("batch-form").hidden = byId("batch-results").hidden = !batch;
  }

  private wire(): void {
    const panel = byId("tab-rewrite");

    byId("form").addEventListener("submit", (e) => {
      e.preventDefault();
      this.submit();
    });
    onSendKey(this.source, () => this.submit());
    this.source.addEventListener("input", () => {
      fitBox(this.source);
      this.showCounter();
      saveDraft(this.source.value);
      this.preparer.edited();
    });
    this.source.addEventListener("blur", () => this.preparer.left());
    byId("undo").addEventListener("click", () => this.undo());
    byId("cancel").addEventListener("click", () => {
      this.running?.abort();
      this.source.focus();
    });
    byId("again").addEventListener("click", () => {
      if (this.lastRequest) void this.run({ ...this.lastRequest, ...this.options.now(), cache: "refresh" });
    });
    byId("copy-all").addEventListener("click", () => void this.copy(this.cards.texts().join("\n")));
    byId("export").addEventListener("click", () => void this.exporter.open("current"));
    byId("history-open").addEventListener("click", () => void this.history.open());
    byId("details").addEventListener("toggle", () => this.showAnswer());
    const compare = byId("compare");
    compare.setAttribute("aria-pressed", String(settings.compare));
    compare.addEventListener("click", () => {
      remember({ compare: !settings.compare });
      compare.setAttribute("aria-pressed", String(settings.compare));
      this.cards.setComparing(settings.compare);
    });

    // From anywhere in the tab. In the text boxes onSendKey() knows better.
    panel.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || e.target instanceof HTMLTextAreaElement) return;
      e.preventDefault();
      if (this.mode === "batch") this.batch.start();
      else this.submit();
    });
    document.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || e.isComposing || document.querySelector("dialog[open]")) return;
      if (this.mode === "batch") this.batch.cancel();
      else this.running?.abort();
    });

    // A file dropped anywhere is a batch.
    let over = 0;
    const hasFile = (e: DragEvent): boolean => !panel.hidden && (e.dataTransfer?.types.includes("Files") ?? false);
    const show = (n: number): void => {
      over = Math.max(n, 0);
      byId("drop").hidden = over === 0;
    };
    addEventListener("dragenter", (e) => hasFile(e) && show(over + 1));
    addEventListener("dragleave", (e) => hasFile(e) && show(over - 1));
    addEventListener("dragover", (e) => hasFile(e) && e.preventDefault());
    addEventListener("drop", (e) => {
      const file = e.dataTransfer?.files[0];
      if (!hasFile(e)) return;
      e.preventDefault();
      show(0);
      if (!file) return;
      this.setMode("batch");
      void this.batch.load(file);
    });
  }
}
