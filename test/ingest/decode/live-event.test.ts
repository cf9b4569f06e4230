import { describe, expect, it } from "vitest";
import { decodeLiveMessages } from "../../../src/ingest/decode/live-event.ts";
import { parseTimestamp } from "../../../src/model/time.ts";

const at = parseTimestamp("2026-03-01T12:00:00Z");
const timestamp = '"timestamp":"2026-03-01T12:00:00Z"';

const decodeMessage = (text: string) => decodeLiveMessages([text]);

describe("a live message", () => {
  it("may be an index tick, with its name and its tick volume", () => {
    const text = `{${timestamp},"tickVolume":0.10,"name":"BLX","price":"67012.5","volume":"1","indexType":"LX","indexId":"blx","id":"r","event":"INDEX_TICKER"}`;
    expect(decodeMessage(text).index_ticks).toMatchObject({
      ticks: [
        { indexType: "LX", indexId: "blx", name: "BLX", tickVolume: { real: 0.1 }, ts: at, extra: null },
      ],
      texts: [text],
    });
  });

  it("may be an exchange tick", () => {
    const text = `{"event":"EXCHANGE_TICKER","id":"r","exchangeId":"e","marketId":"m","last":"1","bid":"0.9","ask":"1.1","volume":"7",${timestamp},"new":1.0}`;
    expect(decodeMessage(text).exchange_ticks).toMatchObject({
      ticks: [{ exchangeId: "e", marketId: "m", ask: { real: 1.1 }, extra: '{"new":1.0}' }],
      fields: [{ name: "new", count: 1, sample: "1.0" }],
    });
  });

  it("that is a tick without an id is rejected with its text", () => {
    const text = `{"event":"INDEX_TICKER",${timestamp},"price": 1.50}`;
    expect(decodeMessage(text).index_ticks).toMatchObject({
      ticks: [],
      rejects: [{ reason: "indexType is missing", raw: text }],
    });
  });

  it.each([
    ["nonsense", "(none)"],
    ["", "(none)"],
    ["[1]", "(none)"],
    ["null", "(none)"],
    ['{"price":1}', "(none)"],
    ['{"event":{}}', "(none)"],
    ['{"event":"TRADE","price":"1"}', "TRADE"],
  ])("E9: that is %s is stored as a sample", (text, name) => {
    expect(decodeMessage(text).events).toEqual([{ name, count: 1, sample: text }]);
  });

  it("of a megabyte is stored as a short sample", () => {
    const { events } = decodeMessage(`{"event":"NOISE","x":"${"x".repeat(1_000_000)}"}`);
    expect(events[0]?.sample).toHaveLength(2000);
  });
});
