import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readSettledRanges } from "../../../src/warehouse/coverage/ledger.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, decimal, exchangeTick, parseTs, tick } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { storeTicks as write, writeRecords, writeTicks } from "../../support/warehouse/write-records.ts";

const key = { stream: "index_ticks", series: 1 } as const;
const T = parseTs("2026-03-01T11:00:00Z");
const page = (count: number, price = "1.5") =>
  Array.from({ length: count }, (_, i) => tick(T - i * 30_000_000, price));

describe("index ticks", () => {
  it("are stored once, in any order and however often they arrive", () => {
    const warehouse = openTestWarehouse();
    const ticks = page(130);
    expect(write(warehouse, ticks)).toMatchObject({ inserted: 130, changed: 0, unchanged: 0 });
    const changes = () => queryRows(warehouse, "SELECT total_changes() AS n");
    const before = changes();
    expect(write(warehouse, [...ticks].reverse())).toMatchObject({ inserted: 0, unchanged: 130 });
    expect(write(warehouse, [...ticks.slice(60), ...ticks.slice(0, 80)])).toMatchObject({ inserted: 0 });
    expect(changes()).toEqual(before);
    expect(write(warehouse, page(200))).toMatchObject({ inserted: 70, unchanged: 130 });
    expect(queryRows(warehouse, "SELECT count(*) AS n, min(price) AS p FROM index_ticks")).toEqual([
      { n: 200, p: 1.5 },
    ]);
    expect(queryRows(warehouse, "SELECT * FROM revisions")).toEqual([]);
  });

  it("are read back unchanged, for any mix of plain, exact and flagged ticks on a page", () => {
    const texts = ["1.25", "0", "67000.5", "123456789012345678.9", "0.000000000001", "-3"];
    const figure = fc.option(fc.constantFrom(...texts));
    const record = fc.record({
      ...{ price: figure, volume: figure, tickVolume: figure },
      quality: fc.option(fc.constantFrom("price: NaN", 'volume: "x"')),
      extra: fc.option(fc.constant('{"a":1}')),
    });
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 120 }), (records) => {
        const warehouse = openTestWarehouse();
        const read = (text: string | null) => (text === null ? null : decimal(text));
        const figuresOf = (r: (typeof records)[number]) => [r.price, r.volume, r.tickVolume];
        const ticks = records.map((r, i) => {
          const [price = null, volume = null, tickVolume = null] = figuresOf(r).map(read);
          return tick(T - i, "1", { ...r, price, volume, tickVolume });
        });
        expect(write(warehouse, ticks).inserted).toBe(ticks.length);
        expect(write(warehouse, ticks).unchanged).toBe(ticks.length);
        const columns = "price_exact, volume_exact, tick_volume_exact, quality, extra";
        const stored = queryRows(warehouse, `SELECT ${columns} FROM index_ticks ORDER BY ts DESC`);
        expect(stored.map(Object.values)).toEqual(records.map((r) => [...figuresOf(r), r.quality, r.extra]));
      }),
      { numRuns: 25 },
    );
  });

  it("C13: leave a revision when the service corrects one", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, page(3));
    const corrected = tick(T, "12345678901234567.5", { quality: "odd" });
    expect(write(warehouse, [corrected])).toMatchObject({ changed: 1 });
    const [revision] = queryRows(warehouse, "SELECT * FROM revisions");
    expect(revision).toMatchObject({
      ...{ stream: "index_ticks", index_type: "GWA", index_id: "btc-id", ts: T },
      ...{ time: "2026-03-01T11:00:00.000000Z", changed_at: "2026-03-01T12:00:00.000000Z" },
    });
    const before = { price: "1.5", volume: "1000.5", tick_volume: null, source: "rest" };
    expect(JSON.parse(revision?.before as string)).toEqual(before);
    const after = { price: "12345678901234567.5", quality: "odd" };
    expect(JSON.parse(revision?.after as string)).toMatchObject(after);
    expect(write(warehouse, [corrected])).toMatchObject({ changed: 0, unchanged: 1 });
  });

  it("D1: leave no revision when only one version has an extra field", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T, "1.5", { extra: '{"new":1}' })], "live");
    expect(write(warehouse, [tick(T, "1.5")])).toMatchObject({ changed: 0, unchanged: 1, extraChanged: 1 });
    expect(queryRows(warehouse, "SELECT extra FROM index_ticks")).toEqual([{ extra: null }]);
    write(warehouse, [tick(T, "1.5", { price: decimal("1.50000000000000001") })]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
  });

  it("D6: from the far future are stored, but never count as the latest", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    write(warehouse, [tick(T, "1.5"), tick(parseTs("2096-01-01T00:00:00Z"), "9")]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 2 }]);
    expect(queryRows(warehouse, "SELECT price FROM latest_index_ticks")).toEqual([{ price: 1.5 }]);
  });

  it("provide the names of liquid indices, but not of assets and markets", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [
      tick(T, "1", { name: "Bitcoin" }),
      tick(T, "1", { indexType: "LX", indexId: "lx", name: "BLX" }),
    ]);
    expect(queryRows(warehouse, "SELECT name FROM index_ticks ORDER BY name")).toEqual([
      { name: "BLX" },
      { name: "btc-id" },
    ]);
  });

  it("E11: prefer the REST row over a live row of the same timestamp, and store the difference as a revision", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T, "1.4")], "live");
    expect(queryRows(warehouse, "SELECT price, source, is_settled FROM index_ticks")).toEqual([
      { price: 1.4, source: "live", is_settled: 0 },
    ]);
    expect(write(warehouse, [tick(T, "1.5")], "rest")).toMatchObject({ changed: 1 });
    expect(write(warehouse, [tick(T, "1.6")], "live")).toMatchObject({ changed: 0, outranked: 1 });
    expect(queryRows(warehouse, "SELECT price FROM index_ticks")).toEqual([{ price: 1.5 }]);
    expect(queryRows(warehouse, "SELECT * FROM revisions")).toHaveLength(1);
  });

  it("H4: become REST rows when REST confirms a live row; the ledger then protects the row", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T, "1.5")], "live");
    warehouse.transaction((transaction) => {
      expect(writeTicks(transaction, [tick(T, "1.5")]).unchanged).toBe(1);
      settle(transaction, key, { from: T - 10, to: T + 10 }, "rows");
    });
    expect(write(warehouse, [tick(T, "9")], "live").outranked).toBe(1);
    expect(queryRows(warehouse, "SELECT price, source, is_settled FROM index_ticks")).toEqual([
      { price: 1.5, source: "rest", is_settled: 1 },
    ]);
  });

  it("H4: add no row for a live tick that REST has at a slightly other moment, proven or not", () => {
    const warehouse = openTestWarehouse();
    const writeLive = (ts: number) => write(warehouse, [tick(ts, "1.5")], "live", 50);
    warehouse.transaction((transaction) => {
      writeTicks(transaction, [tick(T + 100, "1.5"), tick(T, "1.5")]);
      settle(transaction, key, { from: T - 10, to: T + 100 }, "rows");
    });
    // The newest REST row is not proven yet.
    for (const offset of [-7, 7, 93, 107])
      expect(writeLive(T + offset)).toMatchObject({ inserted: 0, outranked: 1 });
    expect(readSettledRanges(warehouse.connection, key)).toHaveLength(1);
    // Nothing is near: REST is asked again.
    expect(writeLive(T + 50)).toMatchObject({ inserted: 1, outranked: 0 });
    expect(readSettledRanges(warehouse.connection, key)).toHaveLength(2);
  });

  it("H3: reopen the whole range at a live tick where REST had proven that there is none", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T + 100, "1")]);
    warehouse.transaction((t) => settle(t, key, { from: T - 10, to: T + 10 }, "empty"));
    expect(write(warehouse, [tick(T, "2")], "live").inserted).toBe(1);
    expect(readSettledRanges(warehouse.connection, key)).toEqual([]);
  });

  it("are compared with what is stored and settled, not with caches of a failed transaction", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T, "1")], "live");
    expect(() =>
      warehouse.transaction((transaction) => {
        writeTicks(transaction, [tick(T + 50, "1")], "live");
        throw new Error("never mind");
      }),
    ).toThrow("never mind");
    expect(write(warehouse, [tick(T + 50, "2"), tick(T + 40, "2")], "live").inserted).toBe(2);
    expect(write(warehouse, [tick(T + 50, "2")], "live").unchanged).toBe(1);
    warehouse.transaction((transaction) => {
      writeTicks(transaction, [tick(T + 50, "2")]);
      settle(transaction, key, { from: T, to: T + 100 }, "rows");
    });
    expect(write(warehouse, [tick(T + 60, "3")], "live").inserted).toBe(1);
    expect(readSettledRanges(warehouse.connection, key)).toHaveLength(2);
    expect(write(warehouse, [tick(T + 60, "3")], "rest").unchanged).toBe(1);
    const next = write(warehouse, [tick(T + 61, "3"), tick(T + 60, "4")], "rest");
    expect(next).toMatchObject({ inserted: 1, changed: 1 });
  });

  it("E10: keep the last of several live ticks of one timestamp, and the first of a page's duplicates", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, [tick(T, "1"), tick(T + 1, "5"), tick(T, "2")], "live");
    write(warehouse, [tick(T + 3, "1"), tick(T + 2, "7"), tick(T + 2, "8")], "rest");
    const prices = queryRows(warehouse, "SELECT price FROM index_ticks ORDER BY ts");
    expect(prices.map(({ price }) => price)).toEqual([2, 5, 7, 1]);
  });

  it("update the stream's row count and newest timestamp, ignoring rows from the future", () => {
    const warehouse = openTestWarehouse();
    write(warehouse, page(120));
    write(warehouse, page(150));
    write(warehouse, [tick(parseTs("2099-01-01T00:00:00Z"), "1")]);
    const status = readStatus(warehouse.connection, parseTs("2026-03-01T12:00:00Z"));
    const ticks = status.streams.find(({ stream }) => stream === "index_ticks");
    expect(ticks).toMatchObject({ rows: 151, newest_age_s: 3600 });
  });
});

describe("daily bars", () => {
  it("D8: replace a provisional bar without a revision and a settled one with a revision; settled bars are final", () => {
    const warehouse = openTestWarehouse();
    const day = parseTs("2026-02-27T00:00:00Z");
    const key = { stream: "ohlcv", series: 1 } as const;
    const put = (close: string) => warehouse.transaction((t) => writeRecords(t, "ohlcv", [bar(day, close)]));
    put("5");
    expect(put("6").changed).toBe(1);
    const shown = () =>
      queryRows(warehouse, "SELECT day, close, close_exact, is_final, record_id FROM ohlcv");
    expect(shown()).toEqual([
      { day: "2026-02-27", close: 6, close_exact: "6", is_final: 0, record_id: `bar-${day}` },
    ]);
    warehouse.transaction((t) => {
      writeRecords(t, "ohlcv", [bar(day, "6")]);
      settle(t, key, { from: day, to: day + MICROS_PER_DAY }, "rows");
    });
    expect(shown()[0]?.is_final).toBe(1);
    expect(queryRows(warehouse, "SELECT * FROM revisions")).toEqual([]);
    put("7");
    expect(queryRows(warehouse, "SELECT ts FROM revisions")).toEqual([{ ts: day }]);
  });
});

describe("exchange ticks", () => {
  it("show ids as exchange and pair while the lookups have no names for them", () => {
    const warehouse = openTestWarehouse();
    const one = exchangeTick(T, "1.5", { lastMoved: T - 5 });
    warehouse.transaction((t) => writeRecords(t, "exchange_ticks", [one], "live"));
    const sql = "SELECT exchange, pair, last_exact, ask, last_moved, time FROM exchange_ticks";
    expect(queryRows(warehouse, sql).map(Object.values)).toEqual([
      ["kraken-id", "btc-usd-id", "1.5", null, "2026-03-01T10:59:59.999995Z", "2026-03-01T11:00:00.000000Z"],
    ]);
  });
});
