// What the page costs: bytes, click to first text, rendering while five candidates are written, movement; and pictures
// of it, left in the build folder's screenshots/.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { finished, launch, model, open, screenshots, Server } from "./browser.mjs";

const TEXT = "这家餐厅的味道非常好，服务也很周到。";
const FIRST_TEXT_MS = 300;
const UPDATE_MS = 16;
const PAGE_BYTES = 150_000;
const instrumented = Boolean(process.env.INKSTONE_SANITIZE); // then the server's times are not the product's
let browser, server;

before(async () => {
  browser = await launch();
  server = await Server.start(model());
});

after(async () => {
  await browser?.close();
  assert.equal(await server?.stop(), 0);
});

const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];

test("the whole page is small", async () => {
  const page = await open(browser, server);
  const paths = new Set(page.asked.filter((u) => !u.includes("/v1/")));
  for (const extra of ["/favicon.svg", "/star.svg", "/star-filled.svg"]) paths.add(server.url + extra);
  let plain = 0;
  let packed = 0;
  for (const url of paths) {
    const answer = await fetch(url);
    assert.equal(answer.status, 200, url);
    const body = Buffer.from(await answer.arrayBuffer());
    plain += body.length;
    packed += gzipSync(body).length;
  }
  console.log(`page: ${paths.size} files, ${plain} bytes, ${packed} compressed`);
  assert.ok(packed < PAGE_BYTES);
  await page.context().close();
});

test("click to the first text", async () => {
  const page = await open(browser, server);
  const first = [];
  const all = [];
  await page.evaluate(() => {
    document.querySelector("#go").addEventListener("click", () => {
      const start = performance.now();
      window.times = { first: 0, all: 0 };
      const seen = new MutationObserver(() => {
        const text = [...document.querySelectorAll(".card-text")].some((c) => c.textContent !== "");
        if (!text) return;
        if (!window.times.first) requestAnimationFrame(() => (window.times.first ||= performance.now() - start));
        if (document.querySelector("#go").disabled) return;
        window.times.all = performance.now() - start;
        seen.disconnect();
      });
      seen.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    }, true);
  });
  for (let i = 0; i < 5; i++) {
    await page.fill("#source", `${TEXT.slice(0, -1)}，一共来了${i + 2}次。`);
    await page.waitForTimeout(350);
    await page.click("#go");
    await finished(page);
    await page.waitForFunction(() => window.times.all > 0 && window.times.first > 0);
    const times = await page.evaluate(() => window.times);
    first.push(Math.round(times.first));
    all.push(Math.round(times.all));
  }
  console.log(`click to first text ${first.join(" ")} ms, median ${median(first)}; to all candidates ${all.join(" ")} ms, median ${median(all)}`);
  assert.ok(instrumented || median(first) < FIRST_TEXT_MS, `${median(first)} ms`);
  await page.context().close();
});

/** A server inside the page: each call of window.step() sends the next token of each of five candidates. */
function fakeStream() {
  const real = window.fetch;
  window.tokens = 200;
  window.updates = [];
  const frame = (window.frame = window.requestAnimationFrame.bind(window));
  window.requestAnimationFrame = (callback) =>
    frame((now) => {
      const start = performance.now();
      callback(now);
      document.body.getBoundingClientRect(); // style and layout, too
      window.updates.push(performance.now() - start);
    });
  window.fetch = (url, init) => {
    if (!String(url).endsWith("/v1/rewrite")) return real(url, init);
    const encoder = new TextEncoder();
    const texts = ["", "", "", "", ""];
    let at = 0;
    let send;
    const body = new ReadableStream({ start: (c) => (send = c) });
    const event = (data) => send.enqueue(encoder.encode(`id: 1\ndata: ${JSON.stringify(data)}\n\n`));
    window.step = () => {
      if (at++ < window.tokens) {
        for (let index = 0; index < 5; index++) {
          const text = at % 12 === 0 ? "，" : "改写句子的一个词"[at % 8];
          texts[index] += text;
          event({ type: "delta", index, text });
        }
        return true;
      }
      const rewrites = texts.map((text, index) => ({ index, text, finish_reason: "stop", score: -1 }));
      for (const c of rewrites) event({ type: "candidate", ...c });
      event({ type: "done", id: "r", model: "m", rewrites, seed: 1, usage: { input_tokens: 9, output_tokens: 1000 },
              timings: { queue_ms: 0, tokenize_ms: 0, encode_ms: 1, first_token_ms: 1, decode_ms: 1, other_ms: 0, total_ms: 3 },
              cache: "miss", device: "cpu", truncated: null, warnings: [] });
      send.close();
      return false;
    };
    return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
  };
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifts.push({ value: e.value, on: e.sources.map((s) => s.node?.id || s.node?.className || `${s.node?.nodeName} in ${s.node?.parentElement?.className}`) });
  }).observe({ type: "layout-shift", buffered: true });
}

/** Five candidates of 200 tokens, a token each a frame: how long the updates took, and what moved. */
async function writeFive(width, source) {
  const page = await open(browser, server, { width, height: 900, before: fakeStream });
  await page.waitForFunction(() => document.querySelector("#notice").textContent !== "");
  await page.waitForTimeout(100);
  assert.deepEqual(await page.evaluate(() => window.shifts), [], "while loading");
  await page.locator("#count").fill("5");
  await page.fill("#source", source); // the box grows; a person's key press would explain that to the browser
  await page.waitForTimeout(100);
  await page.evaluate(() => (window.shifts = []));
  await page.click("#go");
  await page.waitForFunction(() => window.step);
  await page.waitForTimeout(width < 500 ? 900 : 600); // what follows is no longer the click's doing
  await page.evaluate(async () => {
    window.updates = [];
    do await new Promise((resolve) => setTimeout(() => window.frame(resolve), 0));
    while (window.step());
  });
  await finished(page);
  await page.waitForFunction(() => document.querySelectorAll('.card[data-state="done"]').length === 5);
  assert.equal((await page.locator(".card-text").first().textContent()).length, 200);
  const { updates, shifts } = await page.evaluate(() => ({ updates: window.updates, shifts: window.shifts }));
  await page.context().close();

  const sorted = [...updates].sort((a, b) => a - b);
  const p95 = sorted[Math.floor(sorted.length * 0.95)];
  const moved = shifts.reduce((sum, s) => sum + s.value, 0);
  console.log(
    `${width} px: ${updates.length} updates, median ${median(updates).toFixed(1)} ms, 95 % ${p95.toFixed(1)} ms, ` +
      `longest ${sorted.at(-1).toFixed(1)} ms; layout shift ${moved}`,
  );
  assert.equal(moved, 0, JSON.stringify(shifts));
  return p95;
}

test("five candidates of 200 tokens are written without a jerk and without moving anything", async () => {
  for (const [width, source] of [[1280, TEXT], [375, TEXT.repeat(4)]]) {
    // Another program may hold the processor for some of the updates: up to three tries.
    let p95 = Infinity;
    for (let i = 0; i < 3 && p95 >= UPDATE_MS; i++) p95 = await writeFive(width, source);
    assert.ok(p95 < UPDATE_MS, `${p95} ms`);
  }
});

const results = (lines) =>
  lines.map(({ text }, index) =>
    index % 6 === 4
      ? { index, error: { message: "text: 1204 tokens; at most 512", type: "invalid_request_error", param: "text", code: "input_too_long" } }
      : { index, rewrites: ["特别", "十分", "很"].map((w, i) => ({ index: i, text: text.replace("非常", w), finish_reason: "stop", score: -0.3 })), seed: 1 },
  );

/** Batch results that don't depend on the model. */
async function fakeBatch(page) {
  await page.route("**/v1/rewrite/batch", (route) => {
    const all = results(route.request().postData().trim().split("\n").map((l) => JSON.parse(l)));
    return route.fulfill({
      status: 200,
      contentType: "application/x-ndjson",
      body: [...all, { done: true }].map((r) => `${JSON.stringify(r)}\n`).join(""),
    });
  });
  await page.click("#mode button:nth-child(2)");
  const rows = Array.from({ length: 12 }, (_, i) => `${i + 1},这是第${i + 1}次来，味道非常好。,5`);
  await page.setInputFiles("#file", { name: "评论.csv", mimeType: "text/csv", buffer: Buffer.from(`编号,评论,评分\n${rows.join("\n")}\n`) });
  await page.click("#batch-go");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent !== "" && !document.querySelector("#batch-go").disabled);
}

async function rewritten(page) {
  await page.fill("#source", TEXT);
  await page.click("#go");
  await finished(page);
}

test("pictures in both languages, dark and light, at desk and phone width", async () => {
  const phone = { width: 375, height: 812 };
  const zh = { locale: "zh-CN" };
  const en = { locale: "en-US" };
  const dark = { dark: true };
  const pictures = {
    "rewrite-zh": [zh, rewritten],
    "rewrite-en-dark": [{ ...en, ...dark }, async (page) => {
      await rewritten(page);
      await page.click("#compare");
      await page.click("#details summary");
    }],
    "empty-en": [en, async () => {}],
    "phone-zh": [{ ...zh, ...phone }, rewritten],
    "phone-en-dark": [{ ...en, ...phone, ...dark }, rewritten],
    "error-zh": [zh, async (page) => {
      await page.route("**/v1/rewrite", (route) =>
        route.fulfill({ status: 429, headers: { "Retry-After": "7" }, contentType: "application/json",
                        body: JSON.stringify({ error: { message: "256 jobs are waiting", code: "overloaded" } }) }));
      await rewritten(page);
    }],
    "batch-zh": [zh, fakeBatch],
    "batch-en-dark": [{ ...en, ...dark }, fakeBatch],
    "batch-phone-zh": [{ ...zh, ...phone }, fakeBatch],
    "history-zh": [zh, async (page) => {
      await rewritten(page);
      await page.locator(".card .star").first().click();
      await page.click("#history-open");
    }],
  };
  for (const [name, [options, prepare]] of Object.entries(pictures)) {
    const page = await open(browser, server, options);
    await prepare(page);
    await page.waitForTimeout(200);
    await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: !name.startsWith("history") });
    await page.context().close();
  }
});
