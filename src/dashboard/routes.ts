import { formatTimestamp, MICROS_PER_MS } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { WarehouseStatus } from "../warehouse/read/status.ts";
import { CachedValue, KeyedCache, ThrottledQueue } from "./cache.ts";
import type { DaemonView } from "./daemon-status.ts";
import { describeDaemonState } from "./daemon-status.ts";
import { jsonResponse, type PageResponse, type RequestHandler, textResponse } from "./http-server.ts";
import type { ParamsOf, QueryResults } from "./page-queries.ts";
import { parseBarsQuery, parseRowsQuery } from "./query-params.ts";
import type { ReaderThread } from "./reader-thread.ts";
import { createFileRoutes } from "./static-files.ts";

interface RoutesOptions {
  readonly view: DaemonView;
  readonly reader: Pick<ReaderThread, "query" | "queryBytes">;
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "monotonic" | "beginWork" | "beginWait" | "sleep">;
}

const STATUS_TTL_MS = 3_000;
const LATEST_TTL_MS = 2_000;
const PICTURE_TTL_MS = 10_000;
const BARS_TTL_MS = 2_000;
/** Per kind of page. */
const MAX_CACHED_VARIANTS = 16;
const MAX_NAME_LENGTH = 80;

interface CachedResponse {
  readonly response: PageResponse;
}

/** Everything that is served over HTTP, by path. */
export function createRoutes({ view, reader, metrics, clock }: RoutesOptions): Map<string, RequestHandler> {
  const status = new CachedValue(clock, STATUS_TTL_MS, async () => {
    const value = await reader.query("status");
    return { value, response: jsonResponse(value) };
  });
  const fetchPage = async <K extends keyof QueryResults>(
    kind: K,
    ...params: ParamsOf<K>
  ): Promise<CachedResponse> => {
    const body = await reader.queryBytes(kind, ...params);
    return {
      response: body
        ? { type: "application/json", body }
        : textResponse(404, "no index has this type and id"),
    };
  };
  const latest = new CachedValue(clock, LATEST_TTL_MS, () => fetchPage("latest"));
  const missing = new CachedValue(clock, PICTURE_TTL_MS, () => fetchPage("missing"));
  const exposition = new MetricsPage(view, metrics);
  const queue = new ThrottledQueue(clock);
  const createCache = (minTtlMs: number) =>
    new KeyedCache<CachedResponse>({ clock, queue, minTtlMs, maxEntries: MAX_CACHED_VARIANTS });
  const heatMapCache = createCache(PICTURE_TTL_MS);
  const heatMap: RequestHandler = (query) => {
    const { key, shown } = parseRowsQuery(query);
    return respond(heatMapCache.entry(key, () => fetchPage("coverage", shown)));
  };
  const seriesCache = createCache(PICTURE_TTL_MS);
  const series: RequestHandler = (query) => {
    const name = (query.get("name") ?? "").trim().slice(0, MAX_NAME_LENGTH);
    return respond(seriesCache.entry(name, () => fetchPage("series", name)));
  };
  const barsCache = createCache(BARS_TTL_MS);
  const bars: RequestHandler = (query) => {
    const parsed = parseBarsQuery(query, view.now());
    if (typeof parsed === "string") return textResponse(400, parsed);
    return respond(barsCache.entry(JSON.stringify(parsed), () => fetchPage("bars", parsed)));
  };
  const pages: [string, RequestHandler][] = [
    ["/healthz", () => healthResponse(view)],
    [
      "/readyz",
      () =>
        view.isReady() ? textResponse(200, "ready") : textResponse(503, `not ready: ${view.activity()}`),
    ],
    ["/metrics", async () => exposition.page(await valueOrUndefined(status))],
    ["/api/status", () => respond(status)],
    ["/api/daemon", async () => jsonResponse(daemonJson(view, await valueOrUndefined(status)))],
    ["/api/latest", () => respond(latest)],
    ["/api/missing", () => respond(missing)],
    ["/api/coverage", heatMap],
    ["/api/series", series],
    ["/api/bars", bars],
  ];
  return new Map([...createFileRoutes(), ...pages]);
}

function healthResponse(view: DaemonView): PageResponse {
  const problem = view.problem();
  return problem === undefined ? textResponse(200, "ok") : textResponse(503, problem);
}

/** Serves the metrics. Equal texts share one buffer, because many slow clients may hold it. */
class MetricsPage {
  readonly #view: DaemonView;
  readonly #metrics: Metrics;
  #cached: { readonly text: string; readonly page: PageResponse } | undefined;

  constructor(view: DaemonView, metrics: Metrics) {
    this.#view = view;
    this.#metrics = metrics;
  }

  async page(status?: WarehouseStatus): Promise<PageResponse> {
    if (status) this.#metrics.setStreams(status.streams);
    this.#metrics.setHealth(this.#view.isReady(), this.#view.problem() === undefined);
    const text = await this.#metrics.exposition();
    if (this.#cached?.text !== text) {
      this.#cached = { text, page: { type: "text/plain; version=0.0.4", body: Buffer.from(text) } };
    }
    return this.#cached.page;
  }
}

/** What the daemon knows; `/api/status` has what the warehouse knows. */
function daemonJson(view: DaemonView, status: WarehouseStatus | undefined) {
  const facts = { ready: view.isReady(), problem: view.problem(), activity: view.activity() };
  return {
    generated_at: formatTimestamp(view.now()),
    version: view.version,
    started_at: formatTimestamp(view.startedAt),
    ...facts,
    problem: facts.problem ?? null,
    ...describeDaemonState({
      isReady: facts.ready,
      problem: facts.problem,
      activity: facts.activity,
      streams: status?.streams,
      disk: status?.disk,
    }),
    requests_per_second: view.requestsPerSecond(),
    errors: view.recentErrors().map(({ firstAt, lastAt, ...error }) => ({
      ...error,
      first_at: formatTimestamp(Math.floor(firstAt) * MICROS_PER_MS),
      last_at: formatTimestamp(Math.floor(lastAt) * MICROS_PER_MS),
    })),
  };
}

/** Answers 503 with the error while the warehouse does not exist or cannot be read. */
async function respond(cached: CachedValue<CachedResponse>): Promise<PageResponse> {
  try {
    return (await cached.get()).response;
  } catch (error) {
    return jsonResponse({ error: error instanceof Error ? error.message : String(error) }, 503);
  }
}

async function valueOrUndefined<T>(cached: CachedValue<{ readonly value: T }>): Promise<T | undefined> {
  try {
    return (await cached.get()).value;
  } catch {
    return undefined;
  }
}
