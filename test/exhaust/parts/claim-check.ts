import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  type Claim,
  type ClaimKind,
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
} from "../../../src/rule/answer.ts";
import { applyClaim, applyPending, type LedgerChange } from "../../../src/rule/apply.ts";
import { isIn } from "../memory-ledger.ts";
import { MemorySeries } from "../memory-series.ts";
import { type ClaimCase, type Line, specifyLine } from "./claim-specification.ts";
import { type PartCheck, sample, tryCases } from "./part-check.ts";
import { toLedger, toMoments } from "./stored-content.ts";

const LENGTH = 3;

const possible: Line = [
  { state: undefined, row: undefined },
  { state: undefined, row: "rest" },
  { state: undefined, row: "live" },
  { state: "rows", row: "rest" },
  { state: "empty earlier", row: undefined },
  { state: "lost earlier", row: "rest" },
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
        const subject = rows.filter((ts) => isIn(range, ts));
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

function* cases(): Generator<ClaimCase> {
  for (const line of lines(LENGTH))
    for (const claim of claims(line)) {
      yield { line, claim, isPending: false };
      if (claim.kind !== "records" && claim.lostTo === undefined) yield { line, claim, isPending: true };
    }
}

function judge(each: ClaimCase): string | undefined {
  const { line, claim, isPending } = each;
  const series = new MemorySeries();
  series.rows = line.flatMap(({ row }, ts) => (row ? [{ ts, source: row }] : []));
  series.ledger = toLedger(line.map(({ state }) => state));
  const counts = { answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null };
  const changes = isPending ? applyPending({ ...claim, ...counts }) : applyClaim(claim, series);
  for (const change of changes) {
    if (!isSensible(change)) return `makes the change ${JSON.stringify(change)}`;
    series.change(change);
  }
  const after = toMoments(series.ledger, LENGTH).map((state, ts) => ({
    ...{ state, row: series.rows.find((row) => row.ts === ts)?.source },
  }));
  const [actual, expected] = [after, specifyLine(each)].map((each) => JSON.stringify(each));
  return actual === expected ? undefined : `changed to ${actual} instead of ${expected}`;
}

/** Whether the change is of a kind that the writer knows, and not about nothing. */
function isSensible(change: LedgerChange): boolean {
  if (change.kind === "withdraw") return change.timestamps.length > 0;
  return (change.kind === "settle" || change.kind === "retract") && change.range.from < change.range.to;
}

export const claimChecks: readonly PartCheck[] = [
  { name: "applyClaim", run: (size) => tryCases(sample(cases(), size, 199), judge) },
];
