import type { RowStream } from "../../model/streams.ts";
import { formatInstant, type Micros, parseInstant } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { rowTables } from "../tables/row-tables.ts";

/** How the rows of a stream are named and parted in an export. */
interface Dictionary {
  readonly table: string;
  readonly key: string;
  /** The column whose values part the stream beside the month; null: only months do. */
  readonly partition: string | null;
  /** Column of the dictionary → column of the export, in the order of the contract. */
  readonly labels: Readonly<Record<string, string>>;
  /** Rows of one series lie together, and series in the order in which people name them: so a row group is skipped by name. */
  readonly order: string;
}

const indices: Dictionary = {
  table: "series",
  key: "series",
  partition: "index_type",
  labels: { index_id: "index_id", name: "name" },
  order: "name, index_id",
};

export const exportDictionaries: { readonly [S in RowStream]: Dictionary } = {
  index_ticks: indices,
  ohlcv: indices,
  market_caps: { ...indices, partition: null, labels: { index_id: "asset_id", name: "symbol" } },
  exchange_ticks: {
    table: "listings",
    key: "listing",
    partition: null,
    labels: { exchange_id: "exchange_id", market_id: "market_id", exchange: "exchange", pair: "pair" },
    order: "exchange, pair, exchange_id, market_id",
  },
  derivative_ticks: {
    table: "contracts",
    key: "contract",
    partition: "derivative_type",
    labels: {
      id: "contract_id",
      exchange_id: "exchange_id",
      market_id: "market_id",
      exchange_name: "exchange_name",
    },
    order: "id",
  },
};

/** One month of one part of a stream, and the series that have rows in it. */
export interface ExportMonth {
  readonly stream: RowStream;
  /** The index type or derivative type; null for a stream that only months part. */
  readonly part: string | null;
  /** `YYYY-MM` */
  readonly month: string;
  readonly from: Micros;
  readonly to: Micros;
  readonly keys: readonly number[];
}

/** The months that hold rows, from the one of `since` on. One index seek per series and month. */
export function exportMonths(
  connection: Connection,
  stream: RowStream,
  since = Number.NEGATIVE_INFINITY,
): ExportMonth[] {
  const { table, keyColumn, momentColumn, moment, momentTs } = rowTables[stream];
  const { table: dictionary, key, partition, order } = exportDictionaries[stream];
  const entries = connection
    .statement(`SELECT ${key}, ${partition ?? "NULL"} FROM ${dictionary} ORDER BY ${order}`)
    .raw()
    .all() as [number, string | null][];
  const first = connection
    .statement(`SELECT min(${momentColumn}) FROM ${table} WHERE ${keyColumn} = ?`)
    .pluck();
  const next = connection
    .statement(`SELECT min(${momentColumn}) FROM ${table} WHERE ${keyColumn} = ? AND ${momentColumn} >= ?`)
    .pluck();
  const bounded = Number.isFinite(since);
  const found = new Map<string, ExportMonth & { keys: number[] }>();
  for (const [entry, part] of entries) {
    let at = (bounded ? next.get([entry, moment(since)]) : first.get([entry])) as number | string | null;
    while (at !== null) {
      const month = monthOf(momentTs(at));
      const name = `${part ?? ""} ${month}`;
      const { from, to } = monthRange(month);
      let own = found.get(name);
      if (!own) {
        own = { stream, part, month, from, to, keys: [] };
        found.set(name, own);
      }
      own.keys.push(entry);
      at = next.get([entry, moment(to)]) as number | string | null;
    }
  }
  return [...found.values()].sort((a, b) => compare(a.part ?? "", b.part ?? "") || compare(a.month, b.month));
}

/** How many rows there are to export, at most: kept in step by the writer, so nothing is counted. */
export function storedRows(connection: Connection): number {
  const names = Object.keys(rowTables).map((stream) => `'${stream}'`);
  const sql = `SELECT coalesce(sum(rows), 0) FROM stream_states WHERE stream IN (${names.join(", ")})`;
  return connection.statement(sql).pluck().get() as number;
}

export function monthOf(ts: Micros): string {
  return formatInstant(ts).slice(0, 7);
}

export function monthRange(month: string): { from: Micros; to: Micros } {
  const [year = 0, number = 0] = month.split("-").map(Number);
  const following =
    number === 12 ? `${padded(year + 1, 4)}-01` : `${padded(year, 4)}-${padded(number + 1, 2)}`;
  return { from: startOf(month), to: startOf(following) };
}

function startOf(month: string): Micros {
  const ts = parseInstant(`${month}-01T00:00:00Z`);
  // The month after 9999-12 has no name of four digits.
  return ts ?? Number.MAX_SAFE_INTEGER;
}

const padded = (value: number, length: number) => String(value).padStart(length, "0");
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
