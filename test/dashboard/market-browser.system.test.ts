import type { Page } from "playwright-core";
import { describe, expect, vi } from "vitest";
import { serveFilledPages } from "../support/daemon/served-pages-harness.ts";
import {
  desktop,
  expectAccessible,
  horizontalOverflow,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { timeLimit } from "../support/time-limit.ts";

const daemon = serveFilledPages();

const open = (path: string, options: Parameters<typeof openPage>[1]) =>
  openPage(new URL(path, daemon.address()).href, options);

/** The figure in a text: `164,231.45`, `+2.1 %`, `−3.0 bp`. */
const figure = (text: string | null) => Number((text ?? "").replaceAll(/[^\d.−-]/g, "").replace("−", "-"));

function cells(page: Page, row: string): Promise<string[]> {
  return page.locator(`${row} td`).allTextContents();
}

/** A value that live ticks change: the page and the warehouse agree at some moment. */
async function expectSoon(read: () => Promise<unknown>, expected: () => unknown): Promise<void> {
  await vi.waitFor(async () => expect(await read()).toEqual(expected()), {
    timeout: timeLimit(20_000),
    interval: 200,
  });
}

describe("/market", () => {
  itInBrowser(
    "ranks the assets with the figures of the warehouse, searches, sorts and leads to the bars",
    async () => {
      const { page, complaints, elsewhere } = await open("/market", desktop);
      await page.waitForSelector("#ranking tbody tr");
      interface Ranked {
        asset_id: string;
        symbol: string;
        price_change_7d: number;
        market_cap: number;
      }
      const readRanked = () =>
        daemon.query<Ranked>(
          "SELECT asset_id, symbol, price_change_7d, market_cap FROM latest_market_caps ORDER BY rank",
        );
      const shown = async () => {
        const rows = await page
          .locator("#ranking tbody tr")
          .evaluateAll((list) =>
            list.map((row) => [
              row.getAttribute("data-id"),
              ...[1, 4].map((at) => row.children[at]?.textContent ?? ""),
            ]),
          );
        return rows.map(([id, asset, change]) => [id, String(asset).split(" ")[0], figure(change ?? null)]);
      };
      await expectSoon(shown, () =>
        readRanked().map((one) => [one.asset_id, one.symbol, Number(one.price_change_7d.toFixed(2))]),
      );
      // The areas of the tiles are in the proportion of the market caps.
      const area = async (symbol: string) => {
        const box = await page.locator(`.tile[title^="${symbol} "]`).boundingBox();
        return (box?.width ?? 0) * (box?.height ?? 0);
      };
      const cap = (symbol: string) => readRanked().find((one) => one.symbol === symbol)?.market_cap ?? 0;
      expect((await area("ETH")) / (await area("BTC"))).toBeCloseTo(cap("ETH") / cap("BTC"), 1);
      expect(await page.locator("#ranking .sparkline").count()).toBeGreaterThan(5);
      await takeScreenshot(page, "market");
      await expectAccessible(page);
      await page.click("#ranking thead th:nth-child(4) button");
      const changes = (await page.locator("#ranking tbody td:nth-child(4)").allTextContents()).map(figure);
      expect(changes).toEqual(changes.toSorted((a, b) => b - a));
      await page.fill("#search", "ethereum");
      expect(await page.locator("#ranking tbody b").allTextContents()).toEqual(["ETH"]);
      await page.click("#ranking tbody a");
      await page.waitForSelector("#chart[data-bars]");
      expect(await page.textContent("#name")).toBe("ETH");
      expect(complaints).toEqual([]);
      expect(elsewhere).toEqual([]);
    },
  );

  itInBrowser("compares series from 100 on, on a log scale, and keeps that in its address", async () => {
    const { page, complaints } = await open("/bars/BTC?range=1d&width=1h", { ...desktop, dark: true });
    await page.waitForSelector("#chart[data-bars]");
    await page.check("#log");
    await page.fill("#compare", "eth");
    await page.locator("#compare-list [role=option]:first-child b", { hasText: /^ETH$/ }).waitFor();
    await page.press("#compare", "Enter");
    await page.waitForSelector('#chart[data-overlays="1"]');
    expect(await page.textContent("#overlays")).toMatch(/^ETH GWA/);
    expect(await page.isDisabled("#log")).toBe(true);
    expect(new URL(page.url()).searchParams.get("log")).toBe("1");
    await page.reload();
    await page.waitForSelector('#chart[data-overlays="1"]');
    await page.click("#overlays button");
    await page.waitForSelector('#chart[data-overlays="0"]');
    await takeScreenshot(page, "bars-compare");
    await expectAccessible(page);
    expect(complaints).toEqual([]);
  });
});

describe("/exchanges", () => {
  itInBrowser("compares the quotes of a pair with each other and with the index, on a phone", async () => {
    const { page, complaints } = await open("/exchanges/BTC-USD", phone);
    await page.waitForSelector("#quotes tbody tr");
    const last = async () => (await cells(page, '[data-exchange="Kraken"]'))[1];
    await expectSoon(last, () => {
      const [row] = daemon.query<{ last: number }>(
        "SELECT last FROM latest_exchange_ticks WHERE exchange = 'Kraken' AND pair = 'BTC/USD'",
      );
      return row?.last.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    });
    await expectSoon(
      async () => (await cells(page, '[data-exchange="Kraken"]')).slice(4, 6).map(figure),
      () => {
        const [row] = daemon.query<{ spread: number; deviation: number }>(
          `SELECT s.spread_bps AS spread, d.deviation_bps AS deviation FROM latest_spread s JOIN latest_index_deviation d USING (exchange, pair)
            WHERE exchange = 'Kraken' AND pair = 'BTC/USD'`,
        );
        return [row?.spread, row?.deviation].map((points) => Number(points?.toFixed(1)));
      },
    );
    const facts = () => page.locator("#facts b").allTextContents();
    await expectSoon(
      async () => (await facts()).slice(1, 3).map(figure),
      () => {
        const [best] = daemon.query<{ bid: number; ask: number }>(
          "SELECT round(best_bid, 2) AS bid, round(best_ask, 2) AS ask FROM latest_spread WHERE pair = 'BTC/USD' ORDER BY ts DESC LIMIT 1",
        );
        return [best?.bid, best?.ask];
      },
    );
    expect(await horizontalOverflow(page)).toBeLessThanOrEqual(0);
    await expectAccessible(page);
    await takeScreenshot(page, "exchanges-phone");
    await page.selectOption("#pair", "ETH/USD");
    await page.locator("#pair-title", { hasText: "ETH/USD" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/exchanges/ETH-USD");
    await page.goBack();
    await page.locator("#pair-title", { hasText: "BTC/USD" }).waitFor();
    expect(await page.inputValue("#pair")).toBe("BTC/USD");
    await page.goto(new URL("/exchanges/BTC-USDX", page.url()).href);
    await page.locator("#empty a", { hasText: "BTC-USD" }).first().click();
    await page.locator("#pair-title", { hasText: "BTC/USD" }).waitFor();
    expect(complaints).toEqual([]);
  });
});

describe("/derivatives", () => {
  itInBrowser("shows basis, funding and an option chain as they were at a moment", async () => {
    // A snapshot is stored exchange by exchange: the newest may not be whole yet.
    const { ts } = await vi.waitUntil(
      () =>
        daemon.query<{ ts: number }>("SELECT DISTINCT ts FROM derivative_ticks ORDER BY ts DESC LIMIT 2")[1],
      WAIT_OPTIONS,
    );
    const at = new Date(Math.ceil(ts / 1e6) * 1000).toISOString().slice(0, 19);
    const [asset] = daemon.query<{ id: string }>("SELECT id FROM assets WHERE symbol = 'BTC'");
    // An address of an earlier version.
    const { page, complaints } = await open(
      `/derivatives?${new URLSearchParams({ asset: asset?.id ?? "", at })}`,
      { ...desktop, dark: true },
    );
    await page.waitForSelector("#chain tbody tr");
    interface Future {
      contract_id: string;
      per_year: number;
    }
    const asOf = (view: string) => `FROM ${view} v WHERE v.pair LIKE 'BTC/%'
      AND v.ts = (SELECT max(n.ts) FROM derivative_ticks n WHERE n.contract_id = v.contract_id AND n.ts <= ${ts})`;
    const futures = daemon.query<Future>(
      `SELECT v.contract_id, v.annualised_basis * 100 AS per_year ${asOf("futures_curve")}`,
    );
    expect(futures.length).toBeGreaterThan(3);
    for (const { contract_id, per_year } of futures.slice(0, 6)) {
      const text = await page.textContent(`[data-contract="${contract_id}"] .per-year`);
      expect(figure(text)).toBeCloseTo(per_year, 1);
    }
    const [perpetual] = daemon.query<{ contract_id: string; funding_rate: number }>(
      `SELECT v.contract_id, v.funding_rate ${asOf("perpetuals")} LIMIT 1`,
    );
    const funding = await page.textContent(`[data-contract="${perpetual?.contract_id}"] .funding`);
    expect(figure(funding)).toBeCloseTo((perpetual?.funding_rate ?? 0) * 100, 4);
    // By parity a call and a put of one strike have the same volatility.
    const vols = async (side: string) =>
      (await page.locator(`#chain .${side}-iv`).allTextContents()).map(figure);
    const [calls, puts] = [await vols("call"), await vols("put")];
    expect(calls.length).toBeGreaterThan(4);
    expect(Math.abs((calls[1] ?? 0) - (puts[1] ?? 0))).toBeLessThan(2);
    expect(await page.locator("#smile-plot canvas").count()).toBe(1);
    await takeScreenshot(page, "derivatives");
    await expectAccessible(page);
    await page.selectOption("#exchange", { index: 1 });
    const exchange = await page.inputValue("#exchange");
    const exchanges = () => page.locator("#futures tbody tr td:nth-child(2)").allTextContents();
    await expectSoon(
      async () => [...new Set(await exchanges())],
      () => [exchange],
    );
    expect(new URL(page.url()).pathname).toBe("/derivatives/BTC");
    await page.goBack();
    await expectSoon(
      () => page.inputValue("#exchange"),
      () => "",
    );
    await page.fill("#at", "2020-01-01T00:00:00");
    await page.dispatchEvent("#at", "change");
    await page.locator("#derivatives-note", { hasText: "Nothing was observed" }).waitFor();
    expect(complaints).toEqual([]);
  });
});

const WAIT_OPTIONS = { timeout: timeLimit(30_000), interval: 100 };

const newestPrice = () =>
  daemon.query<{ price: number }>(
    "SELECT price FROM latest_index_ticks WHERE index_type = 'GWA' AND name = 'BTC'",
  )[0]?.price ?? 0;
const format = (price: number) =>
  price.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const shownPrice = (page: Page) =>
  page.locator("#ranking tr", { hasText: "BTC" }).locator(".price").textContent();
const state = (page: Page) => page.getAttribute("#live", "data-state");

describe("a page that is left open", () => {
  itInBrowser(
    "moves with each commit, shares one connection, and recovers when the daemon returns",
    async () => {
      const { page } = await openPage(new URL("/market", daemon.address()).href, desktop);
      await page.waitForSelector("#ranking tbody tr");
      await vi.waitUntil(async () => (await state(page)) === "live", WAIT_OPTIONS);
      const before = newestPrice();
      await vi.waitUntil(() => newestPrice() !== before, WAIT_OPTIONS);
      await vi.waitUntil(async () => (await shownPrice(page)) === format(newestPrice()), WAIT_OPTIONS);

      const second = await page.context().newPage();
      const streams: string[] = [];
      second.on("request", (request) => {
        if (request.url().endsWith("/api/events")) streams.push(request.url());
      });
      await second.goto(new URL("/bars/BTC?range=6h", daemon.address()).href);
      await second.waitForSelector("#chart[data-bars]");
      await vi.waitUntil(async () => (await state(second)) === "live", WAIT_OPTIONS);
      expect(streams).toEqual([]);
      const last = await second.textContent("#last");
      await vi.waitUntil(async () => (await second.textContent("#last")) !== last, WAIT_OPTIONS);
      // The last bar closes at the newest tick.
      await vi.waitUntil(async () => {
        const shown = [await second.textContent("#last"), await second.textContent("#bar-details")];
        const newest = format(newestPrice());
        return shown[0] === newest && shown[1]?.includes(`C ${newest}`);
      }, WAIT_OPTIONS);

      await daemon.restart(async () => {
        await vi.waitUntil(async () => (await state(page)) === "stale", WAIT_OPTIONS);
        await vi.waitUntil(
          async () => (await second.textContent("#live-text")) === "no connection",
          WAIT_OPTIONS,
        );
      });
      await vi.waitUntil(async () => (await state(page)) === "live", WAIT_OPTIONS);
      await vi.waitUntil(async () => (await shownPrice(page)) === format(newestPrice()), WAIT_OPTIONS);
      // The tab with the connection closes: the other one takes over.
      await page.close();
      await vi.waitUntil(() => streams.length === 1, WAIT_OPTIONS);
      await vi.waitUntil(async () => (await state(second)) === "live", WAIT_OPTIONS);
    },
  );
});
