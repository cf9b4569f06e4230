import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { findHeldDays } from "../../src/share/held-days.ts";
import { readShareStatus } from "../../src/share/server/read-share-status.ts";
import { openShare } from "../../src/share/share-once.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { addTickDays, failureOf, shareInto, shareOptions } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";

const server = usePostgres();
const START = parseTs("2026-01-30T00:00:00Z");
const TABLE = "mds.index_tick_rows_2026_01";

/** Two days of January and one of February, forwarded. */
async function openShared() {
  const warehouse = openTestWarehouse({ clock: systemClock });
  addTickDays(warehouse, START, [24, 24, 24]);
  const database = await server.createDatabase();
  await shareInto(server, database, warehouse);
  return { warehouse, database };
}

function correct(warehouse: WarehouseWriter, price: string): void {
  warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(START, price)], "rest"));
}

async function content(database: string) {
  const [ticks, coverage] = await server.queryAll(database, [
    "SELECT count(*)::integer AS rows, min(price) AS least, (SELECT count(*)::integer FROM mds.bars_1h) AS bars FROM mds.index_ticks",
    "SELECT proof, reason, from_time::date::text AS day FROM mds.coverage WHERE stream = 'index_ticks' ORDER BY from_ts",
  ]);
  return { ...ticks?.[0], coverage: coverage?.map(({ proof, reason, day }) => [day, proof, reason]) };
}

const whole = { rows: 72, bars: 72, least: 0.5, coverage: [["2026-01-30", "rows", null]] };
const movedOut = {
  rows: 24,
  bars: 24,
  least: 0.5,
  coverage: [
    ["2026-01-30", "moved", `moved to table ${TABLE}`],
    ["2026-02-01", "rows", null],
  ],
};

it("moves a month out with its ledger, forwards nothing into it, and moves it back with what was corrected meanwhile", async () => {
  const { warehouse, database } = await openShared();
  const share = (...flags: string[]) =>
    runInProcess(["share", ...flags], {
      cwd: temporaryFolder(),
      env: {
        MDS_WAREHOUSE: warehouse.path,
        MDS_SHARED_URL: server.url(database),
        MDS_SHARED_PASSWORD: PASSWORD,
      },
    });
  const out = await share("--move-out", "2026-01", "--json");
  expect(JSON.parse(out.stdout)).toMatchObject({ moved: expect.arrayContaining([TABLE.slice(4)]) });
  expect(await content(database)).toEqual(movedOut);
  expect(await server.query(database, `SELECT count(*)::integer AS rows FROM ${TABLE}`)).toEqual([
    { rows: 48 },
  ]);

  correct(warehouse, "0.25");
  expect(await shareInto(server, database, warehouse, { verify: true })).toMatchObject({
    mended: 0,
    compared: 24,
  });
  expect(await content(database)).toEqual(movedOut);
  // Another file of the same series, whose changes are not known.
  const other = openTestWarehouse({ clock: systemClock });
  addTickDays(other, START, [24, 24, 24]);
  await shareInto(server, database, other);
  expect(await content(database)).toEqual(movedOut);
  const held = await findHeldDays(shareOptions(server, database, warehouse), {
    before: START + 60 * 86_400e6,
  });
  expect(held.held.map(({ from }) => from)).toEqual([parseTs("2026-02-01T00:00:00Z")]);

  expect(await share("--move-in", "2026-01")).toMatchObject({ status: 0 });
  expect(await content(database)).toEqual({ ...whole, least: 0.25 });
  expect((await share("--move-in", "2026-01")).status).toBe(2);
  expect((await share("--move-out", "2001-01")).status).toBe(2);
  expect((await share("--move-out", "January")).status).toBe(2);
});

it("does not move out a month of which rows still arrive", async () => {
  const { warehouse, database } = await openShared();
  const clock = { ...systemClock, now: () => Date.UTC(2026, 0, 31) };
  const refused = await failureOf(shareInto(server, database, warehouse, { clock, moveOut: "2026-01" }));
  expect(refused).toMatchObject({ exit: 2, message: expect.stringContaining("not over") });
  expect(await content(database)).toEqual(whole);
});

it("says in the ledger what someone did to a month by hand: detached, attached, dropped", async () => {
  const { warehouse, database } = await openShared();
  await server.query(database, `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${TABLE}`);
  correct(warehouse, "0.25");
  await shareInto(server, database, warehouse);
  expect(await content(database)).toEqual(movedOut);
  await server.query(
    database,
    `ALTER TABLE mds.index_tick_rows ATTACH PARTITION ${TABLE} FOR VALUES
      FROM (${parseTs("2026-01-01T00:00:00Z")}) TO (${parseTs("2026-02-01T00:00:00Z")})`,
  );
  expect(await shareInto(server, database, warehouse)).toMatchObject({ compared: 48, mended: 1 });
  expect(await content(database)).toEqual({ ...whole, least: 0.25 });
  await server.query(database, `DROP TABLE ${TABLE}`);
  expect(await shareInto(server, database, warehouse)).toMatchObject({ rows: 48 });
  expect(await content(database)).toEqual({ ...whole, least: 0.25 });
});

it("names a month that was detached by hand until someone says that it is meant", async () => {
  const { warehouse, database } = await openShared();
  const warnings: string[] = [];
  const options = { onWarning: (message: string) => void warnings.push(message) };
  const share = () => shareInto(server, database, warehouse, options);
  const readStatus = () => readShareStatus(shareOptions(server, database, warehouse));
  await server.query(database, `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${TABLE}`);
  await share();
  expect(warnings.at(-1)).toContain(`not forwarded, since someone has detached it by hand: ${TABLE};`);
  expect(await readStatus()).toMatchObject({ state: "current", last_error: warnings.at(-1) });
  await shareInto(server, database, warehouse, { ...options, moveOut: "2026-01" });
  await share();
  expect(warnings.at(-1)).toBe("");
  expect(await readStatus()).toMatchObject({ state: "current", last_error: null });
  expect(await content(database)).toEqual(movedOut);
});

it("attaches a month again that is not over, makes it again if it was dropped, and says so while it is connected", async () => {
  const { warehouse, database } = await openShared();
  const clock = { ...systemClock, now: () => Date.UTC(2026, 1, 3) };
  const february = TABLE.replace("01", "02");
  const partition = (sql: string) => server.query(database, sql);
  const detach = `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${february}`;
  for (const sql of [detach, `DROP TABLE ${february}`]) {
    const share = await openShare(shareOptions(server, database, warehouse, { clock }));
    await partition(sql);
    const told = await failureOf(share.forwarder.forward());
    expect(told).toMatchObject({ code: "share_changed", message: expect.stringContaining(february) });
    correct(warehouse, "0.25");
    await share.close();
    await shareInto(server, database, warehouse, { clock });
    expect(await content(database)).toEqual({ ...whole, least: 0.25 });
  }
  // A new tick of that month, before it was noticed.
  const share = await openShare(shareOptions(server, database, warehouse, { clock }));
  await share.forwarder.forward();
  await partition(detach);
  warehouse.transaction((t) =>
    writeRecords(t, "index_ticks", [tick(parseTs("2026-02-03T00:00:00Z"), "9")], "live"),
  );
  expect(await failureOf(share.forwarder.forward())).toMatchObject({
    code: "share_changed",
    remedy: expect.stringContaining("attached again"),
  });
  await share.close();
  // Of one that an earlier version has called moved, too.
  await partition(`UPDATE mds.months SET is_moved = true WHERE 'mds.' || name = '${february}'`);
  await shareInto(server, database, warehouse, { clock });
  expect(await content(database)).toMatchObject({ rows: 73, coverage: whole.coverage });

  await partition(`${detach}; ALTER TABLE ${february} ALTER COLUMN price TYPE numeric`);
  expect(await failureOf(shareInto(server, database, warehouse, { clock }))).toMatchObject({
    code: "share_changed",
    message: expect.stringContaining(`${february}, a month that is not over, was detached`),
    remedy: expect.stringContaining("drop or rename it"),
  });
});

/** Version 2 had a default partition, and knew nothing of months. */
const toVersion2 = ["index", "exchange", "derivative"]
  .map(
    (kind) => `DROP TABLE mds.${kind}_tick_rows_before, mds.${kind}_tick_rows_after;
    CREATE TABLE mds.${kind}_tick_rows_other PARTITION OF mds.${kind}_tick_rows DEFAULT`,
  )
  .concat(
    "DROP TABLE mds.kept_bars CASCADE",
    "DROP TABLE mds.months",
    "UPDATE mds.schema_version SET version = 2, digest = 'of version 2'",
  )
  .join("; ");

it("upgrades the default partition of version 2, also if rows of a detached month came again", async () => {
  const { warehouse, database } = await openShared();
  await server.query(database, toVersion2);
  await server.query(
    database,
    `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${TABLE};
    INSERT INTO mds.index_tick_rows (series, ts, price, source) SELECT series, ts, 0.25, 0 FROM ${TABLE} WHERE ts = ${START};
    INSERT INTO mds.index_tick_rows (series, ts, price, source) SELECT series, 5, 7, 0 FROM ${TABLE} WHERE ts = ${START}`,
  );
  await shareInto(server, database, warehouse);
  expect(await content(database)).toEqual({ ...movedOut, rows: 25, bars: 25 });
  expect(
    await server.query(database, `SELECT min(price) AS least, count(*)::integer AS rows FROM ${TABLE}`),
  ).toEqual([{ least: 0.25, rows: 48 }]);
  await shareInto(server, database, warehouse, { moveIn: "2026-01" });
  expect(await content(database)).toEqual({ ...whole, rows: 73, bars: 73 });
});
