import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import type { ServiceClient } from "../../../src/service/client/client.ts";
import { walkBackwards } from "../../../src/service/pagination/history-walk.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf } from "../../support/service/client-harness.ts";
import { WalkCredit } from "../../support/service/proven-coverage.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const span = 8 * 3_600_000;
const clock = new TurnedClock("2026-03-01T12:00:07Z");
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
  const { baseUrl, wsUrl, clientId, clientSecret } = simulator;
  client = clientOf(baseUrl, clock, { wsUrl, clientId, readSecret: async () => clientSecret }).client;
});

/** Eight hours of one index in pages of fifty; the rows that came, and what the pages said they prove. */
async function walkHours(script: string) {
  simulator.setFaults(script);
  simulator.requests.clear();
  const to = clock.now() - (clock.now() % 30_000);
  const from = (to - span) * 1000;
  const filters = { indexType: "GWA", indexId };
  const walk = { endpoint: "/index-ticker", filters, from, until: to * 1000, size: 50 } as const;
  const truth = simulator.truth
    .indexTicks("GWA", indexId, to - span, to, clock.now())
    .map(({ timestamp }) => Date.parse(timestamp) * 1000);
  const came = new Set<Micros>();
  const credit = new WalkCredit({ from, to: walk.until });
  const run = async () => {
    for await (const { page, position } of walkBackwards(client, walk, readTicks(indexId))) {
      for (const moment of page.moments) came.add(moment);
      credit.take(page.moments, position, page.asOf);
      expect(truth.filter((moment) => credit.has(moment) && !came.has(moment))).toEqual([]);
    }
  };
  await clock.runUntil(run());
  const struck = simulator.struck.reduce((sum, { struck }) => sum + struck, 0);
  const missing = truth.filter((moment) => !came.has(moment));
  const unproven = truth.filter((moment) => !credit.has(moment));
  return { struck, missing, unproven, asked: simulator.requests.count("/v3/index-ticker") };
}

const GET = "GET /index-ticker";
const scripts: [row: string, script: string][] = [
  ["A1: the token is revoked in the middle", `${GET} revoke page=later times=1 total=1`],
  ["A4: tokens that live for seconds", `POST /oauth/token token-life 2s\n${GET} latency 1s`],
  ["A5: the token endpoint is down for a while", `POST /oauth/token status 503 times=3`],
  ["B1: told to wait", `${GET} rate-limit retry-after=seconds wait=7s p=0.1 times=1`],
  ["B2: told to wait until a date", `${GET} rate-limit retry-after=rfc850 wait=30s p=0.1 times=1`],
  ["B2: told to wait by nonsense", `${GET} rate-limit retry-after=garbage p=0.1 times=1`],
  ["B3: too many requests without a word", `${GET} rate-limit p=0.2 times=2`],
  [
    "B4: failures of every kind",
    `${GET} status 500 p=0.1 times=2\n${GET} status 502 p=0.1 times=1\n${GET} status 504 p=0.1 times=1`,
  ],
  ["B7: conflicts", `${GET} status 409 p=0.2 times=2`],
  ["B8: bodies cut by length", `${GET} cut length p=0.2 times=1`],
  ["B8: bodies cut by closing", `${GET} cut close p=0.2 times=1`],
  ["B8: bodies cut within chunks", `${GET} cut chunked p=0.2 times=1`],
  ["B8: bodies cut in a character", `${GET} cut utf8 p=0.2 times=1`],
  ["B8: bodies cut by a reset", `${GET} cut reset at=1000 p=0.2 times=1`],
  ["B9: truncated gzip", `${GET} encoding cut p=0.2 times=1`],
  ["B10: a bomb", `${GET} encoding bomb mb=200 p=0.1 total=1`],
  [
    "B10: gzip that is plain, bad checksums, brotli",
    `${GET} encoding plain p=0.1\n${GET} encoding crc p=0.1 times=1\n${GET} encoding br p=0.1 times=1`,
  ],
  [
    "B11: a portal, empty bodies, 204",
    `${GET} html p=0.1 times=1\n${GET} empty-body p=0.1 times=1\n${GET} no-content p=0.1 times=1`,
  ],
  [
    "B11: other shapes",
    `${GET} envelope array p=0.1 times=1\n${GET} envelope content-object p=0.1 times=1\n${GET} envelope null p=0.1 times=1`,
  ],
  ["B11: byte order marks and wrong labels", `${GET} bom\n${GET} content-type text/html`],
  ["B12: headers that come too late", `${GET} slow-headers 90s p=0.1 times=1`],
  ["B12: dripping bodies", `${GET} drip every=5s p=0.1 times=1`],
  ["B12: bodies that stop for ever", `${GET} stall body p=0.1 times=1`],
  ["B14: reused connections reset", `${GET} reset reused p=0.2 times=1`],
  ["B14: reused connections closed", `${GET} hang-up reused p=0.2 times=1`],
  ["C1: repeated pages", `${GET} repeat-page p=0.2 times=1 page=later`],
  ["C1: swapped pages", `${GET} swap-pages p=0.2 times=1 page=later`],
  ["C1: the first page swapped", `${GET} swap-pages times=1 page=first`],
  ["C1, C7: the first of ten-row pages swapped", `${GET} size-cap 10\n${GET} swap-pages times=1 page=first`],
  ["C2: rows sent twice", `${GET} duplicate-row first\n${GET} duplicate-row last p=0.5`],
  ["C4: nextId the same", `${GET} next-id same p=0.2 page=later`],
  ["C4: a cycle of five", `${GET} next-id cycle length=5 p=0.3 page=later`],
  ["C5: empty pages", `${GET} empty-page p=0.2 page=later times=1`],
  ["C5: the first page empty", `${GET} empty-page page=first times=1`],
  ["C5: the first page empty, once and never again", `${GET} empty-page page=first total=1`],
  ["C5, C7: the first of ten-row pages empty", `${GET} size-cap 10\n${GET} empty-page page=first times=1`],
  ["C6: an end that is none", `${GET} next-id absent p=0.3 times=1`],
  ["C7: ten rows a page", `${GET} size-cap 10`],
  ["C9: dead cursors, 404", `${GET} dead-cursor 404 p=0.2 page=later`],
  ["C9: dead cursors, 400", `${GET} dead-cursor 400 p=0.2 page=later`],
  ["C9: dead cursors, silent", `${GET} dead-cursor empty p=0.2 page=later`],
  ["C14: rows of other indices", `${GET} foreign-rows p=0.3 times=1`],
  ["C15: ascending once", `${GET} order ascending p=0.3 times=1`],
  ["C15: shuffled once", `${GET} order shuffled p=0.3 times=1`],
];

describe("a page from a cache", () => {
  it("B16: kept for one question only, it is contradicted by the next and asked for again", async () => {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(`${GET} stale age=10m page=first total=1`);
    expect({ struck, missing, unproven }).toEqual({ struck: 1, missing: [], unproven: [] });
  });

  it("B16: says of which moment it is, so that what came since stays unproven", async () => {
    // The cache took it with the same token, so that must be older than the page.
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(`${GET} stale age=10m page=first`);
    expect(struck).toBeGreaterThan(0);
    expect(unproven.length).toBeGreaterThan(15);
    expect(unproven.length).toBeLessThanOrEqual(20);
    expect(unproven).toEqual(expect.arrayContaining(missing));
  });
});

describe("a walk through the simulator's bad days", () => {
  it.each(scripts)("%s: every row comes, and all of it is proven", async (_, script) => {
    const { struck, missing, unproven, asked } = await walkHours(script);
    expect(struck).toBeGreaterThan(0);
    expect({ missing, unproven }).toEqual({ missing: [], unproven: [] });
    expect(asked).toBeLessThan(script.includes("size-cap") ? 110 : 80);
  });
});
