import { describe, expect, it } from "vitest";
import { camelCase, decimal, inStoredOrder, stored } from "../../src/model/column.ts";
import { propertyOf } from "../../src/model/records.ts";
import {
  cadenceOf,
  DEFAULT_CADENCE,
  hasHistory,
  historyStreams,
  INTRADAY_BEGINS,
  INTRADAY_WINDOW,
  isDaily,
  keyColumns,
  rowStreams,
  streamDefinition,
  streamOfEndpoint,
  streams,
  streamTable,
} from "../../src/model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_SECOND } from "../../src/model/time.ts";
import { emptyRecord } from "../support/empty-record.ts";

describe("the streams", () => {
  it("are history streams, snapshot streams and lookups", () => {
    expect(historyStreams).toEqual(["ohlcv", "index_ticks"]);
    expect(rowStreams).toEqual(["ohlcv", "index_ticks", "exchange_ticks", "market_caps", "derivative_ticks"]);
    expect(streams.filter((stream) => !rowStreams.some((row) => row === stream))).toEqual([
      "assets",
      "markets",
      "exchanges",
      "derivative_contracts",
    ]);
    expect(streams.filter(hasHistory)).toEqual(historyStreams);
  });

  it("are found by their endpoint", () => {
    for (const stream of streams) {
      expect(streamOfEndpoint(streamTable[stream].endpoint)).toBe(stream);
      expect(streamDefinition(stream)).toBe(streamTable[stream]);
    }
    expect(streamOfEndpoint("/status")).toBeUndefined();
  });

  it("have the limits that the service documents", () => {
    expect(INTRADAY_WINDOW).toBe(200 * MICROS_PER_DAY);
    expect(DEFAULT_CADENCE).toBe(30 * MICROS_PER_SECOND);
    expect(formatTimestamp(INTRADAY_BEGINS)).toBe("2019-06-01T00:00:00.000000Z");
  });

  it("have a cadence: a day for bars, the refresh period for ticks", () => {
    expect(cadenceOf("ohlcv", 30)).toBe(MICROS_PER_DAY);
    expect(cadenceOf("index_ticks", 2)).toBe(2 * MICROS_PER_SECOND);
    expect(streams.filter(isDaily)).toEqual(["ohlcv"]);
  });

  it("refer to dictionaries by these columns", () => {
    expect(keyColumns).toEqual({ series: "series", listings: "listing", contracts: "contract" });
  });
});

describe("a column", () => {
  it("is stored after the column that it names, else in the order of the list", () => {
    const [a, b, c, d] = [
      decimal("a", "a"),
      decimal("b", "b"),
      decimal("c", "c", "rate", { storedAfter: "a" }),
      decimal("d", "d", "rate", { storedAfter: "a" }),
    ];
    expect(inStoredOrder([a, b, c, d])).toEqual([a, c, d, b]);
    expect(inStoredOrder([b, a])).toEqual([b, a]);
  });

  it.each([
    ["price", "price"],
    ["funding_rate", "fundingRate"],
    ["change_24h_usd", "change24hUsd"],
    ["a_b_c", "aBC"],
  ])("%s is called %s in records", (name, property) => {
    expect(camelCase(name)).toBe(property);
  });
});

describe("a record", () => {
  it("has its timestamp in `ts`, whatever the column is called", () => {
    expect(propertyOf(stored("day", "text", "time"))).toBe("ts");
    expect(propertyOf(stored("first_seen", "text"))).toBe("firstSeen");
  });

  it("has a property for each column that records contain", () => {
    expect(emptyRecord("ohlcv")).toEqual({
      indexType: null,
      indexId: null,
      ts: null,
      open: null,
      high: null,
      low: null,
      close: null,
      volume: null,
      vwap: null,
      twap: null,
      volumeUsd: null,
      recordId: null,
      quality: null,
      extra: null,
    });
    expect(Object.keys(emptyRecord("index_ticks"))).not.toContain("time");
  });
});
