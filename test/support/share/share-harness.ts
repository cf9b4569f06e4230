import type pg from "pg";
import { expect } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import {
  openShare,
  type ShareOnceOptions,
  type ShareOptions,
  type ShareResult,
  shareOnce,
} from "../../../src/share/share-once.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ticks } from "../export/sample-data.ts";
import { PASSWORD, type TestPostgres } from "../postgres-server.ts";
import { timeLimit } from "../time-limit.ts";
import { openTestWarehouse, type TestWarehouseOptions } from "../warehouse/open-warehouse.ts";
import { tick } from "../warehouse/records.ts";
import { settle } from "../warehouse/settle.ts";
import { writeTicks } from "../warehouse/write-records.ts";

/** The options with which a test forwards a warehouse to a database of its server. */
export function shareOptions(
  server: TestPostgres,
  database: string,
  warehouse: Pick<WarehouseWriter, "path">,
  more: Partial<ShareOptions> = {},
): ShareOptions {
  return {
    warehouse: warehouse.path,
    url: server.url(database),
    readPassword: () => PASSWORD,
    role: "alone",
    name: "test",
    leaseSeconds: Math.ceil(timeLimit(15_000) / 1000),
    clock: systemClock,
    signal: new AbortController().signal,
    ...more,
  };
}

/** Forwards a warehouse to a database of the test server, once. */
export function shareInto(
  server: TestPostgres,
  database: string,
  warehouse: Pick<WarehouseWriter, "path">,
  { verify = false, ...more }: Partial<ShareOnceOptions> = {},
): Promise<ShareResult> {
  const options = { ...shareOptions(server, database, warehouse, more), verify };
  return shareOnce(options);
}

interface SharedOptions extends TestWarehouseOptions {
  /** So many hours of ticks, which are not forwarded yet. */
  readonly hours?: number;
  readonly template?: string;
}

/** A warehouse, a database of its own, and what tests do with both. */
export async function openShared(
  server: TestPostgres,
  { hours = 0, template, ...options }: SharedOptions = {},
) {
  const warehouse = openTestWarehouse(options);
  if (hours > 0) addHours(warehouse, 0, hours);
  const database = await server.createDatabase(template);
  return {
    warehouse,
    database,
    forward: (more?: Partial<ShareOnceOptions>) => shareInto(server, database, warehouse, more),
    open: (more?: Partial<ShareOptions>) => openShare(shareOptions(server, database, warehouse, more)),
    query: <Found extends pg.QueryResultRow>(sql: string, values?: unknown[]) =>
      server.query<Found>(database, sql, values),
    expectSame: (relation: string) => expectSameInBoth(server, database, warehouse, relation),
  };
}

export type Shared = Awaited<ReturnType<typeof openShared>>;

type Row = Record<string, unknown>;

/** Expects a public relation with the same columns and rows in both stores, whatever form they give to values. Returns how many rows. */
export async function expectSameInBoth(
  server: TestPostgres,
  database: string,
  warehouse: WarehouseWriter,
  relation: string,
  condition = "true",
): Promise<number> {
  const { database: file } = warehouse.connection;
  const names = file.prepare(`SELECT name FROM pragma_table_info('${relation}')`).pluck().all() as string[];
  const typed = await server.query<{ name: string; type: string }>(
    database,
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
    WHERE table_schema = 'mds' AND table_name = $1 ORDER BY ordinal_position`,
    [relation],
  );
  expect
    .soft(
      typed.map(({ name }) => name),
      relation,
    )
    .toEqual(names);
  const selected = typed.map(({ name, type }) => `${plainSql(`"${name}"`, type)} AS "${name}"`).join(", ");
  const numbers = new Set(typed.filter(({ type }) => type === "bigint").map(({ name }) => name));
  const sort = (rows: Row[]) => rows.map((row) => JSON.stringify(row)).sort();
  const order = (row: Row) =>
    Object.fromEntries(
      names.map((name) => [name, numbers.has(name) && row[name] !== null ? Number(row[name]) : row[name]]),
    );
  const readLocal = () =>
    sort((file.prepare(`SELECT * FROM "${relation}" WHERE ${condition}`).all() as Row[]).map(order));
  let [sqlite, shared]: [string[], Row[]] = [[], []];
  // Some views ask the clock: both stores are read in the same second.
  do {
    sqlite = readLocal();
    shared = await server.query(database, `SELECT ${selected} FROM mds.${relation} WHERE ${condition}`);
  } while (JSON.stringify(readLocal()) !== JSON.stringify(sqlite));
  expect.soft(sort(shared.map(order)), relation).toEqual(sqlite);
  return sqlite.length;
}

/** A value as SQLite shows it. */
function plainSql(column: string, type: string): string {
  if (type === "timestamp with time zone")
    return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
  if (type === "boolean") return `${column}::integer`;
  return type === "numeric" || type === "date" ? `${column}::text` : column;
}

/** Where the hours of `addHours` begin. */
export const HOURS_BEGIN = Date.UTC(2026, 0, 10) * 1000;

/** Stores and settles hours of ticks of one series. */
export function addHours(warehouse: WarehouseWriter, from: number, count: number): void {
  const records = ticks(count * 120, HOURS_BEGIN + from * 3_600_000_000);
  warehouse.transaction((transaction) => {
    writeTicks(transaction, records);
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    const range = { from: records[0]?.ts ?? 0, to: (records.at(-1)?.ts ?? 0) + 30_000_000 };
    settle(transaction, { stream: "index_ticks", series }, range, "rows");
  });
}

/** Stores and settles whole days of ticks of one series, so many a day. Returns its key. */
export function addTickDays(warehouse: WarehouseWriter, start: number, counts: readonly number[]): number {
  return warehouse.transaction((transaction) => {
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    counts.forEach((count, day) => {
      const from = start + day * MICROS_PER_DAY;
      const step = Math.floor(MICROS_PER_DAY / count);
      const records = Array.from({ length: count }, (_, i) => tick(from + i * step, `${i}.5`));
      writeTicks(transaction, records);
    });
    const range = { from: start, to: start + counts.length * MICROS_PER_DAY };
    settle(transaction, { stream: "index_ticks", series }, range, "rows");
    return series;
  });
}
