import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { DaemonView } from "../../../src/dashboard/daemon-status.ts";
import { startDashboardServer } from "../../../src/dashboard/dashboard-server.ts";
import { ReaderThread } from "../../../src/dashboard/reader-thread.ts";
import { createRoutes } from "../../../src/dashboard/routes.ts";
import { QueryRunner } from "../../../src/export/query/query-runner.ts";
import type { ServiceCondition } from "../../../src/model/status/service-condition.ts";
import type { ShareStatus } from "../../../src/model/status/share-status.ts";
import { MICROS_PER_MS } from "../../../src/model/time.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "../../../src/telemetry/recent-activity.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { processEntry } from "../build-program.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import type { AtEnd } from "../temporary-folder.ts";
import { openFilledWarehouse } from "../warehouse/filled-warehouse.ts";
import { hostileName } from "./heatmap-content.ts";

interface DaemonStub {
  isReady: boolean;
  problem: string | undefined;
  backfill: ReturnType<NonNullable<DaemonView["backfill"]>>;
  activity: string;
  service: ServiceCondition;
  shared: ShareStatus | undefined;
}

export const unlimited: ServiceCondition = {
  ...{ concurrency: 8, per_second: null, reason: "settings", limit: null, limit_since: null },
  ...{ throttled: false, open_breakers: [], recent_failures: {} },
};

/** Serves the dashboard over HTTP for a stub daemon, whose state the test can change. Its time is at most `latestNow`. */
export async function serveDashboard(
  path: string,
  clock: Clock = systemClock,
  atEnd: AtEnd = onTestFinished,
  latestNow = () => Number.POSITIVE_INFINITY,
) {
  const daemon: DaemonStub = {
    ...{ isReady: true, problem: undefined, backfill: undefined, shared: undefined },
    ...{ activity: "following the live feed", service: unlimited },
  };
  const errors = new RecentErrors(clock);
  const rate = new RequestRate(clock);
  const now = () => Math.min(latestNow(), Math.floor(systemClock.now()) * MICROS_PER_MS);
  const view: DaemonView = {
    version: "0.1.0",
    startedAt: now() - 5 * 3600 * 1_000_000,
    now,
    isReady: () => daemon.isReady,
    hasSelection: () => true,
    problem: () => daemon.problem,
    isCutOff: () => false,
    backfill: () => daemon.backfill,
    activity: () => daemon.activity,
    service: () => daemon.service,
    shared: () => daemon.shared,
    requestsPerSecond: () => rate.perSecond(),
    recentErrors: () => errors.list(),
  };
  const metrics = new Metrics(clock, view.version);
  const reader = new ReaderThread({
    ...{ path, now, clock: systemClock, log: silentLog },
    startWorker: startIngestInProcess,
  });
  const processFile = processEntry("query-process");
  const queries = new QueryRunner({ path, now, clock: systemClock, processFile });
  const failures: unknown[] = [];
  let queryCount = 0;
  const queryBytes = reader.queryBytes.bind(reader);
  reader.queryBytes = (...asked) => {
    queryCount++;
    return queryBytes(...asked);
  };
  const { routes, live } = createRoutes({ view, metrics, clock, reader, marketReader: reader });
  const server = await startDashboardServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    onError: (error) => failures.push(error),
    routes,
    queries,
  });
  atEnd(async () => {
    queries.close();
    await server.close();
    await reader.close();
  });
  const fetchPage = async (page: string) => {
    const response = await fetch(new URL(page, server.origin));
    const type = response.headers.get("content-type");
    return { status: response.status, type, body: await response.text() };
  };
  const told = { daemon, errors, rate, metrics, failures, countQueries: () => queryCount };
  const notifyCommit = (news: Parameters<typeof live.notify>[0]) => live.notify(news);
  return { address: `${server.origin}/`, fetchPage, ...told, notifyCommit };
}

/** Serves a warehouse with this content. `query` reads the warehouse itself, to compare a page with. */
export async function serveFilled(
  fill: (transaction: Transaction) => void,
  atEnd: AtEnd = onTestFinished,
  latestNow?: () => number,
) {
  const warehouse = openFilledWarehouse(fill, atEnd);
  const query = <Row = Record<string, unknown>>(sql: string) =>
    warehouse.connection.database.prepare<[], Row>(sql).all();
  return { ...(await serveDashboard(warehouse.path, systemClock, atEnd, latestNow)), warehouse, query };
}

/** `fetch` sends neither any path nor any Host header. */
export function sendRequest(
  port: number,
  path: string,
  options: { host?: string; method?: string; headers?: Record<string, string>; body?: string } = {},
) {
  const { host = "localhost", method = "GET", headers = {}, body: sent } = options;
  const target = { host: "127.0.0.1", port, path, method, headers: { host, ...headers } };
  type Answer = { status: number; body: string; headers: Record<string, unknown> };
  return new Promise<Answer>((resolve, reject) => {
    const take = async (response: IncomingMessage): Promise<Answer> => ({
      ...{ status: response.statusCode ?? 0, headers: response.headers, body: await text(response) },
    });
    request(target, (response) => resolve(take(response)))
      .on("error", reject)
      .end(sent);
  });
}

/** Records errors, some with a hostile text. */
export function recordSampleErrors(errors: RecentErrors): void {
  errors.record({ where: "/derivatives/ticker/{type}", code: "forbidden", message: "403 Forbidden" });
  for (let i = 0; i < 3; i++)
    errors.record({ where: "/index-ticker", code: "http_503", message: `503 ${hostileName}` });
}
