import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { assertValidLedger, type LedgerKey, type SettledRange, settle } from "./ledger.ts";
import { NOT_FOUND_REASON } from "./not-found.ts";

/** The gaps of one series at one time: its target minus what is settled. */
export interface SeriesGaps {
  readonly key: LedgerKey;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** To be fetched. Ends at now − settle delay, in whole steps: younger records may still change. */
  readonly open: TimeRanges;
  /** Older than the service's window: it can no longer be fetched. */
  readonly agedOut: TimeRanges;
  /** How far back the service serves records: a range is lost at `from + serviceWindow`. Null: no limit. */
  readonly serviceWindow: Micros | null;
  /** Why the open ranges cannot be fetched at present, for example `forbidden`. */
  readonly blockedReason: string | null;
}

interface TargetRow extends TimeRange {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Where the service's window begins. */
  readonly windowStart: Micros | null;
  readonly serviceWindow: Micros | null;
  readonly blockedReason: string | null;
}

const targetsSql = (
  condition: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
    w.from_ts AS "from", min(coalesce(w.to_ts, @now), (@now - w.settle_delay) / w.step * w.step) AS "to",
    @now - w.kept_for AS windowStart, w.kept_for AS serviceWindow, w.hindrance AS blockedReason
  FROM wanted_ranges w JOIN series s ON s.series = w.series
  WHERE w.stream = @stream AND w.observed = 0 ${condition} ORDER BY w.series, w.from_ts`;

const settledSql = (condition: string) => `SELECT series, from_ts AS "from", to_ts AS "to", proof, reason
  FROM settled_ranges WHERE stream = @stream ${condition} ORDER BY series, from_ts`;

const allSeriesSql = { targets: targetsSql(""), settled: settledSql("") };
/** Separate statements: with an optional condition SQLite would scan instead of seek. */
const oneSeriesSql = {
  targets: targetsSql("AND w.series = @series"),
  settled: settledSql("AND series = @series"),
};

/**
 * The gaps of every series of a stream, or of one series, at `now` by the service's clock. Series without gaps are
 * left out.
 */
export function readGaps(
  connection: Connection,
  stream: HistoryStream,
  now: Micros,
  series?: number,
): SeriesGaps[] {
  // A number would be bound as a REAL, and the division by `step` would no longer be an integer division.
  const bigNow = BigInt(Math.floor(now));
  const [sql, parameters] =
    series === undefined ? [allSeriesSql, { stream }] : [oneSeriesSql, { stream, series }];
  const targets = connection.statement(sql.targets).all({ ...parameters, now: bigNow }) as TargetRow[];
  const settled = Map.groupBy(
    connection.statement(sql.settled).all(parameters) as (SettledRange & {
      series: number;
    })[],
    (range) => range.series,
  );
  const found: SeriesGaps[] = [];
  for (const [seriesKey, rows] of Map.groupBy(targets, (row) => row.series)) {
    const settledRanges = settled.get(seriesKey) ?? [];
    assertValidLedger(settledRanges);
    const missing = subtract(normalise(rows), normalise(settledRanges));
    const last = rows.at(-1) as TargetRow;
    if (missing.length === 0) continue;
    const windowStart = last.windowStart ?? Number.NEGATIVE_INFINITY;
    found.push({
      key: { stream, series: seriesKey },
      indexType: last.indexType,
      indexId: last.indexId,
      name: last.name,
      open: intersect(missing, [{ from: windowStart, to: Number.POSITIVE_INFINITY }]),
      agedOut:
        windowStart === Number.NEGATIVE_INFINITY
          ? []
          : intersect(missing, [{ from: Number.NEGATIVE_INFINITY, to: windowStart }]),
      serviceWindow: last.serviceWindow,
      blockedReason: last.blockedReason,
    });
  }
  return found;
}

/** Records as lost what is older than the service's window. */
export function settleAgedOut(transaction: Transaction, { key, agedOut }: SeriesGaps): void {
  for (const range of agedOut) settle(transaction, key, range, "lost", "aged out");
}

/** The head of a series whose target has no end. */
export interface SeriesHead {
  readonly key: LedgerKey & { readonly stream: HistoryStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Nothing is settled from this timestamp on. */
  readonly from: Micros;
  /** No range of the series was ever settled. */
  readonly isNew: boolean;
  /** The newest settled range says that the service answered 404 for the index. */
  readonly isNotFound: boolean;
}

interface HeadRow {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly targetFrom: Micros;
  readonly settledTo: Micros | null;
  readonly reason: string | null;
}

const headsSql = (
  condition: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
    w.from_ts AS targetFrom, g.to_ts AS settledTo, g.reason
  FROM wanted_ranges w CROSS JOIN series s ON s.series = w.series
    LEFT JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts =
      (SELECT max(l.from_ts) FROM settled_ranges l WHERE l.stream = w.stream AND l.series = w.series)
  WHERE w.stream = ? ${condition} AND w.to_ts IS NULL AND w.observed = 0 ORDER BY w.series`;
const allHeadsSql = headsSql("");
const oneHeadSql = headsSql("AND w.series = ?");

/** The heads of all series of a stream, or of one, that have a target without an end: one index seek each. */
export function readSeriesHeads(
  connection: Connection,
  stream: HistoryStream,
  series?: number,
): SeriesHead[] {
  const rows = (
    series === undefined
      ? connection.statement(allHeadsSql).all([stream])
      : connection.statement(oneHeadSql).all([stream, series])
  ) as HeadRow[];
  return rows.map(({ series, indexType, indexId, name, targetFrom, settledTo, reason }) => ({
    key: { stream, series },
    indexType,
    indexId,
    name,
    from: Math.max(targetFrom, settledTo ?? targetFrom),
    isNew: settledTo === null,
    isNotFound: reason === NOT_FOUND_REASON,
  }));
}

/** The covered ranges of a series whose target has no end. */
interface SeriesCoverage {
  readonly key: LedgerKey & { readonly stream: HistoryStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly serviceWindow: Micros | null;
  readonly settleDelay: Micros;
  /** Ranges with proof `rows` or `empty`, without those that are lost. */
  readonly covered: readonly TimeRange[];
}

interface CoveredRow extends TimeRange {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly serviceWindow: Micros | null;
  readonly settleDelay: Micros;
}

export function readSeriesCoverage(connection: Connection, stream: HistoryStream): SeriesCoverage[] {
  const rows = connection
    .statement(
      `SELECT g.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.kept_for AS serviceWindow,
        w.settle_delay AS settleDelay, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series
        JOIN wanted_ranges w ON w.stream = g.stream AND w.series = g.series AND w.to_ts IS NULL
      WHERE g.stream = ? AND g.proof <> 'lost' ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as CoveredRow[];
  return [...Map.groupBy(rows, ({ series }) => series)].map(([series, own]) => {
    const { indexType, indexId, name, serviceWindow, settleDelay } = own[0] as CoveredRow;
    const covered = own.map(({ from, to }) => ({ from, to }));
    return { key: { stream, series }, indexType, indexId, name, serviceWindow, settleDelay, covered };
  });
}

/** What the ledger holds about one index, for an estimate. */
interface IndexLedger {
  readonly settled: readonly TimeRange[];
  /** Where the open-ended target begins; undefined: there is none. */
  readonly targetFrom: Micros | undefined;
}

export function indexKey(indexType: string, indexId: string): string {
  return `${indexType} ${indexId}`;
}

/** The ledger of a stream by `indexKey`. Indices without an entry are left out. */
export function readIndexLedgers(connection: Connection, stream: HistoryStream): Map<string, IndexLedger> {
  const ranges = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.stream = ? ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as (TimeRange & { indexType: string; indexId: string })[];
  const targets = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, w.from_ts AS targetFrom
      FROM wanted_ranges w JOIN series s ON s.series = w.series
      WHERE w.stream = ? AND w.to_ts IS NULL AND w.observed = 0`,
    )
    .all([stream]) as { indexType: string; indexId: string; targetFrom: Micros }[];
  const found = new Map<string, IndexLedger>();
  for (const { indexType, indexId, targetFrom } of targets) {
    found.set(indexKey(indexType, indexId), { settled: [], targetFrom });
  }
  for (const [key, own] of Map.groupBy(ranges, (range) => indexKey(range.indexType, range.indexId))) {
    const settled = own.map(({ from, to }) => ({ from, to }));
    found.set(key, { settled, targetFrom: found.get(key)?.targetFrom });
  }
  return found;
}
