import { normalise, subtract, type TimeRange, totalDuration } from "../../model/time-range.ts";
import { namedKeyText } from "../coverage/ledger-keys.ts";
import type { Connection } from "../sqlite/connection.ts";
import { targetStartSql } from "../views/gap-parts.ts";
import { presentTs, sqliteDialect } from "../views/sqlite-dialect.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, createFinding } from "./audited-key.ts";

export type GapsByKey = ReadonlyMap<string, readonly TimeRange[]>;

interface ViewGapRow extends TimeRange {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
}

/** The rows of the stored view `gaps` at `now`, by ledger key. */
export function readViewGaps({ connection, now }: AuditContext): GapsByKey {
  const body = readViewBody(connection, "gaps").replaceAll(presentTs, String(now));
  const rows = connection.database
    .prepare<[], ViewGapRow>(
      `SELECT stream, index_type, index_id, from_ts AS "from", to_ts AS "to" FROM (${body})`,
    )
    .all();
  return Map.groupBy(rows, namedKeyText);
}

function readViewBody(connection: Connection, view: string): string {
  const sql = connection.value<string>("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = ?", [
    view,
  ]);
  return sql.replace(/^CREATE VIEW\s+\S+\s+AS/i, "");
}

const pastTargetsSql = `SELECT ${targetStartSql(sqliteDialect, "CAST(@now AS INTEGER)")} AS "from",
    min(coalesce(w.to_ts, CAST(@now AS INTEGER)), CAST(@now AS INTEGER)) AS "to"
  FROM targets w WHERE w.stream = @stream AND w.series = @series ORDER BY w.from_ts`;

/**
 * Every second of a target up to now must be settled or in the view `gaps`, and none in both. The view also lists what
 * is settled as lost. Expects ascending and disjoint ranges: see `checkOrder`.
 */
export function checkTiling(
  { connection, now }: AuditContext,
  audited: AuditedKey,
  viewGaps: GapsByKey,
): AuditFinding[] {
  const { key, names, settled } = audited;
  const { stream, series } = key;
  const past = connection
    .rows<TimeRange>(pastTargetsSql, { stream, series, now })
    .filter(({ from, to }) => from < to);
  const expected = [
    ...subtract(normalise(past), normalise(settled)),
    ...settled.filter(({ proof }) => proof === "lost"),
  ].sort((a, b) => a.from - b.from);
  const shown = (viewGaps.get(keyOf(key.stream, names)) ?? []).toSorted((a, b) => a.from - b.from);
  const [wanted, listed] = [normalise(expected), normalise(shown)];
  return [
    ...subtract(wanted, listed).map((range) =>
      createFinding(audited, "tiling", range, "neither covered nor in the view gaps"),
    ),
    ...subtract(listed, wanted).map((range) =>
      createFinding(audited, "tiling", range, "in the view gaps, although it is covered or not selected"),
    ),
    ...(totalDuration(shown) > totalDuration(listed) ? findOverlaps(shown) : []).map((range) =>
      createFinding(audited, "tiling", range, "twice in the view gaps"),
    ),
  ];
}

function findOverlaps(ranges: readonly TimeRange[]): TimeRange[] {
  let end = Number.NEGATIVE_INFINITY;
  return ranges.flatMap(({ from, to }) => {
    const overlap = { from, to: Math.min(to, end) };
    end = Math.max(end, to);
    return overlap.from < overlap.to ? [overlap] : [];
  });
}

function keyOf(stream: string, names: AuditedKey["names"]): string {
  return namedKeyText({
    stream,
    index_type: names?.indexType || null,
    index_id: names?.indexId || null,
  });
}
