import { startSimulator } from "../../src/simulator/simulator.ts";

/** What the benchmark's service offers: pages that were rendered beforehand, so that it is never what is measured. */
export interface Offer {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly ids: readonly string[];
  /** The window that is rendered, milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
}

const PAGE_MS = 2000 * 30_000;
const DAY_MS = 86_400_000;

// Run as its own process: argv says how many series and how many pages of each; the offer goes to stdout.
if (import.meta.main) {
  const [series = 8, pages = 40] = process.argv.slice(2).map(Number);
  const simulator = await startSimulator({ cacheMegabytes: 2048 });
  const { baseUrl, wsUrl, clientId, clientSecret, universe } = simulator;
  const ids = universe.assets
    .filter(({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < endDay)
    .slice(0, series)
    .map(({ id }) => id);
  const toMs = Math.floor(Date.now() / DAY_MS - 1) * DAY_MS;
  const fromMs = toMs - pages * PAGE_MS;
  for (const id of ids) simulator.prerender({ type: "GWA", id, fromMs, toMs });
  const offer: Offer = { baseUrl, wsUrl, clientId, clientSecret, ids, fromMs, toMs };
  process.stdout.write(`${JSON.stringify(offer)}\n`);
  process.once("SIGTERM", () => void simulator.stop());
}
