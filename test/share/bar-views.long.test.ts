import { spawnSync } from "node:child_process";
import { dirname, resolve } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { collectPlainTicks } from "../../src/model/tick-columns.ts";
import { type BarWidth, barWidths, MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { declareTargets } from "../../src/warehouse/coverage/targets.ts";
import { computeStaleBars } from "../../src/warehouse/rows/kept-bars.ts";
import { planVacantTicks } from "../../src/warehouse/rows/row-plan.ts";
import { withdrawRows } from "../../src/warehouse/rows/row-sql.ts";
import { writeRows } from "../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { expectSame, exportIn } from "../support/export/read-export.ts";
import { hasModules, python } from "../support/has-tool.ts";
import { usePostgres } from "../support/postgres.ts";
import { openShared } from "../support/share/share-harness.ts";
import { queryRows } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const T = parseTs("2026-03-01T00:00:00Z");
const HOUR = barWidths["1h"];
const PERIOD = HOUR / 6;
const DAYS = 1;
const SLOTS = (DAYS * MICROS_PER_DAY) / PERIOD;
const someSlot = fc.integer({ min: 0, max: SLOTS - 1 });
const someSlots = fc.uniqueArray(someSlot, { maxLength: 8 });

/** Some differ in nothing but digits that a double cannot hold. */
const somePrice = fc.oneof(
  fc.integer({ min: 1, max: 9 }).map(String),
  fc.constantFrom("0.00000000123", "5.00000000000000000001", "5.00000000000000000002", "98765432109.8765"),
);

/** A series of a day: ticks where the ledger has rows, some of them odd, missing, repeated, corrected or withdrawn. */
const someSeries = fc.record({
  ranges: fc.array(
    fc.record({
      slots: fc.integer({ min: 3, max: 90 }),
      proof: fc.constantFrom("rows", "rows", "rows", "rows", "empty", "lost", null),
    }),
    { minLength: 1, maxLength: 9 },
  ),
  prices: fc.array(somePrice, { minLength: 1, maxLength: 40 }),
  missing: someSlots,
  unpriced: someSlots,
  withoutVolume: someSlots,
  doubtful: fc.uniqueArray(someSlot, { maxLength: 3 }),
  repeated: someSlots,
  corrected: someSlots,
  withdrawn: someSlots,
  isPage: fc.boolean(),
});

type RandomSeries = typeof someSeries extends fc.Arbitrary<infer Series> ? Series : never;

function fillSeries(transaction: Transaction, indexId: string, drawn: RandomSeries): void {
  const key = { stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", indexId) } as const;
  const period = drawn.isPage ? PERIOD : 2 * PERIOD;
  const rules = { settleDelay: 2 * period, period, step: 1, serviceWindow: 200 * MICROS_PER_DAY };
  declareTargets(transaction, "index_ticks", [{ key, from: T, ...rules }], T);
  const tsOf = (slot: number) => T + slot * PERIOD;
  const tickOf = (slot: number, price = drawn.prices[slot % drawn.prices.length] ?? "1") =>
    tick(tsOf(slot), price, {
      indexId,
      ...(drawn.unpriced.includes(slot) && { price: null }),
      ...(drawn.withoutVolume.includes(slot) && { volume: null }),
      ...(drawn.doubtful.includes(slot) && { quality: "price out of range" }),
    });
  let from = 0;
  for (const { slots, proof } of drawn.ranges) {
    const to = Math.min(SLOTS, from + slots);
    const inRange = Array.from({ length: to - from }, (_, i) => from + i);
    if (proof === "rows") {
      const descending = inRange
        .filter((slot) => !drawn.missing.includes(slot))
        .map((slot) => tickOf(slot))
        .reverse();
      const others = drawn.isPage ? [] : descending;
      const columns = collectPlainTicks(drawn.isPage ? descending : [], others);
      transaction.markWritten("index_ticks", key.series);
      if (columns.ts.length > 0) writeRows(transaction, planVacantTicks(transaction, columns));
      writeTicks(transaction, others);
      const isStored = (slot: number) => inRange.includes(slot) && !drawn.missing.includes(slot);
      const again = [
        ...drawn.repeated.filter(isStored).map((slot) => tickOf(slot)),
        ...drawn.corrected.filter(isStored).map((slot) => tickOf(slot, "10.5")),
      ];
      for (const record of again) writeTicks(transaction, [record]);
      withdrawRows(transaction, key, drawn.withdrawn.filter(isStored).map(tsOf));
    }
    if (proof !== null && from < to)
      settle(
        transaction,
        key,
        { from: tsOf(from), to: tsOf(to) },
        proof,
        proof === "rows" ? undefined : "test reason",
      );
    from = to;
  }
}

const inPython = `
import json, sys
sys.path.insert(0, sys.argv[1])
import mds
warehouse = mds.open(sys.argv[2])
rows = {}
for width in sys.argv[3].split():
    rows[width] = []
    for name in sys.argv[4].split():
        for ts, bar in warehouse.bars(name, width, exact=True).iterrows():
            text = lambda column: None if bar[column] is None or bar[column] != bar[column] else format(bar[column], "f")
            rows[width].append([name, ts.value // 1000, *[text(c + "_exact") for c in ("open", "high", "low", "close", "volume_24h")],
                bar["n_ticks"], bar["expected_ticks"], bar["coverage"], int(bar["is_complete"]), bar["quality"]])
print(json.dumps(rows, default=lambda value: value.item()))
`;

/** The bars of the Python client; undefined if this machine lacks pandas. */
function readInPython(path: string, widths: readonly string[], names: readonly string[]) {
  const client = resolve(import.meta.dirname, "../../clients/python");
  if (!hasModules("pandas", "bars in Python")) return undefined;
  const { stdout, stderr } = spawnSync(
    python,
    ["-W", "ignore", "-c", inPython, client, path, widths.join(" "), names.join(" ")],
    { encoding: "utf8", maxBuffer: 2 ** 28 },
  );
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Record<string, unknown[][]>;
}

it("gives random ticks the same bars and quality in every engine and reader", async () => {
  const shared = await openShared(server, { clock: systemClock, hasAllViews: true });
  const { warehouse, forward, query } = shared;
  const names: string[] = [];
  warehouse.transaction((transaction) => {
    for (const drawn of fc.sample(someSeries, 4)) {
      const name = `series-${names.length}`;
      fillSeries(transaction, name, drawn);
      // Of one half the hours are stale.
      if (names.push(name) === 2) computeStaleBars(transaction, 10_000);
    }
    // In progress, whenever this runs.
    writeTicks(transaction, [tick(parseTs("2039-01-01T00:00:00Z"), "7")]);
  });
  await forward();
  const folder = dirname(warehouse.path);
  await exportIn(folder);
  const widths = Object.keys(barWidths) as BarWidth[];
  const stale = new Map(widths.map((width) => [width, readView(width)]));
  const views = [...widths.map((width) => `bars_${width}`), "returns_1h"];
  await expectSame(folder, ...views);
  const expectShared = async (view: string) => {
    expect(await shared.expectSame(view), view).toBeGreaterThan(1);
  };
  for (const view of views) await expectShared(view);
  // A query reads kept bars, and the ticks of stale ones that it selects, and no others.
  expect(await countTicksRead()).toBe(0);
  await query("UPDATE mds.kept_bars SET n_ticks = NULL");
  expect(await countTicksRead()).toBeGreaterThan(0);
  expect(await countTicksRead()).toBeLessThanOrEqual(HOUR / PERIOD);
  for (const view of ["bars_1h", "bars_4h", "bars_1d", "returns_1h"]) await expectShared(view);
  const python = readInPython(warehouse.path, widths, names);
  warehouse.transaction((transaction) => computeStaleBars(transaction, 10_000));
  using reader = openWarehouse(warehouse.path);
  const qualities = new Set<unknown>();
  for (const width of widths) {
    const kept = readView(width);
    expect(kept, width).toEqual(stale.get(width));
    const read = names.flatMap((name) => reader.bars(name, { every: width }));
    expect(
      read.map(({ source: _, ...row }) => row),
      width,
    ).toEqual(kept.filter(({ name }) => name !== "btc-id").map(({ day: _, ...row }) => row));
    if (python)
      expect(python[width], width).toEqual(
        read.map((row) => [
          row.name,
          row.ts,
          ...[row.open_exact, row.high_exact, row.low_exact, row.close_exact, row.volume_24h_exact],
          ...[row.n_ticks, row.expected_ticks, row.coverage, row.is_complete, row.quality],
        ]),
      );
    for (const { quality } of kept) qualities.add(quality);
  }
  // Some seeds draw no doubtful bar that is whole.
  expect(qualities.size).toBeGreaterThanOrEqual(4);

  /** The ticks that PostgreSQL reads for one hour that has some. */
  async function countTicksRead(): Promise<number> {
    const { name, ts } = stale.get("1h")?.find((bar) => Number(bar.n_ticks) > 3) ?? {};
    const plan = await query<{ "QUERY PLAN": string }>(
      `EXPLAIN (ANALYZE, TIMING off) SELECT * FROM mds.returns_1h WHERE name = '${name}' AND ts = ${ts}`,
    );
    const rows = plan
      .filter(({ "QUERY PLAN": line }) => line.includes("index_tick_rows"))
      .flatMap(({ "QUERY PLAN": line }) => [...line.matchAll(/actual rows=(\d+)(?:\.\d+)? loops=(\d+)/g)])
      .map(([, count, loops]) => Number(count) * Number(loops));
    return Math.max(0, ...rows);
  }

  function readView(width: BarWidth) {
    const rows = queryRows(warehouse, `SELECT * FROM bars_${width} ORDER BY ts`);
    return [...names, "btc-id"].flatMap((name) => rows.filter((row) => row.name === name));
  }
});
