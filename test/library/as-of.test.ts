import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { openCatalogue } from "../docs/cookbook/engines.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { runPython } from "../support/clients/run-python.ts";
import { exportIn } from "../support/export/read-export.ts";
import { hasModules } from "../support/has-tool.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const T = parseTs("2026-03-01T00:00:00Z");
const SECOND = 1_000_000;
/** A tick without a price is the newest, the oldest, or the only one. */
const ticks = [
  ...[tick(T, "100", { indexId: "a" }), tick(T + 30 * SECOND, "1", { indexId: "a", price: null })],
  ...[tick(T, "1", { indexId: "b", price: null }), tick(T + 30 * SECOND, "200", { indexId: "b" })],
  tick(T, "1", { indexId: "c", price: null }),
];
const names = ["a", "b", "c"];
/** The moments, and the price of each series then. */
const expected: readonly (readonly [seconds: number, ...prices: (number | null)[]])[] = [
  [15, 100, null, null],
  [45, 100, 200, null],
];

const inPython = `
import sys, json, mds
answers = []
for place in sys.argv[1].split():
    w = mds.open(place)
    for at in json.loads(sys.argv[2]):
        one = w.asof(at, ["a", "b", "c"])["price"]
        many = w.asof([at], ["a", "b", "c"]).iloc[0]
        answers.append([[None if value != value else value for value in found] for found in (one, many)])
print(json.dumps(answers))
`;

function askPython(places: readonly string[], moments: readonly string[]): unknown {
  if (!hasModules("pandas psycopg2", "what was known at a time in Python")) return false;
  const env = { PGPASSWORD: PASSWORD };
  return JSON.parse(runPython(inPython, [places.join(" "), JSON.stringify(moments)], { env }));
}

it("is the newest tick with a price at or before a time, in every engine and reader", async () => {
  const warehouse = openTestWarehouse({ clock: systemClock, hasAllViews: true });
  storeTicks(warehouse, ticks);
  const database = await server.createDatabase();
  await shareInto(server, database, warehouse);
  const folder = dirname(warehouse.path);
  await exportIn(folder);
  const { connection, close } = await openCatalogue(join(folder, "export/mds.duckdb"));
  using reader = openWarehouse(warehouse.path);
  const moments = expected.map(([seconds]) => formatTimestamp(T + seconds * SECOND));
  const found: Record<string, unknown[]> = { shell: [], TypeScript: [], PostgreSQL: [], DuckDB: [] };
  const add = (engine: string, rows: readonly { name: unknown; price: unknown }[]) =>
    found[engine]?.push(
      names.map((name) => {
        const price = rows.find((row) => row.name === name)?.price;
        return typeof price === "number" ? price : null;
      }),
    );
  for (const at of moments) {
    const args = ["asof", at, ...names, "--format", "json"];
    const { stdout } = await runInProcess(args, { env: { MDS_WAREHOUSE: warehouse.path } });
    add("shell", JSON.parse(stdout));
    add("TypeScript", reader.asOf(at, names));
    const lateral = "SELECT t.name, t.price FROM unnest($1::text[]) n CROSS JOIN LATERAL mds.as_of(n, $2) t";
    add("PostgreSQL", await server.query(database, lateral, [names, at]));
    const macro = `SELECT name, price FROM index_ticks_as_of(TIMESTAMP '${at.slice(0, -1)}')`;
    add("DuckDB", (await connection.runAndReadAll(macro)).getRowObjectsJson() as never);
  }
  close();
  const prices = expected.map(([, ...each]) => each);
  for (const [engine, answers] of Object.entries(found)) expect(answers, engine).toEqual(prices);
  const python = askPython([warehouse.path, server.url(database)], moments);
  if (python) expect(python).toEqual([...prices, ...prices].map((each) => [each, each]));
});
