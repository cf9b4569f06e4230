import { quoteText } from "../model/sql-text.ts";
import { formatTimestamp, type Micros } from "../model/time.ts";
import { intersect, normalise, subtract, type TimeRanges } from "../model/time-range.ts";
import { coverageRelation, type LedgerEntry, type RelationRow } from "../warehouse/read/export-relations.ts";
import { exportRefused } from "./errors.ts";
import type { ExportStore } from "./export-store.ts";
import type { Manifest } from "./manifest.ts";
import type { ParquetWriter } from "./parquet-writer.ts";

/** A range of coverage, with the fields by which an export compares two ledgers. */
export type ExportClaim = Pick<
  LedgerEntry,
  "stream" | "indexType" | "indexId" | "state" | "reason" | "from" | "to"
>;

export interface Claims {
  readonly coverage: readonly LedgerEntry[];
  readonly gaps: readonly LedgerEntry[];
}

/**
 * The coverage that the export may claim. It reads the periods one after another while the writer continues, so only what
 * the ledger covered both before the first one and after the last is certain to be exported. For periods that it did not
 * read (`since`), only the claims of the previous export are valid. The rest becomes a gap, reason `not exported`, so that
 * coverage and gaps together still contain every range.
 */
export function exportableClaims(
  before: Claims,
  after: readonly ExportClaim[],
  earlier:
    | { readonly readSince: (stream: string) => Micros | undefined; readonly claims: readonly ExportClaim[] }
    | undefined,
): Claims {
  const later = rangesByKey(after);
  const previous = rangesByKey(earlier?.claims ?? []);
  const coverage: LedgerEntry[] = [];
  const notExported: LedgerEntry[] = [];
  for (const [key, entries] of Map.groupBy(before.coverage, claimKey)) {
    const [first] = entries;
    if (!first) continue;
    const ranges = normalise(entries);
    let claimed = first.state === "lost" ? ranges : intersect(ranges, later.get(key) ?? []);
    const since = earlier?.readSince(first.stream);
    if (since !== undefined && first.state !== "lost") {
      const unreadTime = [{ from: Number.NEGATIVE_INFINITY, to: since }];
      const unread = intersect(claimed, unreadTime);
      claimed = normalise([...subtract(claimed, unreadTime), ...intersect(unread, previous.get(key) ?? [])]);
    }
    coverage.push(...claimed.map((range) => ({ ...first, ...range })));
    notExported.push(
      ...subtract(ranges, claimed).map((range) => ({
        ...first,
        ...range,
        state: "open",
        reason: "not exported",
      })),
    );
  }
  return { coverage, gaps: [...before.gaps, ...notExported] };
}

/**
 * Throws if the previous export claims index ticks that 0.2.0 has moved out of the warehouse: its files are the only copy, and
 * this export would replace them by files without these ticks.
 */
export async function assertNoOnlyCopy(
  writer: ParquetWriter,
  store: ExportStore,
  { coverage }: Claims,
): Promise<void> {
  const gone = coverage.filter(
    ({ stream, state, reason }) => stream === "index_ticks" && state === "lost" && reason === "moved",
  );
  if (gone.length === 0) return;
  const previous = rangesByKey(await readPreviousClaims(writer, store, store.previous));
  const claimed = (entry: LedgerEntry) => previous.get(claimKey({ ...entry, state: "rows", reason: null }));
  if (gone.some((entry) => intersect([entry], claimed(entry) ?? []).length > 0))
    throw exportRefused(
      `${store.place} has the only copy of index ticks that version 0.2.0 moved out of the warehouse`,
      "export to another place, and keep this one",
    );
}

/** The ranges in the coverage file of an earlier export. */
export async function readPreviousClaims(
  writer: ParquetWriter,
  store: ExportStore,
  previous: Manifest | undefined,
): Promise<ExportClaim[]> {
  const file = previous?.files.find(({ relation }) => relation === coverageRelation.name);
  if (!file) return [];
  const rows = await writer.rows(
    `SELECT stream, index_type, index_id, from_ts, to_ts, proof, reason FROM read_parquet(${quoteText(await store.locate(file))})`,
  );
  return rows.map(([stream, indexType, indexId, from, to, state, reason]) => ({
    stream: String(stream),
    indexType: indexType as string | null,
    indexId: indexId as string | null,
    from: Number(from),
    to: Number(to),
    state: String(state),
    reason: reason as string | null,
  }));
}

function rangesByKey(claims: readonly ExportClaim[]): Map<string, TimeRanges> {
  return new Map([...Map.groupBy(claims, claimKey)].map(([key, ranges]) => [key, normalise(ranges)]));
}

/** Claims of one ledger key with different states or reasons are different claims. */
const claimKey = ({ stream, indexType, indexId, state, reason }: ExportClaim) =>
  JSON.stringify([stream, indexType, indexId, state, reason]);

export function coverageRow(entry: LedgerEntry): RelationRow {
  const { stream, indexType, indexId, name, from, to, state, reason } = entry;
  const times = [from, to, formatTimestamp(from), formatTimestamp(to)];
  return [stream, indexType, indexId, name, ...times, state, reason];
}

export function gapRow(entry: LedgerEntry): RelationRow {
  return [...coverageRow(entry), entry.lostAt];
}
