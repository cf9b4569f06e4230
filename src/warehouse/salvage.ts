import type { HistoryStream, SnapshotStream } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import { type SettledRange, settle } from "./coverage/ledger.ts";
import { follow, type HeadRules } from "./coverage/targets.ts";
import { type Connection, connectReader } from "./sqlite/connection.ts";
import type { SetAside } from "./sqlite/quarantine.ts";
import type { Transaction } from "./tables/transaction.ts";

const REASON = "warehouse damaged";

/**
 * After a damaged file was set aside: what the service still has is fetched again. What was observed of latest-only
 * streams is gone, and so is what the service no longer keeps; the new ledger says so, as far as the old file still tells.
 */
export function recordLoss(transaction: Transaction, { files }: SetAside): void {
  const [file] = files;
  if (file === undefined || file.endsWith("-wal") || file.endsWith("-shm")) return;
  for (const lost of readFrom(file, readObserved)) recordObserved(transaction, lost);
  for (const want of readFrom(file, readWalked)) recordWalked(transaction, want);
  for (const settled of readFrom(file, readAged)) recordAged(transaction, settled);
}

interface Observed {
  readonly stream: SnapshotStream;
  readonly exchangeId: string;
  readonly from: Micros;
  /** Null: it is followed. */
  readonly to: Micros | null;
  readonly settleDelay: Micros;
}

function readObserved({ database }: Connection): Observed[] {
  return database
    .prepare(
      `SELECT w.stream, s.index_id AS exchangeId, w.from_ts AS "from", w.to_ts AS "to", w.settle_delay AS settleDelay
      FROM wanted_ranges w JOIN series s ON s.series = w.series WHERE w.observed = 1 ORDER BY w.stream, w.series, w.from_ts`,
    )
    .all() as Observed[];
}

function recordObserved(transaction: Transaction, lost: Observed): void {
  const { stream, exchangeId, from, settleDelay } = lost;
  const to = Math.min(lost.to ?? transaction.now, transaction.now);
  if (from >= to) return;
  const line = { stream, series: transaction.dictionary.subscription(exchangeId) };
  if (lost.to === null) follow(transaction, { line, from, settleDelay, step: 1, keptFor: null }, true);
  settle(transaction, line, { from, to }, "lost", REASON);
}

interface Walked extends HeadRules {
  readonly stream: HistoryStream;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly from: Micros;
}

/** Lines whose history the service forgets. The others are fetched again as a whole. */
function readWalked({ database }: Connection): Walked[] {
  return database
    .prepare(
      `SELECT w.stream, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS "from",
        w.settle_delay AS settleDelay, w.step, w.kept_for AS keptFor
      FROM wanted_ranges w JOIN series s ON s.series = w.series
      WHERE w.observed = 0 AND w.kept_for IS NOT NULL AND w.to_ts IS NULL`,
    )
    .all() as Walked[];
}

/** Wanted as far back as before: what lies out of reach shows as lost, and not as never asked for. */
function recordWalked(transaction: Transaction, { stream, from, ...want }: Walked): void {
  const { settleDelay, step, keptFor } = want;
  const line = { stream, series: keyOf(transaction, want) };
  follow(transaction, { line, from, settleDelay, step, keptFor }, false);
}

interface Aged extends SettledRange {
  readonly stream: HistoryStream;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
}

/**
 * What was settled and is out of reach. The present is taken from the ledger, which the service's clock has written: this
 * machine's may be wrong, and what is called lost is not asked for again.
 */
function readAged({ database }: Connection): Aged[] {
  return database
    .prepare(
      `SELECT g.stream, s.index_type AS indexType, s.index_id AS indexId, s.name, g.from_ts AS "from",
        min(g.to_ts, w.edge) AS "to", g.proof, g.reason
      FROM (SELECT stream, series, (SELECT max(to_ts) FROM settled_ranges WHERE proof = 'rows') - max(kept_for) AS edge
          FROM wanted_ranges WHERE observed = 0 AND kept_for IS NOT NULL GROUP BY stream, series) w
        JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts < w.edge
        JOIN series s ON s.series = g.series`,
    )
    .all() as Aged[];
}

function recordAged(transaction: Transaction, { stream, from, to, proof, reason, ...series }: Aged): void {
  const line = { stream, series: keyOf(transaction, series) };
  if (proof === "rows") settle(transaction, line, { from, to }, "lost", REASON);
  else settle(transaction, line, { from, to }, proof, reason);
}

function keyOf(
  { dictionary }: Transaction,
  { indexType, indexId, name }: { indexType: string; indexId: string; name: string },
): number {
  const key = dictionary.series(indexType, indexId);
  dictionary.nameSeries(key, name);
  return key;
}

function readFrom<T>(file: string, read: (connection: Connection) => T[]): T[] {
  try {
    const reader = connectReader(file);
    try {
      return read(reader);
    } finally {
      reader.close();
    }
  } catch {
    // The damage reaches this far: the file is named in the log, and nothing more can be learned from it.
    return [];
  }
}
