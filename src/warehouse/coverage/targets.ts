import type { Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { LedgerLine } from "./ledger.ts";

/** How the head and the tail of a wanted range move with time; all in microseconds. */
export interface HeadRules {
  /** The claim ends this long before now: the service may still add rows to what is younger. */
  readonly settleDelay: Micros;
  /** The claim moves in steps of this length: a day for daily bars, 1 for ticks. */
  readonly step: Micros;
  /** How long the service keeps history; null: for ever. */
  readonly keptFor: Micros | null;
}

export interface Want extends HeadRules {
  readonly line: LedgerLine;
  readonly from: Micros;
}

interface WantedRow {
  readonly from: Micros;
  readonly to: Micros | null;
}

const line = "stream = ? AND series = ?";

/**
 * Says what the settings select of a stream with a history. Each want is followed into the present from `from` on (an
 * earlier beginning stays); what is no longer selected ends at `at` and keeps what it has.
 */
export function declareWanted(
  transaction: Transaction,
  stream: Stream,
  wants: readonly Want[],
  at: Micros,
): void {
  const selected = new Set(wants.map((want) => want.line.series));
  const followed = transaction
    .statement("SELECT series FROM wanted_ranges WHERE stream = ? AND to_ts IS NULL")
    .pluck()
    .all([stream]) as number[];
  for (const series of followed) if (!selected.has(series)) endWanted(transaction, { stream, series }, at);
  for (const want of wants) follow(transaction, want, false);
}

/** The line is wanted no longer from `at` on. */
export function endWanted(transaction: Transaction, { stream, series }: LedgerLine, at: Micros): void {
  transaction
    .statement(`DELETE FROM wanted_ranges WHERE ${line} AND to_ts IS NULL AND from_ts >= ?`)
    .run([stream, series, at]);
  transaction
    .statement(`UPDATE wanted_ranges SET to_ts = ?, hindrance = NULL WHERE ${line} AND to_ts IS NULL`)
    .run([at, stream, series]);
}

/** Follows a line from `want.from` into the present, merged with what was wanted of it before. */
export function follow(transaction: Transaction, want: Want, observed: boolean): void {
  const { stream, series } = want.line;
  const known = transaction
    .statement(`SELECT from_ts AS "from", to_ts AS "to" FROM wanted_ranges WHERE ${line} ORDER BY from_ts`)
    .all([stream, series]) as WantedRow[];
  const open = known.find(({ to }) => to === null);
  const from = Math.min(want.from, open?.from ?? want.from);
  const merged = known.filter((range) => range.to === null || range.to >= from);
  const start = Math.min(from, ...merged.map((range) => range.from));
  for (const range of merged) {
    if (range.from === start && range.to === null) continue;
    transaction
      .statement(`DELETE FROM wanted_ranges WHERE ${line} AND from_ts = ?`)
      .run([stream, series, range.from]);
  }
  transaction
    .statement(
      `INSERT INTO wanted_ranges (stream, series, from_ts, to_ts, settle_delay, step, kept_for, observed)
      VALUES (?, ?, ?, NULL, ?, ?, ?, ?) ON CONFLICT (stream, series, from_ts) DO UPDATE SET
        settle_delay = excluded.settle_delay, step = excluded.step, kept_for = excluded.kept_for
      WHERE settle_delay <> excluded.settle_delay OR step <> excluded.step OR kept_for IS NOT excluded.kept_for`,
    )
    .run([stream, series, start, want.settleDelay, want.step, want.keptFor, observed ? 1 : 0]);
}

/** Why open ranges stay open at present, as `gaps` shows it: `forbidden` and the like; null: nothing hinders them. */
export function noteHindrance(transaction: Transaction, at: LedgerLine, reason: string | null): void {
  transaction
    .statement(`UPDATE wanted_ranges SET hindrance = ? WHERE ${line} AND hindrance IS NOT ?`)
    .run([reason, at.stream, at.series, reason]);
}

/** The service's clock minus this machine's, as the last daemon or backfill knew it. */
export function readClockSkew(connection: Connection): Micros {
  return Number(connection.statement("SELECT clock_skew FROM warehouse_state").pluck().get());
}

/** The service's clock minus this machine's: `gaps` adds it to SQLite's own clock. */
export function noteClockSkew(transaction: Transaction, skew: Micros): void {
  transaction
    .statement("UPDATE warehouse_state SET clock_skew = ? WHERE clock_skew <> ?")
    .run([Math.round(skew), Math.round(skew)]);
}

/** As it was noted last, in microseconds. */
export function clockSkew(connection: Connection): Micros {
  return connection.statement("SELECT clock_skew FROM warehouse_state").pluck().get() as Micros;
}
