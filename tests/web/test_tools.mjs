// What is around a rewrite: undo, differences, history, export, encoding ahead, options.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { finished, launch, model, open, Server, until } from "./browser.mjs";

const TEXT = "这家餐厅的味道非常好，服务也很周到。";
let browser, server;

before(async () => {
  browser = await launch();
  server = await Server.start(model());
});

after(async () => {
  await browser?.close();
  assert.equal(await server?.stop(), 0);
});

/** Answers rewrites itself, with these texts. */
async function answerWith(page, texts) {
  await page.route("**/v1/rewrite", (route) => {
    const rewrites = texts.map((text, index) => ({ index, text, finish_reason: "stop", score: -0.5 }));
    const timings = { queue_ms: 1, tokenize_ms: 1, encode_ms: 1, first_token_ms: 1, decode_ms: 1, other_ms: 0, total_ms: 5 };
    const done = { type: "done", id: "r", model: "m", rewrites, seed: 7, usage: { input_tokens: 1, output_tokens: 1 },
                   timings, cache: "miss", device: "cpu", truncated: null, warnings: [] };
    const events = [...rewrites.map((c) => ({ type: "candidate", ...c })), done];
    return route.fulfill({
      status: 200,
      contentType: "text/event-stream",
      body: events.map((e, i) => `id: ${i}\ndata: ${JSON.stringify(e)}\n\n`).join("") + "data: [DONE]\n\n",
    });
  });
}

async function rewrite(page, text) {
  await page.fill("#source", text);
  await page.click("#go");
  await finished(page);
}

async function openDialog(page, button, dialog) {
  await page.click(button);
  await page.waitForSelector(`${dialog}[open]`);
}

const openHistory = (page) => openDialog(page, "#history-open", "#history");
const openExport = (page) => openDialog(page, "#export", "#export-dialog");

const card = (page, i) => page.locator(".card").nth(i);

test("a candidate can be copied, used and taken back, several times over", async () => {
  const page = await open(browser, server);
  await answerWith(page, ["甲", "乙", "丙"]);
  await rewrite(page, TEXT);
  await card(page, 1).getByText("复制").click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "乙");
  await page.click("#copy-all");
  await until(async () => (await page.evaluate(() => navigator.clipboard.readText())) === "甲\n乙\n丙", "all to be copied");

  assert.equal(await page.isDisabled("#undo"), true);
  for (const i of [0, 1, 2]) await card(page, i).getByText("采用").click();
  assert.equal(await page.inputValue("#source"), "丙");
  await page.click("#toast-undo");
  assert.equal(await page.inputValue("#source"), "乙");
  await page.click("#undo");
  assert.equal(await page.inputValue("#source"), "甲");
  await page.click("#undo");
  assert.equal(await page.inputValue("#source"), TEXT);
  assert.equal(await page.isDisabled("#undo"), true);
  await page.context().close();
});

test("again draws anew past the cache, with the options of now", async () => {
  const page = await open(browser, server);
  await rewrite(page, TEXT);
  await page.click("#presets button:nth-child(4)");
  await page.click("#again");
  await finished(page);
  await until(() => page.posts.length === 2, "the second request");
  assert.equal(page.posts[1].cache, "refresh");
  assert.equal(page.posts[1].seed, undefined);
  assert.equal(page.posts[1].text, TEXT);
  assert.equal(page.posts[1].temperature, 1.2);
  await page.context().close();
});

test("a preset sets the temperature, and a slider moved by hand leaves none chosen", async () => {
  const page = await open(browser, server);
  const chosen = () => page.locator('#presets [aria-checked="true"]').allTextContents();
  const wanted = { 严谨改写: "0.50", 通用增强: "0.80", 默认: "1.00", 创意: "1.20", 实验: "1.50" };
  for (const [name, value] of Object.entries(wanted)) {
    await page.click(`#presets button:text-is("${name}")`);
    assert.equal(await page.textContent("#temperature-value"), value);
    assert.deepEqual(await chosen(), [name]);
  }
  await page.locator("#temperature").fill("1");
  assert.deepEqual(await chosen(), []);
  await page.reload();
  assert.deepEqual(await chosen(), []);
  assert.equal(await page.textContent("#temperature-value"), "1.00");
  await page.context().close();
});

test("differences to the source are marked word by word", async () => {
  const page = await open(browser, server);
  await answerWith(page, ["这家餐馆的味道很好，服务也很周到。", TEXT]);
  await rewrite(page, TEXT);
  assert.equal(await page.locator("ins, del").count(), 0);
  await page.click("#compare");
  await page.waitForSelector(".card ins");
  const parts = await card(page, 0).locator(".card-text").evaluate((el) =>
    [...el.childNodes].map((n) => [n.nodeName.toLowerCase(), n.textContent]),
  );
  const side = (skip) => parts.filter(([kind]) => kind !== skip).map(([, text]) => text).join("");
  assert.equal(side("ins"), TEXT);
  assert.equal(side("del"), "这家餐馆的味道很好，服务也很周到。");
  assert.ok(parts.some(([kind, text]) => kind === "del" && text.includes("餐厅")), JSON.stringify(parts));
  assert.ok(parts.some(([kind, text]) => kind === "#text" && text.includes("服务也很周到。")), JSON.stringify(parts));
  assert.equal(await card(page, 1).locator("ins, del").count(), 0);
  assert.equal(await card(page, 1).locator(".card-note").textContent(), "与原文相同");
  await page.click("#compare");
  await page.waitForFunction(() => !document.querySelector(".card ins"));
  await page.context().close();
});

test("history is kept, searched, restored and deleted", async () => {
  const page = await open(browser, server);
  const entries = () => page.locator("#history .entry");
  await openHistory(page);
  assert.equal(await page.isVisible("#history-empty"), true);
  await page.keyboard.press("Escape");

  await answerWith(page, ["天气很好", "天气不错"]);
  await page.locator("#count").fill("2");
  await rewrite(page, "今天天气好");
  await card(page, 1).locator(".star").click();
  await page.unroute("**/v1/rewrite");
  await answerWith(page, ["一会儿见"]);
  await rewrite(page, "待会儿见");

  await page.reload();
  await openHistory(page);
  assert.equal(await entries().count(), 2);
  assert.match(await entries().first().textContent(), /待会儿见/);
  await page.fill("#history-search", "不错");
  assert.equal(await entries().count(), 1);
  await page.fill("#history-search", "没有这句");
  assert.equal(await page.isVisible("#history-nothing"), true);
  await page.fill("#history-search", "");
  await page.check("#history-starred");
  assert.equal(await entries().count(), 1);
  await entries().first().getByText("恢复").click();
  assert.equal(await page.inputValue("#source"), "今天天气好");
  assert.deepEqual(await page.locator(".card-text").allTextContents(), ["天气很好", "天气不错"]);
  assert.equal(await card(page, 1).locator(".star").getAttribute("aria-pressed"), "true");

  await openHistory(page);
  await page.uncheck("#history-starred");
  await entries().first().getByText("删除").click();
  await until(async () => (await entries().count()) === 1, "one to be deleted");
  await page.click("#history-clear");
  assert.equal(await page.textContent("#history-clear"), "确定删除全部 1 条？");
  await page.click("#history-clear");
  await until(async () => (await entries().count()) === 0, "all to be deleted");
  await page.uncheck("#history-keep");
  await page.click("#history-close");
  await rewrite(page, "待会儿见");
  await openHistory(page);
  assert.equal(await entries().count(), 0);
  await page.context().close();
});

test("history is bounded, and what was kept goes last", async () => {
  const page = await open(browser, server);
  await openHistory(page); // which makes the database
  await page.keyboard.press("Escape");
  await page.evaluate(async () => {
    const db = await new Promise((resolve) => {
      const opening = indexedDB.open("inkstone", 1);
      opening.onsuccess = () => resolve(opening.result);
    });
    const store = db.transaction("rewrites", "readwrite").objectStore("rewrites");
    const options = { n: 1, temperature: 1, top_p: 0.9, max_tokens: 64 };
    for (let i = 0; i < 510; i++)
      store.add({ time: i, text: `句子${i}`, options, model: "m", seed: 1, rewrites: [{ text: "x", score: 0, starred: i === 0 }] });
    await new Promise((resolve) => (store.transaction.oncomplete = resolve));
    db.close();
  });
  await answerWith(page, ["新的"]);
  await rewrite(page, "旧的");
  await openHistory(page);
  assert.equal(await page.textContent("#history-count"), "500 条");
  assert.equal(await page.textContent("#history-more"), "还有 400 条，请搜索缩小范围");
  await page.check("#history-starred");
  assert.match(await page.textContent("#history-list"), /句子0/);
  await page.context().close();
});

test("results are exported as text, CSV and JSON Lines", async () => {
  const page = await open(browser, server);
  const save = async (format) => {
    await page.check(`#export-form input[value="${format}"]`);
    const [file] = await Promise.all([page.waitForEvent("download"), page.click("#export-save")]);
    assert.match(file.suggestedFilename(), new RegExp(`^inkstone-[\\d-]+\\.${format}$`));
    return readFileSync(await file.path(), "utf8");
  };
  await answerWith(page, ['他说：“好”，"行",走', "乙"]);
  await rewrite(page, TEXT);
  await card(page, 1).locator(".star").click();

  await openExport(page);
  assert.equal(await page.textContent("#export-count"), "共 2 条改写");
  assert.equal(await save("txt"), '他说：“好”，"行",走\n乙\n');
  await openExport(page);
  const csv = await save("csv");
  assert.ok(csv.startsWith("\ufeffsource,rewrite,starred,score,model,temperature,top_p,seed,time\r\n"));
  assert.ok(csv.includes(`${TEXT},"他说：“好”，""行"",走",false,-0.5,m,0.8,0.9,7,`), csv);
  await openExport(page);
  await page.check('#export-form input[value="starred"]');
  const lines = (await save("jsonl")).trim().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(lines.map((l) => [l.source, l.rewrite, l.starred]), [[TEXT, "乙", true]]);
  await page.context().close();
});

test("the text is encoded ahead after a pause and on leaving the box, and a new edit aborts the older call", async () => {
  const page = await open(browser, server);
  let answer = "hold";
  const aborted = [];
  page.on("requestfailed", (r) => r.url().endsWith("/prepare") && aborted.push(r.postDataJSON().text));
  await page.route("**/v1/rewrite/prepare", (route) =>
    answer === "hold" ? undefined : route.fulfill({ status: 202, contentType: "application/json", body: '{"state":"ready"}' }),
  );
  const texts = () => page.prepared.map((p) => p.text);

  await page.focus("#source");
  await page.keyboard.type("一二三", { delay: 20 });
  await until(() => texts().length === 1, "the first call");
  assert.deepEqual(page.prepared[0], { text: "一二三" });
  await page.keyboard.type("四");
  await until(() => aborted.length === 1, "the first call to be aborted");
  await until(() => texts().length === 2, "the second call");
  assert.deepEqual([texts(), aborted], [["一二三", "一二三四"], ["一二三"]]);

  answer = "ready";
  await page.keyboard.type("五");
  await page.focus("#temperature");
  await until(() => texts().length === 3, "the call on leaving");
  assert.equal(texts()[2], "一二三四五");
  await page.waitForTimeout(400);
  assert.equal(texts().length, 3);

  // A server that refuses or doesn't know it changes nothing.
  await page.unroute("**/v1/rewrite/prepare");
  await page.route("**/v1/rewrite/prepare", (route) => route.fulfill({ status: 404, body: "" }));
  await page.fill("#source", TEXT);
  await until(() => texts().length === 4, "the call that fails");
  assert.equal(await page.isVisible("#problem"), false);
  await page.fill("#source", `${TEXT}好`);
  await page.waitForTimeout(400);
  assert.equal(texts().length, 4);
  await page.click("#go");
  await finished(page);
  assert.equal(await page.isVisible("#problem"), false);
  await page.context().close();
});

test("what was typed survives a reload, and the theme is remembered", async () => {
  const page = await open(browser, server, { dark: true });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.fill("#source", "写到一半");
  const dark = await paper();
  await page.click("#theme");
  assert.equal(await page.getAttribute("#theme", "aria-label"), "主题：浅色");
  const light = await paper();
  assert.notEqual(light, dark);
  await page.reload();
  assert.equal(await page.inputValue("#source"), "写到一半");
  assert.equal(await paper(), light);
  await page.click("#theme");
  assert.equal(await paper(), dark);
  await page.click("#theme");
  assert.equal(await page.getAttribute("#theme", "aria-label"), "主题：跟随系统");
  await page.context().close();
});
