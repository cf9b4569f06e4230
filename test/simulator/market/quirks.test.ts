import { describe, expect, it } from "vitest";
import { DAY_MS, iso, type Query, startRestClient } from "../../support/simulator/rest-client.ts";
import { defaultQuirks, type Quirks } from "../quirks.ts";

/** What a plain client sees, now and half a day later. */
async function readService(quirks: Partial<Quirks> = {}): Promise<string[]> {
  const client = await startRestClient({ quirks: { optionStrikes: 3, ...quirks } });
  const { assets, exchanges } = client.simulator.universe;
  const indexId = assets[0]?.id ?? "";
  const libra = assets.find(({ symbol }) => symbol === "LIBRA")?.id ?? "";
  const exchangeId = exchanges.find(({ derivatives }) => derivatives)?.id ?? "";
  const seen = [(await client.requestToken()).body.access_token.replace(/\w/g, "")];
  const get = async (path: string, query: Query) => {
    const { status, headers, text, body } = await client.get(path, query);
    seen.push(`${status} ${headers.get("content-encoding")} ${text}`);
    return body;
  };
  const index = { indexType: "GWA", indexId };
  for (let half = 0; half < 2; half++) {
    const timestamp = "2026-03-01T11:00:00Z";
    const { content } = await get("/index-ticker", { ...index, timestamp, size: 150 });
    const startAfter = content?.[2].id;
    await get("/index-ticker", { ...index, startAfter, size: 4 });
    await get("/index-ticker", { ...index, startAfter, size: 4, timestamp });
    await get("/index-ticker", { ...index, timestamp: "2026-02-26T12:00:00Z", size: 1 });
    await get("/index-ticker", { ...index, timestamp: iso(client.now + DAY_MS), size: 1 });
    await get("/index-ticker", { ...index, indexId: libra, timestamp });
    await get("/index-ticker", { ...index, timestamp: "never" });
    await get("/ohlcv", { ...index, timestamp: "2014-04-02T12:00:00Z", size: 5 });
    await get("/ohlcv", { ...index, timestamp: "2026-02-10T06:00:00Z", size: 1 });
    await get("/ohlcv", { ...index, timestamp: iso(client.now), size: 1 });
    await get("/exchange-ticker", {});
    await get("/derivatives/contract/options", { exchangeId });
    await client.clock.advance(DAY_MS / 2);
  }
  return seen;
}

const quirks: Partial<Quirks>[] = [
  { lastPage: "empty" },
  { lastPage: "absent" },
  { lastPage: "own-id" },
  { cursor: "inclusive" },
  { sizeBesideStartAfter: "honoured" },
  { sizeBesideStartAfter: "ignored" },
  { ids: "opaque" },
  { exchangeTickerPage: 2 },
  { upperBound: "exclusive" },
  { noData: "empty" },
  { noData: "400" },
  { futureTimestamp: "rejected" },
  { maxSize: 100 },
  { maxPageRows: 100 },
  { fieldErrors: false },
  { compression: "none" },
  { ohlcvTimestamp: "end" },
  { barEnd: "midnight" },
  { barTimestamp: true },
  { partialBar: false },
  { late: { perMille: 200, seconds: 7_200 } },
  { missingPerMille: 30 },
  { listed: { perMille: 1000, on: "2026-02-25" } },
  { closedDays: 2 },
  { corrections: { perMille: 50, minutes: 90 } },
  { optionStrikes: 2 },
  { awkwardTokens: true },
];

let plain: Promise<string[]> | undefined;
const readPlain = () => (plain ??= readService());

describe("every quirk changes what a plain client sees", () => {
  it("is tried", async () => {
    const names = quirks.flatMap((each) => Object.keys(each));
    expect(Object.keys(defaultQuirks).filter((name) => !names.includes(name))).toEqual([]);
    // So that every difference is the quirk's.
    expect(await readService()).toEqual(await readPlain());
  });

  it.each(quirks)("%o", async (quirk) => {
    expect(await readService(quirk)).not.toEqual(await readPlain());
  });
});
