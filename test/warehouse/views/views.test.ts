import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { publicDocs } from "../../../src/warehouse/schema/column-docs.ts";
import { views } from "../../../src/warehouse/views/views.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { hasTool } from "../../support/has-tool.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { parseTs, tick } from "../../support/warehouse/records.ts";

const SERIES = 10;
const ROWS = 500;
const STEP = 30_000_000;
const T = parseTs("2026-03-01T00:00:00Z");

const directory = mkdtempSync(join(tmpdir(), "mds-views-"));
let warehouse: WarehouseWriter;

beforeAll(() => {
  warehouse = openWriter(join(directory, "mds.sqlite"), { clock: new ManualClock() });
  for (let series = 0; series < SERIES; series++) {
    const ticks = Array.from({ length: ROWS }, (_, i) =>
      tick(T - i * STEP, "1.5", { indexId: `id-${series}` }),
    );
    warehouse.transaction((transaction) => {
      writeRecords(transaction, "index_ticks", ticks, "rest");
      const key = { stream: "index_ticks", series: series + 1 } as const;
      settle(transaction, key, { from: T - ROWS * STEP, to: T }, "rows");
    });
  }
});
afterAll(() => {
  warehouse.close();
  rmSync(directory, { recursive: true, force: true });
});

const all = (sql: string) => warehouse.connection.database.prepare(sql).all() as Record<string, unknown>[];
const plan = (sql: string) => all(`EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail as string);

/** The columns that each relation must have at least, from the contract. */
const contract: Record<string, string> = {
  assets: "id, symbol, name, type, status, url, contract_address",
  markets: "id, base_asset_id, quote_asset_id, base_symbol, quote_symbol, pair",
  exchanges: "id, name, url, status",
  exchange_markets: "exchange_id, market_id",
  exchange_symbols: "exchange_id, asset_id, symbol",
  ohlcv:
    "index_type, index_id, name, day, open, open_exact, high, high_exact, low, low_exact, close, close_exact, volume, volume_exact, vwap, vwap_exact, twap, twap_exact, volume_usd, volume_usd_exact, is_final, record_id, quality",
  index_ticks:
    "index_type, index_id, name, ts, time, price, price_exact, volume, volume_exact, tick_volume, tick_volume_exact, is_settled, quality",
  exchange_ticks:
    "exchange_id, market_id, exchange, pair, ts, time, last, last_exact, bid, bid_exact, ask, ask_exact, volume, volume_exact, last_moved, quality",
  market_caps:
    "asset_id, symbol, ts, time, rank, price, price_exact, volume, volume_exact, market_cap, market_cap_exact, total_market_cap, total_market_cap_exact, free_float_supply, free_float_supply_exact, total_supply, total_supply_exact, change_24h, change_24h_exact, change_7d, change_7d_exact, change_30d, change_30d_exact, quality",
  derivative_contracts:
    "id, derivative_type, exchange_id, market_id, exchange_name, settlement_currency, contract_value, contract_value_exact, value_currency, option_type, option_strike, option_strike_exact, listing, expiration, quality",
  derivative_ticks:
    "contract_id, derivative_type, exchange_id, market_id, ts, time, price, price_exact, volume, volume_exact, open_interest, open_interest_exact, bid, bid_exact, ask, ask_exact, index_price, index_price_exact, mark_price, mark_price_exact, funding_rate, funding_rate_exact, quality",
  returns_1h:
    "index_type, index_id, name, ts, time, close, close_before, simple_return, coverage, is_complete, quality",
  futures_curve:
    "exchange, pair, contract, contract_id, ts, time, expiration, days_to_expiry, price, index_price, basis, annualised_basis, quality",
  perpetuals:
    "exchange, pair, contract, contract_id, ts, time, price, mark_price, index_price, premium, mark_premium, funding_rate, quality",
  option_chain:
    "exchange, pair, contract, contract_id, ts, time, expiration, days_to_expiry, strike, option_type, price, bid, ask, moneyness, quality",
  spread:
    "exchange, pair, ts, time, bid, ask, mid, spread_bps, best_bid, best_bid_exchange, best_ask, best_ask_exchange, quality",
  index_deviation:
    "exchange, pair, ts, time, last, index_price, index_ts, index_time, deviation_bps, quality",
  coverage: "stream, index_type, index_id, name, from_ts, to_ts, from_time, to_time, proof, reason",
  gaps: "stream, index_type, index_id, name, from_ts, to_ts, from_time, to_time, state, reason, lost_at",
  revisions: "stream, index_type, index_id, name, ts, time, before, after, changed_at",
  status_changes: "entity, id, field, old, new, seen_at",
  rejects: "stream, received_at, reason, raw, request",
  unknown_fields: '"where", name, first_seen, count, sample',
  unknown_events: '"where", name, first_seen, count, sample',
};
for (const stream of [
  "index_ticks",
  "exchange_ticks",
  "market_caps",
  "derivative_ticks",
  "futures_curve",
  "perpetuals",
].concat("option_chain", "spread", "index_deviation")) {
  contract[`latest_${stream}`] = `${contract[stream]}, age_seconds, is_live`;
}

describe("the relations of the contract", () => {
  it.each(Object.entries(contract))("%s has its columns", (relation, columns) => {
    expect(() => all(`SELECT ${columns} FROM ${relation} LIMIT 1`)).not.toThrow();
  });

  it("can be queried with an older SQLite", () => {
    if (!hasTool("sqlite3", "the views in another SQLite version")) return;
    const sql = Object.entries(contract)
      .map(([relation, columns]) => `SELECT count(*) FROM (SELECT ${columns} FROM ${relation});`)
      .join("\n");
    const counts = execFileSync("sqlite3", ["-readonly", warehouse.path, sql], { encoding: "utf8" });
    expect(counts.trim().split("\n")).toHaveLength(Object.keys(contract).length);
  });

  it("have the documented type in every column, for tools that read the schema", () => {
    // SQLite names the type of an expression by its affinity.
    const aliases: Record<string, string> = { INT: "INTEGER", NUM: "INTEGER" };
    for (const [relation, { columns }] of Object.entries(publicDocs)) {
      const types = all(`SELECT name, type FROM pragma_table_info('${relation}')`).map(({ name, type }) => [
        name,
        aliases[type as string] ?? type,
      ]);
      const documented = columns.map(({ name, type }) => [name, type]);
      expect(types, relation).toEqual(expect.arrayContaining(documented));
    }
  });

  it("are SQL that DuckDB's parser accepts", async () => {
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    for (const [name, sql] of Object.entries(views)) {
      const reader = await connection.runAndReadAll(`SELECT json_serialize_sql($sql$${sql}$sql$::VARCHAR)`);
      expect(JSON.parse(String(reader.getRows()[0]?.[0])), name).toMatchObject({ error: false });
    }
    connection.closeSync();
    instance.closeSync();
  });

  it("never cast a REAL to text, and use no function newer than SQLite 3.37", () => {
    for (const sql of Object.values(views)) {
      expect(sql).not.toMatch(/printf|format\(|unixepoch\(|->|\biif\(|string_agg|concat/);
    }
  });
});

describe("slim relations", () => {
  it.each(["index_ticks", "exchange_ticks", "market_caps", "derivative_ticks"])(
    "%s_slim has the stored columns of its relation, with the same values",
    (stream) => {
      const columns = publicDocs[`${stream}_slim`]?.columns.map(({ name }) => `"${name}"`) ?? [];
      expect(columns).toContain('"ts"');
      expect(columns.join()).not.toMatch(/_exact|time|is_|extra/);
      const rows = (relation: string) =>
        all(`SELECT ${columns.join()} FROM ${relation} WHERE ts >= ${T - 20 * STEP} ORDER BY 1, 2, ts`);
      expect(rows(`${stream}_slim`)).toEqual(rows(stream));
    },
  );

  it("index_tick_spans has the first and the last tick of each series, and reads no other", () => {
    const sql = "SELECT min(first_ts) AS first, max(last_ts) AS last, count(*) AS n FROM index_tick_spans";
    expect(all(sql)).toEqual([{ first: T - (ROWS - 1) * STEP, last: T, n: SERIES }]);
    expect(plan(sql).join()).not.toMatch(/SCAN [anz]\b|TEMP B-TREE/);
  });

  it("a range of days of index_ticks_by_day is a seek per day, with the rows of index_ticks", () => {
    const sql =
      "SELECT * FROM index_ticks_by_day WHERE name = 'id-7' AND day = '2026-02-28' AND time >= '2026-02-28T23'";
    const same = all(`SELECT '2026-02-28' AS day, * FROM index_ticks
      WHERE name = 'id-7' AND ts >= strftime('%s', '2026-02-28T23:00:00') * 1000000 AND ts < strftime('%s', '2026-03-01') * 1000000`);
    expect(all(sql)).toEqual(same);
    expect(same).toHaveLength(120);
    expect(plan(sql).join()).toContain("SEARCH r USING PRIMARY KEY (series=? AND ts>? AND ts<?)");
  });
});

describe("index seeks", () => {
  const seek = "SEARCH r USING PRIMARY KEY (series=? AND ts";

  it.each([
    ["a week of one series by name", `name = 'id-7' AND ts >= ${T - 20_000 * STEP} AND ts < ${T}`],
    ["a cross-section at one timestamp", `ts = ${T - 100 * STEP}`],
    ["one series by id", `index_type = 'GWA' AND index_id = 'id-7' AND ts > ${T - 50 * STEP}`],
  ])("%s", (_name, where) => {
    const steps = plan(`SELECT name, time, price_exact, is_settled FROM index_ticks WHERE ${where}`);
    expect(steps.filter((step) => step.includes(" r "))).toEqual([expect.stringContaining(seek)]);
    expect(steps.join()).not.toContain("SCAN r");
  });

  it("find the newest row of each series without reading the others", () => {
    const steps = plan("SELECT name, price FROM latest_index_ticks");
    expect(steps.some((step) => step.includes(seek))).toBe(true);
    expect(steps.join()).toContain("SEARCH n USING PRIMARY KEY (series=? AND ts<?)");
    expect(steps.join()).not.toMatch(/SCAN [rn]\b|TEMP B-TREE/);
    expect(all("SELECT count(*) AS n, min(ts) AS ts FROM latest_index_ticks")).toEqual([
      { n: SERIES, ts: T },
    ]);
  });

  it("find the value as of a timestamp with one seek per series", () => {
    const sql = `SELECT s.name, (SELECT t.price FROM index_ticks t WHERE t.index_type = s.index_type
      AND t.index_id = s.index_id AND t.ts <= ${T - 77} ORDER BY t.ts DESC LIMIT 1) AS price FROM series s`;
    expect(plan(sql).join()).not.toMatch(/SCAN r|TEMP B-TREE/);
    expect(all(sql)).toHaveLength(SERIES);
  });
});
