import { formatTimestamp, type Micros } from "../model/time.ts";
import { intersect, normalise, subtract, type TimeRange, type TimeRanges } from "../model/time-range.ts";
import type { LedgerEntry, RelationRow } from "../warehouse/read/export-relations.ts";

/** What two ranges of the ledger are compared by. */
export type Claim = Pick<
  LedgerEntry,
  "stream" | "indexType" | "indexId" | "state" | "reason" | "from" | "to"
>;

export interface Claims {
  readonly coverage: readonly LedgerEntry[];
  readonly gaps: readonly LedgerEntry[];
}

/**
 * The coverage that the export may claim. Months are read one after another while the writer continues, so only what the
 * ledger covered both before the first month and after the last is true of the exported rows. Of months that were not
 * read (`since`), only what the previous export claimed holds. The rest becomes a gap, reason `not exported`: coverage
 * and gaps together still account for all time.
 */
export function exportableClaims(
  before: Claims,
  after: readonly Claim[],
  earlier: { readonly since: Micros; readonly claims: readonly Claim[] } | undefined,
): Claims {
  const later = rangesByKey(after);
  const previous = rangesByKey(earlier?.claims ?? []);
  const coverage: LedgerEntry[] = [];
  const withheld: LedgerEntry[] = [];
  for (const [line, entries] of Map.groupBy(before.coverage, claimKey)) {
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

function rangesByKey(claims: readonly Claim[]): Map<string, TimeRanges> {
  return new Map([...Map.groupBy(claims, claimKey)].map(([line, ranges]) => [line, normalise(ranges)]));
}

/** Claims of one ledger key with different states or reasons are different claims. */
const claimKey = ({ stream, indexType, indexId, state, reason }: Claim) =>
  JSON.stringify([stream, indexType, indexId, state, reason]);

const keyValues = ({ stream, indexType, indexId, name }: LedgerEntry) => [stream, indexType, indexId, name];
const rangeValues = ({ from, to }: TimeRange) => [from, to, formatTimestamp(from), formatTimestamp(to)];

export function coverageRow(entry: LedgerEntry): RelationRow {
  return [...keyValues(entry), ...rangeValues(entry), entry.state, entry.reason];
}

export function gapRow(entry: LedgerEntry): RelationRow {
  return [...keyValues(entry), ...rangeValues(entry), entry.state, entry.reason, entry.lostAt];
}
