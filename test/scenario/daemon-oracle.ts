import assert from "node:assert/strict";
import { toPlainNotation } from "../../src/model/decimal.ts";
import type { IndexType } from "../../src/model/stream-columns.ts";
import type { Micros } from "../../src/model/time.ts";
import { intersect, normalise, subtract, type TimeRange, totalDuration } from "../../src/model/time-range.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import type { Oracle } from "../simulator/oracle.ts";

/** The first difference between the index ticks of [fromMs, toMs) and the service; undefined if equal. */
export function findIndexDifference(
  reader: Connection,
  oracle: Oracle,
  fromMs: number,
  toMs: number,
): string | undefined {
  const targets = reader.rows<{ type: IndexType; id: string; name: string }>(
    `SELECT s.index_type AS type, s.index_id AS id, s.name FROM targets w JOIN series s ON s.series = w.series
      WHERE w.stream = 'index_ticks'`,
  );
  assert.notEqual(targets.length, 0);
  const storedSql = `SELECT ts || ' ' || price_exact || ' ' || volume_exact FROM index_ticks
    WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ?`;
  for (const { type, id, name } of targets) {
    const rows = new Set(reader.values<string>(storedSql, [type, id, fromMs * 1000, toMs * 1000]));
    const served = oracle
      .indexTicks(type, id, fromMs, toMs, toMs)
      .map(
        ({ timestamp, price, volume }) =>
          `${Date.parse(timestamp) * 1000} ${toPlainNotation(price)} ${toPlainNotation(volume)}`,
      );
    const missing = served.find((row) => !rows.has(row));
    if (missing !== undefined) return `${type} ${name} lacks ${missing}`;
    if (rows.size > served.length) return `${type} ${name} has ${rows.size - served.length} ticks too many`;
  }
  return undefined;
}

interface SnapshotTarget {
  readonly stream: "exchange_ticks" | "market_caps" | "derivative_ticks";
  readonly exchangeId: string | null;
  readonly name: string | null;
  readonly from: Micros;
  readonly cadence: Micros;
}

export interface SnapshotResult {
  readonly label: string;
  readonly periods: number;
  /** Ranges that `gaps` shows as lost. */
  readonly lost: readonly TimeRange[];
}

/**
 * Checks the snapshot streams from the start of each target until `endMs`: every period is either covered or `lost` in
 * `gaps`, a covered period has every record of the service, and a period with missing records is lost.
 */
export function expectSnapshotGapsCorrect(
  reader: Connection,
  oracle: Oracle,
  endMs: number,
): SnapshotResult[] {
  const targets = reader.rows<SnapshotTarget>(
    `SELECT w.stream, nullif(s.index_id, '') AS exchangeId, nullif(s.name, '') AS name, w.from_ts AS "from",
        w.settle_delay / 2 AS cadence
      FROM targets w JOIN series s ON s.series = w.series WHERE w.is_snapshot = 1`,
  );
  return targets.map((target) => {
    const label = `${target.stream} ${target.name ?? "all"}`;
    const end = Math.floor((endMs * 1000) / target.cadence) * target.cadence;
    const ranges = (relation: string) => {
      const sql = `SELECT from_ts AS "from", to_ts AS "to" FROM ${relation} AND stream = ? AND index_id IS ?`;
      const rows = reader.rows<TimeRange>(sql, [target.stream, target.exchangeId]);
      return intersect(normalise(rows), [{ from: target.from, to: end }]);
    };
    const covered = ranges("coverage WHERE proof <> 'lost'");
    const lost = ranges("gaps WHERE state = 'lost'");
    const both = intersect(covered, lost);
    const neither = subtract([{ from: target.from, to: end }], normalise([...covered, ...lost]));
    assert.deepEqual({ label, both, neither }, { label, both: [], neither: [] });
    let periods = 0;
    for (let from = target.from; from < end; from += target.cadence, periods++) {
      const period = { from, to: from + target.cadence };
      const missing = findMissingRecords(reader, oracle, target, period);
      const coveredMicros = totalDuration(intersect(covered, [period]));
      if (coveredMicros > 0) assert.deepEqual({ label, period, missing }, { label, period, missing: [] });
      if (missing.length > 0)
        assert.deepEqual(totalDuration(intersect(lost, [period])), target.cadence, label);
    }
    return { label, periods, lost };
  });
}

/** The service's records of this period that the warehouse lacks or has with other values. */
function findMissingRecords(
  reader: Connection,
  oracle: Oracle,
  { stream, exchangeId }: SnapshotTarget,
  { from, to }: TimeRange,
): string[] {
  const stored = (sql: string, ...more: unknown[]) =>
    new Map(reader.tuples<[string, string]>(sql, [from, to, ...more]));
  const at = from / 1000;
  if (stream === "market_caps") {
    const rows = stored("SELECT asset_id, price_exact FROM market_caps WHERE ts >= ? AND ts < ?");
    return oracle
      .marketCaps(at)
      .filter(({ assetId, price }) => rows.get(assetId) !== toPlainNotation(price))
      .map(({ assetId }) => assetId);
  }
  if (stream === "exchange_ticks") {
    const rows = stored(
      "SELECT market_id, last_exact FROM exchange_ticks WHERE ts >= ? AND ts < ? AND exchange_id = ?",
      exchangeId,
    );
    return oracle
      .exchangeTicks(at)
      .filter((tick) => tick.exchangeId === exchangeId)
      .filter(({ marketId, last }) => rows.get(marketId) !== toPlainNotation(last))
      .map(({ marketId }) => marketId);
  }
  // The daemon polls once per period, in which the service refreshes several times: accept any timestamp of the period.
  const rows = stored(
    "SELECT contract_id, max(price_exact) FROM derivative_ticks WHERE ts >= ? AND ts < ? AND exchange_id = ? GROUP BY 1",
    exchangeId,
  );
  const ids = oracle.derivativeTicks("perpetuals", exchangeId ?? "", at).map(({ contractId }) => contractId);
  return ids.filter((id) => !rows.has(id));
}
