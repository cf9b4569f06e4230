import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";

export type RelationColumnKind = "text" | "integer" | "real" | "moment";

/** A relation that an export writes as one file. */
export interface ExportRelation {
  readonly name: string;
  readonly columns: Readonly<Record<string, RelationColumnKind>>;
  /** What stands for the columns where the name alone does not. */
  readonly from: string;
}

const listed = { first_seen: "moment", delisted_at: "moment", quality: "text", extra: "text" } as const;
const line = { stream: "text", index_type: "text", index_id: "text", name: "text" } as const;
const range = { from_ts: "integer", to_ts: "integer", from_time: "moment", to_time: "moment" } as const;
const unknown = {
  where: "text",
  name: "text",
  first_seen: "moment",
  count: "integer",
  sample: "text",
} as const;

/** Every relation of the contract without months, in an order that no reader minds: what others refer to comes first. */
export const exportRelations = [
  {
    name: "assets",
    columns: {
      id: "text",
      symbol: "text",
      name: "text",
      type: "text",
      status: "text",
      url: "text",
      contract_address: "text",
      ...listed,
    },
    from: "assets ORDER BY id",
  },
  {
    name: "markets",
    columns: {
      id: "text",
      base_asset_id: "text",
      quote_asset_id: "text",
      base_symbol: "text",
      quote_symbol: "text",
      pair: "text",
      ...listed,
    },
    from: "markets ORDER BY id",
  },
  {
    name: "exchanges",
    columns: { id: "text", name: "text", url: "text", status: "text", ...listed },
    from: "exchanges ORDER BY id",
  },
  {
    name: "exchange_markets",
    columns: { exchange_id: "text", market_id: "text", status: "text", qualified: "integer", ...listed },
    from: "exchange_markets ORDER BY exchange_id, market_id",
  },
  {
    name: "exchange_symbols",
    columns: { exchange_id: "text", asset_id: "text", symbol: "text", ...listed },
    from: "exchange_symbols ORDER BY exchange_id, asset_id",
  },
  {
    name: "derivative_contracts",
    columns: {
      id: "text",
      derivative_type: "text",
      exchange_id: "text",
      market_id: "text",
      exchange_name: "text",
      settlement_currency: "text",
      contract_value: "real",
      contract_value_exact: "text",
      value_currency: "text",
      option_type: "text",
      option_strike: "real",
      option_strike_exact: "text",
      listing: "moment",
      expiration: "moment",
      ...listed,
    },
    from: "derivative_contracts ORDER BY derivative_type, id",
  },
  {
    name: "series",
    columns: { index_type: "text", index_id: "text", name: "text", refresh_us: "integer" },
    // The refresh period is half of the settle delay; 30 seconds where a series was never selected.
    from: `(SELECT index_type, index_id, name, coalesce((SELECT w.settle_delay / 2 FROM wanted_ranges w
        WHERE w.stream = 'index_ticks' AND w.series = s.series ORDER BY w.from_ts DESC LIMIT 1), 30000000) AS refresh_us
      FROM series s WHERE index_type <> '') ORDER BY index_type, name, index_id`,
  },
  {
    name: "revisions",
    columns: {
      ...line,
      ts: "integer",
      time: "moment",
      before: "text",
      after: "text",
      changed_at: "moment",
    },
    from: "revisions",
  },
  {
    name: "status_changes",
    columns: { entity: "text", id: "text", field: "text", old: "text", new: "text", seen_at: "moment" },
    from: "status_changes ORDER BY change",
  },
  {
    name: "rejects",
    columns: { stream: "text", received_at: "moment", reason: "text", raw: "text", request: "text" },
    from: "rejects ORDER BY reject",
  },
  { name: "unknown_fields", columns: unknown, from: 'unknown_fields ORDER BY "where", name' },
  { name: "unknown_events", columns: unknown, from: 'unknown_events ORDER BY "where", name' },
] as const satisfies readonly ExportRelation[];

export const coverageRelation: ExportRelation = {
  name: "coverage",
  columns: { ...line, ...range, proof: "text", reason: "text" },
  from: "coverage",
};

export const gapsRelation: ExportRelation = {
  name: "gaps",
  columns: { ...line, ...range, state: "text", reason: "text", lost_at: "moment" },
  from: "gaps",
};

export type RelationRow = readonly (number | string | null)[];

export function readRelation(
  connection: Connection,
  { columns, from }: ExportRelation,
): Iterable<RelationRow> {
  const names = Object.keys(columns).map((name) => `"${name}"`);
  return connection
    .statement(`SELECT ${names.join(", ")} FROM ${from}`)
    .raw()
    .iterate() as Iterable<RelationRow>;
}

/** A range of the ledger with the words that the views have for its line. */
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

/** Coverage and gaps of one moment, as the views say it. */
export function readLedger(connection: Connection): {
  readonly coverage: readonly LedgerEntry[];
  readonly gaps: readonly LedgerEntry[];
} {
  const shared =
    'stream, index_type AS indexType, index_id AS indexId, name, from_ts AS "from", to_ts AS "to", reason';
  const order = "ORDER BY stream, index_type, index_id, from_ts";
  const all = (sql: string) => connection.statement(sql).all() as LedgerEntry[];
  return {
    coverage: all(`SELECT ${shared}, proof AS state, NULL AS lostAt FROM coverage ${order}`),
    gaps: all(`SELECT ${shared}, state, lost_at AS lostAt FROM gaps ${order}`),
  };
}

/** Runs `work` on one snapshot of the warehouse. A long one keeps the writer's log from being cut back: one file's worth at most. */
export async function inSnapshot<T>(connection: Connection, work: () => T | Promise<T>): Promise<T> {
  connection.database.exec("BEGIN");
  try {
    return await work();
  } finally {
    connection.database.exec("COMMIT");
  }
}
