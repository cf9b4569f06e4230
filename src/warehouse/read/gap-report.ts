import { historyStreams, type Stream, streamTable } from "../../model/streams.ts";
import { formatInstant, type Micros, parseInstant } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { NamedSeries } from "../lookups/resolve-names.ts";
import type { Connection } from "../sqlite/connection.ts";
import { presentTs } from "../views/sql-fragments.ts";

/** A row of the view `gaps`. */
export interface GapRow {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from_ts: Micros;
  readonly to_ts: Micros;
  readonly from_time: string;
  readonly to_time: string;
  readonly state: "open" | "lost";
  readonly reason: string;
  /** When an open one leaves the service's window; null: never. */
  readonly lost_at: string | null;
}

export interface Missing {
  /** This moment by the service's clock. */
  readonly now: Micros;
  /** What was looked at. */
  readonly lines: readonly AskedLine[];
  readonly gaps: readonly GapRow[];
  /** Lines that a window without a beginning ends before: nothing can be said about them. */
  readonly outside: readonly AskedLine[];
}

export interface Window {
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
}

interface CoverageRow {
  readonly stream: AskedLine["stream"];
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly from: Micros;
  readonly to: Micros;
}

const gapsSql = "SELECT * FROM gaps ORDER BY stream, index_type, name, index_id, from_ts";
const coverageSql = `SELECT stream, index_type, index_id, from_ts AS "from", to_ts AS "to" FROM coverage`;

/** Every range that is missing from the selected lines. */
export function readMissing(connection: Connection, selection: LineSelection): Missing {
  return inOneSnapshot(connection, (now, gaps) => {
    const lines = askedLines(knownLines(connection), selection);
    const asked = new Set(lines.map(lineKey));
    return { now, lines, gaps: gaps.filter((gap) => asked.has(keyOf(gap))), outside: [] };
  });
}

/**
 * Every part of the window that is missing from the selected lines: what the ledger calls open or lost, and also what it
 * does not speak of, since what nobody knows about is not whole.
 * Without a beginning the window begins for each line where the ledger does. Without an end it ends where the claim
 * does, so that a head that only awaits its confirmation does not count.
 */
export function readMissingInWindow(
  connection: Connection,
  selection: LineSelection,
  window: Window,
): Missing {
  return inOneSnapshot(connection, (now, gaps) => {
    const end = window.to ?? now;
    const gapsOf = Map.groupBy(gaps, keyOf);
    const coverage = Map.groupBy(connection.statement(coverageSql).all() as CoverageRow[], lineKey);
    const lines = askedLines(knownLines(connection), selection).filter(
      (line) => selection.series !== undefined || concerns(line, window, end),
    );
    const missing = lines.flatMap((line) => {
      const part = { from: window.from ?? line.first ?? end, to: end };
      const ofLine = gapsOf.get(lineKey(line)) ?? [];
      const spokenOf = [...(coverage.get(lineKey(line)) ?? []), ...ofLine.map(rangeOf)];
      const counted = ofLine.filter(({ reason }) => window.to !== undefined || reason !== "settling");
      return [
        ...counted.flatMap((gap) => clip(gap, part)),
        ...unspoken(line, subtract(normalise([part]), normalise(spokenOf)), now),
      ].sort((a, b) => a.from_ts - b.from_ts);
    });
    const outside = lines.filter((line) => window.from === undefined && (line.first ?? end) >= end);
    return { now, lines, gaps: missing, outside };
  });
}

/** A line that nobody named matters as long as the settings follow it, and for what it has inside the window. */
function concerns(line: AskedLine, { from = Number.NEGATIVE_INFINITY }: Window, end: Micros): boolean {
  if (line.followed || line.first === null) return true;
  return line.first < end && (line.last ?? end) > from;
}

/** The ledger and the moment must belong together, and the view takes its own moment: ours is taken before, never after. */
function inOneSnapshot<T>(connection: Connection, work: (now: Micros, gaps: GapRow[]) => T): T {
  return connection.database.transaction(() => {
    const now = connection.statement(`SELECT ${presentTs}`).pluck().get() as Micros;
    return work(now, connection.statement(gapsSql).all() as GapRow[]);
  })();
}

function keyOf(gap: GapRow): string {
  return lineKey(gap as GapRow & Pick<AskedLine, "stream">);
}

function rangeOf({ from_ts, to_ts }: GapRow): TimeRange {
  return { from: from_ts, to: to_ts };
}

function clip(gap: GapRow, part: TimeRange): GapRow[] {
  const inside = intersect([rangeOf(gap)], normalise([part]));
  const lostAt = gap.lost_at === null ? undefined : parseInstant(gap.lost_at);
  return inside.map(({ from, to }) => ({
    ...gap,
    ...times({ from, to }),
    lost_at: lostAt === undefined ? null : formatInstant(lostAt + from - gap.from_ts),
  }));
}

/** What no ledger speaks of: the future, and what the settings have never asked for. */
function unspoken(line: AskedLine, ranges: readonly TimeRange[], now: Micros): GapRow[] {
  const past = intersect(ranges, [{ from: Number.NEGATIVE_INFINITY, to: now }]);
  const future = intersect(ranges, [{ from: now, to: Number.POSITIVE_INFINITY }]);
  const { stream, index_type, index_id, name } = line;
  const row = (range: TimeRange, state: GapRow["state"], reason: string): GapRow => ({
    stream,
    index_type,
    index_id,
    name,
    ...times(range),
    state,
    reason,
    lost_at: null,
  });
  const edge = line.observed ? now : now - (line.keptFor ?? Number.POSITIVE_INFINITY);
  return [
    ...intersect(past, [{ from: Number.NEGATIVE_INFINITY, to: edge }]).map((range) =>
      row(range, "lost", "not followed"),
    ),
    ...intersect(past, [{ from: edge, to: now }]).map((range) => row(range, "open", "not selected")),
    ...future.map((range) => row(range, "open", "in the future")),
  ];
}

function times({ from, to }: TimeRange) {
  return { from_ts: from, to_ts: to, from_time: formatInstant(from), to_time: formatInstant(to) };
}

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
  return streamTable[stream].kind !== "lookup";
}

/** A subscription to everything speaks for each of its parts. */
function standIn(lines: readonly AskedLine[], stream: Stream, named: NamedSeries): AskedLine {
  const all = lines.find((line) => line.stream === stream && line.index_id === null);
  return all ?? unknownLine(stream, named);
}

function usualStreams({ indexType }: NamedSeries): readonly Stream[] {
  return indexType === null ? ["exchange_ticks"] : historyStreams;
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
    observed: streamTable[stream].kind === "snapshot",
    keptFor: null,
  };
}
