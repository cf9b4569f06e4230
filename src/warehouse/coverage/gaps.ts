import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { assertLedger, type LedgerLine, type SettledRange, settle } from "./ledger.ts";
import { UNSERVED } from "./not-found.ts";

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
  stream: HistoryStream,
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

/** How far a line that follows the present is settled. */
export interface FollowedHead {
  readonly line: LedgerLine & { readonly stream: HistoryStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Nothing is settled from here on. */
  readonly from: Micros;
  /** Nothing has ever been settled of it. */
  readonly isNew: boolean;
  /** The service's last word was that it has no such index. */
  readonly isUnserved: boolean;
}

interface HeadRow {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly wantedFrom: Micros;
  readonly settledTo: Micros | null;
  readonly reason: string | null;
}

const headsSql = (
  narrowed: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
    w.from_ts AS wantedFrom, g.to_ts AS settledTo, g.reason
  FROM wanted_ranges w CROSS JOIN series s ON s.series = w.series
    LEFT JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts =
      (SELECT max(l.from_ts) FROM settled_ranges l WHERE l.stream = w.stream AND l.series = w.series)
  WHERE w.stream = ? ${narrowed} AND w.to_ts IS NULL AND w.observed = 0 ORDER BY w.series`;
const allSql = headsSql("");
const oneSql = headsSql("AND w.series = ?");

/** The heads of all lines of a stream that follow the present, or of one: a seek each. */
export function followedHeads(
  connection: Connection,
  stream: HistoryStream,
  series?: number,
): FollowedHead[] {
  const rows = (
    series === undefined
      ? connection.statement(allSql).all([stream])
      : connection.statement(oneSql).all([stream, series])
  ) as HeadRow[];
  return rows.map(({ series, indexType, indexId, name, wantedFrom, settledTo, reason }) => ({
    line: { stream, series },
    indexType,
    indexId,
    name,
    from: Math.max(wantedFrom, settledTo ?? wantedFrom),
    isNew: settledTo === null,
    isUnserved: reason === UNSERVED,
  }));
}

/** A line that is wanted, and what is proven of it. */
export interface SettledLine {
  readonly line: LedgerLine & { readonly stream: HistoryStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly keptFor: Micros | null;
  readonly settleDelay: Micros;
  /** What has rows or is empty; what is lost cannot be compared with anything. */
  readonly proven: readonly TimeRange[];
}

interface Row extends TimeRange {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly keptFor: Micros | null;
  readonly settleDelay: Micros;
}

export function settledLines(connection: Connection, stream: HistoryStream): SettledLine[] {
  const rows = connection
    .statement(
      `SELECT g.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.kept_for AS keptFor,
        w.settle_delay AS settleDelay, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series
        JOIN wanted_ranges w ON w.stream = g.stream AND w.series = g.series AND w.to_ts IS NULL
      WHERE g.stream = ? AND g.proof <> 'lost' ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as Row[];
  return [...Map.groupBy(rows, ({ series }) => series)].map(([series, own]) => {
    const { indexType, indexId, name, keptFor, settleDelay } = own[0] as Row;
    const proven = own.map(({ from, to }) => ({ from, to }));
    return { line: { stream, series }, indexType, indexId, name, keptFor, settleDelay, proven };
  });
}

/** What stands in the ledger about one index, for those who only look ahead. */
export interface IndexLedger {
  readonly settled: readonly TimeRange[];
  /** Where what is wanted of it began so far; undefined: it is not followed. */
  readonly wantedFrom: Micros | undefined;
}

export function indexKey(indexType: string, indexId: string): string {
  return `${indexType} ${indexId}`;
}

/** The ledger of a stream by index, under `indexKey`. Indices that it knows nothing of are left out. */
export function settledByIndex(connection: Connection, stream: HistoryStream): Map<string, IndexLedger> {
  const ranges = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.stream = ? ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as (TimeRange & { indexType: string; indexId: string })[];
  const wanted = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, w.from_ts AS wantedFrom
      FROM wanted_ranges w JOIN series s ON s.series = w.series
      WHERE w.stream = ? AND w.to_ts IS NULL AND w.observed = 0`,
    )
    .all([stream]) as { indexType: string; indexId: string; wantedFrom: Micros }[];
  const found = new Map<string, IndexLedger>();
  for (const { indexType, indexId, wantedFrom } of wanted) {
    found.set(indexKey(indexType, indexId), { settled: [], wantedFrom });
  }
  for (const [key, own] of Map.groupBy(ranges, (range) => indexKey(range.indexType, range.indexId))) {
    const settled = own.map(({ from, to }) => ({ from, to }));
    found.set(key, { settled, wantedFrom: found.get(key)?.wantedFrom });
  }
  return found;
}
