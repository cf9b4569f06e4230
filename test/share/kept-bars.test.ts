import fc from "fast-check";
import { expect, it, onTestFinished } from "vitest";
import { barWidths, MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type OpenShare, openShare } from "../../src/share/share-once.ts";
import { retract, settle } from "../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { findRowsBeside, withdrawRows } from "../../src/warehouse/rows/withdraw-rows.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { usePostgres } from "../support/postgres.ts";
import { shareInto, shareOptions } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../support/warehouse/records.ts";

const server = usePostgres();
const HOUR = barWidths["1h"];
const STEP = HOUR / 3;
/** The last day of a month and the first of the next, so that ranges cross partitions. */
const START = parseTs("2026-02-28T00:00:00Z");
const STEPS = (2 * MICROS_PER_DAY) / STEP;
const at = (step: number) => START + step * STEP;
const lengths = ["1h", "4h", "1d"] as const;

const february = "PARTITION mds.index_tick_rows_2026_02";
const DETACH = `ALTER TABLE mds.index_tick_rows DETACH ${february}`;
const ATTACH = `ALTER TABLE mds.index_tick_rows ATTACH ${february} FOR VALUES
  FROM (${parseTs("2026-02-01T00:00:00Z")}) TO (${parseTs("2026-03-01T00:00:00Z")})`;

interface SharedTick {
  readonly id: string;
  readonly ts: string;
  readonly price: number;
  readonly price_exact: string;
  readonly volume: number | null;
  readonly volume_exact: string | null;
}

/** A bar by its definition. Of equal prices the first counts: they may differ in their exact digits. */
function toBar(ticks: readonly SharedTick[], length: number) {
  const best = (isBetter: (a: number, b: number) => boolean) =>
    ticks.reduce((found, each) => (isBetter(each.price, found.price) ? each : found));
  const [first, last] = [ticks[0], ticks.at(-1)] as [SharedTick, SharedTick];
  const [highest, lowest] = [best((a, b) => a > b), best((a, b) => a < b)];
  return {
    id: first.id,
    ts: String(Math.floor(Number(first.ts) / length) * length),
    prices: [first, highest, lowest, last].flatMap((each) => [each.price, each.price_exact]),
    volume: last.volume,
    volume_exact: last.volume_exact,
    n_ticks: String(ticks.length),
  };
}

/** Compares the figures of all bars of some series with what their ticks make. */
async function expectFiguresOfTicks(
  database: string,
  context: unknown,
  ids: readonly string[] = ["btc-id", "eth-id"],
): Promise<void> {
  const ofSeries = `index_id IN (${ids.map((id) => `'${id}'`)}) ORDER BY index_id, ts`;
  const prices = ["open", "high", "low", "close"].map(
    (name) => `to_json(${name}), to_json(${name}_exact::text)`,
  );
  const [ticks = [], ...bars] = await server.queryAll(database, [
    `SELECT index_id AS id, ts, price, price_exact, volume, volume_exact FROM mds.index_ticks WHERE price IS NOT NULL AND ${ofSeries}`,
    ...lengths.map(
      (name) => `SELECT index_id AS id, ts, json_build_array(${prices}) AS prices, volume_24h AS volume,
        volume_24h_exact AS volume_exact, n_ticks FROM mds.bars_${name} WHERE ${ofSeries}`,
    ),
  ]);
  const expected = lengths.map((name) => {
    const startOf = ({ id, ts }: SharedTick) => `${id} ${Math.floor(Number(ts) / barWidths[name])}`;
    return [...Map.groupBy(ticks as SharedTick[], startOf).values()].map((each) =>
      toBar(each, barWidths[name]),
    );
  });
  expect(bars, JSON.stringify(context)).toEqual(expected);
}

const somePrice = fc.constantFrom("1", "2", "7.5", "5.00000000000000000001", "5.00000000000000000002", null);
const someVolume = fc.constantFrom("3", "4", "0.30000000000000000004", null);
/** A step at a border of a bar, the last one, after which there are no rows, or anywhere. A day's border is one of every bar. */
const somePlace = fc.oneof(
  fc.constantFrom(
    ...[0, 12, 24, 69, 72, 75, 84, STEPS].flatMap((border) => [border - 1, border, border + 1]),
  ),
  fc.constant(STEPS - 1),
  fc.integer({ min: 0, max: STEPS - 1 }),
);

const someChange = fc.record({
  what: fc.constantFrom(
    ...(["page", "page", "correct", "late", "late", "withdraw", "withdraw"] as const),
    ...(["retract", "empty", "lost", "live"] as const),
  ),
  from: somePlace.map((place) => Math.max(0, Math.min(STEPS - 1, place))),
  length: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 30 }), fc.constant(STEPS)),
  prices: fc.array(somePrice, { minLength: 1, maxLength: 5 }),
  volumes: fc.array(someVolume, { minLength: 1, maxLength: 3 }),
  index: fc.integer({ min: 0, max: 1 }),
});
type SomeChange = typeof someChange extends fc.Arbitrary<infer Value> ? Value : never;

const someRound = fc.record({
  changes: fc.array(someChange, { minLength: 1, maxLength: 3 }),
  kind: fc.constantFrom(
    ...(["forward", "forward", "forward", "forward", "forward", "restart", "restart", "detach"] as const),
  ),
});

function apply(
  transaction: Transaction,
  { what, from, length, prices, volumes, index }: SomeChange,
  ids = ["btc-id", "eth-id"],
): void {
  const indexId = ids[index] as string;
  const series = transaction.dictionary.getSeriesKey("GWA", indexId);
  const key = { stream: "index_ticks", series } as const;
  const until = Math.min(STEPS, from + length);
  const range = { from: at(from), to: at(until) };
  const tickAt = (ts: number, i: number) => {
    const [price = null, volume = null] = [prices[i % prices.length], volumes[i % volumes.length]];
    return tick(ts, price ?? "1", {
      indexId,
      ...(price === null && { price: null }),
      ...(i % 11 === 5 && { quality: "price out of range" }),
      volume: volume === null ? null : decimal(volume),
    });
  };
  const every = (step: number) =>
    Array.from({ length: Math.ceil((until - from) / step) }, (_, i) => tickAt(at(from + i * step), i));
  if (what === "page" || what === "withdraw") {
    // What is withdrawn leaves some bars with ticks, and others without.
    const records = what === "page" ? every(1) : every(7).slice(1);
    writeRecords(transaction, "index_ticks", records, "rest");
    const gone = findRowsBeside(transaction, key, range, records.map(({ ts }) => ts).reverse());
    withdrawRows(
      transaction,
      key,
      gone.map(({ ts }) => ts),
    );
    transaction.markWritten("index_ticks", series);
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

it("I8: kept bars are those of the ticks, whatever was corrected, withdrawn or detached", async () => {
  // Each run has two series of its own: a database is dearer than all of its steps.
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse({ clock: systemClock });
  const options = shareOptions(server, database, warehouse);
  let share: OpenShare | undefined;
  const end = async () => {
    await share?.close();
    share = undefined;
  };
  onTestFinished(end);
  const forward = async () => {
    share ??= await openShare(options);
    await share.forwarder.forward();
  };
  const changeMonth = async (sql: string) => {
    await end();
    await server.query(database, sql);
    // A month that was attached is compared.
    await shareInto(server, database, warehouse);
  };
  const changeAll = (changes: readonly SomeChange[], ids: string[]) =>
    warehouse.transaction((transaction) => {
      for (const change of changes) apply(transaction, change, ids);
    });
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(someRound, { minLength: 3, maxLength: 5 }),
      fc.array(someChange, { minLength: 2, maxLength: 2 }),
      async (rounds, first) => {
        const ids = ["btc", "eth"].map((id) => `${id}-${runs}`);
        runs++;
        changeAll(
          first.map((change, index) => ({ ...change, what: "page", from: 0, length: STEPS, index })),
          ids,
        );
        await forward();
        for (const { changes, kind } of rounds) {
          changeAll(changes, ids);
          if (kind === "restart") await end();
          if (kind === "detach") {
            await changeMonth(DETACH);
            await expectFiguresOfTicks(database, { kind, changes }, ids);
            changeAll(changes.toReversed(), ids);
            await changeMonth(ATTACH);
          } else await forward();
          await expectFiguresOfTicks(database, { kind, changes }, ids);
        }
      },
    ),
    { numRuns: 6, endOnFailure: true },
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
  const database = await server.createDatabase();
  let now = START + MICROS_PER_DAY + 5 * HOUR;
  const clock = { ...systemClock, now: () => now / 1000 };
  const warehouse = openTestWarehouse({ clock });
  const page = (from: number, to: number) =>
    warehouse.transaction((t) =>
      apply(t, { what: "page", from, length: to - from, prices: ["1", "2"], volumes: ["3"], index: 0 }),
    );
  const forward = () => shareInto(server, database, warehouse, { clock });
  // A day, and five hours and a third of the next one.
  page(0, 72 + 16);
  await forward();
  expect(await countBars(database)).toEqual({ 1: [29, 1], 4: [7, 1], 24: [1, 1] });
  await expectFiguresOfTicks(database, "first load");
  page(72 + 16, 72 + 18);
  now += HOUR;
  await forward();
  expect(await countBars(database)).toEqual({ 1: [30, 0], 4: [7, 1], 24: [1, 1] });
  await expectFiguresOfTicks(database, "an hour later");
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
  await expectFiguresOfTicks(database, "two hours withdrawn");
  await server.query(database, DETACH);
  await forward();
  expect(await countBars(database)).toEqual({ 1: [6, 0], 4: [1, 1], 24: [0, 1] });
  await expectFiguresOfTicks(database, "detached");
  await server.query(database, ATTACH);
  await forward();
  expect(await countBars(database)).toEqual({ 1: [28, 0], 4: [7, 1], 24: [1, 1] });
  await expectFiguresOfTicks(database, "attached");
});

it("keeps bars of all ticks where two daemons have different ones and neither has proof", async () => {
  const database = await server.createDatabase();
  const forward = (name: string, step: 1 | 2) => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    const change: Pick<SomeChange, "prices" | "volumes" | "index"> = {
      prices: [`${step}`],
      volumes: ["3"],
      index: 0,
    };
    warehouse.transaction((t) => {
      apply(t, { ...change, what: "live", from: step, length: 1 });
      // Rows of a lost range are added to those that are there.
      if (name === "two") apply(t, { ...change, what: "lost", from: 0, length: 72 });
    });
    return shareInto(server, database, warehouse, { role: "pair", name });
  };
  await forward("one", 2);
  await forward("two", 1);
  expect(await server.query(database, "SELECT open, close FROM mds.bars_1d")).toEqual([
    { open: 1, close: 2 },
  ]);
  await expectFiguresOfTicks(database, "of both");
});
