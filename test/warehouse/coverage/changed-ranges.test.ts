import { describe, expect, it } from "vitest";
import type { RowStream } from "../../../src/model/streams.ts";
import {
  ChangedRows,
  hasChangedSince,
  readChangePosition,
  readChanges,
  recordLedgerChange,
  recordRowChange,
  renameChanges,
} from "../../../src/warehouse/coverage/changed-ranges.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const everything = { after: 0, until: Number.MAX_SAFE_INTEGER, limit: 1000 };
const changesOf = ({ connection }: WarehouseWriter, part: Partial<typeof everything> = {}) =>
  readChanges(connection, { ...everything, ...part });
const seqsOf = (...args: Parameters<typeof changesOf>) => changesOf(...args).map(({ seq }) => seq);

/** Sets the number of the last change. */
const setLastSeq = ({ connection }: WarehouseWriter, seq: number) =>
  connection.database.exec(`UPDATE sqlite_sequence SET seq = ${seq} WHERE name = 'changed_ranges'`);

describe("the recorded changes", () => {
  it("say what changed, in order; a range that changes again is the newest", () => {
    const warehouse = openTestWarehouse();
    expect(readChangePosition(warehouse.connection)).toMatchObject({ seq: 0, firstSeq: 0 });
    warehouse.transaction((t) => {
      recordRowChange(t, "index_ticks", 7, { from: 10, to: 20 });
      recordLedgerChange(t, "ohlcv", 8, { from: 30, to: 40 });
      recordRowChange(t, "index_ticks", 7, { from: 10, to: 20 });
    });
    const rows = { stream: "index_ticks", isLedger: 0, key: 7, from: 10, to: 20 };
    const ledger = { stream: "ohlcv", isLedger: 1, key: 8, from: 30, to: 40 };
    expect(changesOf(warehouse)).toEqual([
      { seq: 2, ...ledger },
      { seq: 3, ...rows },
    ]);
    expect(readChangePosition(warehouse.connection)).toMatchObject({ seq: 3, firstSeq: 0 });
  });

  it("are read in portions", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => {
      for (const from of [50, 40, 30, 20]) recordRowChange(t, "index_ticks", 1, { from, to: from + 5 });
    });
    expect(seqsOf(warehouse)).toEqual([1, 2, 3, 4]);
    expect(seqsOf(warehouse, { after: 1, until: 3 })).toEqual([2, 3]);
    expect(seqsOf(warehouse, { after: 1, limit: 1 })).toEqual([2]);
  });

  it("are deleted now and then if half a million newer ones follow, and a reader knows from where on they are whole", () => {
    const warehouse = openTestWarehouse();
    let from = 0;
    const recordAt = (seq: number) => {
      if (from > 0) setLastSeq(warehouse, seq - 1);
      warehouse.transaction((t) => recordRowChange(t, "index_ticks", 1, { from: ++from, to: 100 }));
    };
    for (const seq of [1, 10_000, 10_001, 509_999]) recordAt(seq);
    expect(seqsOf(warehouse)).toEqual([1, 10_000, 10_001, 509_999]);
    recordAt(510_000);
    expect(seqsOf(warehouse)).toEqual([10_001, 509_999, 510_000]);
    expect(readChangePosition(warehouse.connection)).toMatchObject({ seq: 510_000, firstSeq: 10_000 });
  });

  it("have another name in a copy, so that a reader compares everything", () => {
    const warehouse = openTestWarehouse();
    const { id } = readChangePosition(warehouse.connection);
    expect(readChangePosition(warehouse.connection).id).toBe(id);
    renameChanges(warehouse.connection);
    const renamed = readChangePosition(warehouse.connection).id;
    expect(renamed).not.toBe(id);
    expect(Number.isSafeInteger(renamed) && renamed >= 0).toBe(true);
  });

  it("of a range are found by its key and the parts that it shares with it", () => {
    const warehouse = openTestWarehouse();
    const key = { stream: "index_ticks", series: 1 } as const;
    warehouse.transaction((t) => {
      recordRowChange(t, "index_ticks", 1, { from: 10, to: 20 });
      recordLedgerChange(t, "index_ticks", 2, { from: 10, to: 20 });
      const has = (
        from: number,
        to: number,
        seq = 0,
        other: Partial<{ stream: RowStream; series: number }> = {},
      ) => hasChangedSince(t, { ...key, ...other }, { from, to }, seq);
      expect([has(0, 10), has(0, 11), has(19, 30), has(20, 30)]).toEqual([false, true, true, false]);
      expect([has(0, 30, 1), has(0, 30, 1, { series: 2 })]).toEqual([false, true]);
      expect([has(0, 30, 0, { series: 3 }), has(0, 30, 0, { stream: "ohlcv" })]).toEqual([false, false]);
    });
  });
});

describe("the rows that a write has changed", () => {
  type Write = (rows: ChangedRows) => void;
  const writes: readonly [title: string, write: Write, recorded: number[][], stream?: RowStream][] = [
    ["nothing was written", () => {}, []],
    ["below everything settled", (rows) => rows.insert(99), []],
    ["where a settled range begins", (rows) => rows.insert(100), [[100, 101]]],
    ["where a settled range ends", (rows) => rows.insert(199), [[199, 200]]],
    ["between settled ranges", (rows) => rows.insert(200, 299), []],
    ["up to a settled range", (rows) => rows.insert(200, 300), [[200, 301]]],
    ["above everything settled", (rows) => rows.insert(400), []],
    ["a row between settled ranges was replaced", (rows) => rows.replace(250), [[250, 251]]],
    [
      "a snapshot stream, whose ledger has other keys",
      (rows) => rows.insert(250),
      [[250, 251]],
      "market_caps",
    ],
    [
      "in any order",
      (rows) => {
        rows.insert(150, 160);
        rows.insert(120, 130);
        rows.insert(155, 158);
        rows.insert(161);
      },
      [[120, 162]],
    ],
    [
      "a replaced row was forgotten before",
      (rows) => {
        rows.replace(150);
        rows.clear();
        rows.insert(250);
      },
      [],
    ],
  ];

  it("are recorded where rows were replaced, or inserted into a settled range", () => {
    const warehouse = openTestWarehouse();
    for (const [series, [title, write, recorded, stream = "index_ticks"]] of writes.entries()) {
      const { seq } = readChangePosition(warehouse.connection);
      warehouse.transaction((t) => {
        for (const from of [100, 300])
          settle(t, { stream: "index_ticks", series }, { from, to: from + 100 }, "empty");
        const rows = new ChangedRows();
        write(rows);
        rows.record(t, stream, series);
      });
      const changes = changesOf(warehouse, { after: seq }).map(({ from, to, isLedger, key }) => {
        expect([isLedger, key], title).toEqual([0, series]);
        return [from, to];
      });
      expect(changes, title).toEqual(recorded);
    }
  });

  it("of one write are not mixed with those of the next", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => {
      const rows = new ChangedRows();
      rows.replace(10);
      for (const key of [1, 2]) rows.record(t, "index_ticks", key);
      rows.insert(30);
      rows.record(t, "index_ticks", 3);
      rows.replace(20);
      rows.record(t, "index_ticks", 4);
    });
    expect(changesOf(warehouse).map(({ key, from, to }) => [key, from, to])).toEqual([
      [1, 10, 11],
      [4, 20, 21],
    ]);
  });
});
