import { afterAll, beforeAll, describe, expect } from "vitest";
import { formatTimestamp } from "../../src/model/time.ts";
import { fillDailyBars } from "../support/dashboard/bars-warehouse.ts";
import {
  desktop,
  expectAccessible,
  expectFits,
  itInBrowser,
  openPage,
  phone,
} from "../support/dashboard/chromium.ts";
import { serveFilled } from "../support/dashboard/dashboard-harness.ts";
import { fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";

let address: string;
beforeAll(async () => {
  ({ address } = await serveFilled(fillDailyBars, afterAll));
});

async function openBars(options?: Parameters<typeof openPage>[1]) {
  const page = await openPage(new URL("/bars/BTC?width=1h&range=1d", address).href, options);
  await page.waitForSelector("#chart[data-bars]");
  return page;
}

describe("a search", () => {
  itInBrowser("from any page leads to series, pairs and relations with the keyboard alone", async () => {
    const page = await openPage(address);
    await page.keyboard.press("/");
    await page.keyboard.type("ripple");
    await page.locator("#search-text-list a", { hasText: "XRP" }).first().waitFor();
    await expectAccessible(page, "search");
    await page.keyboard.press("Escape");
    expect(await page.isVisible("#search-dialog")).toBe(false);
    await page.keyboard.press("/");
    await page.keyboard.type("ripple");
    // The page of the asset first, then its bars.
    await page.locator('#search-text-list a[href="/assets/XRP"][aria-selected=true]').waitFor();
    await page.locator("#search-text-list a:nth-of-type(3)").waitFor({ state: "detached" });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector('#chart[data-series="xrp-id"]');
    await page.keyboard.press("/");
    await page.keyboard.type("bars_1");
    // Its first letters also find series: the arrow waits for the answer about all of it.
    await page.locator("#search-text-list a:first-of-type", { hasText: "bars_1" }).first().waitFor();
    await page.keyboard.press("ArrowDown");
    const name = await page.textContent("#search-text-list a:nth-of-type(2)[aria-selected=true] b");
    await page.keyboard.press("Enter");
    await page.locator("#editor", { hasText: `SELECT * FROM ${name} LIMIT 100` }).waitFor();
    // What is typed into an editor stays there.
    await page.locator("#editor .cm-content").press("/");
    expect(await page.isVisible("#search-dialog")).toBe(false);
  });

  itInBrowser("of a fast typist chooses from the answer about all that was typed", async () => {
    const page = await openBars();
    let release = () => {};
    /** Every answer about a text that was typed waits until `release`. */
    const hold = (path: string) => {
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      return page.route(
        (url) => url.pathname === path && url.searchParams.get("name") !== "",
        async (route) => {
          await released;
          await route.continue();
        },
      );
    };
    await hold("/api/series");
    await page.focus("#series");
    await page.waitForSelector("#series-list [aria-selected=true]");
    await page.keyboard.type("eth");
    await page.keyboard.press("Enter");
    release();
    await page.waitForSelector('#chart[data-series="eth-id"]');

    await hold("/api/search");
    await page.keyboard.press("/");
    await page.waitForSelector("#search-text-list [aria-selected=true]");
    await page.keyboard.type("ripple");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    release();
    await page.waitForSelector('#chart[data-series="xrp-id"]');

    // Escape takes the keys back.
    await hold("/api/search");
    await page.keyboard.press("/");
    await page.waitForSelector("#search-text-list [aria-selected=true]");
    await page.keyboard.type("litecoin");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    const answered = page.waitForResponse(/name=litecoin$/);
    release();
    await (await answered).finished();
    expect(new URL(page.url()).pathname).toBe("/bars/XRP");
    expect(await page.isVisible("#search-dialog")).toBe(false);

    // Open again before the browser tells that it was closed.
    await page.evaluate(`document.getElementById("search-open").click();
      document.getElementById("search-dialog").close();
      document.getElementById("search-open").click()`);
    await page.keyboard.type("litecoin");
    await page.waitForSelector('#search-text-list a[href="/assets/LTC"][aria-selected=true]');
  });

  itInBrowser(
    "finds series to compare from 100 on, which the address keeps beside the log scale",
    async () => {
      const page = await openBars({ dark: true });
      await page.check("#log");
      await page.fill("#compare", "eth");
      await page.locator("#compare-list [role=option]:first-child b", { hasText: /^ETH$/ }).waitFor();
      await page.press("#compare", "Enter");
      await page.waitForSelector('#chart[data-overlays="1"]');
      expect(await page.textContent("#overlays")).toMatch(/^ETH GWA/);
      expect(await page.isDisabled("#log")).toBe(true);
      expect(new URL(page.url()).searchParams.get("log")).toBe("1");
      await page.click("#tab-ratio");
      await page.reload();
      await page.waitForSelector('#chart[data-overlays="1"]');
      expect(await page.getAttribute("#tab-ratio", "aria-selected")).toBe("true");
      await expectAccessible(page, "bars-ratio");
      await page.click("#overlays button");
      await page.waitForSelector('#chart[data-overlays="0"]');
      await expectAccessible(page, "bars-compare");
    },
  );
});

itInBrowser("a search leads to the candles of a ticker, with its proof and other series", async () => {
  const { address } = await serveFilled(fillSnapshots);
  const page = await openPage(new URL("/sync", address).href);
  for (const [name, text, title, price, size] of [
    ["Kraken:BTC-USD", "kraken:btc/", "Kraken:BTC/USD ticker 109.00", ["last", "bid"], desktop],
    ["cap:BTC", "cap:bit", "cap:BTC market cap", ["market cap", "price"], phone],
  ] as const) {
    await page.setViewportSize(size);
    await page.locator("#search-open").click();
    await page.keyboard.type(text);
    await page.locator(`#search-text-list a[href="/bars/${name}"]`).waitFor();
    const [from, to] = [SNAPSHOTS_FROM, SNAPSHOTS_FROM + 10 * MINUTE].map(formatTimestamp);
    const shown = `width=1m&from=${from}&to=${to}&with=Kraken:BTCUSD-PERP&with=BTC`;
    await page.goto(new URL(`/bars/${name}?${shown}`, address).href);
    await page.waitForSelector('#chart[data-bars="9"][data-overlays="2"]');
    expect(await page.locator("h1").textContent()).toContain(title);
    const gaps = page.locator("section", { hasText: "Gaps in view" }).last();
    expect(await gaps.textContent()).toMatch(/lost.*not observed/);
    const figures = page.locator("#of option");
    expect((await figures.allTextContents()).slice(0, 2)).toEqual(price);
    await page.selectOption("#of", { index: 1 });
    await page.waitForSelector('#chart[data-bars="9"][data-overlays="2"]');
    expect(new URL(page.url()).searchParams.get("of")).toBe(price[1].replaceAll(" ", "_"));
    await expectFits(page, `bars-of-${name.slice(0, 3)}`);
  }
});
