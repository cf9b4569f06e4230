import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import type { ServiceClient } from "../../../src/service/client/client.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient } from "../../support/service/client-harness.ts";
import { ProvenCoverage } from "../../support/service/proven-coverage.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const durationMs = 6 * 3_600_000;
const clock = new ManualClock("2026-03-01T12:00:07Z");
let simulator: Simulator;
let client: ServiceClient;
let indexId: string;

beforeAll(async () => {
  simulator = await startSimulator({
    clock,
    size: { assets: 6, markets: 6, exchanges: 2 },
    quirks: { lastPage: "own-id", ids: "opaque" },
  });
  indexId = simulator.universe.assets.find(({ firstDay }) => firstDay < 18_000)?.id ?? "";
});
afterAll(() => simulator.stop());

beforeEach(() => {
  const { baseUrl, clientId, clientSecret } = simulator;
  client = createTestClient(baseUrl, clock, { clientId, readSecret: async () => clientSecret }).client;
});

/** Walks six hours of one index in pages of forty; returns the missing and the unproven rows. */
async function walkHours(...faults: readonly Fault[]) {
  simulator.setFaults(...faults);
  simulator.requests.clear();
  const to = clock.now() - (clock.now() % 30_000);
  const from = (to - durationMs) * 1000;
  const filters = { indexType: "GWA", indexId };
  const walk = { endpoint: "/index-ticker", filters, from, until: to * 1000, size: 40 } as const;
  const truth = simulator.oracle
    .indexTicks("GWA", indexId, to - durationMs, to, clock.now())
    .map(({ timestamp }) => Date.parse(timestamp) * 1000);
  const received = new Set<Micros>();
  const coverage = new ProvenCoverage({ from, to: walk.until });
  const run = async () => {
    for await (const { page, position } of walkHistoryPages(client, walk, readTicks(indexId))) {
      for (const ts of page.timestamps) received.add(ts);
      coverage.addPage(page.timestamps, position, page.asOf);
      expect(truth.filter((ts) => coverage.covers(ts) && !received.has(ts))).toEqual([]);
    }
  };
  await clock.runUntil(run());
  const struck = simulator.faultCounts.reduce((sum, { struck }) => sum + struck, 0);
  const missing = truth.filter((ts) => !received.has(ts));
  const unproven = truth.filter((ts) => !coverage.covers(ts));
  return { struck, missing, unproven, requests: simulator.requests.count("/v3/index-ticker") };
}

const on = "/index-ticker";
const some = { on, p: 0.3, times: 1 };
const few = { on, p: 0.2, times: 1 };
const rare = { on, p: 0.1, times: 1 };
const later = { ...few, page: "later" } as const;
const rows: [row: string, ...faults: Fault[]][] = [
  ["A1: the token is revoked during the walk", Fault.revoke({ on, times: 1, total: 1, page: "later" })],
  ["A4: tokens that live for seconds", Fault.tokenLife(2), Fault.latency(1000, { on })],
  ["A5: the token endpoint is down for a while", Fault.status(503, { on: "/oauth/token", times: 3 })],
  ["B1: Retry-After in seconds", Fault.status(429, { ...some, retryAfter: "seconds", wait: 7000 })],
  ["B2: Retry-After with a date", Fault.status(429, { ...some, retryAfter: "rfc850", wait: 30_000 })],
  ["B2: an invalid Retry-After", Fault.status(429, { ...some, retryAfter: "garbage" })],
  ["B3: 429 without Retry-After", Fault.status(429, { on, p: 0.2, times: 2 })],
  [
    "B4: 500, 502 and 504",
    Fault.status(500, { on, p: 0.1, times: 2 }),
    Fault.status(502, rare),
    Fault.status(504, rare),
  ],
  ["B7: conflicts", Fault.status(409, { on, p: 0.2, times: 2 })],
  ["B8: bodies cut by length", Fault.cut("length", few)],
  ["B8: bodies cut by a closed connection", Fault.cut("close", few)],
  ["B8: bodies cut within chunks", Fault.cut("chunked", few)],
  ["B8: bodies cut in a character", Fault.cut("utf8", few)],
  ["B8: bodies cut by a reset", Fault.cut("reset", { ...few, at: 1000 })],
  ["B9: truncated gzip", Fault.encoding("cut", few)],
  ["B10: a compression bomb", Fault.encoding("bomb", { on, megabytes: 70, p: 0.3, total: 1 })],
  [
    "B10: plain text labelled gzip, bad checksums, brotli",
    Fault.encoding("plain", { on, p: 0.1 }),
    Fault.encoding("crc", rare),
    Fault.encoding("br", rare),
  ],
  ["B11: HTML pages, empty bodies, 204", Fault.html(rare), Fault.emptyBody(rare), Fault.noContent(rare)],
  [
    "B11: other shapes",
    Fault.envelope("array", rare),
    Fault.envelope("content-object", rare),
    Fault.envelope("null", rare),
  ],
  ["B11: byte order marks and wrong labels", Fault.bom({ on }), Fault.contentType("text/html", { on })],
  ["B12: late headers", Fault.slowHeaders(some, 90_000)],
  ["B12: slow bodies", Fault.drip({ on, every: 5000, times: 1 })],
  ["B12: bodies that stall", Fault.stall({ on, at: "body", times: 1 })],
  ["B14: reused connections reset", Fault.reset({ ...few, socket: "reused" })],
  ["B14: reused connections closed", Fault.hangUp({ ...few, socket: "reused" })],
  ["C1: repeated pages", Fault.repeatPage(later)],
  ["C1: swapped pages", Fault.swapPages(later)],
  ["C1: the first page swapped", Fault.swapPages({ on, times: 1, page: "first" })],
  [
    "C1, C7: the first of ten-row pages swapped",
    Fault.sizeCap(10, { on }),
    Fault.swapPages({ on, total: 1, page: "first" }),
  ],
  ["C2: rows sent twice", Fault.duplicateRow("first", { on }), Fault.duplicateRow("last", { on, p: 0.5 })],
  ["C4: a constant nextId", Fault.cycle(1, { on, p: 0.2, page: "later" })],
  ["C4: a cycle of five", Fault.cycle(5, { on, p: 0.3, page: "later" })],
  ["C5: empty pages", Fault.emptyPage(later)],
  ["C5: the first page empty", Fault.emptyPage({ on, times: 1, page: "first" })],
  ["C5: the first page empty, once in total", Fault.emptyPage({ on, total: 1, page: "first" })],
  [
    "C5, C7: the first of ten-row pages empty",
    Fault.sizeCap(10, { on }),
    Fault.emptyPage({ on, times: 1, page: "first" }),
  ],
  ["C6: a missing nextId before the end", Fault.nextId("absent", some)],
  ["C7: ten rows a page", Fault.sizeCap(10, { on })],
  [
    "C9: dead cursors: 404, 400 and empty pages",
    ...([404, 400, "empty"] as const).map((answer) =>
      Fault.deadCursor(answer, { on, page: "later", total: 2 }),
    ),
  ],
  ["C14: rows of other indices", Fault.foreignRows(0, some)],
  ["C15: ascending once", Fault.order("ascending", some)],
  ["C15: shuffled once", Fault.order("shuffled", some)],
];

describe("a page from a cache", () => {
  it("B16: that contradicts the next page is requested again", async () => {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(
      Fault.stale(10 * 60_000, { on, total: 1, page: "first" }),
    );
    expect({ struck, missing, unproven }).toEqual({ struck: 1, missing: [], unproven: [] });
  });

  it("B16: leaves newer rows unproven", async () => {
    // The cached page belongs to the same token, so the token must be older.
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(Fault.stale(10 * 60_000, { on, page: "first" }));
    expect(struck).toBeGreaterThan(0);
    expect(unproven.length).toBeGreaterThan(15);
    expect(unproven.length).toBeLessThanOrEqual(20);
    expect(unproven).toEqual(expect.arrayContaining(missing));
  });
});

describe("a walk with simulator faults", () => {
  it.each(rows)("%s: every row is received and proven", async (_, ...faults) => {
    const { struck, missing, unproven, requests } = await walkHours(...faults);
    expect(struck).toBeGreaterThan(0);
    if (faults.every(({ conditions }) => conditions.total === 2)) expect(struck).toBe(2 * faults.length);
    expect({ missing, unproven }).toEqual({ missing: [], unproven: [] });
    expect(requests).toBeLessThan(faults.some(({ name }) => name === "sizeCap") ? 110 : 80);
  });
});
