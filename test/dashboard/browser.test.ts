import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { hostileName, openFilled } from "./filled-warehouse.ts";
import { noteErrors, servePages } from "./served-pages.ts";

/** Debian's package. Where it is absent these tests say what they did not show. */
const executablePath = "/usr/bin/chromium";
const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const phone = { width: 375, height: 812 };
const desktop = { width: 1280, height: 900 };

let browser: Browser | undefined;
afterAll(() => browser?.close());

/** A page that counts everything a person would call broken. */
async function look(address: string, options: { width: number; height: number; dark?: boolean }) {
  const { width, height, dark = false } = options;
  browser ??= await chromium.launch({ executablePath, args });
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: width < 500 ? 2 : 1,
    colorScheme: dark ? "dark" : "light",
  });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const complaints: string[] = [];
  const elsewhere: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) elsewhere.push(request.url());
  });
  await page.goto(address);
  await page.waitForSelector('[data-group="index_ticks:GWA"] canvas');
  await page.waitForSelector("#missing tbody tr");
  await page.waitForSelector("#ticks .tick");
  return { page, complaints, elsewhere };
}

/** Set MDS_SCREENSHOTS to a folder to see what the tests saw. */
async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env.MDS_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** The colours in a canvas, by how many pixels have them. */
function coloursOf(page: Page, selector: string): Promise<Record<string, number>> {
  return page.locator(selector).evaluate((element) => {
    const canvas = element as unknown as {
      width: number;
      height: number;
      getContext(kind: "2d"): { getImageData(...box: number[]): { data: Uint8ClampedArray } };
    };
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours: Record<string, number> = {};
    for (let i = 0; i < data.length; i += 4) {
      const colour = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      colours[colour] = (colours[colour] ?? 0) + 1;
    }
    return colours;
  });
}

function inBrowser(name: string, test: () => Promise<void>): void {
  it(name, async () => {
    if (existsSync(executablePath)) return test();
    process.stderr.write(`not shown, since ${executablePath} is absent: the dashboard ${name}\n`);
  });
}

describe("the dashboard", () => {
  for (const [size, viewport] of Object.entries({ phone, desktop })) {
    inBrowser(
      `shows rows, ages, the heat map, gaps and errors on a ${size}, and asks nobody else`,
      async () => {
        const { address, errors, rate } = await servePages(openFilled().path);
        noteErrors(errors);
        rate.count();
        const { page, complaints, elsewhere } = await look(address, viewport);
        expect(await page.textContent("#sentence")).toMatch(
          /^Following the live feed: \d+ ranges left to fetch/,
        );
        expect(await page.textContent("#rows")).not.toBe("–");
        expect(await page.textContent('[data-stream="index_ticks"] .age')).toMatch(/^\d+ (s|min)$/);
        expect(await page.textContent('[data-stream="derivative_ticks"] .remark')).toContain(
          "read:derivatives",
        );
        expect(await page.locator('[data-group="index_ticks:GWA"] .name').allTextContents()).toEqual([
          "all",
          ..."BTC ETH XRP SOL ADA DOT LTC AVAX".split(" "),
        ]);
        const colours = await coloursOf(page, '[data-group="index_ticks:GWA"] canvas.summary');
        expect(Object.keys(colours).length).toBeGreaterThanOrEqual(3);
        expect(await page.locator("#missing tbody tr").count()).toBeGreaterThan(5);
        expect(await page.locator("#errors li").count()).toBe(2);
        expect(await page.getAttribute("#spark .curve", "d")).toMatch(/^M0/);
        const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        expect(overflow).toBeLessThanOrEqual(0);
        await photograph(page, size);
        expect(complaints).toEqual([]);
        expect(elsewhere).toEqual([]);
      },
    );
  }

  inBrowser("shows more rows on request, and hostile names as the text that they are", async () => {
    const { address, errors } = await servePages(openFilled().path);
    noteErrors(errors);
    const { page, complaints, elsewhere } = await look(address, { ...desktop, dark: true });
    await page.click('[data-group="index_ticks:GWA"] button');
    await page.waitForSelector('[data-group="index_ticks:GWA"] canvas >> nth=14');
    expect(await page.locator('[data-group="index_ticks:GWA"] .name').last().textContent()).toBe(hostileName);
    await page.hover('[data-group="index_ticks:GWA"] canvas >> nth=14');
    expect(await page.textContent("#tip")).toContain(hostileName);
    await photograph(page, "dark");
    expect(await page.locator("#coverage img, #missing img, #errors img, #tip img").count()).toBe(0);
    expect(await page.title()).toBe("mds-sync");
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  inBrowser("says so when the daemon is stuck", async () => {
    const { address, staged } = await servePages(openFilled().path);
    staged.problem = "nothing has been committed for 10 minutes";
    const { page } = await look(address, phone);
    expect(await page.getAttribute("#state", "data-tone")).toBe("ill");
    expect(await page.textContent("#sentence")).toBe("Stuck: nothing has been committed for 10 minutes.");
  });
});
