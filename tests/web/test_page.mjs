// The page in a browser: its main job, and what people run into with others.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { finished, launch, model, open, Server, slowModel, until } from "./browser.mjs";

const TEXT = "这家餐厅的味道非常好，服务也很周到。";
let browser, server, slow;

before(async () => {
  browser = await launch();
  server = await Server.start(model());
  slow = await Server.start(slowModel(), "--parallel", "2");
});

after(async () => {
  await browser?.close();
  assert.equal(await server?.stop(), 0);
  assert.equal(await slow?.stop(), 0);
});

/** Makes the page's requests long ones, so that a slow browser still finds them running. */
async function makeEndless(page) {
  await page.route("**/v1/rewrite", (route) =>
    route.continue({
      postData: JSON.stringify({
        ...route.request().postDataJSON(), n: 16, max_tokens: 512, temperature: 3, top_p: 1, scripts: "all", timeout_ms: 600000,
      }),
    }),
  );
}

const cardTexts = (page) => page.locator(".card-text").allTextContents();

test("a sentence is rewritten, and nothing leaves the origin", async () => {
  const page = await open(browser, server);
  await page.fill("#source", TEXT);
  assert.equal(await page.textContent("#counter"), "18 字");
  await page.click("#go");
  await finished(page);

  const texts = (await cardTexts(page)).filter((t) => t);
  assert.ok(texts.length >= 1 && texts.length <= 3, String(texts));
  assert.ok(!texts.includes(TEXT));
  assert.match(await page.textContent("#status"), /^完成，\d 个候选，用时 [\d.]+ 秒$/);
  assert.equal(page.posts.length, 1);
  assert.deepEqual(page.posts[0], {
    text: TEXT, n: 3, temperature: 0.8, top_p: 0.9, max_tokens: 64, cache: "auto", stream: true, details: true,
  });

  // Folded: what it took, and how sure the model was of each token.
  await page.click("#details summary");
  assert.match(await page.textContent("#facts"), /种子\d+/);
  const shaded = (await page.locator(".shade-line").first().textContent()).replace("↵", "").trim();
  assert.equal(shaded, texts[0]);
  await page.locator(".shade-line").first().focus();
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent("#readout"), /的概率 [<\d]/);
  for (const url of page.asked) assert.ok(url.startsWith(server.url), url);
  assert.deepEqual(page.said.filter((m) => !m.includes("/v1/rewrite/prepare")), []);
  await page.context().close();
});

test("candidates appear while they are written, and the button shows it", async () => {
  const page = await open(browser, slow);
  await makeEndless(page);
  await page.locator("#count").fill("5");
  await page.fill("#source", "abc");
  await page.evaluate(() => {
    window.seen = [];
    const look = () => {
      const length = document.querySelector("#list").textContent.length;
      window.seen.push({ length, cards: document.querySelectorAll(".card").length, busy: document.querySelector("#go").disabled,
                         says: document.querySelector("#go-text").textContent });
    };
    new MutationObserver(look).observe(document.querySelector("#list"), { subtree: true, childList: true, characterData: true });
  });
  await page.click("#go");
  await page.waitForFunction(() => new Set(window.seen.filter((s) => s.busy).map((s) => s.length)).size >= 5);
  const seen = (await page.evaluate(() => window.seen)).filter((s) => s.busy);
  assert.ok(seen.every((s) => s.cards === 5));
  assert.ok(seen.every((s) => /^(AI正在思考…|已生成 \d\/5)$/.test(s.says)), JSON.stringify(seen));
  assert.ok(seen.some((s) => s.says === "AI正在思考…"));
  await page.click("#cancel");
  await finished(page);
  assert.equal(await page.isDisabled("#go"), false);
  assert.equal(await page.textContent("#go-text"), "开始改写");
  await page.context().close();
});

test("the button cannot be pressed twice", async () => {
  const page = await open(browser, slow);
  await makeEndless(page);
  await page.fill("#source", "abc");
  await page.evaluate(() => {
    const go = document.querySelector("#go");
    for (let i = 0; i < 5; i++) go.click();
    document.querySelector("#form").requestSubmit();
  });
  await page.focus("#source");
  await page.keyboard.press("Enter");
  await page.locator("#go").dblclick({ force: true, noWaitAfter: true });
  assert.equal(await page.isDisabled("#go"), true);
  assert.equal(page.posts.length, 1);
  await page.click("#cancel");
  await finished(page);
  assert.equal(page.posts.length, 1);
  await page.context().close();
});

test("cancel stops the engine, too", async () => {
  const page = await open(browser, slow);
  const cancelled = await slow.metric("inkstone_jobs_cancelled_total");
  await makeEndless(page);
  for (const how of [() => page.click("#cancel"), () => page.keyboard.press("Escape")]) {
    await page.fill("#source", "abc");
    await page.click("#go");
    await page.waitForFunction(() => [...document.querySelectorAll(".card-text")].some((c) => c.textContent));
    await how();
    await finished(page);
    assert.equal(await page.textContent("#status"), "已取消");
    assert.equal(await page.isVisible("#problem"), false);
  }
  await until(async () => (await slow.metric("inkstone_jobs_cancelled_total")) === cancelled + 2, "the engine to stop");
  await page.context().close();
});

test("the Enter that confirms a candidate of an input method never sends", async () => {
  const page = await open(browser, server);
  const input = await page.context().newCDPSession(page);
  const compose = (text) => input.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });

  // Confirmed inside the composition: key code 229.
  await page.focus("#source");
  await compose("ni");
  await page.evaluate(() => {
    const e = new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 229, isComposing: true, bubbles: true, cancelable: true });
    document.querySelector("#source").dispatchEvent(e);
  });
  await input.send("Input.insertText", { text: "你好" });
  await page.waitForTimeout(50);
  assert.equal(page.posts.length, 0);
  await page.keyboard.press("Enter");
  await finished(page);
  await until(() => page.posts.length === 1, "the second Enter to send");

  // Confirmed by an Enter that is reported after compositionend, as an ordinary key.
  await page.fill("#source", "");
  await page.evaluate(() => {
    const box = document.querySelector("#source");
    const key = (type) => box.dispatchEvent(new KeyboardEvent(type, { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true }));
    box.dispatchEvent(new CompositionEvent("compositionstart", { bubbles: true }));
    box.value = "明天见";
    box.dispatchEvent(new CompositionEvent("compositionend", { data: "明天见", bubbles: true }));
    key("keydown");
    key("keyup");
  });
  await page.waitForTimeout(50);
  assert.equal(page.posts.length, 1);
  assert.equal(await page.inputValue("#source"), "明天见");
  await page.keyboard.press("Enter");
  await until(() => page.posts.length === 2, "the next Enter to send");
  assert.equal(page.posts[1].text, "明天见");
  await finished(page);

  // Without an input method: Enter sends at once, Shift + Enter starts a line; Ctrl + Enter sends from anywhere.
  await page.fill("#source", "a");
  await page.keyboard.press("Shift+Enter");
  assert.equal(await page.inputValue("#source"), "a\n");
  assert.equal(page.posts.length, 2);
  await page.keyboard.press("Control+Enter");
  await finished(page);
  await page.focus("#temperature");
  await page.keyboard.press("Control+Enter");
  await until(() => page.posts.length === 4, "Ctrl + Enter to send");
  await page.context().close();
});

test("an empty box sends nothing", async () => {
  const page = await open(browser, server);
  await page.fill("#source", "  \n ");
  await page.click("#go");
  assert.equal(await page.textContent("#toast-text"), "请先写一句话");
  assert.equal(page.posts.length, 0);
  await page.context().close();
});

/** Answers the next rewrites with an error. */
function fail(page, status, code, headers = {}) {
  return page.route("**/v1/rewrite", (route) =>
    route.fulfill({
      status,
      headers,
      contentType: "application/json",
      body: JSON.stringify({ error: { message: `said by the server: ${code}`, type: "server_error", param: null, code } }),
    }),
  );
}

test("a busy server is told with its seconds, and retry works", async () => {
  const page = await open(browser, server);
  await fail(page, 429, "overloaded", { "Retry-After": "2" });
  await page.fill("#source", TEXT);
  await page.click("#go");
  await page.waitForSelector("#problem:not([hidden])");
  assert.equal(await page.textContent("#problem .problem-text"), "服务器正忙");
  assert.equal(await page.textContent("#problem .problem-advice"), "排队的请求太多，请在 2 秒后再试。");
  assert.equal(await page.textContent("#problem .problem-detail"), "said by the server: overloaded");
  assert.equal(await page.isDisabled("#go"), false);
  assert.equal(await page.locator(".card").count(), 0);
  assert.equal(await page.inputValue("#source"), TEXT);
  await page.click("#language");
  assert.equal(await page.textContent("#problem .problem-text"), "The server is busy");
  await page.unroute("**/v1/rewrite");
  await page.waitForFunction(() => document.querySelector(".problem-retry").textContent === "Retry");
  await page.click(".problem-retry");
  await finished(page);
  assert.equal(await page.isVisible("#problem"), false);
  assert.ok((await page.locator(".card").count()) > 0);
  await page.context().close();
});

test("every error has a sentence of its own in both languages, and keeps what was typed", async () => {
  const page = await open(browser, server);
  const codes = {
    invalid_json: 400, invalid_value: 400, input_too_long: 400, unauthorized: 401, forbidden_origin: 403, not_found: 404,
    model_not_found: 404, method_not_allowed: 405, request_timeout: 408, too_large: 413, unsupported_media_type: 415,
    no_usable_output: 422, overloaded: 429, internal: 500, loading: 503, draining: 503, deadline: 504,
  };
  const heads = { zh: new Set(), en: new Set() };
  await page.fill("#source", TEXT);
  for (const [code, status] of Object.entries(codes)) {
    await page.unroute("**/v1/rewrite");
    await fail(page, status, code);
    await page.click("#go");
    await page.waitForFunction((c) => document.querySelector("#problem .problem-detail").textContent.endsWith(`: ${c}`), code);
    for (const language of ["zh", "en"]) {
      const head = await page.textContent("#problem .problem-text");
      const advice = await page.textContent("#problem .problem-advice");
      const word = language === "zh" ? /[\u4e00-\u9fff]/ : /^[A-Z][^\u4e00-\u9fff]+$/;
      assert.match(head, word, code);
      assert.match(advice, word, code);
      heads[language].add(head);
      await page.click("#language");
    }
    assert.equal(await page.inputValue("#source"), TEXT);
  }
  // Only these pairs share one.
  assert.equal(heads.zh.size, Object.keys(codes).length - 2, [...heads.zh].join());
  assert.equal(heads.en.size, Object.keys(codes).length - 2);
  await page.context().close();
});

test("a server that goes away is told apart", async () => {
  const own = await Server.start(slowModel(), "--parallel", "2");
  const page = await open(browser, own);
  await makeEndless(page);
  await page.fill("#source", "abc");
  await page.click("#go");
  await page.waitForFunction(() => [...document.querySelectorAll(".card-text")].some((c) => c.textContent));
  await own.stop("SIGKILL");
  await page.waitForSelector("#problem:not([hidden])");
  assert.equal(await page.textContent("#problem .problem-text"), "回答中断了");
  await page.click(".problem-retry");
  await page.waitForFunction(() => document.querySelector("#problem .problem-text").textContent === "连不上服务器");
  assert.match(await page.textContent("#problem .problem-advice"), /inkstone serve/);
  assert.equal(await page.inputValue("#source"), "abc");

  // When it is there again, the page says so.
  await page.route("**/ready", (route) => route.fulfill({ status: 200, body: "" }));
  await page.waitForFunction(() => document.querySelector("#toast-text").textContent === "服务器已恢复");
  await page.context().close();
});

test("a page opened while the model loads comes to life by itself", async () => {
  const page = await browser.newPage();
  let loading = true;
  await page.route("**/v1/models", (route) =>
    loading
      ? route.fulfill({
          status: 503,
          contentType: "application/json",
          body: JSON.stringify({ error: { message: "still loading", type: "server_error", param: null, code: "loading" } }),
        })
      : route.continue(),
  );
  await page.goto(server.url);
  await page.waitForSelector("#problem:not([hidden])");
  loading = false;
  await page.waitForSelector("#problem", { state: "hidden" });
  await page.close();
});

test("a key is asked for once", async () => {
  const own = await Server.start(model(), "--api-key", "open-sesame");
  const page = await open(browser, own);
  await page.waitForSelector("#problem .key-form:not([hidden])");
  await page.fill("#problem-key", "wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#problem .key-form:not([hidden])");
  await page.fill("#problem-key", "open-sesame");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#problem", { state: "hidden" });
  await page.reload();
  await page.fill("#source", TEXT);
  await page.click("#go");
  await finished(page);
  assert.equal(await page.isVisible("#problem"), false);
  assert.ok((await page.locator(".card").count()) > 0);
  await page.context().close();
  assert.equal(await own.stop(), 0);
});

test("both languages say everything, and the choice is remembered", async () => {
  const page = await open(browser, server, { locale: "en-GB" });
  const words = () =>
    page.evaluate(() => {
      const out = [];
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      for (let n = walk.nextNode(); n; n = walk.nextNode())
        if (n.textContent.trim() && !n.parentElement.closest("script, [lang='zh-CN'], .seal")) out.push(n.textContent.trim());
      for (const name of ["aria-label", "placeholder", "title"])
        for (const el of document.querySelectorAll(`[${name}]`)) out.push(el.getAttribute(name));
      return out.filter((w) => w !== "");
    });

  const english = await words();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "en");
  for (const w of english) assert.doesNotMatch(w.replace("中文", ""), /[\u4e00-\u9fff]/, w);
  await page.click("#language");
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
  const allowed = /^(Inkstone|English|Top-p|CSV|JSON Lines|[\d.]+|.*[\u4e00-\u9fff].*)$/;
  for (const w of await words()) assert.match(w, allowed);
  assert.equal(await page.locator("[data-t]:empty").count(), 0);
  await page.reload();
  assert.equal(await page.textContent("#go-text"), "开始改写");
  await page.context().close();
});

test("phone width needs no sideways scrolling, in either language and mode", async () => {
  for (const locale of ["zh-CN", "en-US"]) {
    const page = await open(browser, server, { width: 360, height: 740, locale });
    const fits = async () => {
      const wide = await page.evaluate(() => {
        const out = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest(".offscreen, .skip"));
        return out.filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 80));
      });
      assert.deepEqual(wide, []);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
    };
    await fits();
    await page.fill("#source", "一二三四五六七八九十abcdefghijklmnopqrstuvwxyz".repeat(3));
    await page.locator("#count").fill("5");
    await page.click("#go");
    await finished(page);
    await page.click("#details summary");
    await fits();
    assert.ok(await page.evaluate(() => document.querySelector("#results").getBoundingClientRect().top < innerHeight));
    await page.click("#mode button:nth-child(2)");
    await fits();
    await page.click("#history-open");
    await fits();
    await page.context().close();
  }
});

test("keyboard alone is enough, and changes are announced", async () => {
  const page = await open(browser, server);
  await page.focus("#presets button[aria-checked=true]");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.textContent("#presets button[aria-checked=true]"), "默认");
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.textContent("#count-value"), "4");
  await page.focus("#source");
  await page.keyboard.type(TEXT);
  await page.keyboard.press("Enter");
  await finished(page);
  assert.equal(page.posts[0].temperature, 1);
  assert.equal(page.posts[0].n, 4);
  assert.equal(await page.getAttribute("#status", "aria-live"), "polite");
  assert.equal(await page.getAttribute("#problem .problem-said", "role"), "alert");
  await until(async () => /候选 \d：/.test(await page.textContent("#announcer")), "finished candidates to be announced");
  await page.context().close();
});
