import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  canContinue,
  Journal,
  readChanges,
  readJournalPosition,
  renameJournal,
} from "../../../src/warehouse/tables/journal.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
const everything = { after: 0, until: Number.MAX_SAFE_INTEGER };
const entriesOf = ({ connection }: WarehouseWriter, part: Partial<typeof everything> = {}) =>
  readChanges(connection, { ...everything, ...part });
const rangesOf = (warehouse: WarehouseWriter) =>
  entriesOf(warehouse).map(({ seq, from, to }) => [seq, from, to]);

function enter(warehouse: WarehouseWriter, ...ranges: readonly TimeRange[]): void {
  warehouse.transaction(({ journal }) => {
    for (const range of ranges) journal.add("index_ticks", "rows", 1, range);
  });
}

it("has an entry of each key and kind, with what lies close together as one range", () => {
  const warehouse = openTestWarehouse();
  expect(readJournalPosition(warehouse.connection)).toMatchObject({ seq: 0, firstSeq: 0 });
  warehouse.transaction(({ journal }) => {
    journal.add("index_ticks", "rows", 7, { from: 10, to: 20 });
    journal.add("ohlcv", "ledger", 8, { from: 30, to: 40 });
    journal.add("index_ticks", "rows", 7, { from: 5, to: 6 });
    journal.add("index_ticks", "rows", 7, { from: 20 + HOUR, to: 21 + HOUR });
    journal.add("index_ticks", "rows", 7, { from: 22 + 2 * HOUR, to: 23 + 2 * HOUR });
    journal.add("index_ticks", "ledger", 7, { from: 1, to: 1 });
  });
  const ticks = { stream: "index_ticks", kind: "rows", key: 7 };
  const changes = [
    { ...ticks, from: 5, to: 21 + HOUR },
    { ...ticks, from: 22 + 2 * HOUR, to: 23 + 2 * HOUR },
    { stream: "ohlcv", kind: "ledger", key: 8, from: 30, to: 40 },
  ];
  expect(entriesOf(warehouse)).toEqual(changes.map((change, i) => ({ seq: i + 1, ...change })));
  expect(readJournalPosition(warehouse.connection)).toMatchObject({ seq: 3, firstSeq: 0 });
  expect(readChanges(warehouse.connection, { after: 1, until: 3, limit: 1 })).toMatchObject([{ seq: 2 }]);
});

describe("neighbouring keys", () => {
  const SECOND = MICROS_PER_SECOND;
  const poll = (warehouse: WarehouseWriter, keys: readonly number[], at: (key: number) => number) =>
    warehouse.transaction(({ journal }) => {
      for (const key of keys)
        journal.add("exchange_ticks", "rows", key, { from: at(key), to: at(key) + SECOND });
    });
  const countEntries = (warehouse: WarehouseWriter) =>
    queryRows(warehouse, "SELECT count(*) AS entries FROM changes")[0]?.entries;

  it("whose rows are of nearly the same moment share an entry, which readers get as a change of each", () => {
    const warehouse = openTestWarehouse();
    poll(warehouse, [1, 2, 3, 5, 6, 7], (key) => (key === 7 ? 60 : key) * SECOND);
    expect(countEntries(warehouse)).toBe(3);
    const rows = { stream: "exchange_ticks", kind: "rows" };
    const run = { ...rows, from: SECOND, to: 4 * SECOND };
    expect(entriesOf(warehouse)).toEqual([
      { ...run, seq: 1, key: 1 },
      { ...run, seq: 1, key: 2 },
      { ...run, seq: 1, key: 3 },
      { ...rows, seq: 2, key: 5, from: 5 * SECOND, to: 7 * SECOND },
      { ...rows, seq: 2, key: 6, from: 5 * SECOND, to: 7 * SECOND },
      { ...rows, seq: 3, key: 7, from: 60 * SECOND, to: 61 * SECOND },
    ]);
    const keysOf = (after: number) =>
      readChanges(warehouse.connection, { ...everything, after, limit: 2 }).map(({ key }) => key);
    expect([keysOf(0), keysOf(1), keysOf(2)]).toEqual([[1, 2, 3], [5, 6], [7]]);
  });

  it("of polls of an hour are combined where they overlap, and no key is lost", () => {
    const warehouse = openTestWarehouse();
    const journal = new Journal(warehouse.connection, { recent: 8, combined: 8, all: 20, pruned: 4 });
    const polls = [[1, 2], [9], [2, 3], [4], [1], [6], [9, 10], [6, 7], [1]];
    for (const [i, keys] of polls.entries()) {
      for (const key of keys)
        journal.add("exchange_ticks", "rows", key, { from: i * SECOND, to: (i + 1) * SECOND });
      journal.write();
    }
    const keys = (after: number) => entriesOf(warehouse, { after }).map(({ seq, key }) => [seq, key]);
    expect(countEntries(warehouse)).toBe(4);
    expect(keys(0)).toEqual([
      ...[1, 2, 3, 4].map((key) => [5, key]),
      ...[9, 10].map((key) => [7, key]),
      ...[6, 7].map((key) => [8, key]),
      [9, 1],
    ]);
    expect(entriesOf(warehouse)[0]).toMatchObject({ from: 0, to: 5 * SECOND });
  });
});

it("has nothing of a transaction that failed", () => {
  const warehouse = openTestWarehouse();
  enter(warehouse, { from: 1, to: 2 });
  expect(() =>
    warehouse.transaction(({ journal }) => {
      journal.add("index_ticks", "rows", 1, { from: 50, to: 60 });
      throw new Error("failed");
    }),
  ).toThrow("failed");
  enter(warehouse, { from: 8, to: 9 });
  expect(rangesOf(warehouse)).toEqual([
    [1, 1, 2],
    [2, 8, 9],
  ]);
});

describe("a journal that is kept small", () => {
  /** Enters each range by itself. */
  function enterEach(warehouse: WarehouseWriter, ranges: readonly TimeRange[]): void {
    const limits = { recent: 8, combined: 6, all: 20, pruned: 4 };
    const journal = new Journal(warehouse.connection, limits);
    for (const range of ranges) {
      journal.add("index_ticks", "rows", 1, range);
      journal.write();
    }
  }
  const live = (ts: number) => ({ from: ts, to: ts + 1 });
  const apart = (count: number) => Array.from({ length: count }, (_, i) => live(i * HOUR));

  it("combines the live rows of an hour, and the pages of a day; the newest stay exact", () => {
    const warehouse = openTestWarehouse();
    enterEach(warehouse, [
      live(10),
      live(HOUR - 1),
      live(HOUR),
      { from: 12 * HOUR, to: MICROS_PER_DAY },
      { from: MICROS_PER_DAY, to: MICROS_PER_DAY + HOUR },
      { from: 2 * HOUR, to: 12 * HOUR },
      live(20),
      live(30),
      live(40),
    ]);
    expect(rangesOf(warehouse)).toEqual([
      [2, 10, HOUR],
      [3, HOUR, HOUR + 1],
      [5, MICROS_PER_DAY, MICROS_PER_DAY + HOUR],
      [6, 2 * HOUR, MICROS_PER_DAY],
      [7, 20, 21],
      [8, 30, 31],
      [9, 40, 41],
    ]);
    expect(readJournalPosition(warehouse.connection)).toMatchObject({ seq: 9, firstSeq: 0 });
  });

  it("loses the oldest if they cannot be combined, and says from where on it is whole", () => {
    const warehouse = openTestWarehouse();
    enterEach(warehouse, apart(21));
    const position = readJournalPosition(warehouse.connection);
    expect(position).toMatchObject({ seq: 21, firstSeq: 5 });
    expect(rangesOf(warehouse)[0]?.[0]).toBe(6);
    const at = (seq: number, id = position.id) => canContinue(position, { id, seq });
    expect([at(4), at(5), at(21), at(22), at(6, -1)]).toEqual([false, true, true, false, false]);
    warehouse.connection.database.exec("DELETE FROM changes");
    expect(readJournalPosition(warehouse.connection)).toMatchObject({ seq: 5, firstSeq: 5 });
    enter(warehouse, live(1));
    expect(rangesOf(warehouse)).toEqual([[6, 1, 2]]);
  });
});

it("has another name in a copy, so that a reader compares everything", () => {
  const { connection } = openTestWarehouse();
  const { id } = readJournalPosition(connection);
  renameJournal(connection);
  const renamed = readJournalPosition(connection).id;
  expect(renamed).not.toBe(id);
  expect(Number.isSafeInteger(renamed) && renamed >= 0).toBe(true);
});
