import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatInstant, MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { normalise, subtract, type TimeRange } from "../../../src/model/time-range.ts";
import { holes, writeOff } from "../../../src/warehouse/coverage/gaps.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import {
  beginLiveSpans,
  endLiveSpans,
  extendLiveSpans,
  forgetLiveSpans,
} from "../../../src/warehouse/coverage/live-spans.ts";
import { settleUnserved } from "../../../src/warehouse/coverage/not-found.ts";
import { observe } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import {
  declareWanted,
  noteClockSkew,
  noteHindrance,
  type Want,
} from "../../../src/warehouse/coverage/targets.ts";
import type { Warehouse } from "../../../src/warehouse/writer.ts";
import { openScratch, rows } from "../../support/warehouse/open-warehouse.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
const DELAY = 60 * MICROS_PER_SECOND;

/** The view reads SQLite's own clock; the seconds that pass during a test are not its subject. */
const present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
const nearly = (ts: number) => Math.round((ts - present) / (20 * MICROS_PER_SECOND));

function want(warehouse: Warehouse, from: number, more: Partial<Want> = {}): void {
  warehouse.transaction((transaction) => {
    const series = transaction.dictionary.series("GWA", "btc-id");
    const line = { stream: "index_ticks", series } as const;
    declareWanted(
      transaction,
      "index_ticks",
      [{ line, from, settleDelay: DELAY, step: 1, keptFor: 200 * MICROS_PER_DAY, ...more }],
      present,
    );
  });
}

const line = { stream: "index_ticks", series: 1 } as const;
const gapsOf = (warehouse: Warehouse) =>
  rows(warehouse, "SELECT state, reason, from_ts, to_ts FROM gaps ORDER BY from_ts").map(
    ({ state, reason, from_ts, to_ts }) => [
      state,
      reason,
      nearly(from_ts as number),
      nearly(to_ts as number),
    ],
  );

describe("gaps", () => {
  it("show a head that grows while nothing runs, and the part that is too young as settling", () => {
    const warehouse = openScratch();
    want(warehouse, present - 10 * HOUR);
    warehouse.transaction((t) => settle(t, line, { from: present - 9 * HOUR, to: present - HOUR }, "empty"));
    expect(gapsOf(warehouse)).toEqual([
      ["open", "pending", -10 * 180, -9 * 180],
      ["open", "pending", -180, -3],
      ["open", "settling", -3, 0],
    ]);
    const [first] = rows(warehouse, "SELECT * FROM gaps ORDER BY from_ts LIMIT 1");
    expect(first).toEqual({
      stream: "index_ticks",
      index_type: "GWA",
      index_id: "btc-id",
      name: "btc-id",
      from_ts: present - 10 * HOUR,
      to_ts: present - 9 * HOUR,
      from_time: formatInstant(present - 10 * HOUR),
      to_time: formatInstant(present - 9 * HOUR),
      state: "open",
      reason: "pending",
      lost_at: formatInstant(present - 10 * HOUR + 200 * MICROS_PER_DAY),
    });
  });

  it("show what left the service's window as lost, without anybody writing so, and write it off on request", () => {
    const warehouse = openScratch();
    want(warehouse, present - 300 * MICROS_PER_DAY);
    expect(gapsOf(warehouse).slice(0, 2)).toEqual([
      ["lost", "aged out", -300 * 4320, -200 * 4320],
      ["open", "pending", -200 * 4320, -3],
    ]);
    const [found] = holes(warehouse.connection, "index_ticks", present);
    if (!found) throw new Error("no holes");
    expect(found.agedOut).toEqual([
      { from: present - 300 * MICROS_PER_DAY, to: present - 200 * MICROS_PER_DAY },
    ]);
    expect(found.open).toEqual([{ from: present - 200 * MICROS_PER_DAY, to: present - DELAY }]);
    warehouse.transaction((t) => writeOff(t, found));
    expect(holes(warehouse.connection, "index_ticks", present)[0]?.agedOut).toEqual([]);
    expect(rows(warehouse, "SELECT proof, reason FROM coverage")).toEqual([
      { proof: "lost", reason: "aged out" },
    ]);
  });

  it("say what hinders an open range", () => {
    const warehouse = openScratch();
    want(warehouse, present - HOUR);
    warehouse.transaction((t) => noteHindrance(t, line, "forbidden"));
    expect(gapsOf(warehouse)[0]?.slice(0, 2)).toEqual(["open", "forbidden"]);
    expect(holes(warehouse.connection, "index_ticks", present)[0]?.hindrance).toBe("forbidden");
  });

  describe("under the live feed", () => {
    const settledTo = (warehouse: Warehouse, to: number) =>
      warehouse.transaction((t) => settle(t, line, { from: present - 5 * HOUR, to }, "empty"));
    const hear = (warehouse: Warehouse, from: number, to: number, indexId?: string) =>
      warehouse.transaction((t) => {
        beginLiveSpans(t, [{ indexType: "GWA", indexId, from }]);
        extendLiveSpans(t, "GWA", to);
      });

    it("call what it has heard without a break settling, and what came before pending", () => {
      const warehouse = openScratch();
      want(warehouse, present - 3 * HOUR);
      hear(warehouse, present - HOUR, present);
      expect(gapsOf(warehouse)).toEqual([
        ["open", "pending", -540, -180],
        ["open", "settling", -180, 0],
      ]);
      warehouse.transaction((t) => noteHindrance(t, line, "forbidden"));
      expect(gapsOf(warehouse)[0]).toEqual(["open", "forbidden", -540, -3]);
    });

    it("take the break for healed once REST was asked after it", () => {
      const warehouse = openScratch();
      want(warehouse, present - 5 * HOUR);
      hear(warehouse, present - HOUR, present);
      settledTo(warehouse, present - HOUR - DELAY - 1);
      expect(gapsOf(warehouse)[0]?.slice(0, 2)).toEqual(["open", "pending"]);
      settledTo(warehouse, present - HOUR - DELAY);
      expect(gapsOf(warehouse)).toEqual([["open", "settling", -183, 0]]);
    });

    it("call nothing settling that a dead feed no longer hears, or another subscription does", () => {
      const warehouse = openScratch();
      want(warehouse, present - 3 * HOUR);
      hear(warehouse, present - 2 * HOUR, present - HOUR);
      expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
      warehouse.transaction((t) => forgetLiveSpans(t));
      hear(warehouse, present - HOUR, present, "eth-id");
      expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
      hear(warehouse, present - HOUR, present, "btc-id");
      expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -180]);
      warehouse.transaction((t) => endLiveSpans(t, [{ indexType: "GWA", indexId: "btc-id" }]));
      expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
    });

    it("let an index that the service does not have await the next night", () => {
      const warehouse = openScratch();
      want(warehouse, present - 90 * HOUR);
      const unserved = (to: number) =>
        warehouse.transaction((t) => settleUnserved(t, line, { from: present - 90 * HOUR, to }));
      unserved(present - 40 * HOUR);
      expect(gapsOf(warehouse)[0]?.slice(0, 2)).toEqual(["open", "pending"]);
      unserved(present - 20 * HOUR);
      expect(gapsOf(warehouse)).toEqual([["open", "settling", -20 * 180, 0]]);
      // Also where the live feed has begun to hear its family since.
      hear(warehouse, present - HOUR, present);
      expect(gapsOf(warehouse)).toEqual([["open", "settling", -20 * 180, 0]]);
    });
  });

  it("claim daily bars in whole days", () => {
    const warehouse = openScratch();
    const today = Math.floor(present / MICROS_PER_DAY) * MICROS_PER_DAY;
    want(warehouse, today - 3 * MICROS_PER_DAY, { step: MICROS_PER_DAY, settleDelay: 0, keptFor: null });
    warehouse.transaction((t) => settle(t, line, { from: today - 3 * MICROS_PER_DAY, to: today }, "empty"));
    expect(holes(warehouse.connection, "index_ticks", present)).toEqual([]);
    expect(rows(warehouse, "SELECT state, reason, from_ts, lost_at FROM gaps")).toEqual([
      { state: "open", reason: "settling", from_ts: today, lost_at: null },
    ]);
  });

  it("end with a series that is selected no longer, and begin again with it", () => {
    const warehouse = openScratch();
    want(warehouse, present - 10 * HOUR);
    warehouse.transaction((t) => declareWanted(t, "index_ticks", [], present - 5 * HOUR));
    expect(gapsOf(warehouse)).toEqual([["open", "pending", -1800, -900]]);
    want(warehouse, present - 2 * HOUR);
    expect(gapsOf(warehouse).map(([, , from, to]) => [from, to])).toEqual([
      [-1800, -900],
      [-360, -3],
      [-3, 0],
    ]);
    want(warehouse, present - 6 * HOUR);
    expect(gapsOf(warehouse).map(([, , from]) => from)).toEqual([-1800, -3]);
  });

  it("follow the service's clock when it differs from the machine's", () => {
    const warehouse = openScratch();
    want(warehouse, present + HOUR);
    expect(gapsOf(warehouse)).toEqual([]);
    warehouse.transaction((t) => noteClockSkew(t, 2 * HOUR));
    expect(gapsOf(warehouse).map(([, , from, to]) => [from, to])).toEqual([
      [180, 357],
      [357, 360],
    ]);
  });

  it("call lost what nobody observed of a latest-only stream, per subscription", () => {
    const warehouse = openScratch();
    const cadence = 30 * MICROS_PER_SECOND;
    const start = present - 2 * HOUR;
    warehouse.transaction((transaction) => {
      for (const at of [start, start + cadence, start + HOUR]) {
        observe(transaction, { stream: "exchange_ticks", exchangeId: "kraken-id", at, cadence });
      }
      observe(transaction, { stream: "market_caps", exchangeId: null, at: present, cadence });
    });
    expect(
      rows(warehouse, "SELECT stream, index_type, index_id, name, state, reason, from_ts, to_ts FROM gaps"),
    ).toMatchObject([
      {
        stream: "exchange_ticks",
        index_type: null,
        index_id: "kraken-id",
        name: "kraken-id",
        state: "lost",
        reason: "not observed",
        from_ts: start + 2 * cadence,
        to_ts: start + HOUR,
      },
      { state: "lost", reason: "not observed", from_ts: start + HOUR + cadence },
      { state: "open", reason: "settling" },
    ]);
    expect(rows(warehouse, "SELECT stream, index_id, name, proof FROM coverage")).toEqual([
      { stream: "exchange_ticks", index_id: "kraken-id", name: "kraken-id", proof: "rows" },
      { stream: "exchange_ticks", index_id: "kraken-id", name: "kraken-id", proof: "rows" },
      { stream: "market_caps", index_id: null, name: null, proof: "rows" },
    ]);
  });

  it("are wanted minus settled, whatever was settled", () => {
    const warehouse = openScratch();
    const range = fc
      .tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 1, max: 30 }))
      .map(([from, length]): TimeRange => ({ from, to: from + length }));
    let series = 0;
    fc.assert(
      fc.property(fc.array(range, { maxLength: 10 }), range, (settled, wanted) => {
        const key = warehouse.transaction((t) => t.dictionary.series("GWA", `series ${++series}`));
        const at = { stream: "ohlcv", series: key } as const;
        warehouse.transaction((t) => {
          for (const [i, part] of settled.entries()) settle(t, at, part, "empty", String(i % 3));
        });
        warehouse.connection.database
          .prepare("INSERT INTO wanted_ranges VALUES ('ohlcv', ?, ?, ?, 0, 1, NULL, 0, NULL)")
          .run(key, wanted.from, wanted.to);
        const expected = subtract([wanted], normalise(settled));
        const seen = rows(
          warehouse,
          'SELECT from_ts AS "from", to_ts AS "to" FROM gaps WHERE index_id = ? ORDER BY 1',
          `series ${series}`,
        );
        expect(seen).toEqual(expected);
        expect(holes(warehouse.connection, "ohlcv", present, key)[0]?.open ?? []).toEqual(expected);
        warehouse.connection.database.prepare("DELETE FROM wanted_ranges").run();
      }),
      { numRuns: 200 },
    );
  });
});
