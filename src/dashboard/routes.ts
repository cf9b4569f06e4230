import { formatInstant, MICROS_PER_MS } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { WarehouseStatus } from "../warehouse/read/status.ts";
import { KeptReading, KeptVariants, TakingTurns } from "./cache.ts";
import type { DaemonView } from "./daemon-status.ts";
import { describeState } from "./daemon-status.ts";
import { json, type Page, type PageMaker, plain } from "./http-server.ts";
import type { Answers, DetailOf } from "./page-queries.ts";
import { barsAsked, rowsAsked } from "./query-params.ts";
import type { Readings } from "./reader-thread.ts";
import { filePages } from "./static-files.ts";

export interface PagesOptions {
  readonly view: DaemonView;
  readonly readings: Pick<Readings, "ask" | "askBytes">;
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "monotonic" | "hold" | "waive" | "sleep">;
}

const STATUS_KEPT_MS = 3_000;
const LATEST_KEPT_MS = 2_000;
const PICTURE_KEPT_MS = 10_000;
const BARS_KEPT_MS = 2_000;
/** Of each kind of page that has them. */
const MOST_VARIANTS = 16;
const LONGEST_NAME = 80;

/** A page that is made once, however many ask for it. */
interface Kept {
  readonly page: Page;
}

/** All that is served over HTTP, by path. */
export function dashboardPages({ view, readings, metrics, clock }: PagesOptions): Map<string, PageMaker> {
  const status = new KeptReading(clock, STATUS_KEPT_MS, async () => {
    const value = await readings.ask("status");
    return { value, page: json(value) };
  });
  const page = async <K extends keyof Answers>(ask: K, ...detail: DetailOf<K>): Promise<Kept> => {
    const body = await readings.askBytes(ask, ...detail);
    return { page: body ? { type: "application/json", body } : plain(404, "no index has this type and id") };
  };
  const latest = new KeptReading(clock, LATEST_KEPT_MS, () => page("latest"));
  const missing = new KeptReading(clock, PICTURE_KEPT_MS, () => page("missing"));
  const exposition = new Exposition(view, metrics);
  const turns = new TakingTurns(clock);
  const variants = (leastMs: number) =>
    new KeptVariants<Kept>({ clock, turns, leastMs, most: MOST_VARIANTS });
  const heatMaps = variants(PICTURE_KEPT_MS);
  const heatMap: PageMaker = (query) => {
    const { key, shown } = rowsAsked(query);
    return answered(heatMaps.of(key, () => page("coverage", shown)));
  };
  const found = variants(PICTURE_KEPT_MS);
  const series: PageMaker = (query) => {
    const name = (query.get("name") ?? "").trim().slice(0, LONGEST_NAME);
    return answered(found.of(name, () => page("series", name)));
  };
  const drawn = variants(BARS_KEPT_MS);
  const bars: PageMaker = (query) => {
    const asked = barsAsked(query, view.now());
    if (typeof asked === "string") return plain(400, asked);
    return answered(drawn.of(JSON.stringify(asked), () => page("bars", asked)));
  };
  const pages: [string, PageMaker][] = [
    ["/healthz", () => health(view)],
    ["/readyz", () => (view.ready() ? plain(200, "ready") : plain(503, `not ready: ${view.activity()}`))],
    ["/metrics", async () => exposition.page(await orNothing(status))],
    ["/api/status", () => answered(status)],
    ["/api/daemon", async () => json(daemonPage(view, await orNothing(status)))],
    ["/api/latest", () => answered(latest)],
    ["/api/missing", () => answered(missing)],
    ["/api/coverage", heatMap],
    ["/api/series", series],
    ["/api/bars", bars],
  ];
  return new Map([...filePages(), ...pages]);
}

function health(view: DaemonView): Page {
  const problem = view.problem();
  return problem === undefined ? plain(200, "ok") : plain(503, problem);
}

/** The metrics. All who are given the same text share its bytes: many may be slow to take them. */
class Exposition {
  readonly #view: DaemonView;
  readonly #metrics: Metrics;
  #given: { readonly text: string; readonly page: Page } | undefined;

  constructor(view: DaemonView, metrics: Metrics) {
    this.#view = view;
    this.#metrics = metrics;
  }

  async page(status?: WarehouseStatus): Promise<Page> {
    if (status) this.#metrics.streams(status.streams);
    this.#metrics.health(this.#view.ready(), this.#view.problem() === undefined);
    const text = await this.#metrics.text();
    if (this.#given?.text !== text) {
      this.#given = { text, page: { type: "text/plain; version=0.0.4", body: Buffer.from(text) } };
    }
    return this.#given.page;
  }
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
async function answered(reading: KeptReading<Kept>): Promise<Page> {
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
