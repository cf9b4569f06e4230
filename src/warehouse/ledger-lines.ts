import type { Micros } from "../model/instant.ts";
import { type Stream, walkedStreams } from "../model/series.ts";
import type { Connection } from "./connection.ts";
import type { NamedSeries } from "./named-series.ts";

/** One line that somebody asks about: a stream with one of its series or subscriptions, as the views name them. */
export interface AskedLine {
  readonly stream: Stream;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  /** The first moment that the ledger knows anything about; null where it knows nothing at all. */
  readonly first: Micros | null;
  /** The moment after the last one; null where nothing is known, or where it follows the present. */
  readonly last: Micros | null;
  /** The settings select it at present. */
  readonly followed: boolean;
  /** Without a history to walk: what was not seen will never be. */
  readonly observed: boolean;
  readonly keptFor: Micros | null;
}

type LineRow = Omit<AskedLine, "followed" | "observed"> & {
  readonly followed: 0 | 1;
  readonly observed: 0 | 1;
};

export interface LineSelection {
  readonly streams: readonly Stream[] | undefined;
  readonly series: readonly NamedSeries[] | undefined;
}

const observedStreams: readonly Stream[] = ["exchange_ticks", "market_caps", "derivative_ticks"];
const ledgerStreams: readonly Stream[] = [...walkedStreams, ...observedStreams];

const linesSql = `SELECT l.stream, nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id,
    nullif(s.name, '') AS name, min(l.from_ts) AS first,
    CASE max(l.followed) WHEN 0 THEN max(l.to_ts) END AS last, max(l.followed) AS followed, max(l.observed) AS observed, max(l.kept_for) AS keptFor
  FROM (SELECT stream, series, from_ts, to_ts, to_ts IS NULL AS followed, observed, kept_for FROM wanted_ranges
    UNION ALL SELECT stream, series, min(from_ts), max(to_ts), 0, 0, NULL FROM settled_ranges GROUP BY stream, series) l
  JOIN series s ON s.series = l.series
  GROUP BY l.stream, l.series ORDER BY l.stream, index_type, name, index_id`;

/** One text for a line, to find it again among the rows of the views. */
export function lineKey(line: Pick<AskedLine, "stream" | "index_type" | "index_id">): string {
  return JSON.stringify([line.stream, line.index_type, line.index_id]);
}

/** Every line of the ledger. */
export function knownLines(connection: Connection): AskedLine[] {
  const rows = connection.statement(linesSql).all() as LineRow[];
  return rows.map((row) => ({ ...row, followed: row.followed === 1, observed: row.observed === 1 }));
}

/**
 * The lines that a selection is about. What was asked for by name and is in no ledger comes back too, as a line that
 * nothing is known about: silence about it would read as if nothing were missing.
 */
export function askedLines(known: readonly AskedLine[], { streams, series }: LineSelection): AskedLine[] {
  const ofStreams = streams ? known.filter(({ stream }) => streams.includes(stream)) : [...known];
  if (!series) {
    const silent = (streams ?? []).filter((stream) => !ofStreams.some((line) => line.stream === stream));
    return [...ofStreams, ...silent.filter(hasLedger).map((stream) => unknownLine(stream))];
  }
  const asked = series.flatMap((named) => {
    const own = ofStreams.filter(({ index_id }) => index_id === named.id);
    if (!streams)
      return own.length > 0 ? own : usualStreams(named).map((stream) => unknownLine(stream, named));
    return streams
      .filter(hasLedger)
      .flatMap((stream) => own.find((line) => line.stream === stream) ?? standIn(ofStreams, stream, named));
  });
  return [...new Map(asked.map((line) => [lineKey(line), line])).values()];
}

/** Whether every second of the stream is accounted for; the lookups only have a present. */
export function hasLedger(stream: Stream): boolean {
  return ledgerStreams.includes(stream);
}

/** A subscription to everything speaks for each of its parts. */
function standIn(lines: readonly AskedLine[], stream: Stream, named: NamedSeries): AskedLine {
  const all = lines.find((line) => line.stream === stream && line.index_id === null);
  return all ?? unknownLine(stream, named);
}

function usualStreams({ indexType }: NamedSeries): readonly Stream[] {
  return indexType === null ? ["exchange_ticks"] : walkedStreams;
}

function unknownLine(stream: Stream, named?: NamedSeries): AskedLine {
  return {
    stream,
    index_type: named?.indexType ?? null,
    index_id: named?.id ?? null,
    name: named?.name ?? null,
    first: null,
    last: null,
    followed: false,
    observed: observedStreams.includes(stream),
    keptFor: null,
  };
}
