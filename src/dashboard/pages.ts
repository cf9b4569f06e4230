import { readFileSync } from "node:fs";
import { formatInstant, MICROS_PER_MS } from "../model/instant.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { WarehouseStatus } from "../warehouse/status.ts";
import { describeState } from "./daemon-state.ts";
import type { DaemonView } from "./daemon-view.ts";
import { json, type Page, type PageMaker, plain } from "./http-server.ts";
import { KeptReading } from "./kept-reading.ts";
import type { Readings } from "./readings.ts";
import type { Answers } from "./readings-desk.ts";
import { type RowsAsked, rowsAsked } from "./rows-asked.ts";

export interface PagesOptions {
  readonly view: DaemonView;
  readonly readings: Pick<Readings, "ask">;
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "monotonic" | "hold">;
}

const STATUS_KEPT_MS = 3_000;
const LATEST_KEPT_MS = 2_000;
const PICTURE_KEPT_MS = 10_000;
/** Heat maps with different rows opened: each is kept apart. */
const MOST_VARIANTS = 32;

/** An answer with the page made of it, so that the page is made once. */
interface Kept<K extends keyof Answers> {
  readonly value: Answers[K];
  readonly page: Page;
}

const files = {
  "/": ["dashboard.html", "text/html"],
  "/dashboard.css": ["dashboard.css", "text/css"],
  "/dashboard.js": ["dashboard.js", "text/javascript"],
  "/heat-map.js": ["heat-map.js", "text/javascript"],
  "/words.js": ["words.js", "text/javascript"],
  "/favicon.svg": ["favicon.svg", "image/svg+xml"],
} as const satisfies Record<string, readonly [string, Page["type"]]>;

/** All that is served over HTTP, by path. */
export function dashboardPages({ view, readings, metrics, clock }: PagesOptions): Map<string, PageMaker> {
  const kept = <K extends keyof Answers>(ask: K, ms: number, shown?: RowsAsked["shown"]) =>
    new KeptReading(clock, ms, async (): Promise<Kept<K>> => {
      const value = await readings.ask(ask, shown);
      return { value, page: json(value) };
    });
  const status = kept("status", STATUS_KEPT_MS);
  const latest = kept("latest", LATEST_KEPT_MS);
  const missing = kept("missing", PICTURE_KEPT_MS);
  const heatMaps = new Map<string, KeptReading<Kept<"coverage">>>();
  const heatMap = ({ key, shown }: RowsAsked) => {
    const known = heatMaps.get(key) ?? kept("coverage", PICTURE_KEPT_MS, shown);
    heatMaps.delete(key);
    heatMaps.set(key, known);
    const oldest = heatMaps.keys().next().value;
    if (heatMaps.size > MOST_VARIANTS && oldest !== undefined) heatMaps.delete(oldest);
    return known;
  };
  const pages: [string, PageMaker][] = [
    ["/healthz", () => health(view)],
    ["/readyz", () => (view.ready() ? plain(200, "ready") : plain(503, `not ready: ${view.activity()}`))],
    ["/metrics", async () => exposition(view, metrics, await orNothing(status))],
    ["/api/status", () => answered(status)],
    ["/api/daemon", async () => json(daemonPage(view, await orNothing(status)))],
    ["/api/latest", () => answered(latest)],
    ["/api/missing", () => answered(missing)],
    ["/api/coverage", (query) => answered(heatMap(rowsAsked(query)))],
  ];
  return new Map([...staticPages(), ...pages]);
}

function staticPages(): [string, PageMaker][] {
  return Object.entries(files).map(([path, [file, type]]) => {
    const page: Page = { type, body: readFileSync(new URL(`./page/${file}`, import.meta.url), "utf8") };
    return [path, () => page];
  });
}

function health(view: DaemonView): Page {
  const problem = view.problem();
  return problem === undefined ? plain(200, "ok") : plain(503, problem);
}

async function exposition(view: DaemonView, metrics: Metrics, status?: WarehouseStatus): Promise<Page> {
  if (status) metrics.streams(status.streams);
  metrics.health(view.ready(), view.problem() === undefined);
  return { type: "text/plain; version=0.0.4", body: await metrics.text() };
}

/** What the daemon itself knows; `/api/status` is what the warehouse knows. */
function daemonPage(view: DaemonView, status: WarehouseStatus | undefined) {
  const facts = { ready: view.ready(), problem: view.problem(), activity: view.activity() };
  return {
    generated_at: formatInstant(view.now()),
    version: view.version,
    started_at: formatInstant(view.startedAt),
    ...facts,
    problem: facts.problem ?? null,
    ...describeState({ ...facts, streams: status?.streams, disk: status?.disk }),
    requests_per_second: view.requestsPerSecond(),
    errors: view.recentErrors().map(({ firstAt, lastAt, ...error }) => ({
      ...error,
      first_at: formatInstant(Math.floor(firstAt) * MICROS_PER_MS),
      last_at: formatInstant(Math.floor(lastAt) * MICROS_PER_MS),
    })),
  };
}

/** Before the warehouse is there, or when it cannot be read, a page says so instead of failing. */
async function answered(reading: KeptReading<{ readonly page: Page }>): Promise<Page> {
  try {
    return (await reading.get()).page;
  } catch (error) {
    return json({ error: error instanceof Error ? error.message : String(error) }, 503);
  }
}

async function orNothing<T>(reading: KeptReading<{ readonly value: T }>): Promise<T | undefined> {
  try {
    return (await reading.get()).value;
  } catch {
    return undefined;
  }
}
