import type { Column, ColumnType } from "../../model/column.ts";
import { quoteName } from "../../model/sql-text.ts";
import {
  assetColumns,
  derivativeContractColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  lookupColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import { isDaily, keyColumns, type RowStream, rowStreams, streamTable } from "../../model/streams.ts";
import { formatTimestamp } from "../../model/time.ts";
import { rowColumns } from "../../warehouse/tables/row-tables.ts";
import { barDecimals } from "../../warehouse/views/bar-views.ts";
import { dayOf, exactNumber, moment } from "./postgres-dialect.ts";

/** The PostgreSQL types that COPY writes in binary. `moment` is text in SQLite. */
export type PgType = "int2" | "int4" | "int8" | "float8" | "bool" | "text" | "json" | "moment";

export interface PgColumn {
  readonly name: string;
  readonly type: PgType;
  readonly isNullable: boolean;
}

const sqlTypes: Readonly<Record<PgType, string>> = {
  int2: "smallint",
  int4: "integer",
  int8: "bigint",
  float8: "double precision",
  bool: "boolean",
  text: "text",
  json: "json",
  moment: "timestamptz",
};

function column(name: string, type: PgType, isNullable = false): PgColumn {
  return { name, type, isNullable };
}

/** Parses `name type, name? type`: a question mark allows NULL. */
function columns(text: string): PgColumn[] {
  return text.split(",").map((part) => {
    const [name = "", type = ""] = part.trim().split(" ");
    return column(name.replace("?", ""), type as PgType, name.endsWith("?"));
  });
}

interface RowTableLayout {
  readonly stream: RowStream;
  readonly table: string;
  readonly key: string;
  /** As the table stores them: wide columns first, since PostgreSQL aligns them to eight bytes. */
  readonly columns: readonly PgColumn[];
  /** Ticks are partitioned by month of `ts`. */
  readonly isPartitioned: boolean;
}

const storedTypes: Readonly<Record<ColumnType, PgType>> = {
  decimal: "float8",
  real: "float8",
  timestamp: "int8",
  integer: "int8",
  source: "int2",
  text: "text",
};

function rowTableLayout(stream: RowStream): RowTableLayout {
  const { table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const values = rowColumns(stream).map(({ name, type }) =>
    column(name, storedTypes[type], type !== "source"),
  );
  const all = [column("ts", "int8"), ...values, column(key, "int4"), column("details", "json", true)];
  return {
    stream,
    table,
    key,
    isPartitioned: !isDaily(stream),
    columns: all.sort((a, b) => placeOf(a) - placeOf(b)),
  };
}

const placeOf = ({ type }: PgColumn) => ({ float8: 0, int8: 0, int4: 1, int2: 2 })[type as string] ?? 3;

export const rowLayouts = Object.fromEntries(
  rowStreams.map((stream) => [stream, rowTableLayout(stream)]),
) as Readonly<Record<RowStream, RowTableLayout>>;

/** A small relation: replaced where it differs. */
export interface RelationLayout {
  readonly name: string;
  readonly columns: readonly PgColumn[];
  readonly primaryKey: readonly string[];
  /** The relation of the SQLite file. */
  readonly from: string;
  /** The column with a key of a dictionary, which is another number in PostgreSQL: `series`, or `key` of the dictionary of `stream`. */
  readonly keyColumn?: "series" | "key";
  /**
   * In a log: when the event of a row was seen. Rows of a log are only ever added, with ascending numbers. PostgreSQL also stores
   * from which file each row is.
   */
  readonly momentColumn?: string;
}

const moments = new Set(["first_seen", "delisted_at"]);
const lookupTypes = ({ name, type, reading }: Column): PgType => {
  if (moments.has(name)) return "moment";
  return reading === "flag" ? "bool" : storedTypes[type];
};

function lookup(name: string, own: readonly Column[], primaryKey: readonly string[]): RelationLayout {
  const stored = [...own, ...lookupColumns].filter(({ source }) => source === "row" || source === "label");
  const all = stored.map((each) => column(each.name, lookupTypes(each), !primaryKey.includes(each.name)));
  return { name, columns: all, primaryKey, from: name };
}

/** `text`: the columns, of which the first `keys` are the primary key. */
function relation(name: string, keys: number, text: string, others: Partial<RelationLayout> = {}) {
  const all = columns(text);
  const primaryKey = all.slice(0, keys).map((each) => each.name);
  return { name, columns: all, primaryKey, from: name, ...others };
}

const ofSeries = { keyColumn: "series" } as const;

const UNKNOWN_COLUMNS = "where text, name text, first_seen moment, count int8, sample? text";

export const relationLayouts: readonly RelationLayout[] = [
  lookup("assets", assetColumns, ["id"]),
  lookup("market_rows", marketColumns, ["id"]),
  lookup("exchanges", exchangeColumns, ["id"]),
  lookup("exchange_markets", exchangeMarketColumns, ["exchange_id", "market_id"]),
  lookup("exchange_symbols", exchangeSymbolColumns, ["exchange_id", "asset_id"]),
  relation(
    "status_change_rows",
    2,
    "source int8, change int8, entity text, id text, field text, old? text, new? text, seen_at moment",
    { from: "status_changes", momentColumn: "seen_at" },
  ),
  relation(
    "reject_rows",
    2,
    "source int8, reject int8, stream text, received_at moment, reason text, raw text, request? text",
    { from: "rejects", momentColumn: "received_at" },
  ),
  relation("unknown_fields", 2, UNKNOWN_COLUMNS),
  relation("unknown_events", 2, UNKNOWN_COLUMNS),
  relation(
    "revision_rows",
    2,
    "source int8, revision int8, stream text, key int4, ts int8, before text, after? text, changed_at int8",
    { keyColumn: "key", momentColumn: "changed_at" },
  ),
  relation(
    "targets",
    3,
    "stream text, series int4, from_ts int8, to_ts? int8, settle_delay int8, period int8, step int8, service_window? int8, is_snapshot int2, blocked_reason? text",
    ofSeries,
  ),
  relation(
    "publications",
    2,
    "stream text, series int4, published_to int8, asked_at int8, asked_to int8, quiet_margin int8",
    ofSeries,
  ),
  relation(
    "pending_claims",
    3,
    "stream text, series int4, claim int8, kind text, from_ts int8, to_ts int8, accepted_at? int8",
    ofSeries,
  ),
  relation("live_spans", 3, "stream text, index_type text, index_id text, from_ts int8, to_ts int8"),
  relation("stream_states", 1, "stream text, late_by int8, late_at int8"),
];

/** The dictionaries. PostgreSQL assigns its own keys, because several warehouses may share it. */
export interface DictionaryLayout {
  readonly name: "series" | "listings" | "contracts";
  readonly key: string;
  /** What identifies an entry everywhere. */
  readonly identity: readonly [string, string];
  readonly columns: readonly PgColumn[];
}

export const dictionaryLayouts: readonly DictionaryLayout[] = [
  {
    name: "series",
    key: "series",
    identity: ["index_type", "index_id"],
    columns: columns("index_type text, index_id text, name text"),
  },
  {
    name: "listings",
    key: "listing",
    identity: ["exchange_id", "market_id"],
    columns: columns("exchange_id text, market_id text, exchange text, pair text"),
  },
  {
    name: "contracts",
    key: "contract",
    identity: ["derivative_type", "id"],
    columns: [
      ...columns("derivative_type text, id text"),
      ...derivativeContractColumns
        .filter(({ reading }) => reading !== "identity")
        .map((each) => column(each.name, storedTypes[each.type], true)),
      ...columns("details? json, is_described bool"),
      ...lookupColumns.map((each) => column(each.name, lookupTypes(each), true)),
    ],
  },
];

export const LEDGER_TABLE = "settled_ranges";
const ledgerColumns = columns("from_ts int8, to_ts int8, series int4, stream text, proof text, reason? text");

export const tableNames: readonly string[] = [
  ...dictionaryLayouts.map(({ name }) => name),
  ...Object.values(rowLayouts).map(({ table }) => table),
  ...relationLayouts.map(({ name }) => name),
  LEDGER_TABLE,
  "kept_bars",
  "lease",
  "months",
  "positions",
  "source",
];

function definition({ name, type, isNullable }: PgColumn): string {
  return `"${name}" ${sqlTypes[type]}${isNullable ? "" : " NOT NULL"}`;
}

/** Inserts rows, or replaces those of the same key. `rows`: what to select them from. */
export function upsertSql(
  table: string,
  names: readonly string[],
  key: readonly string[],
  rows: string,
): string {
  const quoted = (list: readonly string[]) => list.map(quoteName).join(", ");
  const others = names.filter((name) => !key.includes(name)).map(quoteName);
  return `INSERT INTO ${table} (${quoted(names)}) SELECT ${quoted(names)} FROM ${rows}
    ON CONFLICT (${quoted(key)}) DO UPDATE SET ${others.map((name) => `${name} = excluded.${name}`).join(", ")}`;
}

/** Rows from outside of these years, which cannot be right, are in two partitions of their own. */
export const MIN_PARTITION_YEAR = 2009;
export const MAX_PARTITION_YEAR = 2099;

const first = Date.UTC(MIN_PARTITION_YEAR, 0, 1) * 1000;
const end = Date.UTC(MAX_PARTITION_YEAR + 1, 0, 1) * 1000;

/** Not a default partition: attaching a month would lock that one against every reader. */
function outerPartitions({ table, key }: RowTableLayout): string[] {
  const parts = [
    ["before", "MINVALUE", first],
    ["after", end, "MAXVALUE"],
  ] as const;
  return parts.flatMap(([name, from, to]) => [
    `CREATE TABLE IF NOT EXISTS mds.${table}_${name} PARTITION OF mds.${table} (${timeCheck(from, to)}) FOR VALUES FROM (${from}) TO (${to})`,
    timeIndexSql(`${table}_${name}`, key),
  ]);
}

/** So that a condition on `time` skips the partition too, not only one on `ts`. */
export function timeCheck(from: number | "MINVALUE", to: number | "MAXVALUE"): string {
  const bounds = [
    ...(from === "MINVALUE" ? [] : [`${moment("ts")} >= '${formatTimestamp(from)}'`]),
    ...(to === "MAXVALUE" ? [] : [`${moment("ts")} < '${formatTimestamp(to)}'`]),
  ];
  return `CHECK (${bounds.join(" AND ")})`;
}

/** Each partition has its own, so that a first load can do without. */
export function timeIndexSql(partition: string, key: string): string {
  return `CREATE INDEX IF NOT EXISTS ${partition}_time ON mds.${partition} (${key}, ${moment("ts")})`;
}

export function tableStatements(): readonly string[] {
  const statements: string[] = [];
  const create = (table: string, body: readonly string[], suffix = "") =>
    statements.push(`CREATE TABLE IF NOT EXISTS mds.${table} (${body.join(", ")})${suffix}`);
  for (const { name, key, identity, columns: all } of dictionaryLayouts) {
    create(name, [
      `${key} integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY`,
      ...all.map(definition),
      `UNIQUE (${identity.join(", ")})`,
    ]);
  }
  for (const layout of Object.values(rowLayouts)) {
    const { table, key, columns: all, isPartitioned } = layout;
    create(
      table,
      [...all.map(definition), `PRIMARY KEY (${key}, ts)`],
      isPartitioned ? " PARTITION BY RANGE (ts)" : "",
    );
    if (isPartitioned) statements.push(...outerPartitions(layout));
    else
      statements.push(
        `CREATE UNIQUE INDEX IF NOT EXISTS ${table}_day ON mds.${table} (${key}, (${dayOf("ts")}))`,
      );
  }
  for (const { name, columns: all, primaryKey } of relationLayouts) {
    create(name, [
      ...all.map(definition),
      `PRIMARY KEY (${primaryKey.map((each) => `"${each}"`).join(", ")})`,
    ]);
  }
  create(LEDGER_TABLE, [...ledgerColumns.map(definition), "PRIMARY KEY (stream, series, from_ts)"]);
  // Stored: to convert five doubles of each bar would take a reader as long as all the rest.
  const exactColumns = barDecimals.map(
    ({ name }) => `${name}_exact numeric GENERATED ALWAYS AS (${exactNumber("kept_bars", name)}) STORED`,
  );
  create("kept_bars", [
    ...columns(
      "ts int8, length int8, open? float8, high? float8, low? float8, close? float8, volume_24h? float8",
    ).map(definition),
    ...columns("series int4, n_ticks? int4, n_doubtful? int4, details? json").map(definition),
    ...exactColumns,
    "PRIMARY KEY (series, length, ts)",
  ]);
  statements.push(
    "CREATE INDEX IF NOT EXISTS kept_bars_stale ON mds.kept_bars (series, ts) WHERE n_ticks IS NULL",
    timeIndexSql("kept_bars", "series, length"),
  );
  return [...statements, ...stateTables];
}

/** What the forwarder knows of PostgreSQL: who may forward, up to which change of which file, which months there are. */
const stateTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS mds.lease (one boolean PRIMARY KEY CHECK (one), epoch bigint NOT NULL, holder text NOT NULL,
    name text NOT NULL, until timestamptz NOT NULL) WITH (fillfactor = 50)`,
  `CREATE TABLE IF NOT EXISTS mds.positions (changes_id bigint PRIMARY KEY, seq bigint NOT NULL, moved_at timestamptz NOT NULL,
    is_loaded boolean NOT NULL DEFAULT true)`,
  "CREATE TABLE IF NOT EXISTS mds.months (name text PRIMARY KEY, is_detached boolean NOT NULL)",
  `CREATE TABLE IF NOT EXISTS mds.source (one boolean PRIMARY KEY CHECK (one), clock_skew bigint NOT NULL,
    stored_at timestamptz NOT NULL)`,
];
