import { chmodSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { runReadQuery } from "../../src/warehouse/query/query.ts";
import { readStatus } from "../../src/warehouse/read/status.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { prune } from "../../src/warehouse/rows/retention.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { present as now } from "../support/present.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fill as fillWarehouse } from "../support/warehouse/filled-warehouse.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../support/warehouse/open-warehouse.ts";
import { exchangeTick } from "../support/warehouse/records.ts";

const HOUR = 3600 * MICROS_PER_SECOND;

/** One series with a target of ten hours, of which the oldest eight are covered. */
function fill(warehouse: WarehouseWriter): void {
  warehouse.transaction((transaction) => {
    const [from, to] = [now - 10 * HOUR, now - 2 * HOUR];
    fillWarehouse(transaction, { series: [{ from, rows: [{ ts: now - 3 * HOUR }], settled: [[from, to]] }] });
  });
}

it("the status reports per stream what is open and lost, how many rows there are, and the newest age", () => {
  const warehouse = openTestWarehouse({ clock: systemClock });
  fill(warehouse);
  const reader = openReader(warehouse.path);
  const status = readStatus(reader, now);
  reader.close();
  expect(status.warehouse).toBe(warehouse.path);
  expect(status.streams.map(({ stream }) => stream)).toHaveLength(9);
  const ticks = status.streams.find(({ stream }) => stream === "index_ticks");
  expect(ticks).toMatchObject({ rows: 1, open: 1, lost: 0, newest_age_s: 10_800, last_error: null });
  expect(Math.abs((ticks?.open_seconds ?? 0) - 7140)).toBeLessThan(20);
});

describe("a warehouse that nobody writes", () => {
  /** Runs `work` without the rights of root, which permissions do not bind. */
  function withoutRoot<T>(work: () => T): T {
    if (process.getuid?.() !== 0) return work();
    process.seteuid?.(65_534);
    try {
      return work();
    } finally {
      process.seteuid?.(0);
    }
  }

  function lockFolder(folder: string): void {
    for (const name of readdirSync(folder)) chmodSync(join(folder, name), 0o444);
    chmodSync(folder, 0o555);
  }

  it("can be read from a read-only folder after a normal close", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const warehouse = openWriter(path, { clock: systemClock });
    fill(warehouse);
    warehouse.close();
    lockFolder(dirname(path));
    const read = () => {
      const reader = openReader(path);
      try {
        return [...runReadQuery(reader, "SELECT count(*) FROM index_ticks").rows];
      } finally {
        reader.close();
      }
    };
    const rows = withoutRoot(read);
    expect(rows).toEqual(withoutRoot(read));
    expect(Number(rows[0]?.[0])).toBeGreaterThan(0);
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix);
    expect(catchFailure(() => withoutRoot(read))).toMatchObject({
      exit: 2,
      remedy: expect.stringContaining(`touch ${path}-wal`),
    });
  });

  it("may be deleted by its one file to begin again", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    openWriter(path, { clock: systemClock }).close();
    rmSync(path);
    expect(openTestWarehouse({ path }).quarantined).toEqual([]);
  });
});

describe("F18: retention", () => {
  it("marks the whole range as lost in the ledger before it deletes the first row", () => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    const cadence = 30 * MICROS_PER_SECOND;
    const at = (n: number) => now - HOUR + n * cadence;
    warehouse.transaction((transaction) => {
      for (let n = 0; n < 100; n++) {
        const markets = ["btc-usd-id", "eth-usd-id"];
        fillWarehouse(transaction, {
          records: { exchange_ticks: markets.map((marketId) => exchangeTick(at(n), "1.5", { marketId })) },
          snapshots: [{ stream: "exchange_ticks", exchangeId: "kraken-id", at: at(n), cadence }],
        });
      }
    });
    // Each call deletes the oldest rows of one market after another; the first call marks the whole range as lost.
    const batches: number[] = [];
    let nextKey: number | undefined;
    do {
      const fromKey = nextKey;
      const batch = warehouse.transaction((t) =>
        prune(t, "exchange_ticks", at(60), { maxRows: 25, ...(fromKey !== undefined && { fromKey }) }),
      );
      batches.push(batch.deleted);
      ({ nextKey } = batch);
      expect(queryRows(warehouse, "SELECT to_ts FROM coverage WHERE proof = 'lost'")).toEqual([
        { to_ts: at(60) },
      ]);
    } while (nextKey !== undefined);
    expect(batches).toEqual([25, 25, 25, 25, 20]);
    expect(queryRows(warehouse, "SELECT from_ts, to_ts, proof, reason FROM coverage")).toEqual([
      { from_ts: at(0), to_ts: at(60), proof: "lost", reason: "retention" },
      { from_ts: at(60), to_ts: at(100), proof: "rows", reason: null },
    ]);
    expect(queryRows(warehouse, "SELECT min(ts) AS ts, count(*) AS n FROM exchange_ticks")).toEqual([
      { ts: at(60), n: 80 },
    ]);
    expect(queryRows(warehouse, "SELECT reason FROM gaps WHERE state = 'lost' ORDER BY from_ts")[0]).toEqual({
      reason: "retention",
    });
    const again = warehouse.transaction((t) => prune(t, "exchange_ticks", at(60)));
    expect(again).toEqual({ deleted: 0, nextKey: undefined });
  });
});
