// The frame of the page: language, theme, tabs, and the list of models that all tabs share.

import { listModels, RequestError, type Model } from "./base/api";
import { byId } from "./base/dom";
import { currentLanguage, setLanguage, t } from "./base/i18n";
import { remember, settings, type Theme } from "./base/settings";
import { TabBar, type Tab } from "./base/tabs";
import { RewriteTab } from "./rewrite/tab";

const RELOAD_MS = 1500;

let models: Model[] | null = null;

const tabs: Tab[] = [new RewriteTab(() => void loadModels())];
const bar = new TabBar(byId("tabs"), tabs);

function showNotice(): void {
  const usable = models?.filter((m) => m.capabilities.includes("rewrite"));
  const model = usable?.find((m) => m.id === settings.model) ?? usable?.[0];
  const notice = byId("notice");

  notice.classList.toggle("demo", model?.demo === true);
  if (!usable) notice.textContent = "";
  else if (!model) notice.textContent = t("noticeNoModel");
  else notice.textContent = model.demo ? t("noticeDemo") : t("notice", { model: model.id, type: model.type });
}

/** Asks again while the server is still loading, or not there yet. */
async function loadModels(): Promise<void> {
  try {
    models = await listModels();
    for (const tab of tabs) tab.onModels(models);
    showNotice();
  } catch (e) {
    for (const tab of tabs) tab.onModelsFailed(e);
    if (e instanceof RequestError && ["loading", "network"].includes(e.code))
      setTimeout(() => void loadModels(), RELOAD_MS);
  }
}

function translate(): void {
  setLanguage(settings.language);
  byId("language").textContent = t("switchLanguage");
  byId("language").lang = settings.language === "zh" ? "en" : "zh-CN";
  bar.translate();
  for (const tab of tabs) tab.translate();
  showNotice();
  showTheme();
}

const themes: Theme[] = ["auto", "light", "dark"];

function showTheme(): void {
  const root = document.documentElement;
  const name = t(({ auto: "themeAuto", light: "themeLight", dark: "themeDark" } as const)[settings.theme]);

  if (settings.theme === "auto") delete root.dataset["theme"];
  else root.dataset["theme"] = settings.theme;
  byId("theme").dataset["now"] = settings.theme;
  byId("theme").setAttribute("aria-label", name);
  byId("theme").title = name;
}

byId("language").addEventListener("click", () => {
  remember({ language: currentLanguage() === "zh" ? "en" : "zh" });
  translate();
});
byId("theme").addEventListener("click", () => {
  remember({ theme: themes[(themes.indexOf(settings.theme) + 1) % themes.length]! });
  showTheme();
});
byId("model").addEventListener("change", showNotice);

translate();
document.documentElement.dataset["ready"] = "";
void loadModels();
