import type { TimeRange } from "../../model/time-range.ts";
import type { ColumnDoc } from "../schema/column-doc.ts";
import { publicDocs } from "../schema/column-docs.ts";
import type { Connection } from "../sqlite/connection.ts";

export type RelationColumnKind = "text" | "integer" | "real" | "timestamp";

/** A relation that an export writes as one file. */
export interface ExportRelation {
  readonly name: string;
  readonly columns: Readonly<Record<string, RelationColumnKind>>;
  /** The FROM clause, with the order of the rows. */
  readonly from: string;
}

const kinds = { TEXT: "text", INTEGER: "integer", REAL: "real" } as const;

/** The moments that the warehouse has as TEXT. */
const isMoment = (column: string) => /^(time|first_seen|listing|expiration)$|_(time|at)$/.test(column);

/** They number rows of this file, or count its lists. */
const unexported: ReadonlySet<string> = new Set(["absences", "change", "reject"]);

/** A public relation with the columns that its documentation lists. */
function publicRelation(name: string, order?: string): ExportRelation {
  const columns = publicDocs[name]?.columns.filter((column) => !unexported.has(column.name)) ?? [];
  const kindOf = ({ name, type }: ColumnDoc) => (isMoment(name) ? "timestamp" : kinds[type]);
  return {
    name,
    columns: Object.fromEntries(columns.map((column) => [column.name, kindOf(column)])),
    from: order === undefined ? name : `${name} ORDER BY ${order}`,
  };
}

/** Every public relation that is not partitioned by time, except `coverage` and `gaps`. */
export const exportRelations: readonly ExportRelation[] = [
  publicRelation("assets", "id"),
  publicRelation("markets", "id"),
  publicRelation("exchanges", "id"),
  publicRelation("exchange_markets", "exchange_id, market_id"),
  publicRelation("exchange_symbols", "exchange_id, asset_id"),
  publicRelation("derivative_contracts", "derivative_type, id"),
  {
    name: "series",
    columns: { index_type: "text", index_id: "text", name: "text", refresh_us: "integer" },
    // 30 seconds for a series that was never selected.
    from: `(SELECT index_type, index_id, name, coalesce((SELECT w.period FROM targets w
        WHERE w.stream = 'index_ticks' AND w.series = s.series ORDER BY w.from_ts DESC LIMIT 1), 30000000) AS refresh_us
      FROM series s WHERE index_type <> '') ORDER BY index_type, name, index_id`,
  },
  publicRelation("revisions"),
  publicRelation("status_changes", "change"),
  publicRelation("rejects", "reject"),
  publicRelation("unknown_fields", '"where", name'),
  publicRelation("unknown_events", '"where", name'),
];

export const coverageRelation = publicRelation("coverage");
export const gapsRelation = publicRelation("gaps");

export type RelationRow = readonly (number | string | null)[];

export function readRelation(connection: Connection, { columns, from }: ExportRelation) {
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
