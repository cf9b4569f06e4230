import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { type LedgerKey, readStoredRanges } from "../coverage/ledger.ts";
import { readTargetsOfKey } from "../coverage/targets.ts";
import type { TargetRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";

/** What the auditor checks. */
export type AuditRule =
  /** Settled ranges are ascending, disjoint and merged, and their key has a name. */
  | "order"
  /** The targets of a key are disjoint. */
  | "targets"
  /** Coverage and gaps together are exactly the targets. */
  | "tiling"
  /** A range called `empty` has no row. */
  | "row_in_empty"
  /** A range called `rows` has rows. */
  | "no_rows"
  /** A range called `lost` was out of reach. */
  | "lost_in_reach"
  /** Kept bars agree with the ticks. */
  | "kept_bars"
  /** Nothing is settled beyond the present. */
  | "future"
  /** A long time without a row in a range called `rows`: a remark, because the service's own data may have such a pause. */
  | "long_pause";

export interface AuditFinding extends TimeRange {
  readonly rule: AuditRule;
  readonly key: LedgerKey;
  /** Null: the dictionary lacks the key. */
  readonly names: Readonly<SeriesNames> | null;
  /** What is wrong, in one line. */
  readonly text: string;
}

/** One ledger key with everything that the ledger says about it. */
export interface AuditedKey {
  readonly key: LedgerKey;
  readonly names: Readonly<SeriesNames> | null;
  /** By start. */
  readonly targets: readonly TargetRow[];
  /** By start. */
  readonly settled: readonly SettledRange[];
  /** The period between two records: half the settle delay of the newest target. */
  readonly cadence: Micros;
}

export interface AuditContext {
  readonly connection: Connection;
  /** The present by the service's clock. */
  readonly now: Micros;
}

export function createFinding(
  { key, names }: Pick<AuditedKey, "key" | "names">,
  rule: AuditRule,
  { from, to }: TimeRange,
  text: string,
): AuditFinding {
  return { rule, key, names, from, to, text };
}

const keysSql = `SELECT stream, series FROM targets UNION SELECT stream, series FROM settled_ranges`;
const namesSql = "SELECT index_type AS indexType, index_id AS indexId, name FROM series WHERE series = ?";

/** Reads the ledger key by key: that of a snapshot stream may have hundreds of thousands of ranges. */
export function* readAuditedKeys(connection: Connection): Generator<AuditedKey> {
  for (const key of connection.rows<LedgerKey>(keysSql)) {
    const rows = readTargetsOfKey(connection, key);
    yield {
      key,
      names: connection.findRow<SeriesNames>(namesSql, [key.series]) ?? null,
      targets: rows,
      settled: readStoredRanges(connection, key),
      cadence: rows.at(-1)?.period ?? 1,
    };
  }
}
