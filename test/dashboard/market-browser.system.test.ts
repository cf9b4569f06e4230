import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { amount } from "../../src/dashboard/page/shared/text-format.ts";
import { serveFilledPages } from "../support/daemon/served-pages-harness.ts";
import {
  desktop,
  expectAccessible,
  findSidewaysScroll,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { expectSoon, figure, rounded, until } from "../support/dashboard/moving-figures.ts";

const daemon = serveFilledPages();

const open = (path: string, options: Parameters<typeof openPage>[1]) =>
  openPage(new URL(path, daemon.address()).href, options);

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
        usd: number;
      }
      const readRanked = () =>
        daemon.query<Ranked>(
          "SELECT asset_id, symbol, price_change_7d, market_cap, volume * price AS usd FROM latest_market_caps ORDER BY rank",
        );
      const shown = async () => {
        const rows = await page
          .locator("#ranking tbody tr")
          .evaluateAll((list) =>
            list.map((row) => [
              row.getAttribute("data-id"),
              ...[1, 4, 7].map((at) => row.children[at]?.textContent ?? ""),
            ]),
          );
        return rows.map(([id, asset, change, volume]) => [
          ...[id, String(asset).split(" ")[0], figure(change ?? null), volume],
        ]);
      };
      await expectSoon(shown, () =>
        readRanked().map((one) => [
          ...[one.asset_id, one.symbol, rounded(one.price_change_7d, 2), amount(one.usd)],
        ]),
      );
      // The areas of the tiles are in the proportion of the market caps.
      const area = async (symbol: string) => {
        const box = await page.locator(`.tile[title^="${symbol} "]`).boundingBox();
        return (box?.width ?? 0) * (box?.height ?? 0);
      };
      const cap = (symbol: string) => readRanked().find((one) => one.symbol === symbol)?.market_cap ?? 0;
      expect((await area("ETH")) / (await area("BTC"))).toBeCloseTo(cap("ETH") / cap("BTC"), 1);
      await page.check("#square-root");
      expect((await area("ETH")) / (await area("BTC"))).toBeCloseTo(Math.sqrt(cap("ETH") / cap("BTC")), 1);
      await page.check("#without-first");
      expect(await page.locator('.tile[title^="BTC "]').count()).toBe(0);
      expect(await page.getAttribute('.tile[title^="SOL "]', "title")).toContain(
        `market cap ${amount(cap("SOL"))} USD`,
      );
      expect(new URL(page.url()).search).toBe("?without=1&scale=sqrt");
      await page.uncheck("#without-first");
      await page.uncheck("#square-root");
      // Exactly 168 hours: hourly closes where ticks are synced, daily ones before, and the price of the ranking.
      const closes = (symbol: string) =>
        daemon.query<{
          ts: number;
          close: number;
        }>(`WITH now AS (SELECT max(ts) AS ts FROM latest_market_caps),
          hours AS (SELECT b.ts + 3600000000 AS ts, b.close FROM bars_1h b, now WHERE b.index_type = 'GWA' AND b.name = '${symbol}'
            AND b.ts + 3600000000 BETWEEN now.ts - 604800000000 AND now.ts)
          SELECT * FROM hours UNION ALL SELECT d.ts + 86400000000, d.close FROM ohlcv d, now WHERE d.index_type = 'GWA' AND d.name = '${symbol}'
            AND d.ts + 86400000000 BETWEEN now.ts - 604800000000 AND coalesce((SELECT min(ts) - 1 FROM hours), now.ts) ORDER BY 1`);
      for (const symbol of ["BTC", "XRP"]) {
        const line = page.locator("#ranking tr", { hasText: symbol }).locator(".sparkline");
        const path = (await line.locator("path").getAttribute("d")) ?? "";
        const xs = path.slice(1).split("L").map(Number.parseFloat);
        const stored = closes(symbol);
        // An hour may have ended since.
        expect(Math.abs(xs.length - stored.length - 1), symbol).toBeLessThanOrEqual(1);
        expect(xs).toEqual(xs.toSorted((a, b) => a - b));
        const hours = ((stored[1]?.ts ?? 0) - (stored[0]?.ts ?? 0)) / 3.6e9;
        expect((((xs[1] ?? 0) - (xs[0] ?? 0)) / 110) * 168, symbol).toBeCloseTo(hours, -0.5);
        const [first, last] = [stored[0], stored.at(-1)];
        const trend = (last?.close ?? 0) > (first?.close ?? 0) ? "up" : "down";
        if (Math.abs((last?.close ?? 0) / (first?.close ?? 1) - 1) > 0.005)
          expect(await line.getAttribute("class"), symbol).toContain(trend);
      }
      await takeScreenshot(page, "market");
      await expectAccessible(page);
      await page.click("#ranking thead th:nth-child(4) button");
      const changes = (await page.locator("#ranking tbody td:nth-child(4)").allTextContents()).map(figure);
      expect(changes).toEqual(changes.toSorted((a, b) => b - a));
      expect(new URL(page.url()).search).toBe("?sort=-24h");
      await page.reload();
      await page.waitForSelector("#ranking tbody tr");
      expect(await page.getAttribute("#ranking thead th:nth-child(4)", "aria-sort")).toBe("descending");
      expect((await page.locator("#ranking tbody td:nth-child(4)").allTextContents()).map(figure)).toEqual(
        changes.toSorted((a, b) => b - a),
      );
      await page.fill("#search", "ethereum");
      expect(await page.locator("#ranking tbody b").allTextContents()).toEqual(["ETH"]);
      await page.click("#ranking tbody a");
      await page.waitForSelector("#parts .card");
      expect(new URL(page.url()).pathname).toBe("/assets/ETH");
      await page.goBack();
      await page.click('.tile[title^="SOL "]');
      await page.locator("#asset-title", { hasText: "SOL" }).waitFor();
      await page.goto(new URL("/assets/ETH", page.url()).href);
      await page.waitForSelector("#parts .card");
      await page.click("#to-bars");
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

describe("/assets", () => {
  itInBrowser("tells what the warehouse knows about one asset, each figure with its SQL", async () => {
    const { page, complaints, elsewhere } = await open("/assets/BTC", phone);
    await page.waitForSelector("#parts .card >> nth=6");
    const part = (name: string) => page.locator("#parts section", { hasText: name });
    const sqlOf = async (name: string) =>
      new URLSearchParams((await part(name).locator(".card-head a").getAttribute("href"))?.split("#")[1]).get(
        "sql",
      ) ?? "";
    // What a part shows are the rows of its SQL, read at the same moment.
    await expectSoon(
      async () => {
        await page.reload();
        await page.waitForSelector("#parts .card >> nth=6");
        return (await part("On exchanges").locator("tbody td:nth-child(3)").allTextContents()).map(figure);
      },
      () =>
        daemon
          .query<{ deviation_bps: number }>(
            `SELECT d.deviation_bps FROM latest_exchange_ticks t JOIN latest_index_deviation d USING (exchange, pair)
              JOIN latest_spread s USING (exchange, pair)
              WHERE pair = 'BTC/USD' AND t.is_live = 1 ORDER BY s.quality IS NOT NULL, t.volume * t.last DESC LIMIT 10`,
          )
          .map(({ deviation_bps }) => rounded(deviation_bps, 1)),
    );
    for (const [name, column] of Object.entries({
      "Curve of futures": "annualised_basis",
      "Daily bars against ticks": "close",
      Proof: "stream",
    })) {
      const rows = daemon.query<Record<string, unknown>>(await sqlOf(name));
      expect(rows.length, name).toBeGreaterThan(0);
      expect(rows[0], name).toHaveProperty(column);
      expect(await part(name).locator("tbody tr").count(), name).toBe(rows.length);
    }
    const dailySql = await sqlOf("Daily bars against ticks");
    await expectSoon(
      () => part("Daily bars against ticks").locator("tbody td:nth-child(5)").allTextContents(),
      () =>
        daemon.query<{ coverage: number }>(dailySql).map(({ coverage }) => `${Math.floor(coverage * 100)} %`),
    );
    expect(await part("Proof").locator("th").allTextContents()).toContain("From (UTC)");
    const price = page.locator('[data-fact="price"] b');
    await expectSoon(
      () => price.textContent(),
      () => format(newestPrice()),
    );
    expect(Number(await page.getAttribute("#price-plot", "data-points"))).toBe(
      daemon.query("SELECT 1 FROM bars_1h WHERE index_type = 'GWA' AND name = 'BTC'").length,
    );
    expect(await findSidewaysScroll(page)).toEqual([]);
    await expectAccessible(page);
    await takeScreenshot(page, "asset-phone");
    await price.locator("a").click();
    await page.waitForURL(/\/explore#sql=/);
    await page.goto(new URL("/assets/BTCX", page.url()).href);
    await page.locator("#empty a", { hasText: "BTC" }).first().click();
    await page.locator("#asset-title", { hasText: "BTC" }).waitFor();
    await page.goto(new URL("/assets", page.url()).href);
    expect(new URL(page.url()).pathname).toBe("/");
    expect(complaints).toEqual([]);
    expect(elsewhere).toEqual([]);
  });
});

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
      await until(async () => (await state(page)) === "live");
      const before = newestPrice();
      await until(() => newestPrice() !== before);
      await until(async () => (await shownPrice(page)) === format(newestPrice()));
      const second = await page.context().newPage();
      const streams: string[] = [];
      second.on("request", (request) => {
        if (request.url().endsWith("/api/events")) streams.push(request.url());
      });
      await second.goto(new URL("/bars/BTC?range=6h", daemon.address()).href);
      await second.waitForSelector("#chart[data-bars]");
      await until(async () => (await state(second)) === "live");
      expect(streams).toEqual([]);
      // From here on the page gets no answer: it shows what the commits tell.
      await second.route("**/api/bars?*", () => {});
      const last = await second.textContent("#last");
      await until(async () => (await second.textContent("#last")) !== last);
      // The last bar closes at the newest tick.
      await until(async () => {
        const shown = [await second.textContent("#last"), await second.textContent("#bar-details")];
        const newest = format(newestPrice());
        return shown[0] === newest && shown[1]?.includes(`C ${newest}`);
      });
      await second.unroute("**/api/bars?*");
      const third = await page.context().newPage();
      await third.goto(new URL("/assets/BTC", daemon.address()).href);
      await third.waitForSelector('[data-fact="price"]');
      await third.route("**/api/asset?*", () => {});
      const told = newestPrice();
      await until(() => newestPrice() !== told);
      await until(async () => (await third.textContent('[data-fact="price"] b')) === format(newestPrice()));
      await third.close();
      await daemon.restart(async () => {
        await until(async () => (await state(page)) === "stale");
        await until(async () => (await second.textContent("#live-text")) === "no connection");
      });
      await until(async () => (await state(page)) === "live");
      await until(async () => (await shownPrice(page)) === format(newestPrice()));
      // The tab with the connection closes: the other one takes over.
      await page.close();
      await until(() => streams.length === 1);
      await until(async () => (await state(second)) === "live");
    },
  );
});
