import type { HistoryStream, Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { NO_LONGER_SERVED, NOT_FOUND, NOTHING_OLDER, type Publication } from "../../rule/answer.ts";
import type { SettledRangeRow, TargetRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import { targetStartSql } from "../views/gap-parts.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import type { LedgerKey, SeriesKey } from "./ledger.ts";

/** The head of a series whose target has no end. */
export interface SeriesHead extends Readonly<SeriesNames> {
  readonly key: SeriesKey;
  /** Nothing is settled from this timestamp on. */
  readonly from: Micros;
  /** No range of the series was ever settled. */
  readonly isNew: boolean;
  /** The newest settled range says that the service answered 404 for the index. */
  readonly isNotFound: boolean;
  /** What REST has shown of the series; undefined: it was never asked. */
  readonly publication?: Publication | undefined;
}

type HeadRow = SeriesNames &
  Pick<SettledRangeRow, "series" | "reason"> &
  (Publication | { readonly askedAt: null }) & {
    readonly targetFrom: TargetRow["from"];
    /** Null: no range of the series was ever settled. */
    readonly settledTo: SettledRangeRow["to"] | null;
  };

/** The heads of all series of a stream, or of one, that have a target without an end: one index seek each. */
export function readSeriesHeads(
  connection: Connection,
  stream: HistoryStream,
  series?: number,
): SeriesHead[] {
  const sql = `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
      w.from_ts AS targetFrom, g.to_ts AS settledTo, g.reason,
      u.published_to AS publishedTo, u.asked_at AS askedAt, u.asked_to AS askedTo, u.quiet_margin AS quietMargin
    FROM targets w CROSS JOIN series s ON s.series = w.series
      LEFT JOIN publications u ON u.stream = w.stream AND u.series = w.series
      LEFT JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts =
        (SELECT max(l.from_ts) FROM settled_ranges l WHERE l.stream = w.stream AND l.series = w.series)
    WHERE w.stream = @stream ${series === undefined ? "" : "AND w.series = @series"} AND w.to_ts IS NULL AND w.is_snapshot = 0
    ORDER BY w.series`;
  return connection.rows<HeadRow>(sql, { stream, series }).map((row) => ({
    key: { stream, series: row.series },
    indexType: row.indexType,
    indexId: row.indexId,
    name: row.name,
    from: Math.max(row.targetFrom, row.settledTo ?? row.targetFrom),
    isNew: row.settledTo === null,
    isNotFound: row.reason === NOT_FOUND,
    publication: row.askedAt === null ? undefined : row,
  }));
}

type SettledRow = SeriesNames &
  Pick<SettledRangeRow, "series" | "from" | "to" | "proof" | "reason"> &
  Pick<TargetRow, "serviceWindow" | "settleDelay"> & { readonly targetFrom: Micros | null };
type TargetedRow = SettledRow | (Omit<SettledRow, "from"> & { readonly from: null });

/**
 * The ledger of every series of a stream, whether the settings still select it or not. `targetFrom`: where the target without an end
 * begins.
 */
export function readSeriesLedgers(connection: Connection, stream: HistoryStream) {
  const rows = connection.rows<TargetedRow>(
    `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.service_window AS serviceWindow,
        w.settle_delay AS settleDelay, CASE WHEN w.to_ts IS NULL THEN w.from_ts END AS targetFrom,
        g.from_ts AS "from", g.to_ts AS "to", g.proof, g.reason
      FROM targets w JOIN series s ON s.series = w.series LEFT JOIN settled_ranges g
        ON g.stream = w.stream AND g.series = w.series
      WHERE w.stream = ? AND w.from_ts = (SELECT max(l.from_ts) FROM targets l WHERE l.stream = w.stream AND l.series = w.series)
      ORDER BY w.series, g.from_ts`,
    [stream],
  );
  return [...Map.groupBy(rows, ({ series }) => series)].map(([series, own]) => {
    const { indexType, indexId, name, serviceWindow, settleDelay, targetFrom } = own[0] as TargetedRow;
    const rangesOf = (isSelected: (row: SettledRow) => boolean = () => true) =>
      own
        .filter((row): row is SettledRow => row.from !== null)
        .filter(isSelected)
        .map(({ from, to }) => ({ from, to }));
    return {
      key: { stream, series },
      ...{ indexType, indexId, name, serviceWindow, settleDelay, targetFrom },
      settled: rangesOf(),
      covered: rangesOf(({ proof }) => proof !== "lost"),
      /** The part that is empty because the service has nothing older. */
      beforeHistory: rangesOf(({ reason }) => reason === NOTHING_OLDER),
      /** What the service has said to be older than all its records. The newest: a record below it disproves the others too. */
      end: rangesOf(({ reason }) => reason === NOTHING_OLDER || reason === NO_LONGER_SERVED).at(-1),
    };
  });
}

export function indexKey(indexType: string, indexId: string): string {
  return `${indexType} ${indexId}`;
}

/** A ledger key by the columns of the views `coverage` and `gaps`. */
export interface NamedLedgerKey {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
}

/** The named key as text, for maps. Index types are free text from the service: the length marks where one ends. */
export function namedKeyText({ stream, index_type, index_id }: NamedLedgerKey): string {
  return `${stream} ${index_type?.length ?? 0} ${index_type ?? ""}${index_id ?? ""}`;
}

/** A ledger key with its names, and what the ledger knows about it. */
export interface LedgerKeySummary extends NamedLedgerKey {
  readonly stream: Stream;
  readonly name: string | null;
  /** Where its ledger begins; null: the ledger has no entry. */
  readonly firstTs: Micros | null;
  /** Where its ledger ends; null: the ledger has no entry, or the target has no end. */
  readonly endTs: Micros | null;
  /** The settings select it now. */
  readonly isSelected: boolean;
  /** A snapshot stream has no history: what was not received can never be fetched. */
  readonly isSnapshot: boolean;
  readonly serviceWindow: Micros | null;
}

/** A key that has an entry in the ledger. */
export interface KnownLedgerKey extends LedgerKeySummary, LedgerKey {
  readonly stream: Stream;
  readonly firstTs: Micros;
}

type LedgerKeyRow = Omit<KnownLedgerKey, "isSelected" | "isSnapshot"> & {
  readonly isSelected: 0 | 1;
  readonly isSnapshot: 0 | 1;
};

const ledgerKeysSql = `SELECT l.stream, l.series, nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id,
    nullif(s.name, '') AS name, min(l.from_ts) AS firstTs,
    CASE max(l.followed) WHEN 0 THEN max(l.to_ts) END AS endTs,
    max(l.followed) AS isSelected, max(l.is_snapshot) AS isSnapshot, max(l.service_window) AS serviceWindow
  FROM (SELECT w.stream, w.series, ${targetStartSql(sqliteDialect, sqliteDialect.presentTs)} AS from_ts, w.to_ts, w.to_ts IS NULL AS followed, w.is_snapshot,
      w.service_window FROM targets w
    UNION ALL SELECT stream, series, min(from_ts), max(to_ts), 0, 0, NULL FROM settled_ranges GROUP BY stream, series) l
  JOIN series s ON s.series = l.series
  GROUP BY l.stream, l.series ORDER BY l.stream, index_type, name, index_id`;

/** Every key of the ledger, by stream and name. */
export function readLedgerKeys(connection: Connection): KnownLedgerKey[] {
  const rows = connection.rows<LedgerKeyRow>(ledgerKeysSql);
  return rows.map((row) => ({ ...row, isSelected: row.isSelected === 1, isSnapshot: row.isSnapshot === 1 }));
}
