import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, vi } from "vitest";
import { amount, quote } from "../../src/dashboard/page/shared/text-format.ts";
import { fillDailyBars, gapRanges, pane, pointAt } from "../support/dashboard/bars-warehouse.ts";
import {
  expectAccessible,
  expectFits,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { serveFilled } from "../support/dashboard/dashboard-harness.ts";
import { hostileName } from "../support/dashboard/heatmap-content.ts";
import { until } from "../support/dashboard/moving-figures.ts";
import { lastHour } from "../support/present.ts";
import { timeLimit } from "../support/time-limit.ts";
import { HOUR } from "../support/warehouse/filled-warehouse.ts";

const btc = "bars/BTC?width=1h&range=1w";

let address: string;
/** The time of the daemon stops here: the next hour would add a bar. */
let latest: number;
let query: <Row>(sql: string) => Row[];
beforeAll(async () => {
  latest = lastHour + HOUR - 1;
  ({ address, query } = await serveFilled(fillDailyBars, afterAll, () => latest));
});

async function openBars(query: string, options?: Parameters<typeof openPage>[1]) {
  const page = await openPage(new URL(query, address).href, options);
  await page.waitForSelector("#chart[data-bars]");
  return page;
}

/** The state of the bar that starts at a timestamp, from the page's table. */
function barState(page: Page, ts: number) {
  return page.getAttribute(`#bars tr[data-time="${ts / 1_000_000}"]`, "data-state");
}

const minute = (ts: number) => `${new Date(ts / 1000).toISOString().slice(0, 16)}Z`;
const rangeOf = (from: number, to: number) => `from=${minute(from)}&to=${minute(to)}`;

itInBrowser("an asset without quotes, gaps or revisions is told no more than is stored", async () => {
  const page = await openPage(new URL("assets/ETH", address).href);
  const told = async (symbol: string) => {
    await page.locator("#asset-title", { hasText: symbol }).waitFor();
    const part = (name: string) =>
      page.locator("#parts section", { hasText: name }).locator(".empty").textContent();
    return [await part("On exchanges"), await part("Gaps"), await part("Revisions")];
  };
  const none = ["No quotes in USD are synced.", "Nothing is missing but what awaits confirmation."];
  expect(await told("ETH")).toEqual([...none, "No stored row has changed."]);
});

itInBrowser("the bars go on after nobody has seen them for a while", async () => {
  const before = latest;
  onTestFinished(() => {
    latest = before;
  });
  latest = lastHour - 5 * HOUR;
  const page = await openPage(new URL("bars/ETH?width=1m&range=6h", address).href);
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
});

describe("the bars", () => {
  itInBrowser(
    "are drawn as candles with their gaps on a desktop, without a request to another host",
    async () => {
      const page = await openBars(btc);
      await page.click("#as-table summary");
      const shown = await page.evaluate("({ ...document.getElementById('chart').dataset })");
      // Three days and the current hour, without the three lost, four open and two empty hours.
      expect(shown).toMatchObject({ series: "btc-id", width: "1h", bars: "64", missing: "9" });
      expect(await barState(page, gapRanges.open.from)).toBe("missing");
      expect(await barState(page, gapRanges.open.from - HOUR)).toBe("complete");
      expect(await barState(page, gapRanges.sliver.from - 0.5 * HOUR)).toBe("partial");
      expect(await barState(page, lastHour)).toBe("unconfirmed");
      expect(await page.locator("#gaps tbody tr").allTextContents()).toEqual([
        expect.stringMatching(/^open pending5 min/),
        expect.stringMatching(/^empty the service has none2 h/),
        expect.stringMatching(/^open pending4 h/),
        expect.stringMatching(/^lost aged out3 h/),
      ]);
      expect(await page.getAttribute("footer a", "href")).toBe("https://www.tradingview.com/");
      await takeScreenshot(page, "bars");
    },
  );

  itInBrowser(
    "can be read with the keyboard alone, which also selects another series and width",
    async () => {
      // An unknown range is the usual one, even if every object has a property of that name.
      const page = await openBars(btc.replace("1w", "toString"));
      await page.focus("#chart");
      await page.keyboard.press("End");
      expect(await page.textContent("#bar-details")).toMatch(/ of 120 ticks.*awaits confirmation$/);
      const back = (lastHour - gapRanges.open.to) / HOUR + 1;
      for (let i = 0; i < back; i++) await page.keyboard.press("ArrowLeft");
      expect(await page.textContent("#bar-details")).toMatch(/UTCno bar \(open, pending\)$/);

      await page.focus("#series");
      await page.keyboard.type("et");
      await page.waitForSelector("#series-list [role=option]:only-child");
      await page.keyboard.press("Enter");
      await page.waitForSelector('#chart[data-series="eth-id"]');
      expect(await page.textContent("#name")).toBe("ETH");
      expect(await page.inputValue("#series")).toBe("ETH");
      const awaiting = /^Nothing is missing\. Awaiting confirmation: [\d.]+ (min|h)\.$/;
      expect(await page.textContent("#no-gaps")).toMatch(awaiting);

      await page.focus("#widths [aria-selected=true]");
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector('#chart[data-width="4h"]');
      expect(page.url()).toMatch(/\/bars\/ETH\?width=4h&range=1w$/);

      await page.evaluate("localStorage.setItem('theme', 'toString')");
      await page.reload();
      await page.click('#theme[aria-label="Theme: system"]');
      await page.waitForSelector('#theme[aria-label="Theme: light"]');
    },
  );

  itInBrowser("fit a phone in dark mode, and show hostile names as text", async () => {
    const page = await openBars("bars/GWA:odd-id?range=3d", {
      ...phone,
      dark: true,
    });
    expect(await page.textContent("#name")).toBe(hostileName);
    await page.focus("#series");
    await page.waitForSelector("#series-list [role=option] >> nth=2");
    expect(await page.locator("#series-list [role=option] b").allTextContents()).toContain(hostileName);
    expect(await page.locator(".page-head img, form img").count()).toBe(0);
    expect(await page.title()).toContain(hostileName);
    await expectFits(page, "bars-phone");
  });

  itInBrowser(
    "says that a name is unknown, in the search box and in the URL, and suggests similar ones",
    async () => {
      const page = await openBars(btc, { dark: true });
      await page.focus("#series");
      await page.fill("#series", "BTCC");
      await page.waitForSelector("#series-list .none");
      expect(await page.textContent("#series-list .none")).toBe("No synced series is named “BTCC”. Similar:");
      await page.press("#series", "Enter");
      expect(await page.isVisible("#series-list .none")).toBe(true);
      expect(await page.locator("#series-list [role=option] b").allTextContents()).toContain("BTC");
      await page.goto(new URL("/bars/BTCC", page.url()).href);
      await page.waitForSelector("#empty a");
      const unknown = "No synced series is named “BTCC”. Similar:";
      expect(await page.textContent("#empty-text")).toContain(`${unknown} BTC`);
      await expectAccessible(page);
      expect(await page.isVisible("#chart")).toBe(false);
      await page.click("#empty a >> nth=0");
      await page.waitForSelector("#chart[data-bars]");
      expect(await page.textContent("#name")).toBe("BTC");
      await page.goto(new URL("/bars/NOSUCH", page.url()).href);
      await page.locator("#empty-text", { hasText: /^No synced series is named “NOSUCH”\.$/ }).waitFor();
      // What is no range of time is the usual one.
      await page.goto(new URL("/bars/GWA:btc-id?range=days", page.url()).href);
      await page.waitForSelector("#chart[data-bars]");
      expect(page.url()).toMatch(/\/bars\/BTC\?width=1h&range=1w$/);
    },
  );

  const shownData = (page: Page) => page.evaluate("({ ...document.getElementById('chart').dataset })");
  /** The first word after each label of the bar under the pointer. */
  const details = async (page: Page) =>
    Object.fromEntries(
      [...((await page.textContent("#bar-details")) ?? "").matchAll(/(O|H|L|C|V|V 24 h) ([\d.,]+)/g)].map(
        ([, label, value]) => [label, value],
      ),
    );

  itInBrowser("go on as daily bars where the ticks end, back to the first one", async () => {
    const page = await openBars("bars/XRP?width=1h&range=3d");
    const [ticks] = query<{ n: number }>("SELECT count(*) AS n FROM bars_1h WHERE index_id = 'xrp-id'");
    const [daily] = query<{ n: number; first: number }>(
      `SELECT count(*) AS n, min(ts) / 1000000 AS first FROM ohlcv WHERE index_id = 'xrp-id'
        AND day < (SELECT date(min(ts) / 1000000, 'unixepoch') FROM index_ticks WHERE index_id = 'xrp-id')`,
    );
    await page.focus("#chart");
    await vi.waitFor(
      async () => {
        // To the first bar that is loaded; more is loaded there.
        await page.keyboard.press("Home");
        const bars = String((ticks?.n ?? 0) + (daily?.n ?? 0));
        const loaded = { bars, daily: String(daily?.n), from: String(daily?.first) };
        expect(await shownData(page)).toMatchObject(loaded);
      },
      { timeout: timeLimit(30_000), interval: 200 },
    );
    await page.keyboard.press("Home");
    const [oldest] = query<Record<string, number>>(
      "SELECT open, high, low, close, volume FROM ohlcv WHERE index_id = 'xrp-id' ORDER BY day LIMIT 1",
    );
    const [O, H, L, C] = ["open", "high", "low", "close"].map((name) => oldest?.[name]?.toFixed(4));
    expect(await details(page)).toEqual({ O, H, L, C, V: String(oldest?.volume) });
    // The address follows the view.
    const first = new Date((daily?.first ?? 0) * 1000).toISOString().replace(":00.000", "");
    await page.waitForURL((url) => url.searchParams.get("from") === first);
    await page.reload();
    // What is loaded around it does not move it.
    await until(async () => Number(await page.getAttribute("#chart", "data-bars")) > 1_000);
    const end = new URL(page.url()).searchParams.get("to");
    await page.focus("#chart");
    await page.keyboard.press("-");
    await page.waitForURL((url) => url.searchParams.get("to") !== end);
    expect(new URL(page.url()).searchParams.get("from")).toBe(first);
    expect(await page.getAttribute("#chart", "data-view")).toContain(first.slice(0, 16));
    await takeScreenshot(page, "bars-daily");
    // What is lost of the daily bars is told too.
    await page.goto(new URL("/bars/XRP?width=1d&range=3mo", address).href);
    await page.waitForSelector("#gaps tbody tr");
    expect(await page.locator("#gaps tbody tr").allTextContents()).toEqual([
      expect.stringMatching(/^lost aged out, daily bars5 days/),
    ]);
    await page.click("#gaps tbody a");
    await page.waitForSelector("#chart[data-bars]");
    expect(new URL(page.url()).searchParams.get("from")).toMatch(/T00:00Z$/);
  });

  itInBrowser("of a series without ticks are daily ones, with the change since the bar before", async () => {
    const page = await openBars("bars/ltc?width=1h&range=3mo");
    expect(page.url()).toMatch(/\/bars\/LTC\?width=1d&range=3mo$/);
    expect(await page.locator("#widths button").allTextContents()).toEqual(["1d"]);
    const [last, before] = query<{ close: number }>(
      "SELECT close FROM ohlcv WHERE index_id = 'ltc-id' ORDER BY day DESC LIMIT 2",
    );
    const change = (last?.close ?? 0) - (before?.close ?? 0);
    const figures = `${Math.abs(change).toFixed(4)} (${change < 0 ? "−" : "+"}${Math.abs((change / (before?.close ?? 1)) * 100).toFixed(2)} %)`;
    expect(await page.textContent("#bar-details .change")).toBe(`${change < 0 ? "−" : "+"}${figures}`);
    expect(await page.textContent("#last")).toBe(last?.close.toFixed(4));
  });

  itInBrowser("tell the bar under the crosshair, follow keys and Shift, and return with Back", async () => {
    const page = await openBars("bars/ETH?width=1h&range=1d");
    type Stored = Record<"open" | "high" | "low" | "close" | "before" | "volume_24h" | "n_ticks", number>;
    const stored = query<Stored & { time: string }>(
      `SELECT *, lag(close) OVER (ORDER BY ts) AS before FROM bars_1h WHERE index_id = 'eth-id' ORDER BY ts DESC`,
    );
    const box = await page.locator(pane).boundingBox();
    const seen = new Set<string>();
    for (const part of [0.2, 0.5, 0.8]) {
      await pointAt(page, (box?.width ?? 0) * part, (box?.height ?? 0) * part);
      const shown = await page.locator("#bar-details > span").allTextContents();
      const bar = stored.find(({ time }) => `${time.slice(0, 16).replace("T", " ")} UTC` === shown[0]);
      if (!bar) throw new Error(`no bar is stored of ${shown[0]}`);
      seen.add(bar.time);
      const [change, sign] = [bar.close - bar.before, bar.close < bar.before ? "−" : "+"];
      const percent = Math.abs((change / bar.before) * 100).toFixed(2);
      expect(shown.slice(1)).toEqual([
        ...[`O ${quote(bar.open)}`, `H ${quote(bar.high)}`, `L ${quote(bar.low)}`, `C ${quote(bar.close)}`],
        `${sign}${Math.abs(change).toFixed(2)} (${percent === "0.00" ? "" : sign}${percent} %)`,
        ...[`V 24 h ${amount(bar.volume_24h)}`, `${bar.n_ticks} of 120 ticks`, "complete"],
      ]);
    }
    expect(seen.size).toBe(3);
    // The keys that the hint below the chart names do what it says.
    expect(await page.innerText("p:has(kbd)")).toBe("m 5 15 h 4 d width · Shift drag measures · / searches");
    const widths = ["15 15m", "4 4h", "1d 1d", "5 5m", "d 1d", "m 1m", "h 1h"];
    for (const [keys = "", width] of widths.map((pair) => pair.split(" "))) {
      for (const key of keys) await page.keyboard.press(key);
      await page.waitForSelector(`#chart[data-width="${width}"]`);
    }
    await page.focus("#series");
    await page.keyboard.type("btc");
    await page.waitForSelector("#series-list [role=option]:only-child");
    await page.keyboard.press("Enter");
    await page.waitForSelector('#chart[data-series="btc-id"]');
    expect(new URL(page.url()).pathname).toBe("/bars/BTC");
    await page.goBack();
    await page.waitForSelector('#chart[data-series="eth-id"][data-width="1h"]');
    expect(await page.inputValue("#series")).toBe("ETH");
    await page.goBack();
    await page.waitForSelector('#chart[data-width="1m"]');
    expect(await page.textContent("#widths [aria-selected=true]")).toBe("1m");
    await page.goForward();
    await page.goForward();
    await page.waitForSelector('#chart[data-series="btc-id"][data-width="1h"]');
    const day = await page.getAttribute("#chart", "data-view");
    await page.selectOption("#range", "3d");
    await page.waitForSelector(`#chart[data-view]:not([data-view="${day}"])`);
    const { x = 0, y = 0, height = 0 } = (await page.locator(pane).boundingBox()) ?? {};
    const before = await shownData(page);
    await page.keyboard.down("Shift");
    await pointAt(page, 500, 300);
    await page.mouse.down();
    const from = await page.textContent("#bar-details .when");
    await page.mouse.move(x + 700, y + 200);
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const measured = (await page.textContent(".measure")) ?? "";
    const [, change = "", percent, bars, hours] =
      /^\+([\d,.]+) \(\+([\d.]+) %\) · (\d+) bars, (\d+) h$/.exec(measured) ?? [];
    expect(Number(hours)).toBe(Number(bars));
    // The bars in view fill the pane but for 12 % above and 20 % below.
    const view = Date.parse((await page.getAttribute("#chart", "data-view")) ?? "") * 1000;
    const [{ range, mean } = { range: 0, mean: 0 }] = query<{ range: number; mean: number }>(
      `SELECT max(high) - min(low) AS range, avg(close) AS mean FROM bars_1h WHERE index_id = 'btc-id' AND ts >= ${view}`,
    );
    const rise = Number(change.replace(",", ""));
    expect(rise / ((range * 100) / (height * 0.68))).toBeCloseTo(1, 1);
    expect(rise / (mean * (Number(percent) / 100))).toBeCloseTo(1, 0);
    await pointAt(page, 700, 300);
    const to = await page.textContent("#bar-details .when");
    const parse = (text: string | null) => Date.parse((text ?? "").replace(" UTC", "Z").replace(" ", "T"));
    const [start = 0, end = 0] = [from, to].map(parse);
    expect((end - start) / 3_600_000).toBe(Number(bars));
    await page.focus("#chart");
    await page.keyboard.press("Escape");
    expect(await page.isVisible(".measure")).toBe(false);
    expect(await shownData(page)).toEqual(before);
  });

  itInBrowser("list the gaps as far as they are in view", async () => {
    const { lost, open } = gapRanges;
    const [from, to] = [lost.from + HOUR, open.to - HOUR];
    const page = await openPage("about:blank");
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
    await page.waitForSelector(`#chart[data-bars]:not([data-bars="${before}"])`);
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
    const whole = `open ${inView[0]?.reason}4 h${sameDay(open.from, open.to)}`;
    expect(await rows.allTextContents()).toEqual([whole]);
  });
});
