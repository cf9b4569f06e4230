import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { usePostgres } from "../support/postgres.ts";
import { addTickDays, shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();
const page = new URL("../../docs/shared.md", import.meta.url);
const SERIES = 12;
const STEP = 20 * 60_000_000;
const from = Date.UTC(2026, 5, 1) * 1000;
const to = Date.UTC(2026, 10, 1) * 1000;

/** Five months of ticks of some series; of one of them the first day is forwarded, so that the daemon has created the months. */
async function fillDatabase(): Promise<string> {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse({ clock: systemClock });
  for (let month = 5; month < 10; month++) addTickDays(warehouse, Date.UTC(2026, month, 1) * 1000, [1]);
  await shareInto(server, database, warehouse);
  await server.query(
    database,
    `INSERT INTO mds.series (index_type, index_id, name) SELECT 'GWA', i::text, 'S' || i FROM generate_series(2, ${SERIES}) i;
    UPDATE mds.series SET name = 'BTC' WHERE index_id = 'btc-id';
    INSERT INTO mds.index_tick_rows (series, ts, price, volume, source)
      SELECT s.series, t, 1.5, 2, 0 FROM mds.series s, generate_series(${from}, ${to} - 1, ${STEP}) t WHERE s.index_type = 'GWA'
      ON CONFLICT DO NOTHING;
    INSERT INTO mds.listings (exchange_id, market_id, exchange, pair) SELECT 'x', i::text, 'Kraken', 'P' || i FROM generate_series(1, ${SERIES}) i;
    UPDATE mds.listings SET pair = 'BTC/USD' WHERE market_id = '1'`,
  );
  await server.query(database, "ANALYZE");
  return database;
}

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Plan[];
}

const listNodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(listNodes)];

async function explain(database: string, sql: string) {
  const [row] = await server.query<{ "QUERY PLAN": { readonly Plan: Plan }[] }>(
    database,
    `EXPLAIN (ANALYZE, TIMING off, BUFFERS, FORMAT json) ${sql}`,
  );
  const plan = row?.["QUERY PLAN"][0]?.Plan;
  if (!plan) throw new Error(`no plan of ${sql}`);
  const ticks = listNodes(plan).filter((node) => /_tick_rows_/.test(node["Relation Name"] ?? ""));
  return {
    // To scan an empty month costs nothing.
    scanned: ticks
      .filter((node) => node["Node Type"] === "Seq Scan")
      .filter((node) => node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) > 0)
      .map((node) => node["Relation Name"]),
    months: new Set(ticks.map((node) => node["Relation Name"]?.slice(-7))),
    blocks: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
  };
}

const queries = [...readFileSync(page, "utf8").matchAll(/```sql\n(.*?)```/gs)]
  .flatMap(([, block = ""]) => block.split(/;\s*(?:\n|$)/))
  .map((sql) => sql.replaceAll(/^\s*--.*$/gm, "").trim())
  .filter((sql) => /^(SELECT|WITH)/.test(sql) && !sql.includes("create_distributed_table"));

it("runs every query of the manual by an index", async () => {
  const database = await fillDatabase();
  expect(queries.length).toBeGreaterThan(5);
  for (const sql of queries) {
    const { scanned } = await explain(database, sql);
    expect.soft(scanned, sql).toEqual([]);
  }
  const day = ["2026-08-03", "2026-08-04"].map((each) => Date.parse(each) * 1000);
  const byHand = await explain(
    database,
    `SELECT ts, price FROM mds.index_tick_rows WHERE series = (SELECT series FROM mds.series WHERE name = 'BTC')
    AND ts >= ${day[0]} AND ts < ${day[1]} ORDER BY ts`,
  );
  const where = "FROM mds.index_ticks WHERE name = 'BTC' AND";
  const plain = [
    `SELECT time, price ${where} time >= '2026-08-03Z' AND time < '2026-08-04Z' ORDER BY time`,
    `SELECT time, price ${where} ts >= ${day[0]} AND ts < ${day[1]} ORDER BY ts`,
  ];
  for (const sql of plain) {
    const found = await explain(database, sql);
    // In pages read, which no other load of the machine changes.
    expect.soft(found.blocks, sql).toBeLessThanOrEqual(2 * byHand.blocks);
    expect.soft(found.months, sql).toEqual(new Set(["2026_08"]));
  }
  const recent = await explain(database, `SELECT time, price ${where} time >= now() - interval '1 hour'`);
  expect(recent.scanned).toEqual([]);
  const newest = "SELECT time FROM mds.index_ticks WHERE name = 'BTC' AND ts";
  const found = await server.queryAll(database, [
    "SELECT time FROM mds.last_ticks('BTC', 3)",
    `${newest} >= ${to - 3 * STEP} ORDER BY ts DESC`,
    "SELECT time FROM mds.ticks('BTC', '2026-08-03Z', '2026-08-04Z')",
    `${newest} >= ${day[0]} AND ts < ${day[1]} ORDER BY ts`,
    "SELECT time FROM mds.as_of('BTC', '2026-08-03 00:39:59Z')",
    `${newest} = ${(day[0] ?? 0) + STEP}`,
  ]);
  expect(found[0]).toEqual(found[1]);
  expect(found[2]).toEqual(found[3]);
  expect(found[4]).toEqual(found[5]);
  expect(found.map((rows) => rows.length)).toEqual([3, 3, 72, 72, 1, 1]);
  const last = await explain(database, "SELECT time, price FROM mds.last_ticks('BTC', 100)");
  expect(last.blocks).toBeLessThanOrEqual(4 * byHand.blocks);
});
