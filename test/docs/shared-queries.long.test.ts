import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { addTickDays, shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { exchangeTick } from "../support/warehouse/records.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const document = readFileSync(new URL("../../docs/teams.md", import.meta.url), "utf8");
const [page = ""] = document.split(/^(?=## )/m).filter((section) => section.startsWith("## PostgreSQL\n"));
const SERIES = 5;
const STEP = 20 * 60_000_000;
const from = Date.UTC(2026, 5, 1) * 1000;
const to = Date.UTC(2026, 10, 1) * 1000;

/** Five months of ticks of some series; of one of them the first day is forwarded, so that the daemon has created the months. */
async function fillDatabase(): Promise<string> {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse({ clock: systemClock });
  for (let month = 5; month < 10; month++) {
    const ts = Date.UTC(2026, month, 1) * 1000;
    addTickDays(warehouse, ts, [1]);
    warehouse.transaction((t) => writeRecords(t, "exchange_ticks", [exchangeTick(ts, "1")], "rest"));
  }
  await shareInto(server, database, warehouse);
  await server.query(
    database,
    `INSERT INTO mds.series (index_type, index_id, name) SELECT 'GWA', i::text, 'S' || i FROM generate_series(2, ${SERIES}) i;
    UPDATE mds.series SET name = 'BTC' WHERE index_id = 'btc-id';
    INSERT INTO mds.index_tick_rows (series, ts, price, volume, source)
      SELECT s.series, t, 1.5, 2, 0 FROM mds.series s, generate_series(${from}, ${to} - 1, ${STEP}) t WHERE s.index_type = 'GWA'
      ON CONFLICT DO NOTHING;
    INSERT INTO mds.listings (exchange_id, market_id, exchange, pair) SELECT 'x', i::text, 'Kraken', 'P' || i FROM generate_series(1, ${SERIES}) i;
    UPDATE mds.listings SET pair = 'BTC/USD' WHERE market_id = '1';
    INSERT INTO mds.exchange_tick_rows (listing, ts, bid, ask, source)
      SELECT l.listing, t, 1, 2, 0 FROM mds.listings l, generate_series(${from}, ${to} - 1, ${STEP}) t ON CONFLICT DO NOTHING;
    INSERT INTO mds.kept_bars (series, length, ts, open, n_ticks, n_doubtful)
      SELECT s.series, 3600000000, t, 1, 3, 0 FROM mds.series s, generate_series(${from}, ${to} - 1, 3600000000) t ON CONFLICT DO NOTHING`,
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

/** The statements of each block of the manual, but those of Citus, which no test has. */
const blocks = [...page.matchAll(/```sql\n(.*?)```/gs)]
  .filter(([block]) => !block.includes("citus"))
  .map(([, block = ""]) =>
    block
      .replaceAll(/--.*$/gm, "")
      .split(/;\s*(?:\n|$)/)
      .map((sql) => sql.trim())
      .filter((sql) => sql !== ""),
  );
const [setUp = [], ...others] = blocks;
const queries = others.flat();

const series = "(SELECT series FROM mds.series WHERE name = 'BTC')";
const october = [Date.UTC(2026, 9, 1), Date.UTC(2026, 9, 2), Date.UTC(2026, 9, 8)].map((ms) => ms * 1000);
const ticksByHand = (condition: string) =>
  `SELECT ts, price FROM mds.index_tick_rows WHERE series = ${series} AND ${condition}`;
const inOctober = (last: number) => `ts >= ${october[0]} AND ts < ${last}`;
const dayByHand = ticksByHand(inOctober(october[1] as number));

/** The best query by hand for each of the manual, in its order. */
const byHand = [
  dayByHand,
  ticksByHand("ts > (extract(epoch FROM now() - interval '1 day') * 1000000)::bigint"),
  dayByHand,
  `SELECT ts, bid, ask FROM mds.exchange_tick_rows WHERE listing = (SELECT listing FROM mds.listings
    WHERE exchange = 'Kraken' AND pair = 'BTC/USD') AND ${inOctober(october[1] as number)}`,
  `SELECT s.name, t.price FROM mds.series s CROSS JOIN LATERAL
    (SELECT price FROM mds.index_tick_rows t WHERE t.series = s.series ORDER BY ts DESC LIMIT 1) t`,
  `SELECT ts, close FROM mds.kept_bars WHERE series = ${series} AND length = 3600000000 AND ${inOctober(october[2] as number)}`,
  `SELECT * FROM mds.settled_ranges WHERE series = ${series}`,
  `${ticksByHand("true")} ORDER BY ts DESC LIMIT 100`,
  dayByHand,
  `${ticksByHand(`ts <= ${(october[0] as number) + 9 * 3_600_000_000}`)} ORDER BY ts DESC LIMIT 1`,
];
/** What reading a name costs beside the rows. */
const MIN_BLOCKS = 6;

it("runs every query of the manual by an index", async () => {
  const database = await fillDatabase();
  expect(queries).toHaveLength(byHand.length);
  for (const [i, sql] of queries.entries()) {
    const [found, least] = [await explain(database, sql), await explain(database, byHand[i] ?? "")];
    expect.soft(found.scanned, sql).toEqual([]);
    // In pages read, which no other load of the machine changes.
    expect.soft(found.blocks, sql).toBeLessThanOrEqual(2 * Math.max(MIN_BLOCKS, least.blocks));
  }
  const day = ["2026-08-03", "2026-08-04"].map((each) => Date.parse(each) * 1000);
  const best = await explain(
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
    expect.soft(found.blocks, sql).toBeLessThanOrEqual(2 * best.blocks);
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
    "SELECT time FROM mds.as_of('BTC', '2026-08-03 00:39:59Z') INTERSECT SELECT time FROM mds.as_of('BTC', '2026-08-03 00:20Z')",
    `${newest} = ${(day[0] ?? 0) + STEP}`,
  ]);
  expect(found[0]).toEqual(found[1]);
  expect(found[2]).toEqual(found[3]);
  expect(found[4]).toEqual(found[5]);
  expect(found.map((rows) => rows.length)).toEqual([3, 3, 72, 72, 1, 1]);
  const last = await explain(database, "SELECT time, price FROM mds.last_ticks('BTC', 100)");
  expect(last.blocks).toBeLessThanOrEqual(4 * best.blocks);
});

it("sets a database up as the manual says: its user forwards, analysts read, also what a later version adds", async () => {
  const [daemon, analyst] = [await server.createUser(), await server.createUser()];
  const database = `market_${daemon}`;
  const run = (sql: string, place = database) =>
    server.query(
      place,
      sql
        .replace("'…'", `'${PASSWORD}'`)
        .replaceAll(/\b(ROLE|OWNER) mds\b/g, `$1 ${daemon}`)
        .replaceAll("analysts", analyst)
        .replace("DATABASE market", `DATABASE ${database}`),
    );
  const isAfterRun = (sql: string) => /^(GRANT|ALTER)/.test(sql);
  // The test's users exist: their names differ from the manual's.
  for (const sql of setUp.filter((each) => !isAfterRun(each)))
    await run(sql.replace(/^CREATE ROLE (mds|analysts)/, "ALTER ROLE $1"), "postgres");
  const warehouse = openTestWarehouse({ clock: systemClock });
  addTickDays(warehouse, from, [24]);
  const url = server.url(database, daemon);
  expect(await shareInto(server, database, warehouse, { url })).toMatchObject({ rows: 24 });
  for (const sql of setUp.filter(isAfterRun)) await run(sql);
  // The next version adds a relation.
  await server.query(
    database,
    "DROP VIEW mds.spread; UPDATE mds.schema_version SET digest = 'of an older program'",
  );
  await shareInto(server, database, warehouse, { url });
  const asAnalyst = (sql: string) => server.query(database, `SET ROLE ${analyst}; ${sql}`);
  await asAnalyst(
    "SELECT * FROM mds.spread; SELECT * FROM mds.bars_1h; SELECT * FROM mds.last_ticks('BTC', 1)",
  );
  await expect(asAnalyst("DELETE FROM mds.index_tick_rows")).rejects.toThrow("permission denied");
});
