import type { HistoryStream, SnapshotStream } from "../model/streams.ts";
import { MOVED_REASON, settle, settleAsMoved } from "./coverage/ledger.ts";
import { openTarget } from "./coverage/targets.ts";
import type { SettledRangeRow, TargetRow } from "./schema/coverage.ts";
import type { SeriesNames } from "./schema/lookups.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import type { QuarantinedFiles } from "./sqlite/quarantine.ts";
import type { Transaction } from "./tables/transaction.ts";

const LOSS_REASON = "warehouse damaged";

/**
 * Copies what is still readable from the ledger of a quarantined file into the new ledger. The sync fetches again what
 * the service still has; snapshots, and history older than the service's window, become `lost`.
 */
export function salvageLedger(transaction: Transaction, { files }: QuarantinedFiles): void {
  const [file] = files;
  if (file === undefined || file.endsWith("-wal") || file.endsWith("-shm")) return;
  for (const target of tryRead(file, readSnapshotTargets)) recordLostSnapshots(transaction, target);
  for (const target of tryRead(file, readHistoryTargets)) restoreHistoryTarget(transaction, target);
  for (const range of tryRead(file, readExpiredRanges)) recordExpiredRange(transaction, range);
}

interface SnapshotTarget extends Pick<TargetRow, "from" | "to" | "settleDelay" | "period"> {
  readonly stream: SnapshotStream;
  readonly exchangeId: string;
}

function readSnapshotTargets(connection: Connection): SnapshotTarget[] {
  return connection.rows<SnapshotTarget>(`SELECT w.stream, s.index_id AS exchangeId, w.from_ts AS "from", w.to_ts AS "to", w.settle_delay AS settleDelay, w.period
      FROM targets w JOIN series s ON s.series = w.series WHERE w.is_snapshot = 1 ORDER BY w.stream, w.series, w.from_ts`);
}

function recordLostSnapshots(transaction: Transaction, target: SnapshotTarget): void {
  const { stream, exchangeId, from, settleDelay, period } = target;
  const to = Math.min(target.to ?? transaction.now, transaction.now);
  if (from >= to) return;
  const key = { stream, series: transaction.dictionary.getSubscriptionKey(exchangeId) };
  if (target.to === null)
    openTarget(transaction, { key, from, settleDelay, period, step: 1, serviceWindow: null }, true);
  settle(transaction, key, { from, to }, "lost", LOSS_REASON);
}

interface HistoryTarget
  extends SeriesNames,
    Pick<TargetRow, "from" | "settleDelay" | "period" | "step" | "serviceWindow"> {
  readonly stream: HistoryStream;
}

/** Only series whose history leaves the service's window; all others are fetched again completely. */
function readHistoryTargets(connection: Connection): HistoryTarget[] {
  return connection.rows<HistoryTarget>(`SELECT w.stream, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS "from",
        w.settle_delay AS settleDelay, w.period, w.step, w.service_window AS serviceWindow
      FROM targets w JOIN series s ON s.series = w.series
      WHERE w.is_snapshot = 0 AND w.service_window IS NOT NULL AND w.to_ts IS NULL`);
}

/** Keeps the old start of the target, so that history out of reach is reported as lost and not as never selected. */
function restoreHistoryTarget(transaction: Transaction, { stream, from, ...target }: HistoryTarget): void {
  const { settleDelay, period, step, serviceWindow } = target;
  const key = { stream, series: seriesKeyOf(transaction, target) };
  openTarget(transaction, { key, from, settleDelay, period, step, serviceWindow }, false);
}

interface ExpiredRange extends SeriesNames, Omit<SettledRangeRow, "series"> {
  readonly stream: HistoryStream;
}

/**
 * Settled ranges older than the service's window. "Now" is the newest proven timestamp of the old ledger, not this
 * machine's clock: that may be wrong, and ranges marked lost are never fetched again.
 */
function readExpiredRanges(connection: Connection): ExpiredRange[] {
  return connection.rows<ExpiredRange>(`SELECT g.stream, s.index_type AS indexType, s.index_id AS indexId, s.name, g.from_ts AS "from",
        min(g.to_ts, w.edge) AS "to", g.proof, g.reason
      FROM (SELECT stream, series, (SELECT max(to_ts) FROM settled_ranges WHERE proof IN ('rows', 'moved')) - max(service_window) AS edge
          FROM targets WHERE is_snapshot = 0 AND service_window IS NOT NULL GROUP BY stream, series) w
        JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts < w.edge
        JOIN series s ON s.series = g.series`);
}

function recordExpiredRange(
  transaction: Transaction,
  { stream, from, to, proof, reason, ...series }: ExpiredRange,
): void {
  const key = { stream, series: seriesKeyOf(transaction, series) };
  if (proof === "moved")
    settleAsMoved(transaction, key, { from, to }, (reason ?? "").slice(MOVED_REASON.length));
  else if (proof === "rows") settle(transaction, key, { from, to }, "lost", LOSS_REASON);
  else settle(transaction, key, { from, to }, proof, reason);
}

function seriesKeyOf({ dictionary }: Transaction, { indexType, indexId, name }: SeriesNames): number {
  const key = dictionary.getSeriesKey(indexType, indexId);
  dictionary.nameSeries(key, name);
  return key;
}

function tryRead<T>(file: string, read: (connection: Connection) => T[]): T[] {
  try {
    const reader = connectReader(file);
    try {
      return read(reader);
    } finally {
      reader.close();
    }
  } catch {
    // These tables are damaged too: nothing can be salvaged. The log already names the file.
    return [];
  }
}
