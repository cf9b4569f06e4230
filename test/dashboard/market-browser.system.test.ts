import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { amount, quote } from "../../src/dashboard/page/shared/text-format.ts";
import { serveFilledPages } from "../support/daemon/served-pages-harness.ts";
import {
  expectAccessible,
  expectFits,
  findCutElements,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { expectSoon, figure, rounded, until } from "../support/dashboard/moving-figures.ts";

const daemon = serveFilledPages();

const open = (path: string, options?: Parameters<typeof openPage>[1]) =>
  openPage(new URL(path, daemon.address()).href, options);

describe("/market", () => {
  itInBrowser(
    "ranks the assets with the figures of the warehouse, searches, sorts and leads to the bars",
    async () => {
      const page = await open("/market");
      await page.waitForSelector("#ranking tbody tr");
      type Ranked = Record<"asset_id" | "symbol", string> &
        Record<"price_change_7d" | "market_cap" | "usd", number>;
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
      const told = await page.getAttribute('.tile[title^="SOL "]', "title");
      expect(told).toContain(`market cap ${amount(cap("SOL"))} USD`);
      expect(new URL(page.url()).search).toBe("?without=1&scale=sqrt");
      await page.uncheck("#without-first");
      await page.uncheck("#square-root");
      // Exactly 168 hours: hourly closes where ticks are synced, daily ones before, and the price of the ranking.
      const closes = (symbol: string) =>
        daemon.query<
          Record<"ts" | "close", number>
        >(`WITH now AS (SELECT max(ts) AS ts FROM latest_market_caps),
          hours AS (SELECT b.ts + 3600000000 AS ts, b.close FROM bars_1h b, now WHERE b.index_type = 'GWA' AND b.name = '${symbol}'
            AND b.ts + 3600000000 BETWEEN now.ts - 604800000000 AND now.ts)
          SELECT * FROM hours UNION ALL SELECT d.ts + 86400000000, d.close FROM ohlcv d, now WHERE d.index_type = 'GWA' AND d.name = '${symbol}'
            AND d.ts + 86400000000 BETWEEN now.ts - 604800000000 AND coalesce((SELECT min(ts) - 1 FROM hours), now.ts) ORDER BY 1`);
      for (const symbol of ["BTC", "XRP"]) {
        const line = page.locator("#ranking tr", { hasText: symbol }).locator("svg");
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
      await expectAccessible(page, "market");
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
    },
  );
});

describe("/assets", () => {
  itInBrowser("tells what the warehouse knows about one asset, each figure with its SQL", async () => {
    const page = await open("/assets/BTC", phone);
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
    await expectFits(page);
    await expectAccessible(page, "asset-phone");
    await price.locator("a").click();
    await page.waitForURL(/\/explore#sql=/);
    await page.goto(new URL("/assets/BTCX", page.url()).href);
    await page.locator("#empty a", { hasText: "BTC" }).first().click();
    await page.locator("#asset-title", { hasText: "BTC" }).waitFor();
    await page.goto(new URL("/assets", page.url()).href);
    expect(new URL(page.url()).pathname).toBe("/");
  });
});

/** The free widths of the lines of controls that are wider than the gaps between the controls. */
function findHoles(page: Page): Promise<number[]> {
  return page.evaluate(`[...Map.groupBy(
      [...document.querySelectorAll("#controls :is(input, select, button:not([hidden]))")].map((one) => one.getBoundingClientRect()),
      ({ y, height }) => Math.round((y + height / 2) / 20)).values()]
    .map((line) => document.getElementById("controls").clientWidth - line.reduce((sum, { width }) => sum + width, 20 * (line.length - 1)))
    .filter((free) => free > 1)`) as Promise<number[]>;
}

describe("/exchanges", () => {
  itInBrowser("compares the quotes of a pair with each other and with the index, on a phone", async () => {
    // The exchange that stands still trades twice a day, at other times in each pair: one where it was more than an hour ago.
    const [{ pair } = { pair: "" }] = daemon.query<{ pair: string }>(
      `SELECT pair FROM exchange_ticks WHERE exchange = 'Bitfinex' AND pair LIKE 'BTC/%' AND unmoved_seconds BETWEEN 3960 AND 49320
        ORDER BY ts, pair LIMIT 1`,
    );
    const page = await open(`/exchanges/${pair.replace("/", "-")}`, phone);
    await page.waitForSelector("#quotes tbody tr");
    await expectSoon(
      async () => {
        const [, last, , , ...others] = await page.locator('[data-exchange="Kraken"] td').allTextContents();
        return [last, ...others.slice(0, 2).map(figure)];
      },
      () => {
        const [row] = daemon.query<Record<"last" | "spread" | "deviation", number>>(
          `SELECT d.last, s.spread_bps AS spread, d.deviation_bps AS deviation FROM latest_spread s
            JOIN latest_index_deviation d USING (exchange, pair) WHERE exchange = 'Kraken' AND pair = '${pair}'`,
        );
        return [format(row?.last ?? 0), ...[row?.spread, row?.deviation].map((bps) => rounded(bps ?? 0, 1))];
      },
    );
    // What stands still is beside the best, where it looks better.
    await expectSoon(
      async () => {
        const stale = (await page.locator("#facts").textContent())?.split("stale quotes").length;
        return [...(await page.locator("#facts b").allTextContents()).slice(1, 3).map(figure), stale];
      },
      () =>
        daemon
          .query(
            `SELECT round(best_bid, 2), round(best_ask, 2), 1 + (best_bid_any > best_bid) + (best_ask_any < best_ask)
               FROM latest_spread WHERE pair = '${pair}' ORDER BY ts DESC LIMIT 1`,
          )
          .flatMap((row) => Object.values(row)),
    );
    // The exchange that stands still is last, and outside the scale.
    const stillSql = `SELECT exchange FROM latest_spread WHERE pair = '${pair}' AND quality = 'not moved for an hour'`;
    expect(daemon.query(stillSql)).toEqual([{ exchange: "Bitfinex" }]);
    const lastRow = page.locator("#quotes tbody tr").last();
    expect(await lastRow.getAttribute("data-exchange")).toBe("Bitfinex");
    expect(await lastRow.locator(".bar").count()).toBe(0);
    // Each edge is the bid of the column over the ask of the row.
    await expectSoon(
      async () => {
        const heads = await page.locator("#edges thead th").allTextContents();
        const row = page.locator("#edges tbody tr", { has: page.locator("th", { hasText: "Kraken" }) });
        return figure((await row.locator("th, td").allTextContents())[heads.indexOf("Binance")] ?? "");
      },
      () => {
        const [row] = daemon.query<{ edge: number }>(
          `SELECT (b.bid / k.ask - 1) * 10000 AS edge FROM latest_spread k JOIN latest_spread b USING (pair)
            WHERE pair = '${pair}' AND k.exchange = 'Kraken' AND b.exchange = 'Binance'`,
        );
        return rounded(row?.edge ?? Number.NaN, 1);
      },
    );
    expect(await page.locator("#edges tbody tr", { hasText: "Bitfinex" }).count()).toBe(0);
    // A phone has room for four; one pair has more exchanges that move, the other one has fewer.
    const moving = daemon.query(
      `SELECT 1 FROM latest_spread WHERE pair = '${pair}' AND is_live = 1 AND quality IS NULL`,
    ).length;
    expect(await page.textContent("#edges-note")).toBe(moving > 4 ? "the 4 with the most volume" : "");
    expect(await page.locator("#edges tbody tr").count()).toBe(Math.min(moving, 4));
    await expectFits(page);
    await expectAccessible(page, "exchanges-phone");
    expect(await findCutElements(page)).toEqual([]);
    await page.selectOption("#pair", "ETH/USD");
    await page.locator("#pair-title", { hasText: "ETH/USD" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/exchanges/ETH-USD");
    await page.goBack();
    await page.locator("#pair-title", { hasText: pair }).waitFor();
    expect(await page.inputValue("#pair")).toBe(pair);
    await page.goto(new URL("/exchanges/BTC-USDX", page.url()).href);
    await page.locator("#empty a", { hasText: "BTC-USD" }).first().click();
    await page.locator("#pair-title", { hasText: "BTC/USD" }).waitFor();
  });
});

describe("/derivatives", () => {
  itInBrowser("shows basis, funding and an option chain as they were at a moment", async () => {
    // A snapshot is stored exchange by exchange: neither the newest nor the first may be whole.
    const { ts } = await until(
      () =>
        daemon.query<{ ts: number }>(
          `WITH listed AS (SELECT DISTINCT exchange_id, derivative_type FROM derivative_contracts),
            observed AS (SELECT min(ts) AS first FROM derivative_ticks GROUP BY exchange_id, derivative_type)
          SELECT DISTINCT ts FROM derivative_ticks WHERE ts >= (SELECT max(first) FROM observed)
            AND (SELECT count(*) FROM observed) = (SELECT count(*) FROM listed) ORDER BY ts DESC LIMIT 2`,
        )[1],
    );
    const at = new Date(Math.ceil(ts / 1e6) * 1000).toISOString().slice(0, 19);
    const [asset] = daemon.query<{ id: string }>("SELECT id FROM assets WHERE symbol = 'BTC'");
    // The id of an asset names it too.
    const page = await open(`/derivatives/${asset?.id}?at=${at}`, { dark: true });
    await page.waitForSelector("#chain tbody tr");
    const asOf = (view: string) => `FROM ${view} v WHERE v.pair LIKE 'BTC/%'
      AND v.ts = (SELECT max(n.ts) FROM derivative_ticks n WHERE n.contract_id = v.contract_id AND n.ts <= ${ts})`;
    const futures = daemon.query<{ contract_id: string; per_year: number }>(
      `SELECT v.contract_id, v.annualised_basis * 100 AS per_year ${asOf("futures_curve")}`,
    );
    expect(futures.length).toBeGreaterThan(3);
    const cell = async (id: string | undefined, heading: string) => {
      const table = page.locator("table", { has: page.locator(`[data-contract="${id}"]`) });
      const at = (await table.locator("thead th").allTextContents()).indexOf(heading);
      return table.locator(`[data-contract="${id}"] > *`).nth(at).textContent();
    };
    for (const { contract_id, per_year } of futures.slice(0, 6)) {
      const text = await cell(contract_id, "Per year");
      expect(figure(text)).toBeCloseTo(per_year, 1);
    }
    const [perpetual] = daemon.query<{ contract_id: string; funding_rate: number }>(
      `SELECT v.contract_id, v.funding_rate ${asOf("perpetuals")} LIMIT 1`,
    );
    const funding = await cell(perpetual?.contract_id, "Funding, per 8 h");
    expect(figure(funding)).toBeCloseTo((perpetual?.funding_rate ?? 0) * 100, 4);
    const perYear = await cell(perpetual?.contract_id, "Per year");
    expect(figure(perYear)).toBeCloseTo((perpetual?.funding_rate ?? 0) * 100 * 3 * 365, 2);
    expect(await page.textContent("#perpetuals thead")).toContain("Funding, per 8 h");
    expect(await page.textContent("#chain thead")).toContain("Open interest, contracts");
    // By parity a call and a put of one strike have the same volatility.
    // The last expiry: near its own, only few strikes have one.
    await page.selectOption("#expiry", { index: (await page.locator("#expiry option").count()) - 1 });
    const vols = async (side: string) =>
      (await page.locator(`#chain .${side}-iv`).allTextContents()).map(figure);
    const [calls, puts] = [await vols("call"), await vols("put")];
    const both = calls.flatMap((call, i) => (call && puts[i] ? [call - puts[i]] : []));
    expect(both.length).toBeGreaterThan(4);
    expect(Math.max(...both.map(Math.abs))).toBeLessThan(2);
    expect(await page.locator("#smile-plot canvas").count()).toBe(1);
    expect(await page.locator("#smile-plot .u-label").allTextContents()).toEqual([
      ..."strike|open interest, contracts|smile|calls|puts".split("|"),
    ]);
    const expiry = Number(await page.inputValue("#expiry"));
    // Of the contracts with one strike and side, the chain has the one with the most open interest.
    type Listed = Record<"strike" | "bid" | "ask" | "worth" | "interest", number> & { side: string };
    const listed = daemon.query<Listed>(
      `SELECT v.strike, v.option_type AS side, v.bid, v.ask, coalesce(v.mark_price, v.price) AS worth, max(v.open_interest) AS interest
        ${asOf("option_chain")} AND v.expiration = '${new Date(expiry / 1000).toISOString().replace("Z", "000Z")}'
        GROUP BY v.strike, v.option_type ORDER BY v.strike`,
    );
    const chain = (await page.evaluate(
      "[...document.querySelectorAll('#chain tbody tr')].map((row) => [...row.children].map((one) => one.textContent))",
    )) as string[][];
    expect(chain.map((row) => row.filter((_, i) => i !== 1 && i !== 9))).toEqual(
      [...Map.groupBy(listed, ({ strike }) => strike)].map(([strike, both]) => {
        const [call, put] = ["CALL", "PUT"].map((side) => both.find((one) => one.side === side));
        return [
          ...[amount(call?.interest), quote(call?.bid), quote(call?.ask), quote(call?.worth), quote(strike)],
          ...[quote(put?.worth), quote(put?.bid), quote(put?.ask), amount(put?.interest)],
        ];
      }),
    );
    const interest = listed.reduce((sum, one) => sum + one.interest, 0);
    expect(Number(await page.getAttribute("#smile-plot", "data-interest"))).toBeCloseTo(interest, 4);
    await expectAccessible(page, "derivatives");
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
    // On a phone the controls fill each of their lines, with or without the way back to now.
    await page.setViewportSize(phone);
    await takeScreenshot(page, "derivatives-phone");
    expect(await findHoles(page)).toEqual([]);
    await page.click("#newest");
    await page.waitForSelector("#chain tbody tr");
    expect(await findHoles(page)).toEqual([]);
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
      const page = await open("/market", { expected: /Failed to load resource|ERR_/ });
      await page.waitForSelector("#ranking tbody tr");
      const [second, third] = [await page.context().newPage(), await page.context().newPage()];
      const streams: string[] = [];
      second.on("request", (request) => {
        if (request.url().endsWith("/api/events")) streams.push(request.url());
      });
      await second.goto(new URL("/bars/BTC?range=6h", daemon.address()).href);
      await second.waitForSelector("#chart[data-bars]");
      await third.goto(new URL("/assets/BTC", daemon.address()).href);
      await third.waitForSelector('[data-fact="price"]');
      for (const one of [page, second]) await until(async () => (await state(one)) === "live");
      expect(streams).toEqual([]);
      // From here on this page gets no answer: it shows what the commits tell.
      await third.route("**/api/asset?*", () => {});
      const [before, last] = [newestPrice(), await second.textContent("#last")];
      await until(() => newestPrice() !== before);
      await until(async () => (await shownPrice(page)) === format(newestPrice()));
      await until(async () => (await second.textContent("#last")) !== last);
      // The last bar closes at the newest tick.
      await until(async () => {
        const shown = [await second.textContent("#last"), await second.textContent("#bar-details")];
        const newest = format(newestPrice());
        return shown[0] === newest && shown[1]?.includes(`C ${newest}`);
      });
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
