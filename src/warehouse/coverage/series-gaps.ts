import { type GapState, gapState } from "../../model/status/gap-state.ts";
import type { HistoryStream, Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import { gapPartsSql, longParts } from "../views/gap-parts.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import type { LedgerKey, SeriesKey } from "./ledger.ts";
import { readPendingClaims, type StoredClaim } from "./pending-claims.ts";

/** The gaps of one series at one time. */
export interface SeriesGaps extends Readonly<SeriesNames> {
  readonly key: SeriesKey;
  /** To be requested: `missing`, `unpublished`, `unconfirmed`, and what only awaits its confirmation. */
  readonly open: TimeRanges;
  /** REST may have records in these ranges. */
  readonly missing: TimeRanges;
  /** REST was asked about these ranges, and has shown no record in them or above. */
  readonly unpublished: TimeRanges;
  /** The service has none of these ranges, but must say so again. They contradict no row. */
  readonly unconfirmed: TimeRanges;
  /** Reason of `unconfirmed`. */
  readonly unconfirmedReason: string;
  /** Its claims that are not accepted yet. */
  readonly claims: readonly StoredClaim[];
  /** Older than the service's window: these ranges can no longer be fetched. */
  readonly agedOut: TimeRanges;
  /** How far back the service serves records: a range is lost at `from + serviceWindow`. Null: no limit. */
  readonly serviceWindow: Micros | null;
  /** Why the open ranges cannot be fetched at present, for example `forbidden`. */
  readonly blockedReason: string | null;
}

/** A statement of the definition of the view `gaps` at `@now`, for the series of a stream from `@first` to `@last`. */
function partsSql(columns: string, order = ""): string {
  const parts = gapPartsSql(sqliteDialect, { now: "CAST(@now AS INTEGER)", ofKey: ofSpan });
  return `WITH ${parts} SELECT ${columns} FROM ${longParts("p")}${order}`;
}

// The sign hides the value from the planner, which would prepare the statement anew for each.
const ofSpan = (alias: string) => `${alias}.stream = +@stream AND ${alias}.series BETWEEN +@first AND +@last`;

interface PartRow extends SeriesNames, TimeRange {
  readonly series: number;
  readonly kind: "absent" | "pending" | "unpublished" | "later" | "settling" | "lost" | "settled";
  readonly reason: string;
  readonly targetEnd: Micros;
  readonly serviceWindow: Micros | null;
  readonly blockedReason: string | null;
}

const partColumns = `p.series, p.index_type AS indexType, p.index_id AS indexId, p.name, p.kind, p.from_ts AS "from", p.to_ts AS "to", p.reason,
  p.target_end AS targetEnd, p.service_window AS serviceWindow, p.blocked_reason AS blockedReason`;
const partsOfSpan = partsSql(partColumns, " ORDER BY p.series, p.from_ts");

/**
 * The gaps of every series of a stream, or of one series, at `now` by the service's clock. Series without gaps are
 * left out.
 */
export function readGaps(connection: Connection, stream: HistoryStream, now: Micros, series?: number) {
  const span = { stream, first: series ?? 0, last: series ?? Number.MAX_SAFE_INTEGER };
  const rows = connection.rows<PartRow>(partsOfSpan, { ...span, now: Math.floor(now) });
  if (rows.length === 0) return [];
  const claims = readPendingClaims(connection, stream, series);
  return [...Map.groupBy(rows, (row) => row.series)].flatMap(([seriesKey, parts]): SeriesGaps[] => {
    const select = (...kinds: readonly PartRow["kind"][]) =>
      normalise(parts.filter(({ kind }) => kinds.includes(kind)).map(({ from, to }) => ({ from, to })));
    // The youngest part is requested when it is due.
    const due = (ranges: TimeRanges) =>
      intersect(ranges, [
        { from: Number.NEGATIVE_INFINITY, to: Math.max(...parts.map(({ targetEnd }) => targetEnd ?? 0)) },
      ]);
    const open = due(select("absent", "pending", "unpublished", "later", "settling"));
    const agedOut = select("lost");
    if (open.length + agedOut.length === 0) return [];
    const { indexType, indexId, name, serviceWindow, blockedReason } = parts.findLast(
      ({ kind }) => kind !== "settled",
    ) as PartRow;
    const key = { stream, series: seriesKey };
    return [
      {
        key,
        ...{ indexType, indexId, name, serviceWindow, blockedReason, open, agedOut },
        missing: select("pending", "later"),
        unconfirmed: select("absent"),
        unconfirmedReason: parts.find(({ kind }) => kind === "absent")?.reason ?? "",
        claims: claims.get(seriesKey) ?? [],
        unpublished: select("unpublished"),
      },
    ];
  });
}

/** A gap of one key. */
export interface KeyGap extends TimeRange {
  readonly state: GapState;
  readonly reason: string;
  readonly lostAt: Micros | null;
}

type GapTuple = readonly [
  series: number,
  from: Micros,
  to: Micros,
  isLost: number,
  reason: string,
  serviceWindow: Micros | null,
];

/** What follows from these is computed here: a subscription has hundreds of thousands of gaps, which SQLite would sort, too. */
const gapColumns = "p.series, p.from_ts, p.to_ts, p.kind IN ('lost', 'settled'), p.reason, p.service_window";
const gapsOfSpan = partsSql(gapColumns);

function toGap([, from, to, isLost, reason, serviceWindow]: GapTuple): KeyGap {
  const state = isLost ? "lost" : gapState(reason);
  const lostAt = state === "open" && serviceWindow !== null ? from + serviceWindow : null;
  return { from, to, state, reason, lostAt };
}

/** Ascending. They come nearly in this order, in which sorting takes one pass. */
const toGaps = (tuples: readonly GapTuple[]) => tuples.map(toGap).sort((a, b) => a.from - b.from);

/** A range of a ledger key: covered, or a row of the view `gaps`. */
export type KeyRange =
  | KeyGap
  | (TimeRange & { readonly state: "covered"; readonly reason: null; readonly lostAt: null });

const coveredOfSpan = `SELECT series, from_ts, to_ts FROM settled_ranges WHERE ${ofSpan("settled_ranges")} AND proof <> 'lost' ORDER BY series, from_ts`;

type CoveredTuple = readonly [series: number, from: Micros, to: Micros];

const toCovered = ([, from, to]: CoveredTuple): KeyRange => ({
  ...{ from, to, state: "covered", reason: null, lostAt: null },
});

/** The series of a stream from `first` to `last`; a statement takes it as its parameters. */
type SeriesSpan = {
  readonly stream: Stream;
  readonly first: number;
  readonly last: number;
};

const SERIES_PER_SPAN = 500;

/** All series of a stream, so many at once as a thread reads without making others wait. */
export function* seriesSpans(connection: Connection, stream: Stream): Generator<SeriesSpan> {
  const newest = connection.value<number | null>("SELECT max(series) FROM series", []) ?? 0;
  for (let first = 0; first <= newest; first += SERIES_PER_SPAN)
    yield { stream, first, last: first + SERIES_PER_SPAN - 1 };
}

/** The rows of the view `gaps`, ascending, by series. */
export function readGapsOf(connection: Connection, span: SeriesSpan, now: Micros): Map<number, KeyGap[]> {
  const bySeries = Map.groupBy(
    connection.tuples<GapTuple>(gapsOfSpan, { ...span, now }),
    ([series]) => series,
  );
  return new Map([...bySeries].map(([series, own]) => [series, toGaps(own)]));
}

/** The rows of one key. */
export function readKeyGaps(connection: Connection, { stream, series }: LedgerKey, now: Micros): KeyGap[] {
  return readGapsOf(connection, { stream, first: series, last: series }, now).get(series) ?? [];
}

/** What is covered beside the gaps. A snapshot key may have so many ranges that those of others do not fit beside them. */
export function readRanges(connection: Connection, span: SeriesSpan, now: Micros): Map<number, KeyRange[]> {
  const covered = Map.groupBy(connection.tuples<CoveredTuple>(coveredOfSpan, span), ([series]) => series);
  const gaps = readGapsOf(connection, span, now);
  const rangesOf = (series: number) => [
    ...(covered.get(series) ?? []).map(toCovered),
    ...(gaps.get(series) ?? []),
  ];
  return new Map([...new Set([...covered.keys(), ...gaps.keys()])].map((key) => [key, rangesOf(key)]));
}
