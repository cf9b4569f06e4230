import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { decodeLiveMessages } from "../../../src/ingest/decode/live-event.ts";
import { Failure } from "../../../src/model/failure.ts";
import { streams } from "../../../src/model/streams.ts";

const names = fc.constantFrom(
  ...`id name symbol status type url indexId indexType price volume tickVolume timestamp assetId exchangeId marketId
    last bid ask lastMoved open high low close startTimestamp endTimestamp marketCapRank marketCapPercentChange
    contractId fundingRate derivativeType optionStrike markets symbols listing event code requestId
    __proto__ constructor toString hasOwnProperty valueOf content nextId`.split(/\s+/),
);
const eventNames = "INDEX_TICKER EXCHANGE_TICKER PING ERROR CONNECTED TRADE __proto__";
const events = fc.constantFrom(...eventNames.split(" "));
const plausible = fc.constantFrom<unknown>(
  ...["1.5", -0, 1e300, "2026-03-01T00:00:00Z", "GWA", "", null, {}, [[]]],
  ...[{ change24h: -1, __proto__: null }, [{ marketId: "m" }, 7]],
);
const record = fc
  .array(
    fc.tuple(
      fc.oneof({ weight: 8, arbitrary: names }, fc.string()),
      fc.oneof(plausible, fc.jsonValue(), events),
    ),
  )
  .map(
    (entries) =>
      `{${entries.map(([name, value]) => `${JSON.stringify(name)} : ${JSON.stringify(value)}`).join(" ,\n")}}`,
  );
const element = fc.oneof({ weight: 4, arbitrary: record }, fc.json());
const stream = fc.constantFrom(...streams);

describe("decoding arbitrary input", () => {
  it("accounts for every element of a page's content", () => {
    fc.assert(
      fc.property(stream, fc.array(element, { maxLength: 6 }), fc.json(), (name, elements, nextId) => {
        const decoded = decodePage(name, `{"nextId":${nextId},"content": [ ${elements.join(" , ")} ]}`, {
          derivativeType: "futures",
        });
        expect(decoded.rawCount).toBe(elements.length);
        expect(decoded.records.length + decoded.rejects.length).toBe(elements.length);
        for (const { raw } of decoded.rejects) expect(elements.map((text) => text.trim())).toContain(raw);
        for (const { extra } of decoded.records) if (extra !== null) JSON.parse(extra);
        expect(Object.keys(Object.prototype)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it("never throws anything but malformed_body, no_list and null_list", () => {
    fc.assert(
      fc.property(stream, fc.oneof(fc.json(), fc.string(), record), (name, text) => {
        try {
          decodePage(name, text);
        } catch (error) {
          expect(error).toBeInstanceOf(Failure);
          expect(["malformed_body", "no_list", "null_list"]).toContain((error as Failure).code);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("never throws for a live message", () => {
    fc.assert(
      fc.property(fc.oneof(record, fc.json(), fc.string()), (text) => {
        const { index_ticks: index, exchange_ticks: exchange, events } = decodeLiveMessages([text]);
        const found = [index.ticks, index.rejects, exchange.ticks, exchange.rejects, events].flat();
        expect(found).toHaveLength(1);
      }),
      { numRuns: 500 },
    );
  });
});
