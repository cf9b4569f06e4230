import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../src/model/failure.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { runShareLoop } from "../../src/share/thread/share-loop.ts";
import type { ShareReport } from "../../src/share/thread/share-messages.ts";
import { ShareThread } from "../../src/share/thread/share-thread.ts";
import { backUp } from "../../src/warehouse/backup.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { restoreWarehouse } from "../../src/warehouse/restore.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { failureOf } from "../support/failure-of.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { usePostgres } from "../support/postgres.ts";
import { EMPTY_TEMPLATE, PASSWORD } from "../support/postgres-server.ts";
import { startCuttingProxy } from "../support/share/cutting-proxy.ts";
import { ProxiedPostgres } from "../support/share/proxied-postgres.ts";
import {
  addHours,
  expectSameInBoth,
  HOURS_BEGIN,
  openShared,
  shareInto,
} from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();

function correct(warehouse: WarehouseWriter, hour: number, price: string): void {
  storeTicks(warehouse, [tick(HOURS_BEGIN + hour * 3_600_000_000, price)]);
}

const countSql = "SELECT count(*)::integer AS rows, coalesce(sum(price), 0) AS sum FROM mds.index_tick_rows";

async function expectEqual(database: string, warehouse: WarehouseWriter): Promise<void> {
  for (const relation of ["index_ticks", "exchange_ticks", "coverage"])
    await expectSameInBoth(server, database, warehouse, relation);
}

describe("PostgreSQL that", () => {
  it("I4: refuses the password, has no rights to give, is read-only or of a newer version is left untouched", async () => {
    const template = EMPTY_TEMPLATE;
    const { warehouse, database, forward, query } = await openShared(server, { hours: 1, template });
    const wrong = await failureOf(forward({ readPassword: () => "hunter2" }));
    expect(wrong).toMatchObject({ code: "share_refused", exit: 2 });
    expect(JSON.stringify([wrong.summary, wrong.stack, String(wrong.cause)])).not.toContain("hunter2");
    const refused = { code: "share_refused", exit: 2 };
    expect(await failureOf(forward({ readPassword: () => undefined }))).toMatchObject(refused);
    const guest = server.url(database, await server.createUser());
    expect(await failureOf(forward({ url: guest }))).toMatchObject({ code: "share_no_rights", exit: 2 });
    expect(await failureOf(shareInto(server, "absent", warehouse))).toMatchObject(refused);
    await server.query("postgres", `ALTER DATABASE ${database} SET default_transaction_read_only = on`);
    expect(await failureOf(forward())).toMatchObject({ code: "share_read_only", exit: 75 });
    await server.query("postgres", `ALTER DATABASE ${database} RESET default_transaction_read_only`);
    expect(await query("SELECT 1 FROM pg_namespace WHERE nspname = 'mds'")).toEqual([]);

    await forward();
    await query("UPDATE mds.schema_version SET version = 99, digest = 'of the future'");
    addHours(warehouse, 1, 1);
    const [before] = await query(countSql);
    const newer = await failureOf(forward());
    expect(newer).toMatchObject({ code: "share_newer", exit: 2 });
    expect(await query(countSql)).toEqual([before]);
    expect(await query("SELECT epoch FROM mds.lease")).toEqual([{ epoch: "1" }]);
  });

  it("I2: is cut off in mid-COPY keeps nothing of that range, and gets it the next time", async () => {
    const { warehouse, database, forward, query } = await openShared(server, { hours: 200 });
    const proxy = await startCuttingProxy(server.port, { at: "in COPY", count: 2 }, () => {});
    const url = server.url(database).replace(String(server.port), String(proxy.port));
    expect(await failureOf(forward({ url }))).toMatchObject({ code: "share_unreachable", exit: 75 });
    expect(proxy.hasCut()).toBe(true);
    expect(await query(countSql)).toMatchObject([{ rows: 20_000 }]);
    expect(await forward()).toMatchObject({ rows: 4_000 });
    await expectEqual(database, warehouse);
  });

  it("I6: is restored from an old backup gets exactly what it lost, corrections too", async () => {
    const { warehouse, database, forward } = await openShared(server, { hours: 10 });
    await forward();
    const backup = await server.createDatabase(database);
    correct(warehouse, 3, "1");
    addHours(warehouse, 10, 2);
    await forward();
    await expectEqual(database, warehouse);
    expect(await shareInto(server, backup, warehouse)).toMatchObject({ rows: 241, compared: 0 });
    await expectEqual(backup, warehouse);
  });

  it("I7: has the rows of another file is compared whole, and keeps what this file cannot prove", async () => {
    const [first, second] = [openTestWarehouse(), openTestWarehouse()];
    addHours(first, 0, 4);
    addHours(second, 2, 4);
    correct(second, 3, "7");
    const database = await server.createDatabase();
    await shareInto(server, database, first);
    expect(await shareInto(server, database, second)).toMatchObject({ compared: 480, mended: 1 });
    const sql = `SELECT count(*)::integer AS rows, min(price) AS price, (SELECT count(*)::integer FROM mds.coverage) AS ranges
      FROM mds.index_tick_rows`;
    expect(await server.query(database, sql)).toEqual([{ rows: 720, price: 7, ranges: 1 }]);
  });
});

it("I7: compares everything after a restore, even if as many changes follow as before", async () => {
  const database = await server.createDatabase();
  const copy = join(temporaryFolder(), "copy.sqlite");
  const first = openWriter(join(temporaryFolder(), "mds.sqlite"), { clock: systemClock });
  addHours(first, 0, 2);
  const reader = openReader(first.path);
  backUp(reader, copy);
  reader.close();
  correct(first, 1 / 6, "1.5");
  await shareInto(server, database, first);
  first.close();
  restoreWarehouse(copy, first.path, HOURS_BEGIN);
  const restored = openTestWarehouse({ path: first.path });
  correct(restored, 1 / 3, "2.5");
  expect(await shareInto(server, database, restored)).toMatchObject({ mended: 1 });
  await expectEqual(database, restored);
});

it("I1: forwards by itself after PostgreSQL was down for an hour, and meanwhile says why not", async () => {
  const { warehouse, database, query } = await openShared(server, { hours: 1 });
  const proxied = await ProxiedPostgres.start(server);
  const clock = new ManualClock();
  const stop = new AbortController();
  const reports: ShareReport[] = [];
  const waiting: { readonly isReached: () => boolean; readonly resolve: () => void }[] = [];
  const until = (isReached: () => boolean) =>
    clock.runUntil(new Promise<void>((resolve) => waiting.push({ isReached, resolve })));
  const loop = runShareLoop({
    warehouse: warehouse.path,
    url: proxied.url(database),
    role: "alone",
    name: "test",
    leaseSeconds: 15,
    clock,
    random: () => 0.5,
    signal: stop.signal,
    askPassword: async () => PASSWORD,
    report(report) {
      reports.push(report);
      for (const { isReached, resolve } of waiting) if (isReached()) resolve();
    },
  });
  await until(() => reports.some(({ kind }) => kind === "forwarded"));
  await proxied.stop();
  addHours(warehouse, 1, 1);
  const downAt = clock.now();
  await until(() => clock.now() - downAt > 3_600_000);
  const failures = reports.filter((report) => report.kind === "failed");
  // With a pause of at most a minute an hour has some dozens of attempts, not thousands.
  expect(failures.length).toBeGreaterThan(30);
  expect(failures.length).toBeLessThan(150);
  expect(failures.at(-1)).toMatchObject({ failure: { code: "share_unreachable" } });
  await proxied.start();
  const restartedAt = reports.length;
  await until(() => reports.slice(restartedAt).some(({ kind }) => kind === "forwarded"));
  await expectEqual(database, warehouse);
  stop.abort();
  await clock.runUntil(loop);
  expect(await query("SELECT holder FROM mds.lease")).toEqual([{ holder: "" }]);
});

it("names a password that cannot be read as the reason, and goes on asking for it", async () => {
  const failures: string[] = [];
  const thread = new ShareThread({
    warehouse: openTestWarehouse().path,
    url: "postgres://mds@127.0.0.1:1/market",
    role: "alone",
    name: "test",
    leaseSeconds: 15,
    clock: systemClock,
    log: silentLog,
    readPassword() {
      throw new Failure("the file cannot be read", { code: "secret_missing", remedy: "check it" });
    },
    onFailure: (code) => void failures.push(code),
  });
  await thread.start();
  onTestFinished(() => thread.close());
  await waitUntil(() => failures.length >= 2);
  expect(new Set(failures)).toEqual(new Set(["secret_missing"]));
  expect(thread.status()).toMatchObject({
    state: "failing",
    last_error: "the file cannot be read: check it",
  });
});
