import { describe, expect, it } from "vitest";
import { DaemonTelemetry } from "../../src/daemon/daemon-telemetry.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the daemon's recent errors", () => {
  it("B17: list requests that are retried, by endpoint and cause", () => {
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
});
