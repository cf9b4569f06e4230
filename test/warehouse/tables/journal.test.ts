import { expect, it } from "vitest";
import type { RowStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  canContinue,
  hasChangedSince,
  readChanges,
  readJournalPosition,
  renameJournal,
} from "../../../src/warehouse/tables/journal.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

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
  expect(warehouse.takeChanges()).toEqual(changes);
  expect(warehouse.takeChanges()).toEqual([]);
  expect(readJournalPosition(warehouse.connection)).toMatchObject({ seq: 3, firstSeq: 0 });
  expect(readChanges(warehouse.connection, { after: 1, until: 3, limit: 1 })).toMatchObject([{ seq: 2 }]);
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
  expect(warehouse.takeChanges().map(({ from }) => from)).toEqual([1, 8]);
});

const replaced: readonly [string, TimeRange, TimeRange, number[][]][] = [
  [
    "live rows of an hour have one entry, the newest",
    { from: 10, to: 11 },
    { from: 40, to: 41 },
    [[2, 10, 41]],
  ],
  [
    "live rows of the next hour have another",
    { from: HOUR - 1, to: HOUR },
    { from: HOUR, to: HOUR + 1 },
    [
      [1, HOUR - 1, HOUR],
      [2, HOUR, HOUR + 1],
    ],
  ],
  [
    "pages of a day have one entry",
    { from: 12 * HOUR, to: MICROS_PER_DAY },
    { from: 0, to: 12 * HOUR },
    [[2, 0, MICROS_PER_DAY]],
  ],
  [
    "the page before midnight has another",
    { from: MICROS_PER_DAY, to: MICROS_PER_DAY + HOUR },
    { from: MICROS_PER_DAY - HOUR, to: MICROS_PER_DAY },
    [
      [1, MICROS_PER_DAY, MICROS_PER_DAY + HOUR],
      [2, MICROS_PER_DAY - HOUR, MICROS_PER_DAY],
    ],
  ],
];

it.each(replaced)("%s", (_, first, second, entries) => {
  const warehouse = openTestWarehouse();
  enter(warehouse, first);
  enter(warehouse, second);
  expect(rangesOf(warehouse)).toEqual(entries);
  // The threads of the writer's process are told what has just changed, not the whole entry.
  expect(warehouse.takeChanges()).toMatchObject([first, second]);
});

it("loses its oldest entries beyond half a million, and says from where on it is whole", () => {
  const warehouse = openTestWarehouse();
  const { connection } = warehouse;
  connection.database.exec(`INSERT INTO changes WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 500000)
    SELECT seq, 'index_ticks', 'rows', 1, seq, seq + 1 FROM n`);
  enter(warehouse, { from: 10 * MICROS_PER_DAY, to: 10 * MICROS_PER_DAY + 1 });
  const position = readJournalPosition(connection);
  expect(position).toMatchObject({ seq: 500_001, firstSeq: 50_001 });
  expect(entriesOf(warehouse, { until: 50_002 })).toMatchObject([{ seq: 50_002 }]);
  const at = (seq: number, id = position.id) => canContinue(position, { id, seq });
  expect([at(50_000), at(50_001), at(500_001), at(500_002), at(60_000, -1)]).toEqual([
    false,
    true,
    true,
    false,
    false,
  ]);
  connection.database.exec("DELETE FROM changes");
  expect(readJournalPosition(connection)).toMatchObject({ seq: 50_001, firstSeq: 50_001 });
});

it("has another name in a copy, so that a reader compares everything", () => {
  const { connection } = openTestWarehouse();
  const { id } = readJournalPosition(connection);
  expect(readJournalPosition(connection).id).toBe(id);
  renameJournal(connection);
  const renamed = readJournalPosition(connection).id;
  expect(renamed).not.toBe(id);
  expect(Number.isSafeInteger(renamed) && renamed >= 0).toBe(true);
});

it("tells whether a range has changed since an entry", () => {
  const warehouse = openTestWarehouse();
  warehouse.transaction(({ journal }) => {
    journal.add("index_ticks", "rows", 1, { from: 10, to: 20 });
    journal.add("index_ticks", "ledger", 2, { from: 10, to: 20 });
  });
  const key = { stream: "index_ticks", series: 1 } as const;
  const has = (
    from: number,
    to: number,
    seq = 0,
    other: Partial<{ stream: RowStream; series: number }> = {},
  ) => hasChangedSince(warehouse.connection, { ...key, ...other }, { from, to }, seq);
  expect([has(0, 10), has(0, 11), has(19, 30), has(20, 30)]).toEqual([false, true, true, false]);
  expect([has(0, 30, 1), has(0, 30, 1, { series: 2 })]).toEqual([false, true]);
  expect([has(0, 30, 0, { series: 3 }), has(0, 30, 0, { stream: "ohlcv" })]).toEqual([false, false]);
});
