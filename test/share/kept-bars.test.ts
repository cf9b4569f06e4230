import fc from "fast-check";
import { expect, it } from "vitest";
import { barWidths, MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { findHeldDays } from "../../src/share/held-days.ts";
import { describePlace, parseServerAddress } from "../../src/share/server/server-address.ts";
import { type OpenShare, openShare } from "../../src/share/share-once.ts";
import { retract, settle } from "../../src/warehouse/coverage/ledger.ts";
import { moveDay } from "../../src/warehouse/rows/moved-rows.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { findRowsBeside, withdrawRows } from "../../src/warehouse/rows/withdraw-rows.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { usePostgres } from "../support/postgres.ts";
import { toVersion3, viewsOfVersion3 } from "../support/share/bars-of-version-3.ts";
import { shareInto, shareOptions } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";

const server = usePostgres();
const HOUR = barWidths["1h"];
const STEP = HOUR / 3;
/** The last day of a month and the first of the next, so that ranges cross partitions. */
const START = parseTs("2026-02-28T00:00:00Z");
const MONTH = "2026-02";
const STEPS = (2 * MICROS_PER_DAY) / STEP;
const at = (step: number) => START + step * STEP;
const views = ["bars_1h", "bars_4h", "bars_1d", "returns_1h"];

async function createDatabase(): Promise<string> {
  const database = await server.createDatabase();
  const statements = views.map((name) => `CREATE VIEW oracle.${name} AS ${viewsOfVersion3[name]}`);
  await server.query(database, ["CREATE SCHEMA oracle", ...statements].join("; "));
  return database;
}

/** Both views answer in one statement, so they have the same present. */
async function expectBarsOfTicks(database: string, context: unknown): Promise<void> {
  const differences = await server.queryAll(
    database,
    views.map(
      (name) => `WITH kept AS (SELECT * FROM mds.${name}), ticks AS (SELECT * FROM oracle.${name})
        (SELECT 'unexpected' AS what, * FROM (TABLE kept EXCEPT ALL TABLE ticks) x)
        UNION ALL (SELECT 'missing', * FROM (TABLE ticks EXCEPT ALL TABLE kept) x)`,
    ),
  );
  expect(Object.fromEntries(views.map((name, i) => [name, differences[i]])), JSON.stringify(context)).toEqual(
    Object.fromEntries(views.map((name) => [name, []])),
  );
}

const somePrice = fc.constantFrom("1", "2", "7.5", "5.00000000000000000001", "5.00000000000000000002", null);

const someStep = fc.record({
  what: fc.constantFrom(
    ...(["page", "page", "page", "correct", "late", "withdraw", "retract", "empty", "lost", "live"] as const),
    ...(["forward", "forward", "forward", "restart", "move", "leave", "upgrade"] as const),
  ),
  from: fc.integer({ min: 0, max: STEPS - 1 }),
  length: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: STEPS })),
  prices: fc.array(somePrice, { minLength: 1, maxLength: 5 }),
  index: fc.integer({ min: 0, max: 1 }),
});
type Step = typeof someStep extends fc.Arbitrary<infer Value> ? Value : never;

function apply(transaction: Transaction, { what, from, length, prices, index }: Step): void {
  const indexId = ["btc-id", "eth-id"][index] as string;
  const series = transaction.dictionary.getSeriesKey("GWA", indexId);
  const key = { stream: "index_ticks", series } as const;
  const until = Math.min(STEPS, from + length);
  const range = { from: at(from), to: at(until) };
  const tickAt = (ts: number, i: number) => {
    const price = prices[i % prices.length] ?? null;
    return tick(ts, price ?? "1", {
      indexId,
      ...(price === null && { price: null }),
      ...(i % 11 === 5 && { quality: "price out of range" }),
      ...(i % 7 === 3 && { volume: null }),
    });
  };
  const every = (step: number) =>
    Array.from({ length: Math.ceil((until - from) / step) }, (_, i) => tickAt(at(from + i * step), i));
  if (what === "page" || what === "withdraw") {
    const records = every(what === "page" ? 1 : 7);
    writeRecords(transaction, "index_ticks", records, "rest");
    const gone = findRowsBeside(transaction, key, range, records.map(({ ts }) => ts).reverse());
    withdrawRows(
      transaction,
      key,
      gone.map(({ ts }) => ts),
    );
    settle(transaction, key, range, "rows");
  } else if (what === "correct" || what === "late")
    writeRecords(transaction, "index_ticks", [tickAt(at(from) + (what === "late" ? 5 : 0), length)], "rest");
  else if (what === "live") writeRecords(transaction, "index_ticks", every(1).slice(0, 3), "live", HOUR);
  else if (what === "retract") retract(transaction, key, range);
  else if (what === "lost") settle(transaction, key, range, "lost", "aged out");
  else if (what === "empty") {
    retract(transaction, key, range);
    const sql = "SELECT count(*) FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ?";
    if (transaction.value<number>(sql, [series, range.from, range.to]) === 0)
      settle(transaction, key, range, "empty", "nothing older");
  }
}

it("I8: kept bars are those of the ticks, whatever was corrected, withdrawn, moved or upgraded", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(someStep, { minLength: 6, maxLength: 25 }), async (history) => {
      const database = await createDatabase();
      const warehouse = openTestWarehouse({ clock: systemClock });
      const options = shareOptions(server, database, warehouse);
      let share: OpenShare | undefined;
      let isOut = false;
      const end = async () => {
        await share?.close();
        share = undefined;
      };
      try {
        for (const step of [...history, { ...(history[0] as Step), what: "forward" as const }]) {
          const { what } = step;
          if (what === "restart") await end();
          else if (what === "forward") {
            share ??= await openShare(options);
            await share.forwarder.forward();
          } else if (what === "move") {
            await end();
            await shareInto(server, database, warehouse);
            const table = "SELECT FROM pg_class WHERE relname = 'index_tick_rows_2026_02'";
            if ((await server.query(database, table)).length === 0) continue;
            await shareInto(server, database, warehouse, isOut ? { moveIn: MONTH } : { moveOut: MONTH });
            isOut = !isOut;
          } else if (what === "leave") {
            const { held } = await findHeldDays(options, { before: at(STEPS) });
            for (const day of held)
              warehouse.transaction((t) => moveDay(t, day, describePlace(parseServerAddress(options.url))));
          } else if (what === "upgrade") {
            await end();
            await server.query(database, toVersion3);
            await shareInto(server, database, warehouse);
          } else warehouse.transaction((transaction) => apply(transaction, step));
          if (["forward", "move", "upgrade"].includes(what)) await expectBarsOfTicks(database, step);
        }
      } finally {
        await end();
      }
    }),
    { numRuns: 3, endOnFailure: true },
  );
});

/** Bars by their length in hours: kept and stale. */
async function countBars(database: string): Promise<Record<string, [number, number]>> {
  const rows = await server.query<{ hours: number; kept: number; stale: number }>(
    database,
    `SELECT (length / ${HOUR})::integer AS hours, count(n_ticks)::integer AS kept, (count(*) - count(n_ticks))::integer AS stale
      FROM mds.kept_bars GROUP BY 1 ORDER BY 1`,
  );
  return Object.fromEntries(rows.map(({ hours, kept, stale }) => [hours, [kept, stale]]));
}

it("keeps every bar that is over, marks the others, and keeps none without ticks", async () => {
  const database = await createDatabase();
  let now = START + MICROS_PER_DAY + 5 * HOUR;
  const clock = { ...systemClock, now: () => now / 1000 };
  const warehouse = openTestWarehouse({ clock });
  const page = (from: number, to: number) =>
    warehouse.transaction((t) =>
      apply(t, { what: "page", from, length: to - from, prices: ["1", "2"], index: 0 }),
    );
  const forward = () => shareInto(server, database, warehouse, { clock });
  // A day, and five hours and a third of the next one.
  page(0, 72 + 16);
  await forward();
  expect(await countBars(database)).toEqual({ 1: [29, 1], 4: [7, 1], 24: [1, 1] });
  await expectBarsOfTicks(database, "first load");
  page(72 + 16, 72 + 18);
  now += HOUR;
  await forward();
  expect(await countBars(database)).toEqual({ 1: [30, 0], 4: [7, 1], 24: [1, 1] });
  await expectBarsOfTicks(database, "an hour later");
  const key = { stream: "index_ticks", series: 1 } as const;
  warehouse.transaction((t) =>
    withdrawRows(
      t,
      key,
      Array.from({ length: 6 }, (_, i) => at(i)),
    ),
  );
  await forward();
  expect(await countBars(database)).toEqual({ 1: [28, 0], 4: [7, 1], 24: [1, 1] });
  await expectBarsOfTicks(database, "two hours withdrawn");
  await shareInto(server, database, warehouse, { clock, moveOut: MONTH });
  expect(await countBars(database)).toEqual({ 1: [6, 0], 4: [1, 1], 24: [0, 1] });
  await expectBarsOfTicks(database, "moved out");
  await shareInto(server, database, warehouse, { clock, moveIn: MONTH });
  expect(await countBars(database)).toEqual({ 1: [28, 0], 4: [7, 1], 24: [1, 1] });
  await expectBarsOfTicks(database, "moved in");
});
