import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, chromium, type Page, type Route } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { CHROMIUM_PATH, hasChromium, skipWithout } from "../has-tool.ts";
import { timeLimit } from "../time-limit.ts";

export const phone = { width: 390, height: 844 };
export const desktop = { width: 1280, height: 900 };

/** One for each process: if processes shared it, every message would pass through the process of the run too. */
let browser: Browser | undefined;

interface OpenOptions {
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  /** Errors that the test causes. */
  readonly expected?: RegExp;
  /** The page whose link is followed; none: the address was typed. */
  readonly referer?: string;
}

/** Opens a page. The test fails at its end if the page had an error, or a request to another host. */
export async function openPage(address: string, options: OpenOptions = {}): Promise<Page> {
  const { width, height, dark = false, expected, referer } = { ...desktop, ...options };
  // It ends with the pipe to this process, also if that is killed: it needs no handlers of signals.
  browser ??= await chromium.launch({
    executablePath: CHROMIUM_PATH,
    timeout: timeLimit(60_000),
    args: ["--no-sandbox", "--disable-gpu"],
    ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false },
  });
  // Twice the pixels take twice the CPU: only for a person who looks at them.
  const deviceScaleFactor = width < 500 && process.env.MDS_SCREENSHOTS ? 2 : 1;
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor,
    colorScheme: dark ? "dark" : "light",
  });
  context.setDefaultTimeout(timeLimit(30_000));
  const complaints: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(complaints).toEqual([]);
  });
  const complain = (text: string) => void (expected?.test(text) || complaints.push(text));
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complain(message.text());
  });
  page.on("pageerror", (error) => complain(error.message));
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith("http") && hostname !== "127.0.0.1") complain(request.url());
  });
  await page.goto(address, referer === undefined ? {} : { referer });
  return page;
}

/** The elements whose content is wider than they are, but for those that scroll, and the frame that a table scrolls out of. */
export function findCutElements(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll("body *")]
    .filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth)
    .filter((one) => !one.closest(".visually-hidden") && !one.querySelector(":scope > .scroll"))
    .filter((one) => !["auto", "scroll"].includes(getComputedStyle(one).overflowX))
    .map((one) => one.outerHTML.slice(0, 200))`) as Promise<string[]>;
}

/** Expects that nothing scrolls sideways: neither the page itself nor a table, folded ones too. `name`: of a screenshot. */
export async function expectFits(page: Page, name?: string, boxes = ":root, .scroll"): Promise<void> {
  const tooWide =
    await page.evaluate(`for (const fold of document.querySelectorAll("details")) fold.open = true;
    [...document.querySelectorAll("${boxes}")]
    .filter((box) => box.scrollWidth > box.clientWidth)
    .map((box) => box.ariaLabel + ": " + box.scrollWidth + " > " + box.clientWidth)`);
  expect(tooWide).toEqual([]);
  if (name !== undefined) await takeScreenshot(page, name);
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Expects that axe finds nothing serious: names, roles, contrast, keyboard. `name`: of a screenshot. */
export async function expectAccessible(page: Page, name?: string): Promise<void> {
  if (name !== undefined) await takeScreenshot(page, name);
  await page.evaluate(axe);
  const findings =
    await page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 200)).join(" | ")))`);
  expect(findings).toEqual([]);
}

/** Writes a screenshot if MDS_SCREENSHOTS names a folder. */
export async function takeScreenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.MDS_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

export function itInBrowser(name: string, test: () => Promise<void>): void {
  it(name, async () => {
    if (hasChromium || skipWithout(`${CHROMIUM_PATH} is missing`, name)) await test();
  });
}

/** Holds back the requests of pages to one path, then lets them fail, then lets them through. */
export async function blockRequests(page: Page, path: string) {
  const held: Route[] = [];
  let failure: string | undefined;
  const fail = (route: Route, body: string) => route.fulfill({ status: 503, body }).catch(() => {});
  const isBlocked = (url: URL) => url.pathname === path;
  await page.route(isBlocked, async (route) => {
    held.push(route);
    if (failure !== undefined) await fail(route, failure);
  });
  return {
    isReached: () => held.length > 0,
    async failWith(body: string): Promise<void> {
      failure = body;
      await Promise.all(held.map((route) => fail(route, body)));
    },
    letThrough: () => page.unroute(isBlocked),
  };
}
