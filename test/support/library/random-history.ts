import fc from "fast-check";
import { barWidths, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { readNotedDetails, writeNotedDetails } from "../../../src/warehouse/rows/duplicate-timestamps.ts";
import { computeStaleBars } from "../../../src/warehouse/rows/kept-bars.ts";
import { matchPreviews, removePreviews } from "../../../src/warehouse/rows/previews.ts";
import { withdrawRows } from "../../../src/warehouse/rows/row-sql.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { bar, decimal, parseTs, tick } from "../warehouse/records.ts";
import { retract, settle, settleAsLost } from "../warehouse/settle.ts";
import { writeRecords, writeTicks } from "../warehouse/write-records.ts";

/* Random commits as a sync makes them: pages, live ticks, corrections, withdrawals, late pages, and what they prove. */

export const HISTORY_FROM = parseTs("2026-02-20T00:00:00Z");
/** Six ticks an hour for two days. */
export const PERIOD = barWidths["1h"] / 6;
const SLOTS = 2 * 24 * 6;
export const HISTORY_TO = HISTORY_FROM + SLOTS * PERIOD;

const slotTs = (slot: number): Micros => HISTORY_FROM + slot * PERIOD;

/** Version 0 is what a service that corrects nothing serves: a page then confirms what came live. */
const someVersion = fc.constantFrom(0, 0, 0, 0, 1, 2, 3);

type Change =
  /** `offset`: the websocket's clock differs. */
  | { kind: "page" | "live"; from: number; versions: readonly number[]; offset: number }
  | { kind: "bars"; from: number; versions: readonly number[] }
  | { kind: "withdraw"; from: number; length: number; stride: number }
  | {
      kind: "preview" | "second" | "settle" | "settle days" | "lose" | "retract";
      from: number;
      length: number;
    }
  | { kind: "compute"; limit: number };

const someSlot = fc.integer({ min: 0, max: SLOTS - 1 });

const someChange: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom("page" as const, "page" as const, "live" as const),
      from: fc.integer({ min: 0, max: SLOTS - 60 }),
      versions: fc.array(someVersion, { minLength: 1, maxLength: 60 }),
      offset: fc.constantFrom(0, 0, 0, 7_000_001),
    }),
  },
  fc.record({
    kind: fc.constant("bars" as const),
    from: fc.integer({ min: 0, max: 2 }),
    versions: fc.array(someVersion, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant("withdraw" as const),
    from: someSlot,
    length: fc.integer({ min: 1, max: 60 }),
    stride: fc.integer({ min: 1, max: 10 }),
  }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        ...(["preview", "second", "settle", "settle", "settle days", "lose", "retract"] as const),
      ),
      from: someSlot,
      length: fc.integer({ min: 1, max: 100 }),
    }),
  },
  fc.record({ kind: fc.constant("compute" as const), limit: fc.constantFrom(1, 5, 1000) }),
);

/** Each list is one commit. */
export const someHistory: fc.Arbitrary<Change[][]> = fc.array(
  fc.array(someChange, { minLength: 1, maxLength: 3 }),
  { minLength: 2, maxLength: 12 },
);

const pricesOfVersion = (slot: number) => [
  String(100 + (slot % 7)),
  "5.00000000000000000001",
  null,
  `0.00000000${123 + slot}`,
];

export function applyChange(transaction: Transaction, indexId: string, change: Change): void {
  const series = transaction.dictionary.getSeriesKey("GWA", indexId);
  const key = { stream: "index_ticks", series } as const;
  if (change.kind === "compute") computeStaleBars(transaction, change.limit);
  else if (change.kind === "bars") {
    const bars = change.versions.map((version, at) =>
      bar(HISTORY_FROM + (change.from + at) * MICROS_PER_DAY, String(5 + version), {
        indexId,
        quality: version === 3 ? "odd" : null,
      }),
    );
    writeRecords(transaction, "ohlcv", bars.reverse());
  } else if ("versions" in change) {
    const records = change.versions.map((version, at) => {
      const price = pricesOfVersion(change.from + at)[version] ?? null;
      return tick(slotTs(change.from + at) + change.offset, "1", {
        indexId,
        price: price === null ? null : decimal(price),
        quality: version === 2 ? "no price" : null,
        extra: version === 1 ? '{"a":1}' : null,
      });
    });
    const source = change.kind === "page" ? "rest" : "live";
    writeTicks(transaction, records.reverse(), source, PERIOD / 4);
  } else {
    const range = { from: slotTs(change.from), to: slotTs(change.from + change.length) };
    const stored = transaction
      .statement<Micros>(
        "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts DESC",
      )
      .pluck()
      .all([series, range.from, range.to]);
    transaction.markWritten("index_ticks", series);
    if (change.kind === "withdraw")
      withdrawRows(
        transaction,
        key,
        stored.filter((_, at) => at % change.stride === 0),
      );
    else if (change.kind === "second")
      for (const ts of stored) {
        const details = readNotedDetails(transaction, "index_ticks", series, ts);
        if (details !== undefined) writeNotedDetails(transaction, "index_ticks", series, { ts, details });
      }
    else if (change.kind === "preview") {
      const timestamps = stored.map((ts) => ts + 3);
      const { replaced } = matchPreviews(transaction, series, timestamps, PERIOD / 4);
      removePreviews(transaction, series, replaced);
    } else if (change.kind === "settle")
      settle(transaction, key, range, stored.length > 0 ? "rows" : "empty");
    else if (change.kind === "settle days") {
      transaction.markWritten("ohlcv", series);
      const days = { from: HISTORY_FROM, to: HISTORY_FROM + 3 * MICROS_PER_DAY };
      settle(transaction, { stream: "ohlcv", series }, days, "rows");
    } else if (change.kind === "lose") settleAsLost(transaction, key, range, "test reason");
    else retract(transaction, key, range);
  }
}
