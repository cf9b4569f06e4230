import { describe, expect, it } from "vitest";
import { LiveEventReader } from "../../../src/ingest/decode/live-event.ts";
import { parseTimestamp } from "../../../src/model/time.ts";

const at = parseTimestamp("2026-03-01T12:00:00Z");
const timestamp = '"timestamp":"2026-03-01T12:00:00Z"';

const decodeEvent = (text: string) => new LiveEventReader().read(text);

describe("a live message", () => {
  it("may be an index tick, with its name and its tick volume", () => {
    const text = `{${timestamp},"tickVolume":0.10,"name":"BLX","price":"67012.5","volume":"1","indexType":"LX","indexId":"blx","id":"r","event":"INDEX_TICKER"}`;
    expect(decodeEvent(text)).toMatchObject({
      kind: "index_tick",
      tick: { indexType: "LX", indexId: "blx", name: "BLX", tickVolume: { real: 0.1 }, ts: at, extra: null },
    });
  });

  it("may be an exchange tick", () => {
    const text = `{"event":"EXCHANGE_TICKER","id":"r","exchangeId":"e","marketId":"m","last":"1","bid":"0.9","ask":"1.1","volume":"7",${timestamp},"new":1.0}`;
    const reader = new LiveEventReader();
    expect(reader.read(text)).toMatchObject({
      kind: "exchange_tick",
      tick: { exchangeId: "e", marketId: "m", ask: { real: 1.1 }, extra: '{"new":1.0}' },
    });
    expect(reader.unknownFields()).toEqual({
      index_ticks: [],
      exchange_ticks: [{ name: "new", count: 1, sample: "1.0" }],
    });
  });

  it("that is a tick without an id is rejected with its text", () => {
    const text = `{"event":"INDEX_TICKER",${timestamp},"price": 1.50}`;
    expect(decodeEvent(text)).toEqual({
      kind: "rejected_tick",
      stream: "index_ticks",
      reject: { reason: "indexType is missing", raw: text },
    });
  });

  it.each([
    ["nonsense", "not JSON"],
    ["", "not JSON"],
    ["[1]", "not an object"],
    ["null", "not an object"],
    ['{"price":1}', "no event name"],
    ['{"event":{}}', "no event name"],
    ['{"event":"TRADE","price":"1"}', "not an event that this version knows"],
  ])("E9: that is %s is stored as a sample", (text, reason) => {
    expect(decodeEvent(text)).toMatchObject({ kind: "unknown", reason, sample: text });
  });

  it("of a megabyte is stored as a short sample", () => {
    const event = decodeEvent(`{"event":"NOISE","x":"${"x".repeat(1_000_000)}"}`);
    expect(event.kind === "unknown" && event.sample.length).toBe(2000);
  });
});
