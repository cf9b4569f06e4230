import { expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { useOwnPostgres } from "../support/postgres.ts";
import { openShared } from "../support/share/share-harness.ts";

const server = useOwnPostgres();
// The limit of the process has the same effect as a full disk: files cannot be extended.
server.maxFileBytes = 2 * 1024 * 1024;

it("I3: a full PostgreSQL keeps what it has, and gets the rest when it has space again", async () => {
  const { forward, query } = await openShared(server, { hours: 300 });
  expect(await failureOf(forward())).toMatchObject({ code: "share_full", exit: 75 });
  const sql =
    "SELECT sum(to_ts - from_ts)::double precision / 30000000 AS covered, (SELECT count(*)::integer FROM mds.index_tick_rows) AS rows FROM mds.settled_ranges";
  const [state] = await query<{ covered: number; rows: number }>(sql);
  expect(state?.covered).toBe(20_000);
  expect(state?.rows).toBe(20_000);
  await server.stop();
  server.maxFileBytes = undefined;
  await server.start();
  expect(await forward()).toMatchObject({ rows: 16_000 });
  expect(await query(sql)).toEqual([{ covered: 36_000, rows: 36_000 }]);
});
