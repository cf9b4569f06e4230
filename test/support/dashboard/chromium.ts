import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, it, onTestFinished } from "vitest";

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
export const phone = { width: 390, height: 844 };
export const desktop = { width: 1280, height: 900 };

let browser: Browser | undefined;
afterAll(() => browser?.close());

/** A page that counts everything a person would call broken. */
export async function openPage(
  address: string,
  { width, height, dark = false }: { width: number; height: number; dark?: boolean },
) {
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
    if (!request.url().startsWith(new URL(address).origin)) elsewhere.push(request.url());
  });
  await page.goto(address);
  return { page, complaints, elsewhere };
}

/** How far the page can be scrolled sideways, which nobody wants on a phone. */
export function sidewaysScroll(page: Page): Promise<number> {
  return page.evaluate("document.documentElement.scrollWidth - innerWidth") as Promise<number>;
}

/** Set MDS_SCREENSHOTS to a folder to see what the tests saw. */
export async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env.MDS_SCREENSHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** The colours in a canvas, by how many pixels have them. */
export function coloursOf(page: Page, selector: string): Promise<Record<string, number>> {
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

export function inBrowser(name: string, test: () => Promise<void>): void {
  it(name, async () => {
    if (existsSync(executablePath)) return test();
    process.stderr.write(`not shown, since ${executablePath} is absent: the dashboard ${name}\n`);
  });
}
