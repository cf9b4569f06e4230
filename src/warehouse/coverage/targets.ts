import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, subtract } from "../../model/time-range.ts";
import type { TargetRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { presentTs } from "../views/sqlite-dialect.ts";
import { type LedgerKey, readSettledRanges } from "./ledger.ts";
import { dropPendingClaims, readPendingClaims } from "./pending-claims.ts";

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
  /** The time between two records. */
  readonly period: Micros;
}

/** What the service and the settings say about every target of a stream. */
export type StreamRules = Omit<Target, "key" | "from">;

/**
 * Stores what the settings select of a history stream. Each target is open-ended from `from` on, or from its earlier
 * stored start. The targets of keys that are no longer selected end at `at`, and what of them was never fetched is no target any
 * more; their rows and their proof stay.
 */
export function declareTargets(
  transaction: Transaction,
  stream: Stream,
  declared: readonly Target[],
  at: Micros,
): void {
  const openSql = "SELECT series FROM targets WHERE stream = ? AND to_ts IS NULL";
  const selected = new Set(declared.map(({ key }) => key.series));
  for (const series of transaction.values<number>(openSql, [stream]))
    if (!selected.has(series)) {
      endTarget(transaction, { stream, series }, at);
      dropPendingClaims(transaction, { stream, series });
    }
  const endedSql = `${targetsSql} WHERE stream = ? AND to_ts IS NOT NULL`;
  for (const row of transaction.rows<TargetRow>(endedSql, [stream]))
    if (!selected.has(row.series)) dropUnfetched(transaction, row);
  for (const target of declared) openTarget(transaction, target, false);
}

/** Cuts an ended target to what the service has shown: settled, or to be repeated because it was fetched on request. */
function dropUnfetched(transaction: Transaction, row: TargetRow): void {
  const pending = readPendingClaims(transaction, row.stream, row.series).get(row.series) ?? [];
  const shown = normalise([...readSettledRanges(transaction, row), ...pending.map(({ range }) => range)]);
  const range = { from: row.from, to: row.to ?? row.from };
  if (subtract([range], shown).length === 0) return;
  removeTarget(transaction, row);
  for (const part of intersect([range], shown)) putTarget(transaction, { ...row, ...part });
}

/** The targets of a stream, with the index or the exchange of each. */
export function readTargets(connection: SqlRunner, stream: Stream) {
  const sql = `SELECT w.series, w.from_ts AS "from", w.to_ts AS "to", s.index_type AS indexType, s.index_id AS indexId
    FROM targets w JOIN series s ON s.series = w.series WHERE w.stream = ?`;
  type Row = Pick<TargetRow, "series" | "from" | "to"> & Pick<SeriesNames, "indexType" | "indexId">;
  return connection.rows<Row>(sql, [stream]);
}

/** Ends the open-ended target of the key at `at`. */
export function endTarget(transaction: Transaction, { stream, series }: LedgerKey, at: Micros): void {
  const isOpen = "stream = @stream AND series = @series AND to_ts IS NULL";
  transaction.run(`DELETE FROM targets WHERE ${isOpen} AND from_ts >= @at`, { stream, series, at });
  const sql = `UPDATE targets SET to_ts = @at, blocked_reason = NULL WHERE ${isOpen}`;
  transaction.run(sql, { stream, series, at });
}

const targetsSql = `SELECT stream, series, from_ts AS "from", to_ts AS "to", settle_delay AS settleDelay, period, step,
    service_window AS serviceWindow, is_snapshot AS isSnapshot, blocked_reason AS blockedReason FROM targets`;

/** The targets of a key, by start. */
export function readTargetsOfKey(connection: SqlRunner, { stream, series }: LedgerKey): TargetRow[] {
  const sql = `${targetsSql} WHERE stream = ? AND series = ? ORDER BY from_ts`;
  return connection.rows<TargetRow>(sql, [stream, series]);
}

/** Opens an open-ended target, merged with the earlier targets of the same key, `known`. */
export function openTarget(
  transaction: Transaction,
  target: Target,
  isSnapshot: boolean,
  known: readonly TargetRow[] = readTargetsOfKey(transaction, target.key),
): void {
  const { key, settleDelay, period, step, serviceWindow } = target;
  const merged = known.filter((range) => range.to === null || range.to >= target.from);
  const from = Math.min(target.from, ...merged.map((range) => range.from));
  const current = merged.find((range) => range.from === from && range.to === null);
  for (const range of merged) if (range !== current) removeTarget(transaction, range);
  const set = { settleDelay, period, step, serviceWindow };
  const rules = Object.keys(set) as (keyof typeof set)[];
  if (current && rules.every((name) => current[name] === set[name])) return;
  const blockedReason = current?.blockedReason ?? null;
  putTarget(transaction, { ...key, from, to: null, ...set, isSnapshot: isSnapshot ? 1 : 0, blockedReason });
}

/** Stores a target in the place of the one with the same start. */
function putTarget(transaction: Transaction, row: TargetRow): void {
  transaction.run(
    `REPLACE INTO targets (stream, series, from_ts, to_ts, settle_delay, period, step, service_window, is_snapshot, blocked_reason)
      VALUES (@stream, @series, @from, @to, @settleDelay, @period, @step, @serviceWindow, @isSnapshot, @blockedReason)`,
    row,
  );
}

function removeTarget(transaction: Transaction, { stream, series, from }: TargetRow): void {
  const sql = "DELETE FROM targets WHERE stream = ? AND series = ? AND from_ts = ?";
  transaction.run(sql, [stream, series, from]);
}

/**
 * Adds a target of a history that ends at `to`, merged with the targets of the same key that it overlaps or touches. An open-ended one
 * stays open-ended, and keeps its rules.
 */
export function addTarget(transaction: Transaction, target: Target, to: Micros): void {
  if (target.from >= to) return;
  const known = readTargetsOfKey(transaction, target.key);
  const touched = known.filter((range) => range.from <= to && (range.to ?? to) >= target.from);
  const isOpenEnded = touched.some((range) => range.to === null);
  const end = isOpenEnded ? null : Math.max(to, ...touched.map((range) => range.to ?? to));
  const from = Math.min(target.from, touched[0]?.from ?? target.from);
  for (const range of touched) removeTarget(transaction, range);
  const rules = touched.at(-1) ?? { ...target, ...target.key, blockedReason: null };
  putTarget(transaction, { ...rules, from, to: end, isSnapshot: 0 });
}

/** Stores why the open gaps of a key cannot be filled now (`forbidden`, …), for the view `gaps`; null: no obstacle. */
export function recordBlockedReason(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  reason: string | null,
): void {
  const sql = `UPDATE targets SET blocked_reason = ?
    WHERE stream = ? AND series = ? AND blocked_reason IS NOT ?`;
  transaction.run(sql, [reason, stream, series, reason]);
}

/** The present by the service's clock, as the views compute it: in whole seconds; that of the state that is shown. */
export function readPresentTs(connection: Connection): Micros {
  return connection.knownAt?.present ?? connection.value<Micros>(`SELECT ${presentTs}`);
}
