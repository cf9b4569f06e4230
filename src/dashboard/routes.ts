import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import type { ErrorAnswer } from "../model/answers/query.ts";
import type { StatusReport, WarehouseStatus } from "../model/status/warehouse-status.ts";
import { formatTimestamp, MICROS_PER_MS } from "../model/time.ts";
import { pagesFolder } from "../runtime/child-process.ts";
import type { Clock } from "../runtime/clock.ts";
import type { HttpResponse } from "../runtime/http-server.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { DaemonAnswer } from "./api-answers.ts";
import { type DaemonView, describeDaemonState } from "./daemon-status.ts";
import { jsonBytes, jsonResponse, type RequestHandler, textResponse } from "./dashboard-server.ts";
import { LiveEvents } from "./live-events.ts";
import { type PageKind, type PageParams, pageRequests } from "./query-params.ts";
import type { ReaderThread } from "./reader-thread.ts";
import { TtlCache } from "./ttl-cache.ts";

type Reader = Pick<ReaderThread, "query" | "queryBytes">;

interface RoutesOptions {
  readonly view: DaemonView;
  readonly reader: Reader;
  readonly marketReader: Reader;
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "monotonic" | "beginWork" | "after">;
}

const METRICS_TTL_MS = 500;
/** Pages ask every few seconds: they get what was read last, while the next answer is read. */
const STATUS_TTL = { minTtlMs: 3_000, maxTtlMs: 10_000, maxStaleMs: 5_000 };

/** `live` is to be notified of each commit of the daemon. */
export function createRoutes(options: RoutesOptions) {
  const { view, reader, marketReader, metrics, clock } = options;
  const statuses = new TtlCache<StatusReport>(clock);
  const expositions = new TtlCache<HttpResponse>(clock);

  const live = new LiveEvents({
    clock,
    version: view.version,
    problem: () => view.problem() ?? (view.isCutOff() ? "the service does not answer" : undefined),
  });

  const readStatus = () =>
    statuses.get("status", STATUS_TTL, async () => ({
      ...(await reader.query("status", {})),
      service: view.service(),
      problem: view.problem() ?? null,
      shared: view.shared?.() ?? null,
    }));
  const readStatusIfPossible = () => readStatus().catch(() => undefined);
  const readiness = () => (view.isReady() ? "ready" : `not ready: ${view.activity()}`);
  const readMetrics = async () => {
    const status = await readStatusIfPossible();
    return expositions.get("metrics", { minTtlMs: METRICS_TTL_MS }, async () => {
      if (status) metrics.setStreams(status.streams);
      metrics.set("ready", view.isReady() ? 1 : 0);
      metrics.set("healthy", view.problem() === undefined ? 1 : 0);
      return { type: "text/plain; version=0.0.4; charset=utf-8", body: await metrics.exposition() };
    });
  };
  /** Each kind has a cache of its own: a flood of variants of one must not block the others. */
  const answer = <K extends PageKind>(kind: K): [path: string, RequestHandler] => {
    const { minTtlMs, hasPrices, parse } = pageRequests[kind];
    const cache = new TtlCache<HttpResponse>(clock);
    const read = async (params: PageParams[K]): Promise<HttpResponse> => {
      const body = await (hasPrices ? marketReader : reader).queryBytes(kind, params);
      return body ? jsonBytes(body) : textResponse(404, "no index has this type and id");
    };
    const handle: RequestHandler = (query) => {
      const params = parse(query, view.now());
      if (typeof params === "string") return textResponse(400, params);
      return respond(cache.get(JSON.stringify(params), { minTtlMs }, () => read(params)));
    };
    return [`/api/${kind}`, handle];
  };
  const routes: [string, RequestHandler][] = [
    ["/healthz", () => textResponse(view.problem() === undefined ? 200 : 503, view.problem() ?? "ok")],
    ["/readyz", () => textResponse(view.isReady() ? 200 : 503, readiness())],
    ["/metrics", readMetrics],
    ["/api/status", () => respond(readStatus().then((report) => jsonResponse(report)))],
    ["/api/daemon", async () => jsonResponse(daemonJson(view, await readStatusIfPossible()))],
    ["/api/events", () => live.open()],
    ...(Object.keys(pageRequests) as PageKind[]).map(answer),
  ];
  return { routes: new Map([...createFileRoutes(), ...routes]), live };
}

function daemonJson(view: DaemonView, status?: WarehouseStatus): DaemonAnswer {
  const toTime = (ms: number) => formatTimestamp(Math.floor(ms) * MICROS_PER_MS);
  return {
    generated_at: formatTimestamp(view.now()),
    version: view.version,
    started_at: formatTimestamp(view.startedAt),
    problem: view.problem() ?? null,
    ...describeDaemonState(view, status),
    service: view.service(),
    shared: view.shared?.() ?? null,
    backfill: view.backfill?.() ?? null,
    requests_per_second: view.requestsPerSecond(),
    serve: view.serve?.() ?? null,
    errors: view.recentErrors().map(({ firstAt, lastAt, ...error }) => ({
      ...{ ...error, first_at: toTime(firstAt), last_at: toTime(lastAt) },
    })),
  };
}

/** Answers 503 with the error while the warehouse does not exist or cannot be read. */
const respond = (page: Promise<HttpResponse>) =>
  page.catch((error: unknown) => {
    const answer: ErrorAnswer = { error: error instanceof Error ? error.message : String(error) };
    return jsonResponse(answer, 503);
  });

const TYPES = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" };

/** The pages about one thing, which their path names. */
const namedPages = ["/assets", "/bars", "/exchanges", "/derivatives"];

/** The list of all assets is the market. */
const toMarket: HttpResponse = { ...textResponse(302, "/"), headers: { location: "/" } };

/** Routes for the bundled pages. They are read once: the path of a request never becomes a file path. */
function createFileRoutes(): [string, RequestHandler][] {
  if (!existsSync(pagesFolder))
    throw new Error("the pages of the dashboard are not built: run `npm run build`");
  return readdirSync(pagesFolder)
    .sort()
    .flatMap((file): [string, RequestHandler][] => {
      const kind = TYPES[extname(file).slice(1) as keyof typeof TYPES];
      if (!kind) return [];
      const body = readFileSync(join(pagesFolder, file));
      const digest = createHash("sha256").update(body).digest("base64url");
      const page: HttpResponse = { type: `${kind}; charset=utf-8`, body, etag: `W/"${digest}"` };
      const path = `/${file.replace(/\.html$/, "")}`;
      const paths = [path, ...(path === "/market" ? ["/"] : namedPages.includes(path) ? [`${path}/*`] : [])];
      return paths.map((one) => [one, () => (one === "/assets" ? toMarket : page)]);
    });
}
