import { describe, expect, it } from "vitest";
import { DaemonTelemetry } from "../../src/daemon/daemon-telemetry.ts";
import { createForwardingLog, type LogEntry, silentLog } from "../../src/runtime/log.ts";
import { ProblemLog } from "../../src/sync/context/problem-log.ts";
import { ManualClock } from "../support/manual-clock.ts";

it("B17: the daemon's recent errors list requests that are retried, by endpoint and cause", () => {
  const telemetry = new DaemonTelemetry({ clock: new ManualClock(), version: "0.1.0", log: silentLog });
  const event = { kind: "request", endpoint: "/ohlcv", ms: 5, bytes: 0, attempt: 1, stale: false } as const;
  for (let at = 0; at < 12; at++)
    telemetry.onClientEvent({ ...event, status: 429, outcome: "too_many_requests" });
  telemetry.onClientEvent({ ...event, status: 200, outcome: "malformed_body" });
  telemetry.onClientEvent({ ...event, status: 200, outcome: "ok" });
  expect(telemetry.recentErrors.list()).toMatchObject([
    { where: "/ohlcv", code: "malformed_body", count: 1 },
    { where: "/ohlcv", code: "too_many_requests", count: 12, message: "HTTP 429: the request is retried" },
  ]);
});

describe("a series that fails alone", () => {
  it("is named in the log, once, in the stream's last error and in the recent errors", () => {
    const entries: LogEntry[] = [];
    const log = createForwardingLog((entry) => entries.push(entry));
    const telemetry = new DaemonTelemetry({ clock: new ManualClock(), version: "0.1.0", log });
    const problem = { stream: "index_ticks", code: "server_failure", message: "HTTP 500" } as const;
    const report = (...names: string[]) =>
      telemetry.setProblems(
        "heads",
        names.map((what) => ({ ...problem, what })),
      );
    report("GWA BTC");
    report("GWA BTC", "GWA ETH");
    report();
    const line = (series: string) => ({
      level: "warn",
      fields: { stream: "index_ticks", series, code: "server_failure", message: "HTTP 500" },
      message: "series could not be synced",
    });
    expect(entries).toEqual([line("GWA BTC"), line("GWA ETH")]);
    report("GWA BTC");
    expect(entries).toHaveLength(3);
    const message = "GWA BTC: HTTP 500";
    expect(telemetry.recentErrors.list()).toContainEqual(expect.objectContaining({ message }));
    expect(telemetry.streamErrors.takeChanges([])).toContainEqual({
      stream: "index_ticks",
      error: message,
      missingScopes: [],
    });
  });

  it("gives way to the next one when it works again", () => {
    const named: (string | undefined)[][] = [];
    const log = new ProblemLog((problems) => void named.push(problems.map(({ what }) => what)));
    const problem = { stream: "index_ticks", code: "server_failure", message: "HTTP 500" } as const;
    log.report("1", { ...problem, what: "GWA BTC" });
    log.report("2", { ...problem, what: "GWA ETH" });
    log.clear("1");
    log.clear("2");
    expect(named).toEqual([["GWA BTC"], ["GWA ETH"], []]);
  });
});
