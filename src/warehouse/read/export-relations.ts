import type { Column } from "../../model/column.ts";
import {
  assetColumns,
  derivativeContractColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";

export type RelationColumnKind = "text" | "integer" | "real" | "timestamp";

/** A relation that an export writes as one file. */
export interface ExportRelation {
  readonly name: string;
  readonly columns: Readonly<Record<string, RelationColumnKind>>;
  /** The FROM clause, with the order of the rows. */
  readonly from: string;
}

const ledgerKey = { stream: "text", index_type: "text", index_id: "text", name: "text" } as const;
const range = { from_ts: "integer", to_ts: "integer", from_time: "timestamp", to_time: "timestamp" } as const;
const unknown = {
  where: "text",
  name: "text",
  first_seen: "timestamp",
  count: "integer",
  sample: "text",
} as const;

/** A lookup with its public columns (without the count of absences), ordered by its key. */
function lookupRelation(name: string, columns: readonly Column[], key: string): ExportRelation {
  const added = {
    first_seen: "timestamp",
    delisted_at: "timestamp",
    quality: "text",
    extra: "text",
  } as const;
  const own = columns.flatMap(({ name, type }): [string, RelationColumnKind][] =>
    type === "decimal"
      ? [
          [name, "real"],
          [`${name}_exact`, "text"],
        ]
      : [[name, type === "source" ? "text" : type]],
  );
  return { name, columns: { ...Object.fromEntries(own), ...added }, from: `${name} ORDER BY ${key}` };
}

/** Every public relation that is not partitioned by time, except `coverage` and `gaps`. */
export const exportRelations: readonly ExportRelation[] = [
  lookupRelation("assets", assetColumns, "id"),
  lookupRelation("markets", marketColumns, "id"),
  lookupRelation("exchanges", exchangeColumns, "id"),
  lookupRelation("exchange_markets", exchangeMarketColumns, "exchange_id, market_id"),
  lookupRelation("exchange_symbols", exchangeSymbolColumns, "exchange_id, asset_id"),
  lookupRelation("derivative_contracts", derivativeContractColumns, "derivative_type, id"),
  {
    name: "series",
    columns: { index_type: "text", index_id: "text", name: "text", refresh_us: "integer" },
    // 30 seconds for a series that was never selected.
    from: `(SELECT index_type, index_id, name, coalesce((SELECT w.period FROM targets w
        WHERE w.stream = 'index_ticks' AND w.series = s.series ORDER BY w.from_ts DESC LIMIT 1), 30000000) AS refresh_us
      FROM series s WHERE index_type <> '') ORDER BY index_type, name, index_id`,
  },
  {
    name: "revisions",
    columns: {
      ...ledgerKey,
      ts: "integer",
      time: "timestamp",
      before: "text",
      after: "text",
      changed_at: "timestamp",
    },
    from: "revisions",
  },
  {
    name: "status_changes",
    columns: { entity: "text", id: "text", field: "text", old: "text", new: "text", seen_at: "timestamp" },
    from: "status_changes ORDER BY change",
  },
  {
    name: "rejects",
    columns: { stream: "text", received_at: "timestamp", reason: "text", raw: "text", request: "text" },
    from: "rejects ORDER BY reject",
  },
  { name: "unknown_fields", columns: unknown, from: 'unknown_fields ORDER BY "where", name' },
  { name: "unknown_events", columns: unknown, from: 'unknown_events ORDER BY "where", name' },
];

export const coverageRelation: ExportRelation = {
  name: "coverage",
  columns: { ...ledgerKey, ...range, proof: "text", reason: "text" },
  from: "coverage",
};

export const gapsRelation: ExportRelation = {
  name: "gaps",
  columns: { ...ledgerKey, ...range, state: "text", reason: "text", lost_at: "timestamp" },
  from: "gaps",
};

export type RelationRow = readonly (number | string | null)[];

export function readRelation(
  connection: Connection,
  { columns, from }: ExportRelation,
): Iterable<RelationRow> {
  const names = Object.keys(columns).map((name) => `"${name}"`);
  return connection
    .statement<RelationRow>(`SELECT ${names.join(", ")} FROM ${from}`)
    .raw()
    .iterate();
}

/** A range of the ledger with the names of its key, as in the views. */
export interface LedgerEntry extends TimeRange {
  readonly stream: string;
  readonly indexType: string | null;
  readonly indexId: string | null;
  readonly name: string | null;
  /** Coverage: `rows`, `empty`, `lost`; gaps: `open`, `lost`. */
  readonly state: string;
  readonly reason: string | null;
  readonly lostAt: string | null;
}

/** Reads coverage and gaps from the views. Call it inside `inSnapshot`, so that they agree. */
export function readLedger(connection: Connection): {
  readonly coverage: readonly LedgerEntry[];
  readonly gaps: readonly LedgerEntry[];
} {
  const shared =
    'stream, index_type AS indexType, index_id AS indexId, name, from_ts AS "from", to_ts AS "to", reason';
  const order = "ORDER BY stream, index_type, index_id, from_ts";
  const all = (sql: string) => connection.rows<LedgerEntry>(sql);
  return {
    coverage: all(`SELECT ${shared}, proof AS state, NULL AS lostAt FROM coverage ${order}`),
    gaps: all(`SELECT ${shared}, state, lost_at AS lostAt FROM gaps ${order}`),
  };
}

/** Runs `work` in one read transaction. Keep it short: docs/decisions/wal.md. */
export async function inSnapshot<T>(connection: Connection, work: () => T | Promise<T>): Promise<T> {
  connection.database.exec("BEGIN");
  try {
    return await work();
  } finally {
    connection.database.exec("COMMIT");
  }
}
