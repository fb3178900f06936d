// The browser, and what the tests ask of a page.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL(".work/", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: FLAGS });
}

// Returns a context whose steps wait for as long as a busy machine needs: the default of 30 s is too short there.
export async function contextOf(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(300_000);
  return context;
}

// Opens a page and waits until it has drawn. Collects errors and every request but the first.
export async function open(browser, url, { width = 1400, height = 900, dark = false } = {}) {
  const context = await contextOf(browser, { viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  const page = await context.newPage();
  page.problems = [];
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on(
    "request",
    (request) => request.url() !== url && !request.url().startsWith("blob:") && page.problems.push(request.url()),
  );
  page.on("dialog", (dialog) => page.problems.push(`dialog: ${dialog.message()}`));
  await page.goto(url);
  await ready(page);
  return page;
}

// Waits for the first document, and then for the frame that shows it.
export async function ready(page) {
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export const text = async (page, id) => (await page.locator(`#${id}`).textContent()).trim();

// Returns the document that a report contains.
export function documentOf(page) {
  return page.evaluate(() => JSON.parse(document.getElementById("document").textContent));
}

// Downloads the table of trials by the button `name`, and returns its text.
export async function saved(page, name) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("#trials").getByRole("button", { name }).click(),
  ]);
  return readFileSync(await download.path(), "utf8");
}

// Returns for each visible canvas of the charts how many different colours it has.
export function canvasColours(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll(".chart canvas:not(.over), .parallel canvas:not(.over)")]
      .filter((canvas) => canvas.offsetParent !== null)
      .map((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return new Set(new Uint32Array(data.buffer)).size;
      }),
  );
}

// Returns the serious findings of axe-core.
export async function seriousFindings(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .map((node) => node.html.slice(0, 120))
          .slice(0, 3)
          .join(" | ")}`,
    );
}
