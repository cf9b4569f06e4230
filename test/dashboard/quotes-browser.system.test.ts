import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { amount, quote } from "../../src/dashboard/page/shared/text-format.ts";
import { serveFilledPages } from "../support/daemon/served-pages-harness.ts";
import {
  desktop,
  expectAccessible,
  findCutElements,
  findSidewaysScroll,
  itInBrowser,
  openPage,
  phone,
  takeScreenshot,
} from "../support/dashboard/chromium.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";
import { fillFuturesCurve } from "../support/dashboard/futures-curve.ts";
import { expectSoon, figure, rounded, until } from "../support/dashboard/moving-figures.ts";

const daemon = serveFilledPages();

const open = (path: string, options: Parameters<typeof openPage>[1]) =>
  openPage(new URL(path, daemon.address()).href, options);

const cells = (page: Page, row: string) => page.locator(`${row} td`).allTextContents();

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
    const { page, complaints } = await open(`/exchanges/${pair.replace("/", "-")}`, phone);
    await page.waitForSelector("#quotes tbody tr");
    const last = async () => (await cells(page, '[data-exchange="Kraken"]'))[1];
    await expectSoon(last, () => {
      const [row] = daemon.query<{ last: number }>(
        `SELECT last FROM latest_exchange_ticks WHERE exchange = 'Kraken' AND pair = '${pair}'`,
      );
      return row?.last.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    });
    await expectSoon(
      async () => (await cells(page, '[data-exchange="Kraken"]')).slice(4, 6).map(figure),
      () => {
        const [row] = daemon.query<{ spread: number; deviation: number }>(
          `SELECT s.spread_bps AS spread, d.deviation_bps AS deviation FROM latest_spread s JOIN latest_index_deviation d USING (exchange, pair)
            WHERE exchange = 'Kraken' AND pair = '${pair}'`,
        );
        return [row?.spread, row?.deviation].map((points) => rounded(points ?? 0, 1));
      },
    );
    // What stands still is beside the best, where it looks better.
    await expectSoon(
      async () => {
        const unmoved = (await page.locator("#facts").textContent())?.split("unmoved").length;
        return [...(await page.locator("#facts b").allTextContents()).slice(1, 3).map(figure), unmoved];
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
    expect(await findSidewaysScroll(page)).toEqual([]);
    await expectAccessible(page);
    await takeScreenshot(page, "exchanges-phone");
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
    expect(complaints).toEqual([]);
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
    // An address of an earlier version.
    const { page, complaints } = await open(
      `/derivatives?${new URLSearchParams({ asset: asset?.id ?? "", at })}`,
      { ...desktop, dark: true },
    );
    await page.waitForSelector("#chain tbody tr");
    const asOf = (view: string) => `FROM ${view} v WHERE v.pair LIKE 'BTC/%'
      AND v.ts = (SELECT max(n.ts) FROM derivative_ticks n WHERE n.contract_id = v.contract_id AND n.ts <= ${ts})`;
    const futures = daemon.query<{ contract_id: string; per_year: number }>(
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
    const perYear = await page.textContent(`[data-contract="${perpetual?.contract_id}"] .per-year`);
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
    // On a phone the controls fill each of their lines, with or without the way back to now.
    await page.setViewportSize(phone);
    await takeScreenshot(page, "derivatives-phone");
    expect(await findHoles(page)).toEqual([]);
    await page.click("#newest");
    await page.waitForSelector("#chain tbody tr");
    expect(await findHoles(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
});

describe("the futures of an asset", () => {
  itInBrowser("have a curve of six exchanges, which tells how many quote them", async () => {
    const { path, connection } = openFilledWarehouse(fillFuturesCurve);
    const { address } = await serveDashboard(path);
    const { page, complaints } = await openPage(new URL("derivatives/BTC", address).href, desktop);
    await page.waitForSelector("#curve-plot canvas");
    const quoting = connection.database
      .prepare(
        "SELECT count(DISTINCT exchange) FROM latest_futures_curve WHERE pair = 'BTC/USD' AND annualised_basis IS NOT NULL",
      )
      .pluck()
      .get();
    expect(quoting).toBe(7);
    expect(await page.textContent("#curve-note")).toBe(` · 6 of ${quoting} exchanges`);
    // The first label is that of the axis.
    expect(await page.locator("#curve-plot .u-label").count()).toBe(1 + 6);
    await page.selectOption("#exchange", "Exchange 3");
    await page.locator("#curve-note", { hasText: /^$/ }).waitFor({ state: "attached" });
    expect(complaints).toEqual([]);
  });
});
