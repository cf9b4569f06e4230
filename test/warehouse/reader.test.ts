import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ExchangeTick, emptyRecord } from "../../src/model/records.ts";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { backUp } from "../../src/warehouse/backup.ts";
import { holes } from "../../src/warehouse/coverage/gaps.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { observe } from "../../src/warehouse/coverage/snapshot-coverage.ts";
import { declareWanted } from "../../src/warehouse/coverage/targets.ts";
import { select } from "../../src/warehouse/read/query.ts";
import { readStatus } from "../../src/warehouse/read/status.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { prune } from "../../src/warehouse/rows/retention.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { noteError, noteMissingScopes } from "../../src/warehouse/rows/stream-stats.ts";
import type { Warehouse } from "../../src/warehouse/writer.ts";
import { failureOf, openScratch, rows, scratch } from "../support/warehouse/open-warehouse.ts";
import { decimal, tick } from "../support/warehouse/records.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
const present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;

/** One series wanted for ten hours, of which the oldest eight are in place. */
function fill(warehouse: Warehouse): void {
  warehouse.transaction((transaction) => {
    const line = { stream: "index_ticks", series: transaction.dictionary.series("GWA", "btc-id") } as const;
    const rules = { settleDelay: 60 * MICROS_PER_SECOND, step: 1, keptFor: 200 * 24 * HOUR };
    declareWanted(transaction, "index_ticks", [{ line, from: present - 10 * HOUR, ...rules }], present);
    writeRecords(transaction, "index_ticks", [tick(present - 3 * HOUR, "1.5")], "rest");
    settle(transaction, line, { from: present - 10 * HOUR, to: present - 2 * HOUR }, "rows");
  });
}

describe("the status", () => {
  it("says per stream what is covered, open, lost, how fresh it is and what is wrong, from a reader", () => {
    const warehouse = openScratch({ clock: systemClock });
    fill(warehouse);
    warehouse.transaction((transaction) => {
      observe(transaction, {
        stream: "market_caps",
        exchangeId: null,
        at: present - HOUR,
        cadence: HOUR / 2,
      });
      noteError(transaction, "market_caps", "403 Forbidden");
      noteMissingScopes(transaction, "market_caps", ["read:market-cap"]);
    });
    const reader = openReader(warehouse.path);
    const status = readStatus(reader, present);
    reader.close();
    expect(status.warehouse).toBe(warehouse.path);
    expect(status.streams.map(({ stream }) => stream)).toHaveLength(9);
    const [ticks, caps] = ["index_ticks", "market_caps"].map((name) =>
      status.streams.find(({ stream }) => stream === name),
    );
    expect(ticks).toMatchObject({
      rows: 1,
      open: 1,
      lost: 0,
      newest_age_s: 10_800,
      last_error: null,
      missing_scopes: [],
    });
    expect(Math.abs((ticks?.open_seconds ?? 0) - 7140)).toBeLessThan(20);
    expect(caps).toMatchObject({ last_error: "403 Forbidden", missing_scopes: ["read:market-cap"], rows: 0 });
    warehouse.transaction((t) => noteError(t, "market_caps", null));
    const healed = readStatus(warehouse.connection, present).streams.find(
      ({ stream }) => stream === "market_caps",
    );
    expect(healed).toMatchObject({ last_error: null, last_error_at: null });
  });
});

describe("holes", () => {
  it("are what the filler still has to fetch, by series", () => {
    const warehouse = openScratch({ clock: systemClock });
    fill(warehouse);
    expect(holes(warehouse.connection, "index_ticks", present)).toEqual([
      {
        line: { stream: "index_ticks", series: 1 },
        indexType: "GWA",
        indexId: "btc-id",
        name: "btc-id",
        open: [{ from: present - 2 * HOUR, to: present - 60 * MICROS_PER_SECOND }],
        agedOut: [],
        keptFor: 200 * 24 * HOUR,
        hindrance: null,
      },
    ]);
    expect(holes(warehouse.connection, "ohlcv", present)).toEqual([]);
  });
});

describe("a reader", () => {
  it("says that there is no warehouse, or that its version does not fit, in one line", () => {
    const directory = scratch();
    const nowhere = failureOf(() => openReader(join(directory, "mds.sqlite")));
    expect(nowhere).toMatchObject({ code: "no_warehouse", exit: 4 });
    expect(readdirSync(directory)).toEqual([]);
    const warehouse = openScratch({ clock: systemClock });
    const { database } = warehouse.connection;
    database.exec("DELETE FROM __drizzle_migrations");
    expect(failureOf(() => openReader(warehouse.path))).toMatchObject({ code: "older_warehouse", exit: 2 });
    database.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('from the future', 1)");
    expect(failureOf(() => openReader(warehouse.path))).toMatchObject({ code: "newer_warehouse", exit: 2 });
  });
});

describe("F15: a backup", () => {
  it("is whole and consistent while the writer goes on, and an old one knows what it lacks", () => {
    const warehouse = openScratch({ clock: systemClock });
    fill(warehouse);
    const file = join(scratch(), "copy.sqlite");
    const reader = openReader(warehouse.path);
    backUp(reader, file);
    expect(() => reader.database.exec("DELETE FROM series")).toThrow("readonly");
    reader.close();
    expect(existsSync(`${file}.unfinished`)).toBe(false);
    warehouse.transaction((transaction) => {
      writeRecords(transaction, "index_ticks", [tick(present - HOUR, "2")], "rest");
      settle(
        transaction,
        { stream: "index_ticks", series: 1 },
        { from: present - 2 * HOUR, to: present - HOUR },
        "rows",
      );
    });
    const restored = openScratch({ path: file });
    expect(restored.setAside).toEqual([]);
    expect(rows(restored, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 1 }]);
    expect(holes(restored.connection, "index_ticks", present)[0]?.open).toEqual([
      { from: present - 2 * HOUR, to: present - 60 * MICROS_PER_SECOND },
    ]);
  });
});

describe("a query", () => {
  it("gives columns and rows, and refuses to write", () => {
    const warehouse = openScratch({ clock: systemClock });
    fill(warehouse);
    const reader = openReader(warehouse.path);
    const { columns, rows: found } = select(reader, "SELECT name, price FROM index_ticks");
    expect(columns).toEqual(["name", "price"]);
    expect([...found]).toEqual([["btc-id", 1.5]]);
    expect(() => select(reader, "DELETE FROM series")).toThrow();
    expect(() => select(reader, "SELECT x FROM nowhere")).toThrow("no such table");
    expect(() => [...select(reader, "DELETE FROM series RETURNING name").rows]).toThrow("readonly");
    reader.close();
  });
});

describe("retention", () => {
  it("prunes rows and says so in the ledger before the first one goes", () => {
    const warehouse = openScratch({ clock: systemClock });
    const cadence = 30 * MICROS_PER_SECOND;
    const at = (n: number) => present - HOUR + n * cadence;
    warehouse.transaction((transaction) => {
      for (let n = 0; n < 100; n++) {
        const one: ExchangeTick = {
          ...emptyRecord("exchange_ticks"),
          exchangeId: "kraken-id",
          marketId: "btc-usd-id",
          ts: at(n),
          last: decimal("1.5"),
        };
        writeRecords(transaction, "exchange_ticks", [one], "rest");
        observe(transaction, { stream: "exchange_ticks", exchangeId: "kraken-id", at: at(n), cadence });
      }
    });
    // In bites, the oldest first; the ledger says so of all of it with the first.
    const bite = () => warehouse.transaction((t) => prune(t, "exchange_ticks", at(60), 25));
    expect(bite()).toEqual({ deleted: 25, isDone: false });
    expect(rows(warehouse, "SELECT min(ts) AS ts FROM exchange_ticks")).toEqual([{ ts: at(25) }]);
    expect(rows(warehouse, "SELECT to_ts FROM coverage WHERE proof = 'lost'")).toEqual([{ to_ts: at(60) }]);
    expect(bite()).toEqual({ deleted: 25, isDone: false });
    expect(bite()).toEqual({ deleted: 10, isDone: true });
    expect(rows(warehouse, "SELECT from_ts, to_ts, proof, reason FROM coverage")).toEqual([
      { from_ts: at(0), to_ts: at(60), proof: "lost", reason: "retention" },
      { from_ts: at(60), to_ts: at(100), proof: "rows", reason: null },
    ]);
    expect(rows(warehouse, "SELECT min(ts) AS ts, count(*) AS n FROM exchange_ticks")).toEqual([
      { ts: at(60), n: 40 },
    ]);
    expect(rows(warehouse, "SELECT reason FROM gaps WHERE state = 'lost' ORDER BY from_ts")[0]).toEqual({
      reason: "retention",
    });
    expect(warehouse.transaction((t) => prune(t, "exchange_ticks", at(60)))).toEqual({
      deleted: 0,
      isDone: true,
    });
  });
});
