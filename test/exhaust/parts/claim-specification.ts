import type { Micros } from "../../../src/model/time.ts";
import { type Claim, NO_LONGER_SERVED, NOTHING_OLDER } from "../../../src/rule/answer.ts";
import { isIn } from "../memory-ledger.ts";
import type { Source } from "../memory-series.ts";
import { settledAs } from "./stored-content.ts";

// What an accepted or pending claim changes, moment by moment: each moment of a short line is settled in some way, and has a row or not.

/** How a moment is settled, and whether it has a row of REST or a preview. */
interface Moment {
  readonly state: string | undefined;
  readonly row: Source | undefined;
}

/** Moments 0 … n-1. */
export type Line = readonly Moment[];

export interface ClaimCase {
  readonly line: Line;
  readonly claim: Claim;
  readonly isPending: boolean;
}

/** What the claim makes of the line. */
export function specifyLine({ line, claim, isPending }: ClaimCase): Line {
  const { kind, range, says, subject, because, lostTo } = claim;
  const isInside = (ts: Micros) => isIn(range, ts);
  const said = settledAs(says, says === "rows" ? null : because);
  if (isPending)
    return kind === "withdrawn"
      ? line.map((moment, ts) => (isInside(ts) ? { ...moment, state: undefined } : moment))
      : line;
  const withoutSubject = line.map((moment, ts) =>
    subject.includes(ts) ? { ...moment, row: undefined } : moment,
  );
  if (kind === "gone") return withoutSubject;
  if (kind === "records" || kind === "withdrawn")
    return (kind === "records" ? line : withoutSubject).map((moment, ts) =>
      isInside(ts) ? { ...moment, state: said } : moment,
    );
  const oldest = kind === "end" || kind === "end moved" ? (subject[0] ?? range.to) : range.to;
  const isLost = (ts: Micros) => lostTo !== undefined && ts < lostTo;
  const isOpen = (ts: Micros) => isInside(ts) && ts < oldest && line[ts]?.state === undefined;
  /** The open moments beside this one, with it, that are lost or empty alike. */
  const findStretch = (ts: Micros, step: 1 | -1): Micros[] =>
    isOpen(ts) && !isLost(ts) ? [ts, ...findStretch(ts + step, step)] : [];
  return line.map((moment, ts): Moment => {
    if (isInside(ts) && ts >= oldest) return { ...moment, state: "rows" };
    if (!isOpen(ts)) return moment;
    if (isLost(ts))
      return { ...moment, state: settledAs("lost", because === NOTHING_OLDER ? NO_LONGER_SERVED : because) };
    const stretch = [...findStretch(ts, 1), ...findStretch(ts, -1)];
    if (stretch.some((each) => line[each]?.row === "rest")) return moment;
    return { state: settledAs("empty", because), row: undefined };
  });
}
