import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sliceElements, sliceProperties, toCanonicalJson } from "../../../src/ingest/decode/json-source.ts";
import { decodeLiveMessages } from "../../../src/ingest/decode/live-event.ts";
import { decodePage } from "../../../src/ingest/decode/page.ts";
import { Failure } from "../../../src/model/failure.ts";
import { streams } from "../../../src/model/streams.ts";

const names = fc.constantFrom(
  ..."id name symbol status type url indexId indexType price volume tickVolume timestamp assetId exchangeId marketId".split(
    " ",
  ),
  ..."last bid ask lastMoved open high low close startTimestamp endTimestamp marketCapRank marketCapPercentChange".split(
    " ",
  ),
  ..."contractId fundingRate derivativeType optionStrike markets symbols listing event code requestId".split(
    " ",
  ),
  ..."__proto__ constructor toString hasOwnProperty valueOf content nextId".split(" "),
);
const events = fc.constantFrom(
  "INDEX_TICKER",
  "EXCHANGE_TICKER",
  "PING",
  "ERROR",
  "CONNECTED",
  "TRADE",
  "__proto__",
);
const plausible = fc.constantFrom<unknown>(
  "1.5",
  -0,
  1e300,
  "2026-03-01T00:00:00Z",
  "GWA",
  "",
  null,
  {},
  [[]],
  { change24h: -1, __proto__: null },
  [{ marketId: "m" }, 7],
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

describe("the source text of values", () => {
  it("is found for every value that JSON.parse finds", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const parsed: unknown = JSON.parse(text);
        if (Array.isArray(parsed))
          expect(sliceElements(text).map((slice) => JSON.parse(slice))).toEqual(parsed);
        else if (typeof parsed === "object" && parsed !== null)
          expect([...sliceProperties(text)].map(([key, slice]) => [key, JSON.parse(slice)])).toEqual(
            Object.entries(parsed),
          );
      }),
      { numRuns: 500 },
    );
  });

  it("has a canonical form that is equivalent and idempotent", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const canonical = toCanonicalJson(text);
        expect(JSON.parse(canonical)).toEqual(JSON.parse(text));
        expect(toCanonicalJson(canonical)).toBe(canonical);
        expect(toCanonicalJson(JSON.stringify(reversed(JSON.parse(text))))).toBe(canonical);
      }),
      { numRuns: 500 },
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.create(null) as Record<string, unknown>;
  for (const [key, inner] of Object.entries(value).reverse()) copy[key] = reversed(inner);
  return copy;
}
