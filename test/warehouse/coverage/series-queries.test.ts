import { describe, expect, it } from "vitest";
import { recordHeadPage } from "../../../src/warehouse/coverage/publication.ts";
import {
  indexKey,
  namedKeyText,
  readIndexLedgers,
  readLedgerKeys,
  readSeriesCoverage,
  readSeriesHeads,
} from "../../../src/warehouse/coverage/series-queries.ts";
import { declareTargets, type Target } from "../../../src/warehouse/coverage/targets.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

const rules = { settleDelay: 60, period: 30, step: 1, serviceWindow: 1000 };

/** BTC and ETH are selected, DOGE no longer is; a snapshot of market caps is stored. */
function openLedger() {
  const warehouse = openTestWarehouse();
  const keys = warehouse.transaction((transaction) => {
    const keyOf = (id: string) =>
      ({ stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", id) }) as const;
    const [btc, eth, doge] = [keyOf("btc"), keyOf("eth"), keyOf("doge")];
    const target = (key: typeof btc, from: number): Target => ({ key, from, ...rules });
    declareTargets(transaction, "index_ticks", [target(btc, 100), target(eth, 100), target(doge, 100)], 500);
    settle(transaction, doge, { from: 90, to: 600 }, "empty", "no records");
    declareTargets(transaction, "index_ticks", [target(btc, 100), target(eth, 100)], 500);
    settle(transaction, btc, { from: 50, to: 200 }, "empty", "no records");
    settle(transaction, btc, { from: 220, to: 300 }, "lost", "aged out");
    settle(transaction, btc, { from: 300, to: 400 }, "empty", "not found");
    settleSnapshot(transaction, { stream: "market_caps", exchangeId: null, at: 700, cadence: 30 });
    return { btc, eth, doge };
  });
  return { warehouse, ...keys };
}

describe("the heads", () => {
  it("begin where the newest settled range ends, or with the target", () => {
    const { warehouse, btc, eth } = openLedger();
    expect(readSeriesHeads(warehouse.connection, "index_ticks")).toEqual([
      { key: btc, indexType: "GWA", indexId: "btc", name: "btc", from: 400, isNew: false, isNotFound: true },
      { key: eth, indexType: "GWA", indexId: "eth", name: "eth", from: 100, isNew: true, isNotFound: false },
    ]);
    expect(readSeriesHeads(warehouse.connection, "index_ticks", eth.series)).toHaveLength(1);
    expect(readSeriesHeads(warehouse.connection, "ohlcv")).toEqual([]);
    warehouse.transaction((t) => settle(t, eth, { from: 0, to: 60 }, "empty", "no records"));
    expect(readSeriesHeads(warehouse.connection, "index_ticks", eth.series)).toMatchObject([
      { from: 100, isNew: false, isNotFound: false },
    ]);
  });

  it("know what REST has shown of their series", () => {
    const { warehouse, btc } = openLedger();
    const publication = { publishedTo: 390, askedAt: 450, askedTo: 400, quietMargin: 0 };
    warehouse.transaction((t) => recordHeadPage(t, btc, publication));
    expect(readSeriesHeads(warehouse.connection, "index_ticks").map((head) => head.publication)).toEqual([
      expect.objectContaining(publication),
      undefined,
    ]);
  });
});

describe("the coverage of all series", () => {
  it("has what is covered, without what is lost, also of a series that is not selected any more", () => {
    const { warehouse, btc, eth, doge } = openLedger();
    expect(readSeriesCoverage(warehouse.connection, "index_ticks")).toEqual([
      {
        key: btc,
        indexType: "GWA",
        indexId: "btc",
        name: "btc",
        serviceWindow: 1000,
        settleDelay: 60,
        covered: [
          { from: 50, to: 200 },
          { from: 300, to: 400 },
        ],
        beforeHistory: [],
      },
      expect.objectContaining({ key: eth, covered: [], beforeHistory: [] }),
      {
        key: doge,
        indexType: "GWA",
        indexId: "doge",
        name: "doge",
        serviceWindow: 1000,
        settleDelay: 60,
        covered: [{ from: 90, to: 600 }],
        beforeHistory: [],
      },
    ]);
    expect(readSeriesCoverage(warehouse.connection, "ohlcv")).toEqual([]);
  });

  it("tells what is empty because the service has nothing older", () => {
    const { warehouse, eth } = openLedger();
    warehouse.transaction((t) => {
      settle(t, eth, { from: 10, to: 20 }, "empty", "nothing older");
      settle(t, eth, { from: 20, to: 30 }, "empty", "no records");
    });
    const found = readSeriesCoverage(warehouse.connection, "index_ticks");
    expect(found.find(({ key }) => key.series === eth.series)).toMatchObject({
      covered: [
        { from: 10, to: 20 },
        { from: 20, to: 30 },
      ],
      beforeHistory: [{ from: 10, to: 20 }],
    });
  });
});

describe("the ledger by index", () => {
  it("has the settled ranges and the start of the target, each if there is one", () => {
    const { warehouse, btc, eth, doge } = openLedger();
    expect(readIndexLedgers(warehouse.connection, "index_ticks")).toEqual(
      new Map([
        [
          indexKey("GWA", "btc"),
          {
            series: btc.series,
            settled: [
              { from: 50, to: 200 },
              { from: 220, to: 300 },
              { from: 300, to: 400 },
            ],
            targetFrom: 100,
          },
        ],
        [indexKey("GWA", "eth"), { series: eth.series, settled: [], targetFrom: 100 }],
        [
          indexKey("GWA", "doge"),
          { series: doge.series, settled: [{ from: 90, to: 600 }], targetFrom: undefined },
        ],
      ]),
    );
    expect(readIndexLedgers(warehouse.connection, "ohlcv")).toEqual(new Map());
    expect(indexKey("GWA", "btc")).not.toBe(indexKey("MWA", "btc"));
  });
});

describe("the keys of the ledger", () => {
  it("have names, where their ledger begins and ends, and whether they are selected", () => {
    const { warehouse, btc, eth, doge } = openLedger();
    const series = { index_type: "GWA", isSnapshot: false, serviceWindow: 1000 };
    const snapshot = { index_type: null, index_id: null, name: null, isSnapshot: true, serviceWindow: null };
    expect(readLedgerKeys(warehouse.connection)).toEqual([
      { ...btc, ...series, index_id: "btc", name: "btc", firstTs: 50, endTs: null, isSelected: true },
      { ...doge, ...series, index_id: "doge", name: "doge", firstTs: 90, endTs: 600, isSelected: false },
      {
        ...eth,
        ...series,
        index_id: "eth",
        name: "eth",
        firstTs: expect.any(Number) as number,
        endTs: null,
        isSelected: true,
      },
      {
        stream: "market_caps",
        series: expect.any(Number) as number,
        ...snapshot,
        firstTs: 700,
        endTs: null,
        isSelected: true,
      },
    ]);
  });

  it("are distinct as text, whatever the service calls its indices", () => {
    const named = (index_type: string | null, index_id: string | null) =>
      namedKeyText({ stream: "index_ticks", index_type, index_id });
    const texts = [
      named("A", "B"),
      named("A", "C"),
      named("C", "B"),
      named("A", "BC"),
      named("AB", "C"),
      named("A B", ""),
      named('A","B', null),
      named(null, null),
      named("null", null),
    ];
    expect(new Set(texts).size).toBe(texts.length);
    expect(named("A", "B")).toBe(named("A", "B"));
    // The views show an empty name as null.
    expect(named(null, null)).toBe(named("", ""));
  });
});
