import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  type Claim,
  type ClaimKind,
  NO_LONGER_SERVED,
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
  type Proof,
} from "../../../src/rule/answer.ts";
import { MemorySeries } from "../memory-series.ts";

// What an accepted or pending claim changes, moment by moment: each moment of a short line is settled in some way, and has a row or not.

/** How a moment is settled, and whether it has a row of REST or a preview. */
export interface Moment {
  readonly settled: Proof | undefined;
  readonly reason: string | null;
  readonly row: "rest" | "live" | undefined;
}

/** Moments 0 … n-1. */
export type Line = readonly Moment[];

export interface ChangeCase {
  readonly line: Line;
  readonly claim: Claim;
  readonly isPending: boolean;
}

const LENGTH = 3;
/** Why a range was settled before. */
const EARLIER = "earlier";

const possible: readonly Moment[] = [
  { settled: undefined, reason: null, row: undefined },
  { settled: undefined, reason: null, row: "rest" },
  { settled: undefined, reason: null, row: "live" },
  { settled: "rows", reason: null, row: "rest" },
  { settled: "empty", reason: EARLIER, row: undefined },
  { settled: "lost", reason: EARLIER, row: "rest" },
];

function* lines(length: number): Generator<Line> {
  if (length === 0) yield [];
  else for (const rest of lines(length - 1)) for (const moment of possible) yield [...rest, moment];
}

function* claims(line: Line): Generator<Claim> {
  const rows = line.flatMap(({ row }, ts) => (row ? [ts] : []));
  const claim = (kind: ClaimKind, range: TimeRange, more: Partial<Claim>): Claim => ({
    ...{ kind, range, says: "empty", subject: [], because: NO_RECORDS, ...more },
  });
  for (const from of [0, 1])
    for (const to of [2, 3]) {
      const range = { from, to };
      for (const says of ["rows", "empty"] as const) {
        yield claim("records", range, { says });
        const subject = rows.filter((ts) => from <= ts && ts < to);
        if (subject.length > 0) yield claim("withdrawn", range, { says, subject });
      }
      if (rows.length > 0) yield claim("gone", range, { says: "rows", subject: rows.slice(0, 1) });
      for (const lostTo of [undefined, from - 1, from + 1, to, to + 1]) {
        for (const subject of [[], [to - 1], [to], [from]])
          for (const kind of ["end", "end moved"] as const)
            yield claim(kind, range, { because: NOTHING_OLDER, subject, lostTo });
        for (const because of [NOT_FOUND, NOTHING_OLDER])
          for (const kind of ["not found", "still absent"] as const)
            yield claim(kind, range, { because, lostTo });
      }
    }
}

export function* changeCases(): Generator<ChangeCase> {
  for (const line of lines(LENGTH))
    for (const claim of claims(line)) {
      yield { line, claim, isPending: false };
      if (claim.kind !== "records" && claim.lostTo === undefined) yield { line, claim, isPending: true };
    }
}

/** What the claim makes of the line. */
export function expectLine({ line, claim, isPending }: ChangeCase): Line {
  const { kind, range, says, subject, because, lostTo } = claim;
  const isInside = (ts: number) => range.from <= ts && ts < range.to;
  const reason = says === "rows" ? null : because;
  if (isPending)
    return kind === "withdrawn"
      ? line.map((moment, ts) => (isInside(ts) ? { ...moment, settled: undefined, reason: null } : moment))
      : line;
  const withoutSubject = line.map((moment, ts) =>
    subject.includes(ts) ? { ...moment, row: undefined } : moment,
  );
  if (kind === "gone") return withoutSubject;
  if (kind === "records" || kind === "withdrawn")
    return (kind === "records" ? line : withoutSubject).map((moment, ts) =>
      isInside(ts) ? { ...moment, settled: says, reason } : moment,
    );
  const oldest = kind === "end" || kind === "end moved" ? (subject[0] ?? range.to) : range.to;
  const isLost = (ts: number) => lostTo !== undefined && ts < lostTo;
  const isOpen = (ts: number) => isInside(ts) && ts < oldest && line[ts]?.settled === undefined;
  /** The open moments beside this one, with it, that are lost or empty alike. */
  const findStretch = (ts: number, step: 1 | -1): number[] =>
    isOpen(ts) && !isLost(ts) ? [ts, ...findStretch(ts + step, step)] : [];
  return line.map((moment, ts): Moment => {
    if (isInside(ts) && ts >= oldest) return { ...moment, settled: "rows", reason: null };
    if (!isOpen(ts)) return moment;
    if (isLost(ts))
      return { ...moment, settled: "lost", reason: because === NOTHING_OLDER ? NO_LONGER_SERVED : because };
    const stretch = [...findStretch(ts, 1), ...findStretch(ts, -1)];
    if (stretch.some((each) => line[each]?.row === "rest")) return moment;
    return { settled: "empty", reason: because, row: undefined };
  });
}

/** The line as a series that is stored. */
export function toSeries(line: Line): MemorySeries {
  const series = new MemorySeries();
  series.rows = line.flatMap(({ row }, ts) => (row ? [{ ts, source: row }] : []));
  const ledger: MemorySeries["ledger"][number][] = [];
  for (const [ts, { settled, reason }] of line.entries()) {
    if (!settled) continue;
    const last = ledger.at(-1);
    const isMerged = last?.to === ts && last.proof === settled && last.reason === reason;
    ledger.push({ from: isMerged ? (ledger.pop()?.from ?? ts) : ts, to: ts + 1, proof: settled, reason });
  }
  series.ledger = ledger;
  return series;
}

export function toLine({ rows, ledger }: MemorySeries): Line {
  return Array.from({ length: LENGTH }, (_, ts) => {
    const settled = ledger.find(({ from, to }) => from <= ts && ts < to);
    const row = rows.find((each) => each.ts === ts)?.source;
    return { settled: settled?.proof, reason: settled?.reason ?? null, row };
  });
}
