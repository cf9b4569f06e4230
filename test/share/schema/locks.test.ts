import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { failureOf } from "../../support/failure-of.ts";
import { openAnalyst, usePostgres } from "../../support/postgres.ts";
import { openShared } from "../../support/share/share-harness.ts";
import { parseTs, tick } from "../../support/warehouse/records.ts";
import { writeTicks } from "../../support/warehouse/write-records.ts";

const server = usePostgres();
/** Pauses between two attempts take no time. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };

/** A notebook that has read a relation and keeps its transaction open. */
async function openNotebook(database: string) {
  const { user, client } = await openAnalyst(server, database);
  await client.query("BEGIN; SELECT count(*) FROM mds.index_ticks");
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return { pid: rows[0]?.pid, user, client };
}

it("creates a month while a notebook keeps a transaction open, and waits for nobody", async () => {
  const { warehouse, database, forward, query } = await openShared(server, { hours: 1 });
  await forward();
  await openNotebook(database);
  warehouse.transaction((transaction) => {
    const years = ["2025-02-01T00:00:00Z", "1999-01-01T00:00:00Z", "2222-01-01T00:00:00Z"];
    writeTicks(
      transaction,
      years.map((text) => tick(parseTs(text), "5")),
    );
  });
  expect(await forward()).toMatchObject({ rows: 3 });
  expect(await query("SELECT count(*)::integer AS rows FROM mds.index_ticks")).toEqual([{ rows: 123 }]);
});

it("does not let readers wait for an upgrade that an open transaction blocks, and names who blocks", async () => {
  const { database, forward, query } = await openShared(server);
  await forward();
  await query("UPDATE mds.schema_version SET digest = 'of an older program'");
  const { pid, user, client } = await openNotebook(database);
  let isOver = false;
  const upgrade = failureOf(forward({ clock: hasty })).finally(() => {
    isOver = true;
  });
  // Another reader meanwhile: whoever waits behind a lock that waits would wait as long as the notebook is open.
  let reads = 0;
  while (!isOver) {
    await query("SET lock_timeout = '2s'; SELECT count(*) FROM mds.index_ticks");
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
  await forward({ clock: hasty });
});
