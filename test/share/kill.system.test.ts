import { hostname } from "node:os";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { withdrawRows } from "../../src/warehouse/rows/row-sql.ts";
import { readJournalPosition } from "../../src/warehouse/tables/journal.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { ticks } from "../support/export/sample-data.ts";
import { failureOf } from "../support/failure-of.ts";
import { usePostgres } from "../support/postgres.ts";
import { type CutPoint, startCuttingProxy } from "../support/share/cutting-proxy.ts";
import { addHours, openShared, shareInto } from "../support/share/share-harness.ts";
import { startShare } from "../support/share/start-share.ts";
import { waitUntil } from "../support/wait-until.ts";
import { STEP } from "../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { storeTicks, writeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const START = Date.UTC(2026, 0, 30) * 1000;
/** Of both series: more than two transactions. */
const ROWS = 21_000;

function fill(warehouse: WarehouseWriter): void {
  for (const indexId of ["btc-id", "eth-id"])
    warehouse.transaction((transaction) => {
      const records = ticks(ROWS, START, { indexId });
      writeTicks(transaction, records);
      const series = transaction.dictionary.getSeriesKey("GWA", indexId);
      settle(
        transaction,
        { stream: "index_ticks", series },
        { from: START, to: (records.at(-1)?.ts ?? 0) + 1 },
        "rows",
      );
    });
}

/** The program, which forwards through a proxy that kills it at the point. */
async function killAt(point: CutPoint, warehouse: WarehouseWriter, database: string): Promise<void> {
  let kill = () => {};
  const proxy = await startCuttingProxy(server.port, point, () => kill());
  const { child, result } = startShare(warehouse, proxy.port, database);
  kill = () => void child.kill("SIGKILL");
  expect(await result).toMatchObject({ status: null });
  expect(proxy.hasCut(), point.at).toBe(true);
}

interface CoveredRange {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly rows: string;
}

/** In one statement, so of one moment: each covered range, and how many rows it has. */
const coveredSql = `SELECT s.index_id AS id, g.from_ts AS "from", g.to_ts AS "to", (SELECT count(*) FROM mds.index_tick_rows r
    WHERE r.series = g.series AND r.ts >= g.from_ts AND r.ts < g.to_ts) AS rows
  FROM mds.settled_ranges g JOIN mds.series s ON s.series = g.series WHERE g.proof = 'rows'`;

it("I5: never shows more proof than rows, wherever the forwarder is killed", async () => {
  const { warehouse, database, forward, query } = await openShared(server);
  fill(warehouse);
  const expected = warehouse.connection.database
    .prepare(
      "SELECT count(*) FROM index_tick_rows r JOIN series s ON s.series = r.series WHERE s.index_id = ? AND ts >= ? AND ts < ?",
    )
    .pluck();
  const look = async () => {
    const ranges = await query<CoveredRange>(coveredSql);
    for (const { id, from, to, rows } of ranges)
      expect(Number(rows)).toBe(expected.get(id, Number(from), Number(to)));
    return ranges.reduce((sum, { rows }) => sum + Number(rows), 0);
  };
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const reading = (async () => {
    while (!end.signal.aborted) {
      await look();
      // Counting rows without a pause would slow down what it watches.
      await systemClock.sleep(100);
    }
  })();

  const points: CutPoint[] = (
    ["before COPY", "in COPY", "after COPY", "before COMMIT", "in COMMIT", "after COMMIT"] as const
  ).map((at, i) => ({ at, count: i === 0 ? 2 : 1 }));
  // The program's own: whoever has the name of a dead holder need not wait for the end of its lease.
  const name = hostname();
  // To PostgreSQL a killed program and one that loses its connection are the same: one of the points with a real one.
  for (const point of points) {
    if (point.at === "in COMMIT") await killAt(point, warehouse, database);
    else {
      const proxy = await startCuttingProxy(server.port, point, () => {});
      const url = server.url(database).replace(String(server.port), String(proxy.port));
      expect(await failureOf(forward({ name, url }))).toMatchObject({ code: "share_unreachable" });
      expect(proxy.hasCut(), point.at).toBe(true);
    }
    await look();
  }
  const { status, stdout } = await startShare(warehouse, server.port, database).result;
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ compared: 0, mended: 0 });
  end.abort();
  await reading;
  expect(await look()).toBe(2 * ROWS);
  expect(await forward({ name, verify: true })).toMatchObject({
    rows: 0,
    commits: 0,
    compared: 2 * ROWS,
    mended: 0,
  });
});

it("I5: loses and doubles nothing where a pass over the journal is killed before its position is stored", async () => {
  const { warehouse, database, forward, query, expectSame } = await openShared(server);
  storeTicks(warehouse, ticks(20, START));
  const name = hostname();
  await forward({ name });
  const readPosition = async () => (await query<{ seq: string }>("SELECT seq FROM mds.positions"))[0]?.seq;
  const stored = await readPosition();
  const countRows = async () =>
    (await query<{ n: string }>("SELECT count(*) AS n FROM mds.index_tick_rows"))[0]?.n;
  for (const [i, at] of (["before COMMIT", "in COMMIT", "after COMMIT"] as const).entries()) {
    // A live minute, a correction, and a row that the service has withdrawn.
    storeTicks(warehouse, [...ticks(2, START + (30 + 2 * i) * STEP), tick(START + i * STEP, `${i}.125`)]);
    warehouse.transaction((transaction) => {
      const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
      withdrawRows(transaction, { stream: "index_ticks", series }, [START + (10 + i) * STEP]);
    });
    await killAt({ at, count: 1 }, warehouse, database);
    expect(await readPosition(), at).toBe(stored);
  }
  // It goes on from its position, without a comparison of everything.
  expect(await forward({ name })).toMatchObject({ compared: 0 });
  expect(await readPosition()).toBe(String(readJournalPosition(warehouse.connection).seq));
  await expectSame("index_ticks");
  expect(await countRows()).toBe(String(20 + 3 * 2 - 3));
});

it.each([
  ["before COMMIT", { at: "before COMMIT", count: 1 }],
  ["in the middle of a COPY", { at: "in COPY", count: 1 }],
] as [string, CutPoint][])(
  "I10: a program stopped %s and woken after the take-over commits nothing",
  async (_, point) => {
    const database = await server.createDatabase();
    // The stopped one would commit more than the one that takes over.
    const [stopped, next] = [openTestWarehouse(), openTestWarehouse()];
    addHours(stopped, 0, 60);
    addHours(next, 0, 2);
    let stop = () => {};
    const proxy = await startCuttingProxy(server.port, point, () => stop(), { holds: true });
    const { child, result } = startShare(stopped, proxy.port, database);
    stop = () => void child.kill("SIGSTOP");
    await waitUntil(() => proxy.hasCut(), 20);
    // Its lease ends by the database's clock.
    await server.query(database, "UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'");
    expect(await shareInto(server, database, next)).toMatchObject({ rows: 240 });
    child.kill("SIGCONT");
    proxy.release();
    const { status, stderr } = await result;
    expect({ status, stderr }).toMatchObject({ status: 75 });
    expect(await server.query(database, "SELECT count(*)::integer AS rows FROM mds.index_tick_rows")).toEqual(
      [{ rows: 240 }],
    );
    expect(await shareInto(server, database, next, { verify: true })).toMatchObject({ rows: 0, mended: 0 });
  },
);
