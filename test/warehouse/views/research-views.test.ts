import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openReader } from "../../../src/warehouse/reader.ts";
import { researchViews } from "../../../src/warehouse/views/research-views.ts";
import { openCatalogue } from "../../docs/cookbook/engines.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { compareRelations, exportIn, inWarehouse } from "../../support/export/read-export.ts";
import type { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fillOddMarket, ODD_MARKET_TS } from "../../support/warehouse/odd-market.ts";

type Row = Record<string, unknown>;

const HOUR = 3_600_000_000;
const SECOND = 1_000_000;
const folder = temporaryFolder(afterAll);
const demo = join(folder, "demo");
const odd = join(folder, "odd");
let clock: ManualClock;
let oracle: Simulator["oracle"];

function rowsOf(where: string, sql: string): Row[] {
  const reader = openReader(join(where, "mds.sqlite"));
  try {
    return reader.database.prepare(sql).all() as Row[];
  } finally {
    reader.close();
  }
}

beforeAll(async () => {
  mkdirSync(demo);
  mkdirSync(odd);
  const filled = await fillDemoWarehouse(demo);
  renameSync(filled.path, join(demo, "mds.sqlite"));
  ({ clock, oracle } = filled);
  fillOddMarket(join(odd, "mds.sqlite"));
  await exportIn(odd);
});

describe("the research views on a simulated market", () => {
  const ms = (ts: unknown) => Number(ts) / 1000;
  const by =
    (...columns: string[]) =>
    (a: Row, b: Row) =>
      columns.reduce(
        (sign, name) => sign || (String(a[name]) < String(b[name]) ? -1 : Number(a[name] !== b[name])),
        0,
      );
  const markets = () =>
    new Map(
      inWarehouse(join(demo, "mds.sqlite"), "SELECT id, pair FROM markets") as [id: string, pair: string][],
    );
  const exchanges = () => inWarehouse(join(demo, "mds.sqlite"), "SELECT id, name FROM exchanges");
  const snapshots = (table: string) =>
    inWarehouse(join(demo, "mds.sqlite"), `SELECT DISTINCT ts FROM ${table}`).map(([ts]) => Number(ts));
  /** The service's ticks without the 90 minutes that the demo lacks. */
  const ticksOf = (name: string) => {
    const [[id, first] = []] = inWarehouse(
      join(demo, "mds.sqlite"),
      `SELECT index_id, first_ts FROM index_tick_spans WHERE index_type = 'GWA' AND name = '${name}'`,
    );
    const lacks = (at: string) => name === "ETH" && at >= "2026-02-28T06:30:00" && at < "2026-02-28T08:00:00";
    return oracle
      .indexTicks("GWA", String(id), ms(first), clock.now(), clock.now())
      .filter(({ timestamp }) => !lacks(timestamp));
  };

  it.each(["BTC", "ETH"])("give the returns of %s between whole hours only", (name) => {
    const closes = new Map<number, number>();
    for (const { timestamp, price } of ticksOf(name))
      closes.set(Math.floor(Date.parse(timestamp) / 3_600_000), Number(price));
    const hourOf = (text: string) => Date.parse(text) / 3_600_000;
    const isWhole = (hour: number) =>
      hour >= hourOf("2026-02-27T13:00:00Z") &&
      hour < hourOf("2026-03-01T12:00:00Z") &&
      !(name === "ETH" && [hourOf("2026-02-28T06:00:00Z"), hourOf("2026-02-28T07:00:00Z")].includes(hour));
    const expected = [...closes].map(([hour, close]) => {
      const before = closes.get(hour - 1);
      const isKnown = isWhole(hour) && isWhole(hour - 1) && before !== undefined;
      const simple_return = isKnown ? close / before - 1 : null;
      const row = { ts: hour * HOUR, close, close_before: before ?? null };
      return { ...row, simple_return, is_complete: Number(isKnown) };
    });
    const columns = "ts, close, close_before, simple_return, is_complete, quality";
    const of = `index_type = 'GWA' AND name = '${name}'`;
    const found = rowsOf(demo, `SELECT ${columns} FROM returns_1h WHERE ${of} ORDER BY ts`);
    expect(found.map(({ quality: _, ...row }) => row)).toEqual(expected);
    for (const { quality, simple_return } of found) expect(quality === null).toBe(simple_return !== null);
    const qualities = new Map(
      found.map(({ ts, quality }) => [new Date(ms(ts)).toISOString().slice(5, 13), quality]),
    );
    if (name === "ETH")
      expect([..."678"].map((hour) => qualities.get(`02-28T0${hour}`)).join()).toBe(
        "not proven whole,,no bar before",
      );
    const ends = ["02-27T13", "03-01T12"].map((hour) => qualities.get(hour));
    expect(ends).toEqual(["bar before: not proven whole", "not proven whole"]);
  });

  it("give basis, premium and chain of every contract at every observation", () => {
    const named = markets();
    for (const [view, type] of [
      ["futures_curve", "futures"],
      ["perpetuals", "perpetuals"],
      ["option_chain", "options"],
    ] as const) {
      const expected = exchanges()
        .filter(([, name]) => name === "Deribit" || name === "OKX")
        .flatMap(([id, exchange]) =>
          snapshots("derivative_ticks").flatMap((ts) => {
            const contracts = new Map(
              oracle.contracts(type, String(id), "ALL", ms(ts)).map((contract) => [contract.id, contract]),
            );
            return oracle.derivativeTicks(type, String(id), ms(ts)).map((record): Row => {
              const contract = contracts.get(record.contractId);
              const [price, index, mark] = [record.price, record.indexPrice, record.markPrice].map(
                Number,
              ) as [number, number, number];
              const days = (Date.parse(contract?.expiration ?? "") - ms(ts)) / 86_400_000;
              const basis = price / index - 1;
              const strike = Number(contract?.optionStrike);
              const own = {
                futures: { days_to_expiry: days, basis, annualised_basis: (basis * 365) / days },
                perpetuals: {
                  ...{ premium: basis, mark_premium: mark / index - 1 },
                  funding_rate: Number(record.fundingRate),
                },
                options: {
                  ...{ days_to_expiry: days, option_type: contract?.optionType },
                  ...{ strike, moneyness: strike / index },
                },
              }[type];
              const names = { exchange, pair: named.get(record.marketId), contract: contract?.exchangeName };
              return {
                ...names,
                ts,
                ...own,
                price,
                index_price: index,
                index_source: "ticker",
                quality: null,
              };
            });
          }),
        );
      const columns = Object.keys(expected[0] ?? {}).join(", ");
      const order = by("exchange", "contract", "ts");
      expect(rowsOf(demo, `SELECT ${columns} FROM ${view}`).sort(order)).toEqual(expected.sort(order));
      expect(expected.length).toBeGreaterThan(30);
    }
  });
});

const T = ODD_MARKET_TS;

describe("the research views on odd data", () => {
  it("take the index as of the ticker if the ticker has none: the market's average, else the cross rate", () => {
    const columns = "contract, ts, index_price, index_source, basis, annualised_basis, quality";
    const curve = rowsOf(odd, `SELECT ${columns} FROM futures_curve ORDER BY contract, ts`);
    expect(curve.map(Object.values)).toEqual([
      [null, T, 100, "GWA", 101 / 100 - 1, null, "no expiration"],
      ["cross", T, 200, "GWA", 101 / 200 - 1, ((101 / 200 - 1) * 365) / 73, null],
      ["near", T, 100, "GWA", 101 / 100 - 1, (101 / 100 - 1) * 365, null],
      ["near", T + HOUR, null, null, null, null, "no index price"],
      ["over", T, 100, "ticker", 101 / 100 - 1, null, "expired"],
    ]);
    expect(rowsOf(odd, "SELECT premium, mark_premium, index_source, quality FROM perpetuals")).toEqual([
      { premium: null, mark_premium: null, index_source: "ticker", quality: null },
    ]);
    const chain = "SELECT strike, moneyness, index_source, quality FROM option_chain";
    expect(rowsOf(odd, `${chain} WHERE pair = 'ETH/USD'`)).toEqual([
      { strike: 49.5, moneyness: 0.5, index_source: "MWA", quality: "no expiration" },
    ]);
    const deviations = `SELECT pair, exchange, index_price, index_source, index_ts, deviation_bps, quality FROM index_deviation
      WHERE ts = ${T} ORDER BY pair, exchange`;
    const indexOf = (price: number, source: string, ts: number) => ({
      ...{ index_price: price, index_source: source, index_ts: ts },
      ...{ deviation_bps: (101 / price - 1) * 10000, quality: null },
    });
    const btc = indexOf(100, "GWA", T - 30 * SECOND);
    const none = { index_price: null, index_source: null, index_ts: null, deviation_bps: null };
    expect(rowsOf(odd, deviations)).toEqual([
      ...["Alpha", "Mid", "Zeta"].map((exchange) => ({ pair: "BTC/USD", exchange, ...btc })),
      { pair: "BTC/USDT", exchange: "Zeta", ...indexOf(200, "GWA", T - 299 * SECOND) },
      { pair: "ETH/USD", exchange: "Zeta", ...indexOf(99, "MWA", T) },
      { pair: "ETH/USDT", exchange: "Zeta", ...indexOf(196, "GWA", T - 299 * SECOND) },
      { pair: "unlisted", exchange: "Alpha", ...none, quality: "no index price" },
      { pair: "unlisted", exchange: "Mid", ...none, quality: "no index price" },
    ]);
  });

  it("give no volatility where none explains the price, and the forward that calls and puts imply", () => {
    const columns =
      "contract, worth, forward, implied_volatility > 0 AS has_volatility, delta > 0 AS rises, quality";
    const greeks = rowsOf(odd, `SELECT ${columns} FROM latest_option_greeks ORDER BY contract`);
    expect(greeks.map(Object.values)).toEqual([
      ["c200", 120, 99, null, null, "no implied volatility"],
      ["c50", 51, 99, 1, 1, null],
      ["p50", 2, 99, 1, 0, null],
    ]);
  });

  it("tell which series share a name", () => {
    expect(rowsOf(odd, "SELECT * FROM shared_names ORDER BY index_id")).toEqual([
      { name: "ETH", index_type: "GWA", index_id: "eth", asset: "eth", status: "ACTIVE" },
      { name: "ETH", index_type: "GWA", index_id: "old-eth", asset: "old-eth", status: "INACTIVE" },
    ]);
  });

  it("leave quotes that are old or do not move out of the best", () => {
    const columns = "exchange, ts, best_bid, best_bid_exchange, best_ask, best_ask_exchange, quality";
    const found = rowsOf(odd, `SELECT ${columns} FROM spread WHERE pair = 'BTC/USD' ORDER BY ts, exchange`);
    const best = { best_bid: 100, best_bid_exchange: "Alpha", best_ask: 102, best_ask_exchange: "Zeta" };
    const alone = (bid: number, ask: number, name: string) => ({
      ...{ best_bid: bid, best_bid_exchange: name, best_ask: ask, best_ask_exchange: name },
    });
    expect(found).toEqual([
      { exchange: "Mid", ts: T - 59 * SECOND, ...alone(99.5, 101.5, "Mid"), quality: null },
      { exchange: "Alpha", ts: T, ...best, quality: null },
      { exchange: "Mid", ts: T, ...best, quality: "crossed" },
      { exchange: "Zeta", ts: T, ...best, quality: null },
      { exchange: "Zeta", ts: T + 60 * SECOND, ...alone(90, 120, "Zeta"), quality: null },
    ]);
    const others = "pair NOT IN ('BTC/USD', 'unlisted') ORDER BY pair";
    const spreads = rowsOf(odd, `SELECT pair, mid, spread_bps, quality FROM spread WHERE ${others}`);
    expect(spreads.map(Object.values)).toEqual([
      ["BTC/USDT", 4.5, (-1 / 4.5) * 10000, "crossed"],
      ["ETH/USD", null, null, "no quote"],
      ["ETH/USDT", 0, null, null],
    ]);
    const any = `SELECT exchange, ts, best_bid, best_ask, best_bid_any, best_ask_any, quality FROM spread
      WHERE pair = 'unlisted' ORDER BY ts, exchange`;
    const still = { best_bid: 1, best_ask: 2, best_bid_any: 1.8, best_ask_any: 1.9 };
    expect(rowsOf(odd, any)).toEqual([
      { exchange: "Mid", ts: T - HOUR, ...still, best_bid: 1.8, best_ask: 1.9, quality: null },
      { exchange: "Alpha", ts: T, ...still, quality: null },
      { exchange: "Mid", ts: T, ...still, quality: "not moved for an hour" },
    ]);
  });

  it("have the same rows in DuckDB", async () => {
    const { connection, close } = await openCatalogue(join(odd, "export/mds.duckdb"));
    const relations = [...Object.keys(researchViews), "shared_names"];
    expect(await compareRelations(odd, relations, connection)).toEqual([]);
    close();
  });

  it("find their rows by keys, for one pair and one range of time", () => {
    const reader = openReader(join(odd, "mds.sqlite"));
    const where = `pair = 'BTC/USD' AND ts >= ${T} AND ts < ${T + HOUR}`;
    // The volatility of one option needs the newest chain as a whole.
    for (const view of Object.keys(researchViews).filter((name) => name !== "latest_option_greeks")) {
      const isReturns = view === "returns_1h";
      const sql = `SELECT * FROM ${view} WHERE ${isReturns ? where.replace("pair = 'BTC/USD'", "name = 'BTC'") : where}`;
      const plan = reader.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
      const text = plan.map(({ detail }) => detail).join("\n");
      // Only dictionaries of keys are scanned, by latest_… views, and the few parts of the rows.
      const scanned = [...text.matchAll(/^SCAN (\w+)/gm)].map(([, name = ""]) => name);
      const small = ["s", "k", "p", "warehouse_state", "CONSTANT"];
      expect(new Set(scanned).difference(new Set(small)), view).toEqual(new Set());
      expect(text, view).not.toMatch(/MATERIALIZE|AUTOMATIC/);
      const key = isReturns ? "series" : "slot";
      if (!view.startsWith("latest_"))
        expect(text, view).toMatch(new RegExp(`USING PRIMARY KEY \\(${key}=\\? AND ts>\\? AND ts<\\?\\)`));
    }
    reader.close();
  });
});
