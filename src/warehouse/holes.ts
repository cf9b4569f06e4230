import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";
import { assertLedger, type LedgerLine, type SettledRange, settle } from "./ledger.ts";
import type { Transaction } from "./transaction.ts";

/** What is wanted of one line and not settled, as of one moment. */
export interface LineHoles {
  readonly line: LedgerLine;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** To be fetched. Ends where the claim does: now − settle delay, in whole steps. */
  readonly open: TimeRanges;
  /** Older than the service's window: nobody can fetch it any more. */
  readonly agedOut: TimeRanges;
  /** How long the service keeps what is open: a range is lost at `from + keptFor`. Null: for ever. */
  readonly keptFor: Micros | null;
  readonly hindrance: string | null;
}

interface WantedRow extends TimeRange {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly edge: Micros | null;
  readonly keptFor: Micros | null;
  readonly hindrance: string | null;
}

const wantedSql = (
  narrowed: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
    w.from_ts AS "from", min(coalesce(w.to_ts, @claimed), (@claimed - w.settle_delay) / w.step * w.step) AS "to",
    @claimed - w.kept_for AS edge, w.kept_for AS keptFor, w.hindrance
  FROM wanted_ranges w JOIN series s ON s.series = w.series
  WHERE w.stream = @stream AND w.observed = 0 ${narrowed} ORDER BY w.series, w.from_ts`;

const settledSql = (narrowed: string) => `SELECT series, from_ts AS "from", to_ts AS "to", proof, reason
  FROM settled_ranges WHERE stream = @stream ${narrowed} ORDER BY series, from_ts`;

const everyLine = { wanted: wantedSql(""), settled: settledSql("") };
/** Texts of their own: a condition that may be left out would keep SQLite from seeking. */
const oneLine = { wanted: wantedSql("AND w.series = @series"), settled: settledSql("AND series = @series") };

/**
 * `wanted − settled` of every line of a stream, or of one, at `now` by the service's clock. Lines without holes are
 * left out.
 */
export function holes(
  connection: Connection,
  stream: WalkedStream,
  now: Micros,
  series?: number,
): LineHoles[] {
  // Bound as a big integer: a number would be bound as a REAL, and the division by steps would not be whole.
  const claimed = BigInt(Math.floor(now));
  const [sql, line] = series === undefined ? [everyLine, { stream }] : [oneLine, { stream, series }];
  const wanted = connection.statement(sql.wanted).all({ ...line, claimed }) as WantedRow[];
  const settled = Map.groupBy(
    connection.statement(sql.settled).all(line) as (SettledRange & {
      series: number;
    })[],
    (range) => range.series,
  );
  const found: LineHoles[] = [];
  for (const [key, rows] of Map.groupBy(wanted, (row) => row.series)) {
    const proven = settled.get(key) ?? [];
    assertLedger(proven);
    const missing = subtract(normalise(rows), normalise(proven));
    const last = rows.at(-1) as WantedRow;
    if (missing.length === 0) continue;
    const edge = last.edge ?? Number.NEGATIVE_INFINITY;
    found.push({
      line: { stream, series: key },
      indexType: last.indexType,
      indexId: last.indexId,
      name: last.name,
      open: intersect(missing, [{ from: edge, to: Number.POSITIVE_INFINITY }]),
      agedOut:
        edge === Number.NEGATIVE_INFINITY
          ? []
          : intersect(missing, [{ from: Number.NEGATIVE_INFINITY, to: edge }]),
      keptFor: last.keptFor,
      hindrance: last.hindrance,
    });
  }
  return found;
}

/** Enters as lost what the service's window has left behind. */
export function writeOff(transaction: Transaction, { line, agedOut }: LineHoles): void {
  for (const range of agedOut) settle(transaction, line, range, "lost", "aged out");
}
