import { describe, expect, it } from "vitest";
import { seed } from "../support/seed.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { waitUntil } from "../support/wait-until.ts";
import { installBackfill } from "./backfill-process.ts";

const KILLS = 4;
/** Small pages, so that a few rows make many pages that a kill can interrupt. */
const ROWS_PER_PAGE = 100;
/** Of each run, when it is killed: two pages in flight and four that wait for their commit; the head again, where two walks meet. */
const MAX_EXTRA_REQUESTS = 8;
const smallPages = `GET /index-ticker size-cap ${ROWS_PER_PAGE}`;
const settings = `service: { concurrency: 2 }
sync: { ohlcv: false, exchangeTickers: false, derivatives: false, marketCap: false,
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 4 } }`;

describe("F2: a backfill that is killed four times", () => {
  it("resumes without lost or duplicate rows, with few requests more than one run needs", async () => {
    const installation = await installBackfill(settings, {
      faults: `${smallPages}\nGET /index-ticker latency 10ms`,
    });
    const { simulator } = installation;
    const random = seededRandom(seed);
    const requestCount = () => simulator.requests.count("/v3/index-ticker");
    for (let kill = 0; kill < KILLS; kill++) {
      const before = requestCount();
      const pages = 1 + Math.floor(random() * 30);
      const { child, result: ended } = installation.start();
      await waitUntil(() => requestCount() >= before + pages, 2);
      child.kill("SIGKILL");
      await ended;
    }
    simulator.setFaults(smallPages);
    const last = await installation.start("--json").result;
    expect(last.status).toBe(0);
    const { rows } = installation.expectMatchesService();
    expect(rows).toBeGreaterThan(3.9 * 2880);
    const needed = Math.ceil(rows / ROWS_PER_PAGE);
    expect(requestCount() - needed).toBeLessThanOrEqual((KILLS + 1) * MAX_EXTRA_REQUESTS);
  });
});
