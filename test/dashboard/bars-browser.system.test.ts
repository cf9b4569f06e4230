import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { fillBars, gapRanges, lastHour } from "../support/dashboard/bars-warehouse.ts";
import {
  countColours,
  desktop,
  horizontalOverflow,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { HOUR, hostileName, openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";

const btc = "bars?type=GWA&id=btc-id&width=1h&range=1w";

let address: string;
beforeAll(async () => {
  const { path } = openFilledWarehouse(fillBars, afterAll);
  // The next hour would add a bar.
  ({ address } = await serveDashboard(path, systemClock, afterAll, lastHour + HOUR - 1));
});

async function openBars(query: string, options: Parameters<typeof openPage>[1]) {
  const opened = await openPage(new URL(query, address).href, options);
  await opened.page.waitForSelector("#chart[data-bars]");
  return opened;
}

/** The state of the bar that starts at a timestamp, from the page's table. */
function barState(page: Page, ts: number) {
  return page.getAttribute(`#bars tr[data-time="${ts / 1_000_000}"]`, "data-state");
}

async function countPaneColours(page: Page): Promise<number> {
  const colours = await countColours(page, pane);
  return Object.keys(colours).length;
}

const pane = "#chart td:nth-child(2) canvas >> nth=0";

/** The shaded bands of the pane from left to right, each with its width and the number of candle pixels in it. */
function readBands(page: Page, colours: Record<string, readonly [number, number, number]>) {
  return page.locator(pane).evaluate((element, colours) => {
    const canvas = element as unknown as {
      width: number;
      height: number;
      getContext(kind: "2d"): { getImageData(...box: number[]): { data: Uint8ClampedArray } };
    };
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const looksLike = (at: number, [r, g, b]: readonly [number, number, number]) =>
      Math.abs((data[at] ?? 0) - r) + Math.abs((data[at + 1] ?? 0) - g) + Math.abs((data[at + 2] ?? 0) - b) <
      16;
    const bands: { state: string | undefined; width: number; candles: number }[] = [];
    for (let x = 0; x < canvas.width; x++) {
      let candles = 0;
      const shades: Record<string, number> = {};
      for (let y = 0; y < canvas.height; y++) {
        const at = (y * canvas.width + x) * 4;
        const isOpaque = data[at + 3] === 255;
        const name = Object.keys(colours).find((one) => looksLike(at, colours[one] ?? [0, 0, 0]));
        if (isOpaque && (name === "up" || name === "lost")) candles++;
        else if (name && name !== "up" && (data[at + 3] ?? 0) > 0) shades[name] = (shades[name] ?? 0) + 1;
      }
      const state = Object.keys(shades).find((name) => (shades[name] ?? 0) > canvas.height / 2);
      const last = bands.at(-1);
      if (!last || last.state !== state) bands.push({ state, width: 1, candles });
      else {
        last.width++;
        last.candles += candles;
      }
    }
    return bands;
  }, colours);
}

describe("the bars", () => {
  itInBrowser(
    "are drawn as candles with their gaps on a desktop, without a request to another host",
    async () => {
      const { page, complaints, elsewhere } = await openBars(btc, desktop);
      await page.click("#as-table summary");
      const shown = await page.evaluate("({ ...document.getElementById('chart').dataset })");
      // Three days and the current hour, without the three lost, four open and two empty hours.
      expect(shown).toMatchObject({ series: "btc-id", width: "1h", bars: "64", missing: "9" });
      // Falling candles and lost bands share a colour, but only candles are opaque.
      const bands = await readBands(page, { up: [47, 143, 109], open: [223, 162, 53], lost: [196, 83, 74] });
      const [before, lost, between, open, after] = bands;
      const states = bands.map(({ state }) => state ?? "");
      expect(states).toEqual(["", "lost", "", "open", "", "open", ""]);
      for (const drawn of [before, between, after]) expect(drawn?.candles).toBeGreaterThan(500);
      for (const blank of [lost, open]) expect(blank?.candles).toBe(0);
      // The bands are as wide as their three and four bars would be, with seventeen bars between them.
      const hour = (lost?.width ?? 0) / 3;
      expect((open?.width ?? 0) / hour).toBeCloseTo(4, 0);
      expect((between?.width ?? 0) / hour).toBeCloseTo(17, 0);
      expect(await barState(page, gapRanges.open.from)).toBe("missing");
      expect(await barState(page, gapRanges.open.from - HOUR)).toBe("complete");
      expect(await barState(page, gapRanges.sliver.from - 0.5 * HOUR)).toBe("partial");
      expect(await barState(page, lastHour)).toBe("settling");
      expect(await page.locator("#gaps tbody tr").allTextContents()).toEqual([
        expect.stringMatching(/^open pending5 min/),
        expect.stringMatching(/^empty the service has none2 h/),
        expect.stringMatching(/^open pending4 h/),
        expect.stringMatching(/^lost aged out3 h/),
      ]);
      expect(await page.getAttribute("footer a", "href")).toBe("https://www.tradingview.com/");
      await takeScreenshot(page, "bars");
      expect(complaints).toEqual([]);
      expect(elsewhere).toEqual([]);
    },
  );

  itInBrowser(
    "can be read with the keyboard alone, which also selects another series and width",
    async () => {
      // An unknown range is the usual one, even if every object has a property of that name.
      const { page, complaints } = await openBars(btc.replace("1w", "toString"), desktop);
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
      expect(await page.textContent("#no-gaps")).toBe(
        "Nothing is missing. Not selected: 4 days of this range.",
      );

      await page.focus("#widths input:checked");
      await page.keyboard.press("ArrowRight");
      await page.waitForSelector('#chart[data-width="4h"]');
      expect(page.url()).toMatch(/type=GWA&id=eth-id&width=4h&range=1w$/);

      await page.evaluate("localStorage.setItem('theme', 'toString')");
      await page.reload();
      await page.click('#theme[aria-label="Theme: system"]');
      await page.waitForSelector('#theme[aria-label="Theme: light"]');
      expect(complaints).toEqual([]);
    },
  );

  itInBrowser("fit a phone in dark mode, and show hostile names as text", async () => {
    const { page, complaints, elsewhere } = await openBars("bars?type=GWA&id=odd-id&range=3d", {
      ...phone,
      dark: true,
    });
    expect(await page.textContent("#name")).toBe(hostileName);
    await page.focus("#series");
    await page.waitForSelector("#series-list [role=option] >> nth=2");
    expect(await page.locator("#series-list [role=option] b").allTextContents()).toContain(hostileName);
    await takeScreenshot(page, "bars-phone");
    expect(await page.locator(".page-head img, form img").count()).toBe(0);
    expect(await page.title()).toContain(hostileName);
    expect(await horizontalOverflow(page)).toBeLessThanOrEqual(0);
    expect(await countPaneColours(page)).toBeGreaterThan(8);
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });

  itInBrowser(
    "says that a name is unknown, in the search box and in the URL, and suggests similar ones",
    async () => {
      const { page } = await openBars(btc, desktop);
      await page.focus("#series");
      await page.fill("#series", "BTCC");
      await page.waitForSelector("#series-list .none");
      expect(await page.textContent("#series-list .none")).toBe("No synced series is named “BTCC”. Similar:");
      await page.press("#series", "Enter");
      expect(await page.isVisible("#series-list .none")).toBe(true);
      expect(await page.locator("#series-list [role=option] b").allTextContents()).toContain("BTC");
      await page.goto(new URL("/bars?name=BTCC", page.url()).href);
      await page.waitForSelector("#note a");
      expect(await page.textContent("#note")).toContain("No synced series is named “BTCC”. Similar: BTC");
      await page.click("#note a >> nth=0");
      await page.waitForSelector("#chart[data-bars]");
      await page.goto(new URL("/bars?name=btc", page.url()).href);
      await page.waitForSelector("#chart[data-bars]");
      expect(await page.textContent("#name")).toBe("BTC");
    },
  );
});
