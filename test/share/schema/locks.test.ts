import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { failureOf } from "../../support/failure-of.ts";
import { usePostgres } from "../../support/postgres.ts";
import { PASSWORD } from "../../support/postgres-server.ts";
import { addHours, shareInto } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../../support/warehouse/records.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const server = usePostgres();
/** Pauses between two attempts take no time. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };

/** A notebook that has read a relation and keeps its transaction open. */
async function openNotebook(database: string, sql = "SELECT count(*) FROM mds.index_ticks") {
  const user = await server.createUser();
  await server.query(
    database,
    `GRANT USAGE ON SCHEMA mds TO ${user}; GRANT SELECT ON ALL TABLES IN SCHEMA mds TO ${user}`,
  );
  const client = new pg.Client({ host: "127.0.0.1", port: server.port, user, password: PASSWORD, database });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`BEGIN; ${sql}`);
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return { pid: rows[0]?.pid, user, client };
}

it("creates a month while a notebook keeps a transaction open, and waits for nobody", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  await shareInto(server, database, warehouse);
  await openNotebook(database);
  warehouse.transaction((transaction) => {
    const years = ["2025-02-01T00:00:00Z", "1999-01-01T00:00:00Z", "2222-01-01T00:00:00Z"];
    writeRecords(
      transaction,
      "index_ticks",
      years.map((text) => tick(parseTs(text), "5")),
      "rest",
    );
  });
  expect(await shareInto(server, database, warehouse)).toMatchObject({ rows: 3 });
  expect(await server.query(database, "SELECT count(*)::integer AS rows FROM mds.index_ticks")).toEqual([
    { rows: 123 },
  ]);
});

it("does not let readers wait for an upgrade that an open transaction blocks, and names who blocks", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  await shareInto(server, database, warehouse);
  await server.query(database, "UPDATE mds.schema_version SET digest = 'of an older program'");
  const { pid, user, client } = await openNotebook(database, "SELECT count(*) FROM mds.index_ticks");
  let isOver = false;
  const upgrade = failureOf(shareInto(server, database, warehouse, { clock: hasty })).finally(() => {
    isOver = true;
  });
  // Another reader meanwhile: whoever waits behind a lock that waits would wait as long as the notebook is open.
  let reads = 0;
  while (!isOver) {
    await server.query(database, "SET lock_timeout = '2s'; SELECT count(*) FROM mds.index_ticks");
    reads++;
  }
  expect(reads).toBeGreaterThan(10);
  const blocked = await upgrade;
  expect(blocked).toMatchObject({
    code: "share_blocked",
    exit: 75,
    message: expect.stringContaining(`pid ${pid} (${user}`),
  });
  await client.query("COMMIT");
  await shareInto(server, database, warehouse, { clock: hasty });
});
