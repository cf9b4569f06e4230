import { describe, expect, it } from "vitest";
import type { IndexTick } from "../../src/model/records.ts";
import {
  allocateColumns,
  collectPlainTicks,
  isPlainTick,
  tickAt,
  toTicks,
} from "../../src/model/tick-columns.ts";

const decimal = (real: number, exact: string | null = null) => ({ real, exact });
const plain: IndexTick = {
  indexType: "GWA",
  indexId: "a",
  ts: 5,
  price: decimal(1.5),
  volume: decimal(2.5),
  tickVolume: null,
  name: null,
  quality: null,
  extra: null,
};

describe("ticks in columns", () => {
  it("are those that doubles hold, in their order; the others are returned as they are", () => {
    const notPlain: IndexTick[] = [
      { ...plain, price: decimal(1, "1.00000000000000000001") },
      { ...plain, price: null },
      { ...plain, volume: decimal(1, "1.00000000000000000001") },
      { ...plain, volume: null },
      { ...plain, tickVolume: decimal(1) },
      { ...plain, quality: "no_volume" },
      { ...plain, extra: "{}" },
    ];
    const later = { ...plain, ts: 9, price: decimal(3), volume: decimal(4) };
    const others: IndexTick[] = [];
    const columns = collectPlainTicks([plain, ...notPlain, later], others);
    expect(others).toEqual(notPlain);
    expect(columns).toMatchObject({ indexType: "GWA", indexId: "a", tickVolume: undefined });
    expect(columns.exact.size).toBe(0);
    expect([...columns.ts]).toEqual([5, 9]);
    expect([...columns.price]).toEqual([1.5, 3]);
    expect([...(columns.volume ?? [])]).toEqual([2.5, 4]);
    expect(toTicks(columns)).toEqual([plain, later]);
  });

  it("of no index have no rows and no name", () => {
    expect(toTicks(collectPlainTicks([], []))).toEqual([]);
    expect(collectPlainTicks([], [])).toMatchObject({ indexType: "", indexId: "" });
  });

  it("keep the digits that a double does not hold, by row and column", () => {
    const columns = {
      ...collectPlainTicks([plain, { ...plain, ts: 6 }], []),
      tickVolume: new Float64Array([7, 8]),
      exact: new Map([[1, { price: "1.50", tickVolume: "8.0" }]]),
    };
    expect(tickAt(columns, 0)).toEqual({ ...plain, tickVolume: decimal(7) });
    expect(tickAt(columns, 1)).toEqual({
      ...plain,
      ts: 6,
      price: decimal(1.5, "1.50"),
      tickVolume: decimal(8, "8.0"),
    });
  });

  it("are plain with a price, a volume and nothing else", () => {
    const columns = collectPlainTicks([plain, plain], []);
    expect(isPlainTick(columns, 0)).toBe(true);
    expect(isPlainTick({ ...columns, volume: undefined }, 0)).toBe(false);
    expect(isPlainTick({ ...columns, tickVolume: new Float64Array(2) }, 0)).toBe(false);
    const exact = new Map([[1, { price: "1.50" }]]);
    expect([0, 1].map((row) => isPlainTick({ ...columns, exact }, row))).toEqual([true, false]);
  });

  it("are allocated in one piece of memory, without overlapping", () => {
    const columns = Object.values(allocateColumns(3));
    for (const [at, column] of columns.entries()) column.fill(at + 1);
    expect(columns.map((column) => [...column])).toEqual([
      [1, 1, 1],
      [2, 2, 2],
      [3, 3, 3],
      [4, 4, 4],
    ]);
    expect(new Set(columns.map(({ buffer }) => buffer)).size).toBe(1);
    expect(columns[0]?.buffer.byteLength).toBe(96);
  });
});
