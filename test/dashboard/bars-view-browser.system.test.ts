import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { fillDailyBars, gapRanges, lastHour } from "../support/dashboard/bars-warehouse.ts";
import { desktop, itInBrowser, openPage, phone, takeScreenshot } from "../support/dashboard/chromium.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { readDrawnTexts, watchDrawnTexts } from "../support/dashboard/drawn-texts.ts";
import { DAY, HOUR, openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";
import { pane, pointAt } from "../support/dashboard/read-tints.ts";

let address: string;
/** The time of the daemon stops here. */
let latest: number;
let query: <Row>(sql: string) => Row[];
beforeAll(async () => {
  const { path, connection } = openFilledWarehouse(fillDailyBars, afterAll);
  query = <Row>(sql: string) => connection.database.prepare<[], Row>(sql).all();
  // The next hour would add a bar.
  latest = lastHour + HOUR - 1;
  ({ address } = await serveDashboard(path, systemClock, afterAll, () => latest));
});

const readAxis = (page: Page) => readDrawnTexts(page, "#chart tr:last-child td:nth-child(2) canvas");
const minute = (ts: number) => `${new Date(ts / 1000).toISOString().slice(0, 16)}Z`;
const rangeOf = (from: number, to: number) => `from=${minute(from)}&to=${minute(to)}`;

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const dayAndMonth = (day: string) => `${Number(day.slice(8))} ${months[Number(day.slice(5, 7)) - 1]}`;

/** Expects that each label tells the bar below it, that the first one of each month names it, and that none is cut. */
async function expectTrueAxis(page: Page): Promise<string[]> {
  const { labels, width } = await readAxis(page);
  const texts = labels.map(({ text }) => text);
  const told: string[] = [];
  let lastMonth = "";
  for (const { middle, left, right } of labels) {
    expect([left >= 0, right <= width]).toEqual([true, true]);
    await pointAt(page, middle, 100);
    const when = (await page.textContent("#bar-details .when")) ?? "";
    const [day = "", clock = ""] = when.split(" ");
    const isNamed = day.slice(0, 7) !== lastMonth;
    lastMonth = day.slice(0, 7);
    const isHour = clock.includes(":") && clock !== "00:00";
    const [date, year] = [dayAndMonth(day), day.slice(0, 4)];
    if (isHour) told.push(isNamed ? `${date} ${clock}` : clock);
    else if (day.endsWith("-01-01")) told.push(isNamed ? `${date} ${year}` : year);
    else told.push(isNamed || day.endsWith("-01") ? date : String(Number(day.slice(8))));
  }
  expect(texts).toEqual(told);
  return texts;
}

itInBrowser("an asset without quotes, gaps or revisions is told no more than is stored", async () => {
  const { page, complaints } = await openPage(new URL("assets/ETH", address).href, desktop);
  const told = async (symbol: string) => {
    await page.locator("#asset-title", { hasText: symbol }).waitFor();
    const part = (name: string) => page.locator(`#parts [aria-label^="${name}"] .empty`).textContent();
    return [await part("On exchanges"), await part("Gaps"), await part("Revisions")];
  };
  const [unquoted, unchanged] = ["No quotes in USD are synced.", "No stored row has changed."];
  expect(await told("ETH")).toEqual([
    ...[unquoted, "Nothing is missing but what awaits confirmation.", unchanged],
  ]);
  expect(complaints).toEqual([]);
});

itInBrowser("the bars go on after nobody has seen them for a while", async () => {
  const before = latest;
  onTestFinished(() => {
    latest = before;
  });
  latest = lastHour - 5 * HOUR;
  const { page, complaints } = await openPage(new URL("bars/ETH?width=1m&range=6h", address).href, desktop);
  await page.waitForSelector("#chart[data-bars]");
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"))`);
  await setHidden(true);
  latest += 150_000_000;
  await page.evaluate("{ const now = Date.now.bind(Date); Date.now = () => now() + 150_000; }");
  await setHidden(false);
  const from = Number(await page.getAttribute("#chart", "data-from"));
  const [{ n } = { n: 0 }] = query<{ n: number }>(
    `SELECT count(*) AS n FROM bars_1m WHERE index_id = 'eth-id' AND ts BETWEEN ${from * 1e6} AND ${latest}`,
  );
  await page.waitForSelector(`#chart[data-bars="${n}"]`);
  expect(complaints).toEqual([]);
});

describe("of the bars in view", () => {
  itInBrowser("compared series have the widths and the base, a daily close is that of its end", async () => {
    const { page, complaints } = await openPage("about:blank", desktop);
    await watchDrawnTexts(page);
    const from = lastHour - 50 * HOUR;
    await page.goto(new URL(`bars/XRP?width=1h&from=${minute(from)}&with=ETH&with=LTC`, address).href);
    // With the years of daily bars before the view, the hours are more than one answer has.
    await page.waitForSelector('#chart[data-overlays="2"]:not([data-daily="0"])');
    const hourly = (id: string, ts: number) =>
      query<{ close: number }>(`SELECT close FROM bars_1h WHERE index_id = '${id}' AND ts = ${ts}`)[0]
        ?.close ?? 0;
    const daily = (end: number) =>
      query<{ close: number }>(
        `SELECT close FROM ohlcv WHERE index_id = 'ltc-id' AND ts + ${DAY} <= ${end} ORDER BY ts DESC LIMIT 1`,
      )[0]?.close ?? 0;
    const indices = [
      hourly("xrp-id", lastHour) / hourly("xrp-id", from),
      hourly("eth-id", lastHour) / hourly("eth-id", from),
      daily(lastHour + HOUR) / daily(from + HOUR),
    ].map((ratio) => (ratio * 100).toFixed(2));
    const axis = async () =>
      (await readDrawnTexts(page, "#chart tr:first-child td:nth-child(3) canvas")).labels.map(
        ({ text }) => text,
      );
    await vi.waitFor(async () => expect(await axis()).toEqual(expect.arrayContaining(indices)));
    await takeScreenshot(page, "bars-compared");
    expect(complaints).toEqual([]);
  });

  itInBrowser("the axis names the month first and where it begins, and cuts no label", async () => {
    const { page, complaints } = await openPage("about:blank", desktop);
    await watchDrawnTexts(page);
    const [{ day, ts } = { day: "", ts: 0 }] = query<{ day: string; ts: number }>(
      `SELECT day, ts FROM ohlcv WHERE index_id = 'ltc-id' AND day LIKE '%-01' AND day NOT LIKE '%-01-01'
        AND day < (SELECT date(max(ts) / 1000000 - 20 * 86400, 'unixepoch') FROM ohlcv) ORDER BY day DESC LIMIT 1`,
    );
    const open = async (path: string) => {
      await page.goto(new URL(path, address).href);
      await page.waitForSelector("#chart[data-bars]");
      await vi.waitUntil(async () => (await readAxis(page)).labels.length > 0);
    };
    await open(`bars/LTC?width=1d&${rangeOf(ts - 12 * DAY, ts + 12 * DAY)}`);
    expect(await expectTrueAxis(page)).toContain(dayAndMonth(day));
    await takeScreenshot(page, "bars-axis-days");
    await open("bars/LTC?width=1d&range=1y");
    await expectTrueAxis(page);
    await open("bars/ETH?width=15m&range=1d");
    await expectTrueAxis(page);
    // Wherever the view begins.
    await page.focus("#chart");
    for (let i = 0; i < 3; i++) {
      const box = await page.locator("#chart").boundingBox();
      const [x, y] = [(box?.x ?? 0) + 300, (box?.y ?? 0) + 200];
      const before = await readAxis(page);
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + 37, y);
      await page.mouse.up();
      await vi.waitUntil(async () => (await readAxis(page)).frame !== before.frame);
      await expectTrueAxis(page);
    }
    // Zooming out shows more bars, not more of the future.
    await page.keyboard.press("End");
    const newest = await page.textContent("#bar-details .when");
    for (let i = 0; i < 4; i++) await page.keyboard.press("-");
    const { width = 0 } = (await page.locator(pane).boundingBox()) ?? {};
    await pointAt(page, width * 0.9, 100);
    expect(await page.textContent("#bar-details .when")).not.toBe(newest);
    await expectTrueAxis(page);
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setTimezoneOverride", { timezoneId: "Etc/GMT+5" });
    await page.evaluate("localStorage.setItem('zone', 'local')");
    await open("bars/ETH?width=1h&range=3d");
    expect(await page.textContent("#zone")).toBe("UTC−5");
    // Three days have at least two midnights of this zone.
    const days = (await expectTrueAxis(page)).filter((text) => !text.includes(":"));
    expect(days.length).toBeGreaterThanOrEqual(2);
    await takeScreenshot(page, "bars-axis-local");
    await page.setViewportSize(phone);
    // A phone has no keys to press.
    expect(await page.locator("kbd:visible, .keys:visible").count()).toBe(0);
    await open("bars/LTC?width=1d&range=3mo");
    await expectTrueAxis(page);
    await takeScreenshot(page, "bars-axis-phone");
    expect(complaints).toEqual([]);
  });

  itInBrowser("gaps are told as far as they are in view", async () => {
    const { lost, open } = gapRanges;
    const [from, to] = [lost.from + HOUR, open.to - HOUR];
    const { page, complaints } = await openPage("about:blank", desktop);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const isNewer = (url: URL) => Date.parse(url.searchParams.get("from") ?? "") * 1000 >= to;
    await page.route(
      (url) => url.pathname === "/api/bars" && isNewer(url),
      async (route) => {
        await released;
        await route.continue();
      },
    );
    await page.goto(new URL(`bars/BTC?width=1h&${rangeOf(from, to)}`, address).href);
    await page.waitForSelector("#gaps tbody tr");
    const inView = query<{ state: string; reason: string; hours: number }>(
      `SELECT state, reason, (min(to_ts, ${to}) - max(from_ts, ${from})) / 3600000000 AS hours
        FROM gaps WHERE stream = 'index_ticks' AND index_id = 'btc-id' AND from_ts < ${to} AND to_ts > ${from} ORDER BY from_ts DESC`,
    );
    expect(inView.map(({ hours }) => hours)).toEqual([3, 2]);
    const rows = page.locator("#gaps tbody tr");
    const format = (ts: number) => minute(ts).slice(0, 16).replace("T", " ");
    const sameDay = (a: number, b: number) =>
      `${format(a)} → ${format(a).slice(0, 10) === format(b).slice(0, 10) ? format(b).slice(11) : format(b)}`;
    // The chart shows exactly the range of the address.
    const { x = 0, y = 0, width = 0 } = (await page.locator(pane).boundingBox()) ?? {};
    const when = page.locator("#bar-details .when");
    await pointAt(page, width - 3, 200);
    expect(await when.textContent()).toBe(`${format(to - HOUR)} UTC`);
    await pointAt(page, 3, 200);
    expect(await when.textContent()).toBe(`${format(from)} UTC`);
    // So it does for a pointer that moves just when newer bars come.
    await page.evaluate(`new MutationObserver(() => document.elementFromPoint(${x + 3}, ${y + 210})
      .dispatchEvent(new MouseEvent("mousemove", { clientX: ${x + 3}, clientY: ${y + 210}, bubbles: true })))
      .observe(document.getElementById("chart"), { attributeFilter: ["data-bars"] })`);
    const before = await page.getAttribute("#chart", "data-bars");
    release();
    await page.waitForSelector(`#chart:not([data-bars="${before}"])`);
    await page.evaluate("new Promise(requestAnimationFrame)");
    expect(await when.textContent()).toBe(`${format(from)} UTC`);
    // How far the gap goes on is known with what is around the view.
    await rows.nth(0).filter({ hasText: "goes on after" }).waitFor();
    expect(await rows.allTextContents()).toEqual([
      `open ${inView[0]?.reason}3 h${sameDay(open.from, to)} goes on after`,
      `lost ${inView[1]?.reason}2 h${sameDay(from, lost.to)} goes on before`,
    ]);
    expect(await page.textContent("#gaps-note")).toBe("2 ranges, 5 h");
    await takeScreenshot(page, "bars-gaps");
    // It leads to the whole gap.
    await rows.nth(0).locator("a").click();
    await page.locator("#gaps tbody tr", { hasText: sameDay(open.from, open.to) }).waitFor();
    expect(await rows.allTextContents()).toEqual([
      `open ${inView[0]?.reason}4 h${sameDay(open.from, open.to)}`,
    ]);
    expect(complaints).toEqual([]);
  });
});
