// Batch mode: lines from a box or a file, their progress, their results.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { launch, model, open, Server, until } from "./browser.mjs";

let browser, server;

before(async () => {
  browser = await launch();
  server = await Server.start(model());
});

after(async () => {
  await browser?.close();
  assert.equal(await server?.stop(), 0);
});

const idle = (page) => page.waitForFunction(() => document.querySelector("#batch-form").getAttribute("aria-busy") === "false");

async function openBatch(options = {}) {
  const page = await open(browser, server, options);
  page.calls = []; // the texts of each batch call
  await page.click("#mode button:nth-child(2)");
  return page;
}

/** Answers batch calls itself: "坏" fails, all others get two rewrites. `answer` may answer otherwise. */
async function answerBatches(page, answer = () => undefined) {
  await page.route("**/v1/rewrite/batch", (route) => {
    const request = route.request();
    const lines = request.postData().trim().split("\n").map((l) => JSON.parse(l));
    page.calls.push(lines);
    assert.equal(request.headers()["content-type"], "application/x-ndjson");
    assert.equal(request.headers()["accept"], "application/x-ndjson");
    const other = answer(page.calls.length, lines);
    if (other) return route.fulfill(other);
    const results = lines.map(({ text }, index) =>
      text.includes("坏")
        ? { index, error: { message: `text: bad line ${index}`, type: "invalid_request_error", param: "text", code: "invalid_value" } }
        : { index, rewrites: ["甲", "乙"].map((t, i) => ({ index: i, text: `${text}${t}`, finish_reason: "stop", score: -1 })), seed: 1 },
    );
    const failed = results.filter((r) => r.error).length;
    const body = [...results.reverse(), { done: true, ok: lines.length - failed, failed }].map((r) => `${JSON.stringify(r)}\n`).join("");
    return route.fulfill({ status: 200, contentType: "application/x-ndjson", body });
  });
}

async function save(page, button) {
  const [file] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
}

const file = (name, content) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(content) });

test("pasted lines are rewritten, failed ones are shown, results are downloaded", async () => {
  const page = await openBatch();
  await answerBatches(page);
  await page.click("#batch-go");
  assert.equal(await page.textContent("#toast-text"), "请先粘贴文字或载入文件");
  await page.fill("#lines", "第一句\n\n  坏的一句 \n第三句\n");
  assert.equal(await page.textContent("#line-counter"), "3 行");
  await page.focus("#lines");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent.startsWith("全部完成"));
  assert.deepEqual(page.calls[0][0], { text: "第一句", n: 3, temperature: 0.8, top_p: 0.9, max_tokens: 64 });
  assert.deepEqual(page.calls[0].map((l) => l.text), ["第一句", "坏的一句", "第三句"]);

  assert.equal(await page.textContent("#batch-facts"), "3 / 3 行");
  assert.equal(await page.textContent("#batch-ok"), "成功 2");
  assert.equal(await page.textContent("#batch-failed"), "失败 1");
  assert.equal(await page.getAttribute("#batch-bar", "aria-valuenow"), "3");
  const rows = () => page.locator("#batch-rows tr").allTextContents();
  assert.deepEqual(await rows(), ["1第一句第一句甲第一句乙", "3坏的一句text: bad line 1", "4第三句第三句甲第三句乙"]);
  await page.click("#show-failed");
  assert.deepEqual(await rows(), ["3坏的一句text: bad line 1"]);

  const [csvName, csv] = await save(page, "#save-csv");
  assert.match(csvName, /^inkstone-batch-[\d-]+\.csv$/);
  assert.equal(csv, "\ufefftext,rewrite_1,rewrite_2,error\r\n第一句,第一句甲,第一句乙,\r\n坏的一句,,,text: bad line 1\r\n第三句,第三句甲,第三句乙,\r\n");
  const [, jsonl] = await save(page, "#save-jsonl");
  assert.deepEqual(jsonl.trim().split("\n").map((l) => JSON.parse(l))[1], { index: 1, text: "坏的一句", error: "text: bad line 1" });
  await page.context().close();
});

test("of a table one column is rewritten, the others are kept", async () => {
  const page = await openBatch();
  await answerBatches(page);
  await page.setInputFiles("#file", file("评价.csv", '编号,评论,备注\r\n1,"很好，""真的""很好",\r\n2,,空的\r\n3,"两行\n一句",x\r\n'));
  assert.equal(await page.textContent("#file-name"), "评价.csv");
  assert.equal(await page.locator("#column option:checked").textContent(), "评论");
  assert.equal(await page.isChecked("#header-row"), true);
  assert.equal(await page.textContent("#line-counter"), "2 行");
  await page.click("#batch-go");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent.startsWith("全部完成"));
  assert.deepEqual(page.calls[0].map((l) => l.text), ['很好，"真的"很好', "两行\n一句"]);
  const [name, csv] = await save(page, "#save-csv");
  assert.equal(name, "评价-rewritten.csv");
  assert.equal(
    csv,
    '\ufeff编号,评论,备注,rewrite_1,rewrite_2,error\r\n1,"很好，""真的""很好",,"很好，""真的""很好甲","很好，""真的""很好乙",\r\n' +
      '2,,空的,,,\r\n3,"两行\n一句",x,"两行\n一句甲","两行\n一句乙",\r\n',
  );
  const [, jsonl] = await save(page, "#save-jsonl");
  assert.deepEqual(JSON.parse(jsonl.split("\n")[1]), {
    编号: "3", 评论: "两行\n一句", 备注: "x", index: 1, text: "两行\n一句", rewrites: ["两行\n一句甲", "两行\n一句乙"],
  });

  // Another column, then no header at all.
  await page.selectOption("#column", { label: "备注" });
  assert.equal(await page.textContent("#line-counter"), "2 行");
  await page.uncheck("#header-row");
  assert.equal(await page.textContent("#line-counter"), "3 行");
  assert.equal(await page.locator("#column option").first().textContent(), "第 1 列");
  await page.click("#remove-file");
  assert.equal(await page.isVisible("#lines"), true);
  await page.context().close();
});

test("files of other kinds, dropped and in other encodings", async () => {
  const page = await openBatch();
  await page.click("#mode button:nth-child(1)");
  const drop = (name, bytes) =>
    page.evaluate(([n, b]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(b)], n));
      for (const type of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
    }, [name, [...bytes]]);
  const count = () => page.textContent("#line-counter");

  await drop("句子.txt", Buffer.from([0xc4, 0xe3, 0xba, 0xc3, 0x0a, 0xd4, 0xd9, 0xbc, 0xfb])); // 你好 再见 in GB18030
  await until(async () => (await count()) === "2 行", "the dropped text");
  assert.equal(await page.isVisible("#batch-form"), true);
  await answerBatches(page);
  await page.click("#batch-go");
  await until(() => page.calls.length === 1, "the call");
  assert.deepEqual(page.calls[0].map((l) => l.text), ["你好", "再见"]);
  await idle(page);

  await drop("a.jsonl", Buffer.from('{"id":1,"text":"一"}\n\n"二"\n{"id":3}\n'));
  await until(async () => (await page.textContent("#file-name")) === "a.jsonl", "the dropped objects");
  assert.equal(await count(), "2 行");
  await page.click("#batch-go");
  await until(() => page.calls.length === 2, "the call");
  await idle(page);
  const [, jsonl] = await save(page, "#save-jsonl");
  assert.deepEqual(JSON.parse(jsonl.split("\n")[0]), { id: 1, text: "一", index: 0, rewrites: ["一甲", "一乙"] });

  for (const [name, content, told] of [
    ["a.jsonl", '{"text":"一"}\n[1]\n', "第 2 行不是 JSON 字符串或对象"],
    ["a.xlsx", "PK", "不认识这种文件。可以用 .txt、.csv、.tsv 或 .jsonl"],
    ["a.txt", "\n\n", "文件里没有可以改写的行"],
    ["a.txt", "\0\0", "不认识这种文件。可以用 .txt、.csv、.tsv 或 .jsonl"],
  ]) {
    await drop(name, Buffer.from(content));
    await until(async () => (await page.textContent("#toast-text")) === told, told);
  }
  assert.equal(await page.textContent("#file-name"), "a.jsonl");
  await page.context().close();
});

test("a long file goes in several calls, waits for a busy server, and goes on after an interruption", async () => {
  const page = await openBatch();
  let mode = "busy";
  await answerBatches(page, (call) => {
    if (call === 2 && mode === "busy") {
      mode = "gone";
      return { status: 429, headers: { "Retry-After": "1" }, contentType: "application/json",
               body: JSON.stringify({ error: { message: "busy", code: "overloaded" } }) };
    }
    if (call === 3 && mode === "gone") {
      // Ten results, then the connection breaks.
      const results = Array.from({ length: 10 }, (_, index) => ({ index, rewrites: [{ index: 0, text: "好" }] }));
      return { status: 200, contentType: "application/x-ndjson", body: results.map((r) => `${JSON.stringify(r)}\n`).join("") };
    }
    return undefined;
  });
  await page.setInputFiles("#file", file("long.txt", Array.from({ length: 1100 }, (_, i) => `第${i}句\n`).join("")));
  await page.click("#batch-go");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent === "服务器正忙，1 秒后继续");
  await page.waitForSelector("#batch-problem:not([hidden])");
  assert.equal(await page.textContent("#batch-problem .problem-text"), "回答中断了");
  assert.equal(await page.textContent("#batch-status"), "中断了，完成了 510 行");
  mode = "well";
  await page.click("#batch-problem .problem-retry");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent.startsWith("全部完成"));
  assert.deepEqual(page.calls.map((c) => c.length), [500, 500, 500, 500, 90]);
  assert.equal(page.calls[3][0].text, "第510句");
  assert.equal(await page.textContent("#batch-facts"), "1100 / 1100 行");
  assert.equal(await page.locator("#batch-rows tr").count(), 200);
  assert.equal(await page.isVisible("#rows-note"), true);
  const [, csv] = await save(page, "#save-csv");
  assert.equal(csv.trim().split("\r\n").length, 1101);
  await page.context().close();
});

test("a batch can be cancelled and continued", async () => {
  const page = await openBatch();
  await page.route("**/v1/rewrite/batch", () => {}); // never answers
  await page.fill("#lines", "一\n二");
  await page.evaluate(() => {
    for (let i = 0; i < 3; i++) document.querySelector("#batch-go").click();
  });
  assert.equal(await page.isDisabled("#batch-go"), true);
  await page.click("#batch-cancel");
  await idle(page);
  assert.equal(await page.textContent("#batch-status"), "已取消，完成了 0 行");
  assert.equal(await page.isVisible("#batch-problem"), false);
  await page.unroute("**/v1/rewrite/batch");
  await answerBatches(page);
  await page.click("#batch-continue");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent.startsWith("全部完成"));
  assert.equal(page.calls.length, 1);

  // Escape does it, too; both languages have the words.
  await page.unroute("**/v1/rewrite/batch");
  await page.route("**/v1/rewrite/batch", () => {});
  await page.click("#batch-go");
  await page.keyboard.press("Escape");
  await idle(page);
  await page.click("#language");
  assert.equal(await page.textContent("#batch-status"), "Cancelled after 0 lines");
  assert.equal(await page.textContent("#batch-continue"), "Go on with 2 lines");
  await page.context().close();
});

test("the server's own batch route does it", async (t) => {
  const there = await fetch(`${server.url}/v1/rewrite/batch`, {
    method: "POST", headers: { "Content-Type": "application/x-ndjson", Accept: "application/x-ndjson" }, body: '{"text":"你好。"}\n',
  });
  await there.text();
  if (there.status === 404) return t.skip("this server has no batch route");
  const page = await openBatch();
  const long = "好".repeat(9000);
  await page.fill("#lines", `这家餐厅的味道非常好。\n${long}\n明天早上九点见面。`);
  await page.click("#batch-go");
  await page.waitForFunction(() => document.querySelector("#batch-status").textContent.startsWith("全部完成"));
  assert.equal(await page.textContent("#batch-ok"), "成功 2");
  assert.equal(await page.textContent("#batch-failed"), "失败 1");
  await page.context().close();
});
