import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type MovePosition, moveLiveRows } from "../../../src/warehouse/rows/move-live-rows.ts";
import { readJournalPosition } from "../../../src/warehouse/tables/journal.ts";
import { newestRow } from "../../../src/warehouse/tables/row-parts.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../../support/warehouse/empty-warehouse.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { exchangeTick, parseTs } from "../../support/warehouse/records.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const T = parseTs("2026-03-01T11:00:00Z");
const MINUTE_MS = 60_000;
/** Of a part: the writer opens another one then. */
const PART_MS = 2 * MINUTE_MS;
const MARKETS = ["a", "b", "c"];

type Source = "rest" | "live";
const writePoll = (warehouse: WarehouseWriter, offset: number, markets = MARKETS, source: Source = "live") =>
  warehouse.transaction((t) => {
    const ticks = markets.map((marketId) => exchangeTick(T + offset, `${offset}`, { marketId }));
    return writeRecords(t, "exchange_ticks", ticks, source);
  });

const shownRows = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT * FROM exchange_ticks ORDER BY market_id, ts");

const countParts = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT count(*) AS parts FROM row_parts WHERE part > 0")[0]?.parts;

function moveAll(warehouse: WarehouseWriter, maxRows: number): number {
  let calls = 0;
  let from: MovePosition | undefined;
  do {
    from = warehouse.transaction((t) => moveLiveRows(t, from, maxRows));
    calls++;
  } while (from !== undefined);
  return calls;
}

/** Where a move of all parts but the open one begins. */
const toHistory = (warehouse: WarehouseWriter): MovePosition => {
  const last = Number(queryRows(warehouse, "SELECT max(part) - 1 AS last FROM row_parts")[0]?.last);
  return { first: 1, last, into: 0, stream: "exchange_ticks", key: 0 };
};

/** Polls that each open a part; after each `merged` of them the parts are merged. */
function openWithParts(parts: number, merged = Number.POSITIVE_INFINITY) {
  const clock = new ManualClock();
  const warehouse = openTestWarehouse({ clock, hasAllViews: true });
  for (let part = 0; part < parts; part++) {
    if (part % merged === 0) moveAll(warehouse, 100);
    writePoll(warehouse, part);
    clock.jump(PART_MS);
  }
  return { clock, warehouse };
}

describe("live rows", () => {
  it("stay where they are until there are many parts", () => {
    const { warehouse } = openWithParts(11);
    moveAll(warehouse, 100);
    expect(countParts(warehouse)).toBe(11);
  });

  it.each([
    { what: "merged", parts: 12, merged: 12, left: 1 },
    { what: "moved to the history", parts: 240, merged: 12, left: 0 },
  ])("are the same rows when they have been $what, for every reader and every earlier state", (each) => {
    const { warehouse } = openWithParts(each.parts, each.merged);
    // The last parts are merged first.
    if (each.left === 0) moveAll(warehouse, 100);
    const [before, position] = [shownRows(warehouse), readJournalPosition(warehouse.connection)];
    const commits = queryRows(warehouse, "SELECT * FROM commits");
    expect(before).toHaveLength(3 * each.parts);
    expect(moveAll(warehouse, 5)).toBeGreaterThan(2);
    expect(countParts(warehouse)).toBe(each.left);
    expect(queryRows(warehouse, "SELECT DISTINCT slot FROM exchange_tick_slots")).toEqual(
      queryRows(warehouse, "SELECT ? + listing AS slot FROM listings", each.left * 12 * 2 ** 24),
    );
    expect(shownRows(warehouse)).toEqual(before);
    expect(readJournalPosition(warehouse.connection)).toEqual(position);
    expect(queryRows(warehouse, "SELECT * FROM commits")).toEqual(commits);
    expect(queryRows(warehouse, "SELECT * FROM revisions")).toEqual([]);
  });

  it("are neighbours on disk, whatever their market", () => {
    const { warehouse } = openWithParts(2);
    const slots = queryRows(warehouse, "SELECT slot FROM exchange_tick_slots ORDER BY slot, ts");
    const listings = queryRows(warehouse, "SELECT listing FROM listings").map(({ listing }) =>
      Number(listing),
    );
    const inPart = (part: number) => listings.map((listing) => ({ slot: part * 2 ** 24 + listing }));
    expect(slots).toEqual([...inPart(1), ...inPart(2)]);
  });

  it("are each visible once, whatever is written, moved, rolled back or killed in between", () => {
    const poll = fc.record({ what: fc.constant("poll" as const), markets: fc.subarray(MARKETS) });
    const late = fc.record({
      ...{ what: fc.constant("late" as const), market: fc.constantFrom(...MARKETS) },
      ...{ back: fc.integer({ min: 0, max: 30 }), source: fc.constantFrom("rest" as const, "live" as const) },
    });
    const rows = fc.integer({ min: 1, max: 20 });
    const move = fc.record({ what: fc.constant("move" as const), rows, isToHistory: fc.boolean() });
    const others = fc.record({
      what: fc.constantFrom("restart" as const, "rollback" as const, "back" as const),
    });
    const step = fc.oneof(
      ...([
        { weight: 6, arbitrary: poll },
        { weight: 4, arbitrary: late },
      ] as const),
      ...([
        { weight: 3, arbitrary: move },
        { weight: 1, arbitrary: others },
      ] as const),
    );
    fc.assert(
      fc.property(fc.array(step, { minLength: 40, maxLength: 80 }), (steps) => {
        const clock = new ManualClock();
        const path = join(temporaryFolder(), "mds.sqlite");
        copyEmptyWarehouse(path, viewsBesideSync);
        let warehouse = openWriter(path, { clock });
        const model = new Map<string, string>();
        let position: MovePosition | undefined;
        let now = 0;
        const write = (offset: number, markets: readonly string[], source: "rest" | "live") => {
          writePoll(warehouse, offset, [...markets], source);
          for (const market of markets) model.set(`${market} ${T + offset}`, `${offset}`);
        };
        for (const each of steps) {
          clock.jump(PART_MS / 2);
          now += 10;
          if (each.what === "poll") write(now, each.markets, "live");
          else if (each.what === "late") write(Math.max(0, now - each.back), [each.market], each.source);
          else if (each.what === "move") {
            const from = position ?? (each.isToHistory ? toHistory(warehouse) : undefined);
            position = warehouse.transaction((t) => moveLiveRows(t, from, each.rows));
          } else if (each.what === "rollback") {
            const failing = () =>
              warehouse.transaction((t) => {
                writeRecords(
                  t,
                  "exchange_ticks",
                  [exchangeTick(T + now + 5, "9", { marketId: "a" })],
                  "live",
                );
                moveLiveRows(t, position);
                throw new Error("rolled back");
              });
            expect(failing).toThrow("rolled back");
          } else if (each.what === "back") clock.stepWallClock(-3_600_000);
          else {
            warehouse.close();
            position = undefined;
            warehouse = openWriter(path, { clock });
          }
          const rows = queryRows(
            warehouse,
            "SELECT l.market_id, r.ts FROM listings l CROSS JOIN exchange_tick_rows r WHERE r.listing = l.listing ORDER BY l.listing, r.part, r.ts",
          );
          const keys = rows.map(({ market_id, ts }) => `${String(market_id)} ${String(ts)}`);
          expect(keys.toSorted()).toEqual([...model.keys()].sort());
          for (const market of MARKETS) {
            const stored = rows.filter(({ market_id }) => market_id === market).map(({ ts }) => Number(ts));
            // In order of time without sorting.
            expect(stored).toEqual(stored.toSorted((a, b) => a - b));
            const sql = `SELECT ${newestRow("exchange_ticks", "l.listing", "true")} AS ts FROM listings l WHERE market_id = ?`;
            expect(queryRows(warehouse, sql, market)[0]?.ts).toBe(stored.at(-1));
          }
        }
        warehouse.close();
      }),
      { numRuns: 6 },
    );
  });
});
