import { formatInstant, type Micros, parseInstant } from "../model/instant.ts";
import { intersect, normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";
import { type AskedLine, askedLines, knownLines, type LineSelection, lineKey } from "./ledger-lines.ts";
import { presentTs } from "./view-expressions.ts";

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
