import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { dictionaryFile } from "../../scripts/dictionary-page.ts";
import { createBarGrid } from "../../src/library/reading/bar-grid.ts";
import { usePostgres } from "../support/postgres.ts";

const server = usePostgres();
const MINUTE = 60_000_000;
/** Moments of several years, none of them a start of any grid. */
const moments = Array.from({ length: 200 }, (_, at) => 1_500_000_123_000_000 + at * 1_234_567 * MINUTE);
const page = readFileSync(dictionaryFile, "utf8");
const lineOf = (engine: string) => new RegExp(`^\\| ${engine} \\| \`(.+)\` \\|$`, "m").exec(page)?.[1] ?? "";
const lengths = { "7m": "7 minutes", "1d": "1 day", "5d": "5 days" };
const startsOf = (every: string) => moments.map((ts) => createBarGrid(every).startOf(ts));
const values = moments.map((ts) => `(${ts})`).join(", ");

it.each(Object.entries(lengths))(
  "each engine's line gives the starts of bars of %s",
  async (every, interval) => {
    const duckDb = await (await DuckDBInstance.create()).connect();
    const inDuckDb = async (line: string) =>
      (
        await duckDb.runAndReadAll(
          `SELECT epoch_us(${line}) FROM (SELECT ts, make_timestamp(ts) AS time FROM (VALUES ${values}) v(ts)) ORDER BY ts`,
        )
      )
        .getRowsJS()
        .map(([start]) => Number(start));
    const line = lineOf("DuckDB").replace("7 minutes", interval);
    expect(await inDuckDb(line)).toEqual(startsOf(every));

    const database = await server.createDatabase();
    const rows = await server.query<{ start: string }>(
      database,
      `SELECT (extract(epoch FROM ${lineOf("PostgreSQL").replace("7 minutes", interval)}) * 1000000)::bigint AS start
      FROM (SELECT ts, to_timestamp(ts / 1000000.0) AS time FROM (VALUES ${values}) v(ts)) x ORDER BY ts`,
    );
    expect(rows.map(({ start }) => Number(start))).toEqual(startsOf(every));

    const length = createBarGrid(every).length / MINUTE;
    const sql = lineOf("SQLite").replace("7 *", `${length} *`);
    const sqlite = new Database(":memory:").prepare(
      `SELECT ${sql} FROM (SELECT column1 AS ts FROM (VALUES ${values})) ORDER BY ts`,
    );
    expect(sqlite.pluck().all()).toEqual(startsOf(every));
  },
);
