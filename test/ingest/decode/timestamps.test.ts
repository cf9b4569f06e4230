import { describe, expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { formatTimestamp, parseTimestamp } from "../../../src/model/time.ts";

const tick = (timestamp: string) => {
  const record = `{"indexId":"btc","indexType":"GWA","price":"1","timestamp":${timestamp}}`;
  return decodePage("index_ticks", `{"content":[${record}]}`);
};

describe("D6: timestamps", () => {
  it.each([
    ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000000Z"],
    ["2026-03-01T12:00:00.123456Z", "2026-03-01T12:00:00.123456Z"],
    ["2026-03-01T12:00:00.123456999Z", "2026-03-01T12:00:00.123456Z"],
    ["2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z"],
    ["2026-02-28T24:00:00Z", "2026-03-01T00:00:00.000000Z"],
  ])("%s is parsed to the microsecond", (text, expected) => {
    const { records } = tick(`"${text}"`);
    expect(formatTimestamp(records[0]?.ts ?? 0)).toBe(expected);
    expect(records[0]?.quality).toBeNull();
  });

  it.each([
    '"2026-03-01T12:00:00"',
    '"2026-03-01T12:00:00+02:00"',
    '"2026-03-01T12:00:00-00:30"',
    "1772366400",
    "1772366400000000",
    '"1772366400"',
    '""',
    "{}",
    '"2026-02-29T00:00:00Z"',
  ])("%s is rejected as ambiguous", (json) => {
    const { records, rejects } = tick(json);
    expect(records).toEqual([]);
    expect(rejects[0]?.reason).toBe("timestamp is not a UTC moment");
    expect(rejects[0]?.raw).toContain(`"timestamp":${json}`);
  });

  it.each([
    '"2026-03-01T12:00:00+00:00"',
    '"2026-03-01T12:00:00.000-00:00"',
    '"2026-03-01T12:00:00+0000"',
    "1772366400000",
    '"1772366400000"',
  ])("H12: %s is read as UTC", (json) => {
    const { records, rejects } = tick(json);
    expect(rejects).toEqual([]);
    expect(records[0]).toMatchObject({ ts: parseTimestamp("2026-03-01T12:00:00Z"), quality: null });
  });

  it.each(["2099-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])("%s is stored with a quality flag", (text) => {
    const [record] = tick(`"${text}"`).records;
    expect(record?.ts).toBe(parseTimestamp(text));
    expect(record?.quality).toBe(`timestamp is implausible: ${text.replace("Z", ".000000Z")}`);
  });

  it("of lastMoved that are unreadable set a quality flag", () => {
    const fields = '"last":"1","timestamp":"2026-03-01T12:00:00Z","lastMoved":1772366400';
    const content = `{"content":[{"exchangeId":"e","marketId":"m",${fields}}]}`;
    const [record] = decodePage("exchange_ticks", content).records;
    expect(record).toMatchObject({ lastMoved: null, quality: "lastMoved is not a UTC moment: 1772366400" });
  });
});

it.each(["2026-03-29T02:30:00Z", "2026-10-25T02:30:00Z", "2024-02-29T23:59:59Z", "2025-12-31T23:59:59Z"])(
  "D7: %s, a day with a clock change, is parsed like any other",
  (text) => {
    expect(tick(`"${text}"`).records[0]).toMatchObject({ ts: Date.parse(text) * 1000, quality: null });
  },
);

describe("D8: daily bars", () => {
  const figures = { open: "2", high: "3", low: "1", close: "2", volume: "9" };
  const bar = (fields: Record<string, unknown>) => {
    const content = [{ indexId: "btc", indexType: "GWA", ...figures, ...fields }];
    return decodePage("ohlcv", JSON.stringify({ content }));
  };
  const day = "2026-03-01T00:00:00Z";
  const [two, ten, nextWeek] = ["2026-03-01T02:00:00Z", "2026-03-01T22:00:00Z", "2026-03-08T00:00:00Z"];

  it.each([
    ["its start", { startTimestamp: day, endTimestamp: "2026-03-01T23:59:59.999Z" }],
    ["its start and the next midnight", { startTimestamp: day, endTimestamp: "2026-03-02T00:00:00Z" }],
    ["its timestamp", { timestamp: day }],
    ["the last millisecond", { endTimestamp: "2026-03-01T23:59:59.999Z" }],
    ["the last microsecond", { endTimestamp: "2026-03-01T23:59:59.999999Z" }],
    ["the last second", { endTimestamp: "2026-03-01T23:59:59Z" }],
    ["the next midnight", { endTimestamp: "2026-03-02T00:00:00Z" }],
    ["its start while the day is not over", { startTimestamp: day, endTimestamp: "2026-03-01T14:00:00Z" }],
  ])("belong to the day given by %s", (_, fields) => {
    expect(bar(fields).records[0]).toMatchObject({ ts: parseTimestamp(day), quality: null });
  });

  it("fall back to the next readable timestamp, with a quality flag", () => {
    expect(bar({ startTimestamp: "yesterday", timestamp: day }).records[0]).toMatchObject({
      ts: parseTimestamp(day),
      quality: 'startTimestamp is not a UTC moment: "yesterday"',
    });
    expect(bar({ startTimestamp: "2026-03-01T00:00:00" }).rejects[0]?.reason).toBe(
      "startTimestamp is not a UTC moment",
    );
    expect(bar({}).rejects[0]?.reason).toBe("startTimestamp is missing");
  });

  it.each([
    [{ startTimestamp: two }, `startTimestamp is not the start of a UTC day: ${two}`],
    [{ endTimestamp: ten }, `endTimestamp is not the end of a UTC day: ${ten}`],
    [{ startTimestamp: day, endTimestamp: nextWeek }, `endTimestamp is past the day: ${nextWeek}`],
    [{ timestamp: day, high: "0.5" }, "high is below low"],
    [{ timestamp: day, close: "4" }, "close is above high"],
    [{ timestamp: day, close: "0.5" }, "close is below low"],
    [{ timestamp: day, open: "3.1" }, "open is above high"],
    [{ timestamp: day, open: undefined }, "open is missing"],
    [{ timestamp: "2099-01-01T00:00:00Z" }, "timestamp is implausible: 2099-01-01T00:00:00.000000Z"],
  ])("are stored unchanged, with a quality flag: %j", (fields, quality) => {
    const [record] = bar(fields).records;
    expect(record?.quality).toBe(quality);
    expect((record?.ts ?? 1) % 86_400_000_000).toBe(0);
  });
});
