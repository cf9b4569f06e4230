import assert from "node:assert/strict";
import { plainNotation } from "../../src/model/decimal.ts";
import type { Micros } from "../../src/model/time.ts";
import { extent, intersect, normalise, subtract, type TimeRange } from "../../src/model/time-range.ts";
import type { IndexType } from "../../src/simulator/market/indexes.ts";
import type { Truth } from "../../src/simulator/oracle.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";

/** What the index ticks of [fromMs, toMs) lack, or have too much, against the service; undefined: nothing. */
export function indexDifference(
  reader: Connection,
  truth: Truth,
  fromMs: number,
  toMs: number,
): string | undefined {
  const wanted = reader
    .statement(
      `SELECT s.index_type AS type, s.index_id AS id, s.name FROM wanted_ranges w JOIN series s ON s.series = w.series
        WHERE w.stream = 'index_ticks'`,
    )
    .all() as { type: IndexType; id: string; name: string }[];
  assert.notEqual(wanted.length, 0);
  const stored = reader.database.prepare(
    `SELECT ts || ' ' || price_exact || ' ' || volume_exact FROM index_ticks
      WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ?`,
  );
  for (const { type, id, name } of wanted) {
    const rows = new Set(stored.pluck().all(type, id, fromMs * 1000, toMs * 1000) as string[]);
    const served = truth
      .indexTicks(type, id, fromMs, toMs, toMs)
      .map(
        ({ timestamp, price, volume }) =>
          `${Date.parse(timestamp) * 1000} ${plainNotation(price)} ${plainNotation(volume)}`,
      );
    const missing = served.find((row) => !rows.has(row));
    if (missing !== undefined) return `${type} ${name} lacks ${missing}`;
    if (rows.size > served.length) return `${type} ${name} has ${rows.size - served.length} ticks too many`;
  }
  return undefined;
}

interface ObservedLine {
  readonly stream: "exchange_ticks" | "market_caps" | "derivative_ticks";
  readonly exchangeId: string | null;
  readonly name: string | null;
  readonly from: Micros;
  readonly cadence: Micros;
}

export interface Observed {
  readonly line: string;
  readonly periods: number;
  /** Parts of the line that `gaps` calls lost. */
  readonly lost: readonly TimeRange[];
}

/**
 * The judge of the latest-only streams, from each line's beginning until `endMs`: a period of which anything is missing is
 * `lost` in `gaps`, one that is covered has every record that the service had, and no second is neither or both.
 */
export function expectObserved(reader: Connection, truth: Truth, endMs: number): Observed[] {
  const lines = reader
    .statement(
      `SELECT w.stream, nullif(s.index_id, '') AS exchangeId, nullif(s.name, '') AS name, w.from_ts AS "from",
        w.settle_delay / 2 AS cadence
      FROM wanted_ranges w JOIN series s ON s.series = w.series WHERE w.observed = 1`,
    )
    .all() as ObservedLine[];
  return lines.map((line) => {
    const what = `${line.stream} ${line.name ?? "all"}`;
    const end = Math.floor((endMs * 1000) / line.cadence) * line.cadence;
    const ranges = (sql: string) => {
      const rows = reader.database
        .prepare(`SELECT from_ts AS "from", to_ts AS "to" FROM ${sql} AND stream = ? AND index_id IS ?`)
        .all(line.stream, line.exchangeId) as TimeRange[];
      return intersect(normalise(rows), [{ from: line.from, to: end }]);
    };
    const covered = ranges("coverage WHERE proof <> 'lost'");
    const lost = ranges("gaps WHERE state = 'lost'");
    const both = intersect(covered, lost);
    const neither = subtract([{ from: line.from, to: end }], normalise([...covered, ...lost]));
    assert.deepEqual({ what, both, neither }, { what, both: [], neither: [] });
    let periods = 0;
    for (let from = line.from; from < end; from += line.cadence, periods++) {
      const period = { from, to: from + line.cadence };
      const missing = missingIn(reader, truth, line, period);
      const claimed = extent(intersect(covered, [period]));
      if (claimed > 0) assert.deepEqual({ what, period, missing }, { what, period, missing: [] });
      if (missing.length > 0) assert.deepEqual(extent(intersect(lost, [period])), line.cadence, what);
    }
    return { line: what, periods, lost };
  });
}

/** The records that the service had in this period and that the warehouse has not, or not so. */
function missingIn(
  reader: Connection,
  truth: Truth,
  { stream, exchangeId }: ObservedLine,
  { from, to }: TimeRange,
): string[] {
  const stored = (sql: string, ...more: unknown[]) =>
    new Map(
      reader.database
        .prepare(sql)
        .raw()
        .all(from, to, ...more) as [string, string][],
    );
  if (stream === "market_caps") {
    const rows = stored("SELECT asset_id, price_exact FROM market_caps WHERE ts >= ? AND ts < ?");
    return truth
      .marketCaps(from / 1000)
      .filter(({ assetId, price }) => rows.get(assetId) !== plainNotation(price))
      .map(({ assetId }) => assetId);
  }
  if (stream === "exchange_ticks") {
    const rows = stored(
      "SELECT market_id, last_exact FROM exchange_ticks WHERE ts >= ? AND ts < ? AND exchange_id = ?",
      exchangeId,
    );
    return truth
      .exchangeTicks(from / 1000)
      .filter(
        (tick) => tick.exchangeId === exchangeId && rows.get(tick.marketId) !== plainNotation(tick.last),
      )
      .map(({ marketId }) => marketId);
  }
  // Taken once a period, which is longer than the service's own: any of its moments will do.
  const rows = stored(
    "SELECT contract_id, max(price_exact) FROM derivative_ticks WHERE ts >= ? AND ts < ? AND exchange_id = ? GROUP BY 1",
    exchangeId,
  );
  return truth
    .derivativeTicks("perpetuals", exchangeId ?? "", from / 1000)
    .filter(({ contractId }) => !rows.has(contractId))
    .map(({ contractId }) => contractId);
}
