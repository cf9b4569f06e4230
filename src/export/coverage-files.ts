import { formatTimestamp, type Micros } from "../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../model/time-range.ts";
import type { LedgerEntry, RelationRow } from "../warehouse/read/export-relations.ts";

/** A claim about rows: the least that is needed to compare it with another. */
export type Claim = Pick<
  LedgerEntry,
  "stream" | "indexType" | "indexId" | "state" | "reason" | "from" | "to"
>;

export interface Claims {
  readonly coverage: readonly LedgerEntry[];
  readonly gaps: readonly LedgerEntry[];
}

/**
 * What the export may claim. Months are read one after another while the writer goes on, so only what the ledger held both
 * before the first and after the last of them is true of the rows that were written; and of months that were not looked at
 * (`since`), only what the previous export claimed already. The rest of what the ledger held becomes a gap, reason
 * `not exported`: coverage and gaps together still say something about every moment.
 */
export function claimsOf(
  before: Claims,
  after: readonly Claim[],
  earlier: { readonly since: Micros; readonly claims: readonly Claim[] } | undefined,
): Claims {
  const later = byLine(after);
  const previous = byLine(earlier?.claims ?? []);
  const coverage: LedgerEntry[] = [];
  const withheld: LedgerEntry[] = [];
  for (const [line, entries] of Map.groupBy(before.coverage, lineOf)) {
    const [first] = entries;
    if (!first) continue;
    const held = normalise(entries);
    let claimed = first.state === "lost" ? held : intersect(held, later.get(line) ?? []);
    if (earlier && first.state !== "lost") {
      const old = [{ from: Number.NEGATIVE_INFINITY, to: earlier.since }];
      const unlooked = intersect(claimed, old);
      claimed = normalise([...subtract(claimed, old), ...intersect(unlooked, previous.get(line) ?? [])]);
    }
    coverage.push(...claimed.map((range) => ({ ...first, ...range })));
    withheld.push(
      ...subtract(held, claimed).map((range) => ({
        ...first,
        ...range,
        state: "open",
        reason: "not exported",
      })),
    );
  }
  return { coverage, gaps: [...before.gaps, ...withheld] };
}

function byLine(claims: readonly Claim[]): Map<string, TimeRanges> {
  return new Map([...Map.groupBy(claims, lineOf)].map(([line, ranges]) => [line, normalise(ranges)]));
}

/** Claims of one line with different words are different claims. */
const lineOf = ({ stream, indexType, indexId, state, reason }: Claim) =>
  JSON.stringify([stream, indexType, indexId, state, reason]);

const lineColumns = ({ stream, indexType, indexId, name }: LedgerEntry) => [stream, indexType, indexId, name];
const rangeColumns = ({ from, to }: TimeRange) => [from, to, formatTimestamp(from), formatTimestamp(to)];

export function coverageRow(entry: LedgerEntry): RelationRow {
  return [...lineColumns(entry), ...rangeColumns(entry), entry.state, entry.reason];
}

export function gapRow(entry: LedgerEntry): RelationRow {
  return [...lineColumns(entry), ...rangeColumns(entry), entry.state, entry.reason, entry.lostAt];
}
