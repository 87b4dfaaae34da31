// What the page's tests share: a server, a browser, and pages whose requests and console are watched.
//
// Where things are comes from the environment that CTest sets (tests/CMakeLists.txt); without it, from ../../build.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const env = process.env;
export const root = env.INKSTONE_SOURCE_DIR || dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const build = env.INKSTONE_BUILD_DIR || join(root, "build");
const program = env.INKSTONE || join(build, "inkstone");
const assets = env.INKSTONE_ASSETS || join(root, ".deps", "assets");
const { chromium } = createRequire(join(root, "web", "package.json"))("playwright-core");

export const folder = mkdtempSync(join(tmpdir(), "inkstone-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const screenshots = join(build, "screenshots");
mkdirSync(screenshots, { recursive: true });

const home = () => ({ ...env, HOME: folder, INKSTONE_MODELS: "", XDG_DATA_HOME: "", XDG_CACHE_HOME: "" });

let madeUp = "";

/** A model with random weights: it hardly ever ends a text by itself, so that there is time to look. */
export function slowModel() {
  if (env.INKSTONE_TEST_MODEL) return env.INKSTONE_TEST_MODEL;
  if (!madeUp) {
    execFileSync(join(build, "tests", "make_checkpoint"), ["tiny", join(assets, "t5.spiece.model"), join(folder, "tiny")]);
    execFileSync(program, ["import", join(folder, "tiny"), "-o", join(folder, "tiny.gguf")], { env: home(), stdio: "ignore" });
    madeUp = join(folder, "tiny.gguf");
  }
  return madeUp;
}

/** The demo model, or one with random weights when that is not there. */
export function model() {
  const demo = join(root, "models", "inkstone-demo.gguf");
  return env.INKSTONE_TEST_MODEL || (existsSync(demo) ? demo : slowModel());
}

export class Server {
  static async start(modelPath, ...args) {
    const server = new Server();
    server.process = spawn(program, ["serve", "--port", "0", "-m", modelPath, "--threads", "1", ...args], {
      env: home(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    server.errors = "";
    server.process.stderr.on("data", (d) => (server.errors += d));
    server.url = await new Promise((resolve, reject) => {
      let out = "";
      server.process.stdout.on("data", (d) => {
        out += d;
        const found = /^serving on (http:\S+)$/m.exec(out);
        if (found) resolve(found[1]);
      });
      server.process.on("exit", () => reject(new Error(`the server did not start: ${server.errors}`)));
    });
    return server;
  }

  async metric(name) {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    return [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].reduce((sum, m) => sum + Number(m[1]), 0);
  }

  async stop(signal = "SIGTERM") {
    if (this.process.exitCode !== null) return this.process.exitCode;
    const ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.kill(signal);
    return ended;
  }
}

export async function launch() {
  return chromium.launch({
    executablePath: ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((p) => existsSync(p)),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/**
 * A page on `server`; page.said has its console's errors, page.asked all its requests, page.posts the rewrites' bodies,
 * page.prepared the texts it had encoded ahead. `before` runs in the page ahead of its own scripts.
 */
export async function open(browser, server, { width = 1280, height = 900, locale = "zh-CN", dark = false, before = null } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    locale,
    colorScheme: dark ? "dark" : "light",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  if (before) await page.addInitScript(before);
  page.said = [];
  page.asked = [];
  page.posts = [];
  page.prepared = [];
  page.on("console", (m) => m.type() === "error" && page.said.push(`${m.text()} ${m.location().url}`));
  page.on("pageerror", (e) => page.said.push(String(e)));
  page.on("request", (r) => {
    page.asked.push(r.url());
    if (r.url().endsWith("/v1/rewrite")) page.posts.push(r.postDataJSON());
    if (r.url().endsWith("/v1/rewrite/prepare")) page.prepared.push(r.postDataJSON());
  });
  await page.goto(`${server.url}/`);
  await page.waitForFunction(() => document.querySelector("#go-text").textContent !== "");
  return page;
}

/** Waits until the page has finished a request. */
export async function finished(page) {
  await page.waitForFunction(() => document.querySelector("#form").getAttribute("aria-busy") === "false");
}

export async function until(condition, what, ms = 15000) {
  const end = Date.now() + ms;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`still waiting: ${what}`);
    await new Promise((r) => setTimeout(r, 30));
  }
}
