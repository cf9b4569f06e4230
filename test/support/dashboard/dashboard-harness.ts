import { onTestFinished } from "vitest";
import type { DaemonView } from "../../../src/dashboard/daemon-status.ts";
import { startHttpServer } from "../../../src/dashboard/http-server.ts";
import { Readings } from "../../../src/dashboard/reader-thread.ts";
import { dashboardPages } from "../../../src/dashboard/routes.ts";
import { MICROS_PER_MS } from "../../../src/model/time.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { Metrics } from "../../../src/telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "../../../src/telemetry/recent-activity.ts";
import { hostileName } from "./filled-warehouse.ts";

export interface Staged {
  ready: boolean;
  problem: string | undefined;
  activity: string;
}

/** The pages of a daemon that stands as `staged` says, over real HTTP. */
export async function servePages(path: string, clock: Clock = systemClock) {
  const staged: Staged = { ready: true, problem: undefined, activity: "following the live feed" };
  const errors = new RecentErrors(clock);
  const rate = new RequestRate(clock);
  const now = () => Math.floor(systemClock.now()) * MICROS_PER_MS;
  const view: DaemonView = {
    version: "0.1.0",
    startedAt: now() - 5 * 3600 * 1_000_000,
    now,
    ready: () => staged.ready,
    problem: () => staged.problem,
    activity: () => staged.activity,
    requestsPerSecond: () => rate.perSecond(),
    recentErrors: () => errors.list(),
  };
  const metrics = new Metrics(clock, view.version);
  const readings = new Readings({ path, clock, now });
  const failures: unknown[] = [];
  let asked = 0;
  const counted: Pick<Readings, "ask" | "askBytes"> = {
    ask: (kind, ...detail) => {
      asked++;
      return readings.ask(kind, ...detail);
    },
    askBytes: (kind, ...detail) => {
      asked++;
      return readings.askBytes(kind, ...detail);
    },
  };
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    failed: (error) => failures.push(error),
    pages: dashboardPages({ view, readings: counted, metrics, clock }),
  });
  onTestFinished(async () => {
    await server.close();
    await readings.close();
  });
  const fetchPage = async (page: string) => {
    const response = await fetch(new URL(page, server.address));
    return {
      status: response.status,
      type: response.headers.get("content-type"),
      body: await response.text(),
    };
  };
  return { address: server.address, fetchPage, staged, errors, rate, metrics, failures, asked: () => asked };
}

/** Errors as they come from a service that means no good. */
export function noteErrors(errors: RecentErrors): void {
  errors.note({ where: "/derivatives/ticker/{type}", code: "forbidden", message: "403 Forbidden" });
  for (let i = 0; i < 3; i++)
    errors.note({ where: "/index-ticker", code: "http_503", message: `503 ${hostileName}` });
}
