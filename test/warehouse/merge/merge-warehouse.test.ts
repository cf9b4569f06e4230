import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DerivativeTick, type ExchangeTick, propertyOf } from "../../../src/model/records.ts";
import type { Stream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { normalise, type TimeRange, union } from "../../../src/model/time-range.ts";
import { auditLedger } from "../../../src/warehouse/audit/audit-ledger.ts";
import { settle, settleAsLost } from "../../../src/warehouse/coverage/ledger.ts";
import { settleSnapshot } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { openTarget } from "../../../src/warehouse/coverage/targets.ts";
import { writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { recordService } from "../../../src/warehouse/lookups/service-identity.ts";
import { attachSource } from "../../../src/warehouse/merge/merge-source.ts";
import { type MergeReport, mergeWarehouse, planMerge } from "../../../src/warehouse/merge/merge-warehouse.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { storeRejects } from "../../../src/warehouse/rows/rejects.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { rowColumns } from "../../../src/warehouse/tables/row-tables.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seed } from "../../support/seed.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, decimal, parseTs, tick } from "../../support/warehouse/records.ts";

const MINUTE = 60 * MICROS_PER_SECOND;
const CADENCE = 30 * MICROS_PER_SECOND;
const start = parseTs("2026-02-20T00:00:00Z");
const now = "2026-03-01T12:00:00Z";
const minute = (n: number) => start + n * MINUTE;
const rules = { settleDelay: 2 * CADENCE, period: CADENCE, step: 1, serviceWindow: 200 * MICROS_PER_DAY };
const noFields = { quality: null, extra: null };

const open = (hasAllViews = false) => openTestWarehouse({ clock: new ManualClock(now), hasAllViews });

/** Merges `other` into `warehouse`, which stay open. */
function merge(warehouse: WarehouseWriter, other: WarehouseWriter): MergeReport {
  const source = attachSource(warehouse.connection, other.path);
  try {
    const steps = mergeWarehouse(warehouse);
    for (let step = steps.next(); ; step = steps.next()) if (step.done) return step.value;
  } finally {
    source.detach();
  }
}

function audit(warehouse: WarehouseWriter) {
  return auditLedger(warehouse.connection, parseTs(now)).findings.map(({ rule, text }) => `${rule}: ${text}`);
}

function coveredOf(warehouse: WarehouseWriter, stream: Stream, indexId: string) {
  const sql = `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges r JOIN series s ON s.series = r.series
    WHERE r.stream = ? AND s.index_id = ? AND proof <> 'lost' ORDER BY from_ts`;
  return normalise(queryRows(warehouse, sql, stream, indexId) as unknown as TimeRange[]);
}

/** What the service has: a tick every minute but every fifth. */
const truth = (range: TimeRange, indexId: string) =>
  Array.from({ length: Math.ceil((range.to - start) / MINUTE) }, (_, n) => n)
    .filter((n) => n % 5 !== 0 && minute(n) >= range.from && minute(n) < range.to)
    .map((n) => tick(minute(n), String(100 + n), { indexId }));

function coverTicks(transaction: Transaction, indexId: string, range: TimeRange): void {
  const key = { stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", indexId) } as const;
  openTarget(transaction, { key, from: range.from, ...rules }, false);
  const rows = truth(range, indexId);
  writeRecords(transaction, "index_ticks", rows, "rest");
  settle(transaction, key, range, rows.length > 0 ? "rows" : "empty");
}

const exchangeTick = (ts: number, exchangeId: string, last = "5"): ExchangeTick => ({
  exchangeId,
  marketId: "btc-usd",
  ts,
  last: decimal(last),
  volume: decimal("1"),
  bid: null,
  ask: null,
  lastMoved: null,
  ...noFields,
});

function observe(transaction: Transaction, exchangeId: string, at: number, last?: string): void {
  writeRecords(transaction, "exchange_ticks", [exchangeTick(at + 1000, exchangeId, last)], "rest");
  settleSnapshot(transaction, { stream: "exchange_ticks", exchangeId, at, cadence: CADENCE });
}

const asset = (id: string) => ({
  id,
  symbol: id.toUpperCase(),
  name: id,
  status: "ACTIVE",
  type: "CRYPTO",
  url: null,
  contractAddress: null,
  ...noFields,
});

describe("merging another warehouse", () => {
  it("F15: gives the union of any two parts of a history, with a sound ledger, and nothing the second time", () => {
    const pieces = fc.array(
      fc.record({
        id: fc.constantFrom("btc-id", "eth-id"),
        from: fc.nat(200),
        length: fc.integer({ min: 1, max: 60 }),
      }),
      { maxLength: 6 },
    );
    const previews = fc.array(
      fc.record({
        id: fc.constantFrom("btc-id", "eth-id"),
        at: fc.nat(260),
        price: fc.constantFrom("1", "2"),
      }),
      { maxLength: 8 },
    );
    const snapshots = fc.array(
      fc.record({ exchange: fc.constantFrom("kraken", "bitstamp"), at: fc.nat(20) }),
      {
        maxLength: 10,
      },
    );
    const history = fc.record({ pieces, previews, snapshots });
    fc.assert(
      fc.property(history, history, (mine, other) => {
        const [a, b] = [open(), open()];
        for (const [warehouse, part] of [
          [a, mine],
          [b, other],
        ] as const)
          warehouse.transaction((transaction) => {
            for (const { id, from, length } of part.pieces)
              coverTicks(transaction, id, { from: minute(from), to: minute(from + length) });
            for (const { id, at, price } of part.previews)
              writeRecords(
                transaction,
                "index_ticks",
                [tick(minute(at) + 7, price, { indexId: id })],
                "live",
              );
            for (const { exchange, at } of part.snapshots)
              observe(transaction, exchange, start + at * CADENCE);
          });
        const ids = ["btc-id", "eth-id"];
        const before = ids.map(
          (id) => [coveredOf(a, "index_ticks", id), coveredOf(b, "index_ticks", id)] as const,
        );
        merge(a, b);
        expect(audit(a)).toEqual([]);
        ids.forEach((id, at) => {
          const [ours, theirs] = before[at] as (typeof before)[number];
          const covered = coveredOf(a, "index_ticks", id);
          expect(covered).toEqual(union(ours, theirs));
          // In covered time exactly the service's rows are stored.
          const stored = queryRows(a, "SELECT ts FROM index_ticks WHERE index_id = ? ORDER BY ts", id).map(
            ({ ts }) => Number(ts),
          );
          const inside = stored.filter((ts) => covered.some(({ from, to }) => from <= ts && ts < to));
          expect(inside).toEqual(covered.flatMap((range) => truth(range, id).map(({ ts }) => ts)));
        });
        for (const exchange of ["kraken", "bitstamp"]) {
          const observed = [...mine.snapshots, ...other.snapshots].filter(
            (each) => each.exchange === exchange,
          );
          const ranges = observed.map(({ at }) => ({
            from: start + at * CADENCE,
            to: start + (at + 1) * CADENCE,
          }));
          expect(coveredOf(a, "exchange_ticks", exchange)).toEqual(normalise(ranges));
        }
        const content = dump(a);
        const { streams } = merge(a, b);
        expect(Object.values(streams).every(({ rows, micros }) => rows + micros === 0)).toBe(true);
        expect(dump(a)).toEqual(content);
      }),
      { seed, numRuns: 12 },
    );
  });

  it("covers what was not observed, and keeps lost what neither has observed", () => {
    const [a, b] = [open(), open()];
    a.transaction((transaction) => {
      for (const n of [0, 1, 6]) observe(transaction, "kraken", start + n * CADENCE, "5");
    });
    b.transaction((transaction) => {
      for (const n of [1, 2, 4]) observe(transaction, "kraken", start + n * CADENCE, "6");
    });
    const { streams } = merge(a, b);
    expect(streams.exchange_ticks).toEqual({ rows: 2, replaced: 0, withdrawn: 0, micros: 2 * CADENCE });
    expect(coveredOf(a, "exchange_ticks", "kraken")).toEqual([
      { from: start, to: start + 3 * CADENCE },
      { from: start + 4 * CADENCE, to: start + 5 * CADENCE },
      { from: start + 6 * CADENCE, to: start + 7 * CADENCE },
    ]);
    // Where both have observed, our row stays.
    expect(queryRows(a, "SELECT last FROM exchange_ticks ORDER BY ts").map(({ last }) => last)).toEqual([
      5, 5, 6, 6, 5,
    ]);
    expect(
      queryRows(
        a,
        "SELECT from_ts, to_ts FROM gaps WHERE stream = 'exchange_ticks' AND state = 'lost' ORDER BY from_ts LIMIT 2",
      ),
    ).toEqual([
      { from_ts: start + 3 * CADENCE, to_ts: start + 4 * CADENCE },
      { from_ts: start + 5 * CADENCE, to_ts: start + 6 * CADENCE },
    ]);
    expect(audit(a)).toEqual([]);
  });

  it("replaces uncovered rows that the other has proven differently, and keeps them in revisions", () => {
    const [a, b] = [open(), open()];
    a.transaction((transaction) => {
      writeRecords(transaction, "index_ticks", [tick(minute(1), "7"), tick(minute(2) + 5, "8")], "live");
    });
    b.transaction((transaction) => coverTicks(transaction, "btc-id", { from: minute(0), to: minute(4) }));
    const { streams } = merge(a, b);
    expect(streams.index_ticks).toEqual({ rows: 2, replaced: 1, withdrawn: 1, micros: 4 * MINUTE });
    expect(queryRows(a, "SELECT ts, price, is_settled FROM index_ticks ORDER BY ts")).toEqual(
      [1, 2, 3].map((n) => ({ ts: minute(n), price: 100 + n, is_settled: 1 })),
    );
    expect(
      queryRows(
        a,
        "SELECT ts, before ->> 'price' AS before, after ->> 'price' AS after FROM revisions ORDER BY ts",
      ),
    ).toEqual([
      { ts: minute(1), before: "7", after: "101" },
      { ts: minute(2) + 5, before: "8", after: null },
    ]);
    expect(queryRows(a, "SELECT rows FROM stream_states WHERE stream = 'index_ticks'")).toEqual([
      { rows: 3 },
    ]);
    expect(audit(a)).toEqual([]);
  });

  it("brings every stream, lookups, revisions and rejects, whatever the keys of both are", () => {
    const [a, b] = [open(true), open(true)];
    // Other keys than in the other warehouse.
    a.transaction((transaction) => {
      for (const id of ["x", "y", "z"]) transaction.dictionary.getSeriesKey("GWA", id);
      transaction.dictionary.getListingKey("x", "y");
      transaction.dictionary.getContractKey("options", "perp", {
        exchangeId: null,
        marketId: null,
        firstSeen: now,
      });
    });
    const derivative = {
      derivativeType: "options",
      contractId: "perp",
      exchangeId: "kraken",
      marketId: "btc-usd",
    };
    b.transaction((transaction) => {
      writeLookup(transaction, "assets", [asset("btc-id")], { isComplete: true });
      const day = parseTs("2026-02-20T00:00:00Z");
      const key = { stream: "ohlcv", series: transaction.dictionary.getSeriesKey("GWA", "btc-id") } as const;
      openTarget(transaction, { key, from: day, ...rules, step: MICROS_PER_DAY, serviceWindow: null }, false);
      writeRecords(transaction, "ohlcv", [bar(day, "5")], "rest");
      settle(transaction, key, { from: day, to: day + MICROS_PER_DAY }, "rows");
      writeRecords(
        transaction,
        "index_ticks",
        [tick(minute(1), "1", { indexType: "LX", indexId: "lx", name: "BLX" })],
        "live",
      );
      const fields = Object.fromEntries(
        rowColumns("derivative_ticks").map((column) => [propertyOf(column), null]),
      );
      writeRecords(
        transaction,
        "derivative_ticks",
        [
          {
            ...derivative,
            ts: minute(1),
            ...fields,
            price: decimal("1"),
            ...noFields,
          } as unknown as DerivativeTick,
        ],
        "rest",
      );
      settleSnapshot(transaction, {
        stream: "derivative_ticks",
        exchangeId: "kraken",
        at: minute(1),
        cadence: MINUTE,
      });
      storeRejects(transaction, "ohlcv", [{ reason: "no id", raw: "{}" }], null);
    });
    b.transaction((transaction) => writeRecords(transaction, "ohlcv", [bar(start, "6")], "rest"));
    const report = merge(a, b);
    expect(report).toMatchObject({
      streams: {
        assets: { rows: 1 },
        ohlcv: { rows: 1 },
        index_ticks: { rows: 1 },
        derivative_ticks: { rows: 1 },
      },
      revisions: 1,
      rejects: 1,
    });
    expect(queryRows(a, "SELECT name, day, close FROM ohlcv")).toEqual([
      { name: "BTC-ID", day: "2026-02-20", close: 6 },
    ]);
    expect(queryRows(a, "SELECT name, price FROM index_ticks")).toEqual([{ name: "BLX", price: 1 }]);
    expect(queryRows(a, "SELECT contract_id, exchange_id FROM derivative_ticks")).toEqual([
      { contract_id: "perp", exchange_id: "kraken" },
    ]);
    expect(queryRows(a, "SELECT stream, name, proof FROM coverage ORDER BY stream")).toEqual([
      { stream: "derivative_ticks", name: "kraken", proof: "rows" },
      { stream: "ohlcv", name: "BTC-ID", proof: "rows" },
    ]);
    expect(queryRows(a, "SELECT name FROM revisions")).toEqual([{ name: "BTC-ID" }]);
    expect(audit(a)).toEqual([]);
  });

  it("leaves deleted what the retention has deleted", () => {
    const [a, b] = [open(), open()];
    for (const warehouse of [a, b])
      warehouse.transaction((transaction) => observe(transaction, "kraken", start));
    a.transaction((transaction) => {
      const key = {
        stream: "exchange_ticks",
        series: transaction.dictionary.getSubscriptionKey("kraken"),
      } as const;
      settleAsLost(transaction, key, { from: start, to: start + MINUTE }, "retention");
      transaction.statement("DELETE FROM exchange_tick_rows").run();
    });
    expect(merge(a, b).streams.exchange_ticks).toMatchObject({ rows: 0, micros: 0 });
    expect(queryRows(a, "SELECT count(*) AS n FROM exchange_ticks")).toEqual([{ n: 0 }]);
  });

  it("refuses another service, and the warehouse itself", () => {
    const [a, b] = [open(), open()];
    for (const [warehouse, url, id] of [
      [a, "https://a.test", "a"],
      [b, "https://b.test", "b"],
    ] as const)
      warehouse.transaction((transaction) =>
        recordService(transaction, "", { url, stream: "assets", ids: [id] }),
      );
    const failure = catchFailure(() => attachSource(a.connection, b.path));
    expect([failure.code, failure.exit]).toEqual(["other_service", 2]);
    expect(failure.message).toMatch(/https:\/\/b\.test.*https:\/\/a\.test/);
    expect(catchFailure(() => attachSource(a.connection, a.path)).exit).toBe(2);
  });

  it("counts the same in a dry run, beside the writer", () => {
    const [a, b] = [open(), open()];
    a.transaction((transaction) => coverTicks(transaction, "btc-id", { from: minute(0), to: minute(20) }));
    b.transaction((transaction) => {
      coverTicks(transaction, "btc-id", { from: minute(10), to: minute(40) });
      coverTicks(transaction, "eth-id", { from: minute(0), to: minute(5) });
      observe(transaction, "kraken", start);
    });
    const reader = openReader(a.path);
    const source = attachSource(reader, b.path);
    const planned = planMerge(reader);
    source.detach();
    reader.close();
    expect(planned.index_ticks).toMatchObject({ rows: 20, micros: 25 * MINUTE });
    expect(merge(a, b).streams).toEqual(planned);
  });
});

/** Everything but sequence numbers of the writer. */
function dump(warehouse: WarehouseWriter) {
  const tables = queryRows(
    warehouse,
    "SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name",
  );
  return tables.map(({ name }) => [name, queryRows(warehouse, `SELECT * FROM main."${name}"`)]);
}
