// The page: one form, one running request at most, its candidates as they are written.

import { listModels, RequestError, setApiKey, streamRewrite, type Answer, type Model, type RewriteOptions } from "./api";
import { Cards } from "./cards";
import { showDetails } from "./details";
import { byId, copyText, make, radioGroup } from "./dom";
import { currentLanguage, setLanguage, t, type Key } from "./i18n";
import { onSendKey } from "./ime";
import { explain } from "./problems";
import { loadSettings, saveSettings } from "./settings";

const presets: [Key, number][] = [
  ["presetStrict", 0.5],
  ["presetGeneral", 0.8],
  ["presetDefault", 1.0],
  ["presetCreative", 1.2],
  ["presetWild", 1.5],
];

const examples = [
  "这家餐厅的味道非常好，服务也很周到。",
  "明天早上九点我们在火车站门口见面。",
  "这双鞋穿起来很舒服，就是价格有点贵。",
];

const source = byId<HTMLTextAreaElement>("source");
const go = byId<HTMLButtonElement>("go");
const cancel = byId<HTMLButtonElement>("cancel");
const again = byId<HTMLButtonElement>("again");
const status = byId("status");
const settings = loadSettings();

let running: AbortController | null = null;
let lastRequest: RewriteOptions | null = null;
let lastAnswer: Answer | null = null;
let lastError: unknown = null;
let models: Model[] = [];
let modelsError: unknown = null; // what kept the models from being listed
let say: () => string = () => ""; // the status line, said anew after a change of language

const cards = new Cards(byId<HTMLOListElement>("list"), {
  copy: (text) => void copyAndTell(text),
  adopt: putBack,
});

// --- telling -------------------------------------------------------------------------------------

function tell(what: () => string): void {
  say = what;
  showStatus();
}

/** While it works, the button says the same. */
function showStatus(): void {
  status.textContent = say();
  byId("go-text").textContent = running ? say() : t("start");
}

let toastTimer = 0;

function toast(text: string, undo?: () => void): void {
  const button = byId<HTMLButtonElement>("toast-undo");
  byId("toast-text").textContent = text;
  byId("toast").hidden = false;
  button.hidden = !undo;
  button.onclick = () => {
    byId("toast").hidden = true;
    undo?.();
  };
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => (byId("toast").hidden = true), undo ? 8000 : 2500);
}

async function copyAndTell(text: string): Promise<void> {
  toast((await copyText(text)) ? t("copied") : t("copyFailed"));
}

function putBack(text: string): void {
  const before = source.value;
  setSource(text);
  source.focus();
  toast(t("adopted"), () => {
    setSource(before);
    source.focus();
  });
}

function showProblem(): void {
  const box = byId("problem");
  box.hidden = lastError === null;
  if (lastError === null) return;

  const problem = explain(lastError);
  byId("problem-text").textContent = problem.text;
  byId("problem-advice").textContent = problem.advice;
  byId("problem-detail").textContent = problem.detail;
  byId("key-form").hidden = problem.code !== "unauthorized";
  byId("retry").hidden = problem.code === "unauthorized" || !lastRequest;
}

function fail(error: unknown): void {
  lastError = error;
  showProblem();
}

// --- the request ---------------------------------------------------------------------------------

function showRunning(): void {
  const busy = running !== null;
  go.disabled = busy;
  go.classList.toggle("busy", busy);
  showStatus();
  byId("form").setAttribute("aria-busy", String(busy));
  cancel.hidden = !busy;
  again.hidden = busy || !lastRequest;
  byId("copy-all").hidden = busy || cards.texts().length === 0;
}

function showAnswer(): void {
  const box = byId("details");
  box.hidden = !lastAnswer;
  if (lastAnswer) showDetails(byId("bar"), byId("facts"), lastAnswer);
}

function optionsNow(): RewriteOptions {
  const options: RewriteOptions = {
    text: source.value.trim(),
    n: settings.n,
    temperature: settings.temperature,
    top_p: settings.topP,
    max_tokens: settings.maxTokens,
    cache: "auto",
  };
  if (models.some((m) => m.id === settings.model)) options.model = settings.model;
  return options;
}

function submit(): void {
  if (running) return;
  const options = optionsNow();
  if (options.text === "") {
    source.focus();
    toast(t("errorEmpty"));
    return;
  }
  void run(options);
}

/** In one column the results lie below the form, out of sight. */
function showResultsBelow(): void {
  if (!matchMedia("(max-width: 56rem)").matches) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  byId("results").scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
}

async function run(options: RewriteOptions): Promise<void> {
  if (running) return;
  const control = new AbortController();
  const started = performance.now();

  running = control;
  lastRequest = options;
  lastAnswer = null;
  lastError = null;
  byId("empty").hidden = true;
  cards.reset(options.n);
  showProblem();
  showAnswer();
  tell(() => t("thinking"));
  showRunning();
  showResultsBelow();

  try {
    await streamRewrite(options, control.signal, (event) => {
      switch (event.type) {
        case "queued":
          if (event.position > 0) tell(() => t("queued", { n: event.position }));
          break;
        case "delta":
          cards.append(event.index, event.text);
          break;
        case "reset":
          cards.replace(event.index, event.text);
          break;
        case "candidate": {
          cards.finish(event);
          const i = cards.countDone();
          tell(() => t("progress", { i, n: options.n }));
          break;
        }
        case "done": {
          for (const c of event.rewrites) cards.finish(c);
          lastAnswer = event;
          const seconds = ((performance.now() - started) / 1000).toFixed(1);
          const n = event.rewrites.filter((c) => !c.error).length;
          tell(() => t("done", { n, s: seconds }));
          break;
        }
      }
    });
  } catch (e) {
    cards.stop();
    cards.dropEmpty();
    if (control.signal.aborted) {
      tell(() => t("cancelled"));
    } else {
      tell(() => t("failed"));
      fail(e);
    }
  }
  running = null;
  showAnswer();
  showRunning();
}

// --- the form ------------------------------------------------------------------------------------

function showCounter(): void {
  byId("counter").textContent = t("characters", { n: [...source.value.trim()].length });
}

function setSource(text: string): void {
  source.value = text;
  fitSource();
  showCounter();
}

/** The box grows with its text, up to a bound that the style sheet sets. */
function fitSource(): void {
  source.style.height = "auto";
  source.style.height = `${source.scrollHeight + 2}px`;
}

function remember(change: Partial<typeof settings>): void {
  Object.assign(settings, change);
  saveSettings(settings);
}

function showPresets(): void {
  radioGroup(
    byId("presets"),
    presets.map(([key, value]) => ({ value, label: t(key) })),
    settings.temperature,
    (temperature) => {
      remember({ temperature });
      showSliders();
    },
  );
}

function showCount(): void {
  radioGroup(
    byId("count"),
    [1, 2, 3, 4, 5].map((value) => ({ value, label: String(value) })),
    settings.n,
    (n) => remember({ n }),
  );
}

function showSliders(): void {
  const rows: [string, number, number][] = [
    ["temperature", settings.temperature, 2],
    ["top-p", settings.topP, 2],
    ["length", settings.maxTokens, 0],
  ];
  for (const [id, value, digits] of rows) {
    byId<HTMLInputElement>(id).value = String(value);
    byId(`${id}-value`).textContent = value.toFixed(digits);
  }
}

function onSlider(id: string, change: (value: number) => void): void {
  const input = byId<HTMLInputElement>(id);
  input.addEventListener("input", () => {
    change(Number(input.value));
    showSliders();
    showPresets();
  });
}

function showExamples(): void {
  byId("examples").replaceChildren(
    ...examples.map((text) => {
      const button = make("button", "example", text);
      button.type = "button";
      button.lang = "zh-CN";
      button.addEventListener("click", () => {
        setSource(text);
        submit();
      });
      return button;
    }),
  );
}

function showModels(): void {
  const select = byId<HTMLSelectElement>("model");
  const chosen = models.find((m) => m.id === settings.model) ?? models[0];

  select.replaceChildren(...models.map((m) => new Option(`${m.id} (${m.type})`, m.id, false, m === chosen)));
  byId("model-row").hidden = models.length < 2;
  byId("notice").hidden = !chosen?.demo;
  byId("notice").textContent = t("demo");
}

/** Asks again while the server is still loading, or not there yet. */
async function loadModels(): Promise<void> {
  try {
    models = (await listModels()).filter((m) => m.capabilities.includes("rewrite"));
    showModels();
    if (lastError === modelsError) {
      lastError = null;
      showProblem();
    }
  } catch (e) {
    if (!running && (lastError === null || lastError === modelsError)) {
      modelsError = e;
      fail(e);
    }
    if (e instanceof RequestError && ["loading", "network"].includes(e.code)) setTimeout(() => void loadModels(), 1500);
  }
}

// --- language and theme --------------------------------------------------------------------------

function translate(): void {
  setLanguage(settings.language);
  byId("language").textContent = t("switchLanguage");
  byId("language").lang = settings.language === "zh" ? "en" : "zh-CN";
  showPresets();
  showCount();
  showCounter();
  showModels();
  showRunning();
  showAnswer();
  showProblem();
  cards.translate();
}

function applyTheme(): void {
  if (settings.theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = settings.theme;
}

function isDark(): boolean {
  return settings.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : settings.theme === "dark";
}

// --- wiring --------------------------------------------------------------------------------------

byId("form").addEventListener("submit", (e) => {
  e.preventDefault();
  submit();
});
onSendKey(source, submit);
source.addEventListener("input", () => {
  fitSource();
  showCounter();
});
cancel.addEventListener("click", () => {
  running?.abort();
  source.focus();
});
again.addEventListener("click", () => {
  if (lastRequest) void run({ ...lastRequest, cache: "refresh" });
});
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") running?.abort();
});
byId("retry").addEventListener("click", () => {
  if (lastRequest) void run(lastRequest);
});
byId("copy-all").addEventListener("click", () => void copyAndTell(cards.texts().join("\n")));
byId("key-form").addEventListener("submit", (e) => {
  e.preventDefault();
  setApiKey(byId<HTMLInputElement>("key").value.trim());
  lastError = null;
  showProblem();
  void loadModels();
  if (lastRequest) void run(lastRequest);
});
byId<HTMLSelectElement>("model").addEventListener("change", (e) => {
  remember({ model: (e.target as HTMLSelectElement).value });
  showModels();
});
byId("language").addEventListener("click", () => {
  remember({ language: currentLanguage() === "zh" ? "en" : "zh" });
  translate();
});
byId("theme").addEventListener("click", () => {
  remember({ theme: isDark() ? "light" : "dark" });
  applyTheme();
});
onSlider("temperature", (temperature) => remember({ temperature }));
onSlider("top-p", (topP) => remember({ topP }));
onSlider("length", (maxTokens) => remember({ maxTokens }));

applyTheme();
showSliders();
showExamples();
translate();
fitSource();
void loadModels();
