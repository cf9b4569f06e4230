import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { subtract, type TimeRanges } from "../../model/time-range.ts";
import type { TargetRow, WarehouseStateRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { presentTs } from "../views/sql-fragments.ts";
import type { LedgerKey } from "./ledger.ts";

/** How both ends of a target move with time; all in microseconds. */
export interface TargetRules {
  /** The target ends this long before now: the service may still add younger records. */
  readonly settleDelay: Micros;
  /** The end moves in steps of this length: a day for daily bars, 1 for ticks. */
  readonly step: Micros;
  /** How far back the service serves history; null: no limit. */
  readonly serviceWindow: Micros | null;
}

/** A target without an end: the settings select the key from `from` on. */
export interface Target extends TargetRules {
  readonly key: LedgerKey;
  readonly from: Micros;
}

const matchesKey = "stream = ? AND series = ?";

/**
 * Stores what the settings select of a history stream. Each target is open-ended from `from` on, or from its earlier
 * stored start; the targets of keys that are no longer selected end at `at`, and their rows stay.
 */
export function declareTargets(
  transaction: Transaction,
  stream: Stream,
  targets: readonly Target[],
  at: Micros,
): void {
  const selected = new Set(targets.map(({ key }) => key.series));
  const openTargets = transaction
    .statement<TargetRow["series"]>("SELECT series FROM wanted_ranges WHERE stream = ? AND to_ts IS NULL")
    .pluck()
    .all([stream]);
  for (const series of openTargets) if (!selected.has(series)) endTarget(transaction, { stream, series }, at);
  for (const target of targets) openTarget(transaction, target, false);
}

/** Ends the open-ended target of the key at `at`. */
export function endTarget(transaction: Transaction, { stream, series }: LedgerKey, at: Micros): void {
  transaction
    .statement(`DELETE FROM wanted_ranges WHERE ${matchesKey} AND to_ts IS NULL AND from_ts >= ?`)
    .run([stream, series, at]);
  transaction
    .statement(`UPDATE wanted_ranges SET to_ts = ?, hindrance = NULL WHERE ${matchesKey} AND to_ts IS NULL`)
    .run([at, stream, series]);
}

/** Opens an open-ended target, merged with the earlier targets of the same key. */
export function openTarget(transaction: Transaction, target: Target, isSnapshot: boolean): void {
  const { stream, series } = target.key;
  const known = transaction
    .statement<Pick<TargetRow, "from" | "to">>(
      `SELECT from_ts AS "from", to_ts AS "to" FROM wanted_ranges WHERE ${matchesKey} ORDER BY from_ts`,
    )
    .all([stream, series]);
  const merged = known.filter((range) => range.to === null || range.to >= target.from);
  const start = Math.min(target.from, ...merged.map((range) => range.from));
  for (const range of merged) {
    if (range.from === start && range.to === null) continue;
    transaction
      .statement(`DELETE FROM wanted_ranges WHERE ${matchesKey} AND from_ts = ?`)
      .run([stream, series, range.from]);
  }
  transaction
    .statement(
      `INSERT INTO wanted_ranges (stream, series, from_ts, to_ts, settle_delay, step, kept_for, observed)
      VALUES (?, ?, ?, NULL, ?, ?, ?, ?) ON CONFLICT (stream, series, from_ts) DO UPDATE SET
        settle_delay = excluded.settle_delay, step = excluded.step, kept_for = excluded.kept_for
      WHERE settle_delay <> excluded.settle_delay OR step <> excluded.step OR kept_for IS NOT excluded.kept_for`,
    )
    .run([stream, series, start, target.settleDelay, target.step, target.serviceWindow, isSnapshot ? 1 : 0]);
}

/** Deletes the targets of a key: another daemon follows it now. Rows and coverage stay. */
export function dropTargets(transaction: Transaction, { stream, series }: LedgerKey): void {
  transaction
    .statement(`DELETE FROM wanted_ranges WHERE ${matchesKey} AND observed = 0`)
    .run([stream, series]);
}

/** Where the open-ended target of a key begins; undefined: it has none. */
export function findOpenTarget(transaction: Transaction, { stream, series }: LedgerKey): Micros | undefined {
  const sql = `SELECT max(from_ts) FROM wanted_ranges WHERE ${matchesKey} AND to_ts IS NULL`;
  return transaction.value<Micros | null>(sql, [stream, series]) ?? undefined;
}

/** Declares the parts of an open-ended target that are not settled elsewhere. Returns where the open-ended part begins. */
export function addTargetParts(transaction: Transaction, target: Target, settled: TimeRanges): Micros {
  const parts = subtract([{ from: target.from, to: Number.POSITIVE_INFINITY }], settled);
  for (const { from, to } of parts)
    if (Number.isFinite(to)) addTarget(transaction, { ...target, from }, to, false);
  return parts.at(-1)?.from ?? target.from;
}

/**
 * Adds a target that ends at `to`, merged with the targets of the same key that it overlaps or touches. An open-ended one
 * stays open-ended, and keeps its rules.
 */
export function addTarget(transaction: Transaction, target: Target, to: Micros, isSnapshot: boolean): void {
  const { stream, series } = target.key;
  if (target.from >= to) return;
  const touched = transaction
    .statement<Omit<TargetRow, "stream" | "series" | "isSnapshot">>(
      `SELECT from_ts AS "from", to_ts AS "to", settle_delay AS settleDelay, step, kept_for AS serviceWindow,
        hindrance AS blockedReason
      FROM wanted_ranges WHERE ${matchesKey} AND from_ts <= ? AND coalesce(to_ts, ?) >= ? ORDER BY from_ts`,
    )
    .all([stream, series, to, to, target.from]);
  const [first] = touched;
  const isOpenEnded = touched.some((range) => range.to === null);
  const end = isOpenEnded ? null : Math.max(to, ...touched.map((range) => range.to ?? to));
  const from = Math.min(target.from, first?.from ?? target.from);
  const remove = transaction.statement(`DELETE FROM wanted_ranges WHERE ${matchesKey} AND from_ts = ?`);
  for (const range of touched) remove.run([stream, series, range.from]);
  const { settleDelay, step, serviceWindow, blockedReason } = touched.at(-1) ?? {
    ...target,
    blockedReason: null,
  };
  transaction
    .statement(
      `INSERT INTO wanted_ranges (stream, series, from_ts, to_ts, settle_delay, step, kept_for, observed, hindrance)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run([stream, series, from, end, settleDelay, step, serviceWindow, isSnapshot ? 1 : 0, blockedReason]);
}

/** Stores why the open gaps of a key cannot be filled now (`forbidden`, …), for the view `gaps`; null: no obstacle. */
export function recordBlockedReason(transaction: Transaction, key: LedgerKey, reason: string | null): void {
  transaction
    .statement(`UPDATE wanted_ranges SET hindrance = ? WHERE ${matchesKey} AND hindrance IS NOT ?`)
    .run([reason, key.stream, key.series, reason]);
}

/** Where the intraday targets begin that were declared without a window: the warehouse mirrors another one. */
export function readMirroredFrom(connection: Connection): Micros | undefined {
  const sql = `SELECT min(from_ts) FROM wanted_ranges
    WHERE stream = 'index_ticks' AND observed = 0 AND kept_for IS NULL AND to_ts IS NULL`;
  return connection.value<TargetRow["from"] | null>(sql) ?? undefined;
}

/** The service's clock minus this machine's, as the last daemon or backfill measured it. */
export function readClockSkew(connection: Connection): Micros {
  return connection.value<WarehouseStateRow["clockSkew"]>("SELECT clock_skew FROM warehouse_state");
}

/** The present by the service's clock, as the views compute it: in whole seconds. */
export function readPresentTs(connection: Connection): Micros {
  return connection.value<Micros>(`SELECT ${presentTs}`);
}

/** Stores the service's clock minus this machine's: the view `gaps` adds it to SQLite's clock. */
export function recordClockSkew(transaction: Transaction, skew: Micros): void {
  transaction
    .statement("UPDATE warehouse_state SET clock_skew = ? WHERE clock_skew <> ?")
    .run([Math.round(skew), Math.round(skew)]);
}

/** History requests a second of the last long backfill; undefined: none has measured it. */
export function readRequestRate(connection: Connection): number | undefined {
  const sql = "SELECT request_rate FROM warehouse_state";
  return connection.value<WarehouseStateRow["requestRate"]>(sql) ?? undefined;
}

export function recordRequestRate(transaction: Transaction, rate: number): void {
  transaction.statement("UPDATE warehouse_state SET request_rate = ?").run([rate]);
}
