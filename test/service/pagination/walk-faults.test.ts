import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import type { ServiceClient } from "../../../src/service/client/client.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient } from "../../support/service/client-harness.ts";
import { ProvenCoverage } from "../../support/service/proven-coverage.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const durationMs = 8 * 3_600_000;
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

/** Walks eight hours of one index in pages of fifty; returns the missing and the unproven rows. */
async function walkHours(script: string) {
  simulator.setFaults(script);
  simulator.requests.clear();
  const to = clock.now() - (clock.now() % 30_000);
  const from = (to - durationMs) * 1000;
  const filters = { indexType: "GWA", indexId };
  const walk = { endpoint: "/index-ticker", filters, from, until: to * 1000, size: 50 } as const;
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

const GET = "GET /index-ticker";
const scripts: [row: string, script: string][] = [
  ["A1: the token is revoked during the walk", `${GET} revoke page=later times=1 total=1`],
  ["A4: tokens that live for seconds", `POST /oauth/token token-life 2s\n${GET} latency 1s`],
  ["A5: the token endpoint is down for a while", `POST /oauth/token status 503 times=3`],
  ["B1: Retry-After in seconds", `${GET} rate-limit retry-after=seconds wait=7s p=0.1 times=1`],
  ["B2: Retry-After with a date", `${GET} rate-limit retry-after=rfc850 wait=30s p=0.1 times=1`],
  ["B2: an invalid Retry-After", `${GET} rate-limit retry-after=garbage p=0.1 times=1`],
  ["B3: 429 without Retry-After", `${GET} rate-limit p=0.2 times=2`],
  [
    "B4: 500, 502 and 504",
    `${GET} status 500 p=0.1 times=2\n${GET} status 502 p=0.1 times=1\n${GET} status 504 p=0.1 times=1`,
  ],
  ["B7: conflicts", `${GET} status 409 p=0.2 times=2`],
  ["B8: bodies cut by length", `${GET} cut length p=0.2 times=1`],
  ["B8: bodies cut by a closed connection", `${GET} cut close p=0.2 times=1`],
  ["B8: bodies cut within chunks", `${GET} cut chunked p=0.2 times=1`],
  ["B8: bodies cut in a character", `${GET} cut utf8 p=0.2 times=1`],
  ["B8: bodies cut by a reset", `${GET} cut reset at=1000 p=0.2 times=1`],
  ["B9: truncated gzip", `${GET} encoding cut p=0.2 times=1`],
  ["B10: a compression bomb", `${GET} encoding bomb mb=70 p=0.1 total=1`],
  [
    "B10: plain text labelled gzip, bad checksums, brotli",
    `${GET} encoding plain p=0.1\n${GET} encoding crc p=0.1 times=1\n${GET} encoding br p=0.1 times=1`,
  ],
  [
    "B11: HTML pages, empty bodies, 204",
    `${GET} html p=0.1 times=1\n${GET} empty-body p=0.1 times=1\n${GET} no-content p=0.1 times=1`,
  ],
  [
    "B11: other shapes",
    `${GET} envelope array p=0.1 times=1\n${GET} envelope content-object p=0.1 times=1\n${GET} envelope null p=0.1 times=1`,
  ],
  ["B11: byte order marks and wrong labels", `${GET} bom\n${GET} content-type text/html`],
  ["B12: late headers", `${GET} slow-headers 90s p=0.1 times=1`],
  ["B12: slow bodies", `${GET} drip every=5s p=0.1 times=1`],
  ["B12: bodies that stall", `${GET} stall body p=0.1 times=1`],
  ["B14: reused connections reset", `${GET} reset reused p=0.2 times=1`],
  ["B14: reused connections closed", `${GET} hang-up reused p=0.2 times=1`],
  ["C1: repeated pages", `${GET} repeat-page p=0.2 times=1 page=later`],
  ["C1: swapped pages", `${GET} swap-pages p=0.2 times=1 page=later`],
  ["C1: the first page swapped", `${GET} swap-pages times=1 page=first`],
  ["C1, C7: the first of ten-row pages swapped", `${GET} size-cap 10\n${GET} swap-pages total=1 page=first`],
  ["C2: rows sent twice", `${GET} duplicate-row first\n${GET} duplicate-row last p=0.5`],
  ["C4: a constant nextId", `${GET} next-id same p=0.2 page=later`],
  ["C4: a cycle of five", `${GET} next-id cycle length=5 p=0.3 page=later`],
  ["C5: empty pages", `${GET} empty-page p=0.2 page=later times=1`],
  ["C5: the first page empty", `${GET} empty-page page=first times=1`],
  ["C5: the first page empty, once in total", `${GET} empty-page page=first total=1`],
  ["C5, C7: the first of ten-row pages empty", `${GET} size-cap 10\n${GET} empty-page page=first times=1`],
  ["C6: a missing nextId before the end", `${GET} next-id absent p=0.3 times=1`],
  ["C7: ten rows a page", `${GET} size-cap 10`],
  [
    "C9: dead cursors: 404, 400 and empty pages",
    ["404", "400", "empty"].map((answer) => `${GET} dead-cursor ${answer} page=later total=2`).join("\n"),
  ],
  ["C14: rows of other indices", `${GET} foreign-rows p=0.3 times=1`],
  ["C15: ascending once", `${GET} order ascending p=0.3 times=1`],
  ["C15: shuffled once", `${GET} order shuffled p=0.3 times=1`],
];

describe("a page from a cache", () => {
  it("B16: that contradicts the next page is requested again", async () => {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(`${GET} stale age=10m page=first total=1`);
    expect({ struck, missing, unproven }).toEqual({ struck: 1, missing: [], unproven: [] });
  });

  it("B16: leaves newer rows unproven", async () => {
    // The cached page belongs to the same token, so the token must be older.
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(`${GET} stale age=10m page=first`);
    expect(struck).toBeGreaterThan(0);
    expect(unproven.length).toBeGreaterThan(15);
    expect(unproven.length).toBeLessThanOrEqual(20);
    expect(unproven).toEqual(expect.arrayContaining(missing));
  });
});

describe("a walk with simulator faults", () => {
  it.each(scripts)("%s: every row is received and proven", async (_, script) => {
    const { struck, missing, unproven, requests } = await walkHours(script);
    expect(struck).toBeGreaterThan(0);
    if (script.includes("total=2")) expect(struck).toBe(2 * script.split("\n").length);
    expect({ missing, unproven }).toEqual({ missing: [], unproven: [] });
    expect(requests).toBeLessThan(script.includes("size-cap") ? 110 : 80);
  });
});
