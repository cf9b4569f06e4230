import { describe, expect, it } from "vitest";
import {
  describeRecentFailures,
  describeServiceCondition,
  type ServiceCondition,
} from "../../../src/model/status/service-condition.ts";

const calm: ServiceCondition = {
  concurrency: 8,
  per_second: null,
  reason: "settings",
  limit: null,
  limit_since: null,
  throttled: false,
  open_breakers: [],
  recent_failures: {},
};
const tell = (more: Partial<ServiceCondition>) => describeServiceCondition({ ...calm, ...more });

describe("the condition of the service", () => {
  it("is not worth a word while all is well", () => {
    expect(tell({})).toBeUndefined();
    expect(describeRecentFailures(calm)).toBeUndefined();
  });

  it("tells what limits the requests, and since when", () => {
    const limit = "the service accepts 12 requests a second";
    expect(tell({ reason: "rate_limited", limit, limit_since: "2026-03-01T12:07:10.123Z" })).toBe(
      "the service accepts 12 requests a second, since 2026-03-01 12:07 UTC",
    );
    expect(tell({ limit })).toBe(limit);
  });

  it("names the endpoints that keep failing, or the whole service, before the limit", () => {
    expect(tell({ open_breakers: ["/market-cap"] })).toBe("/market-cap keeps failing at the service");
    expect(tell({ open_breakers: ["/a", "/b"] })).toBe("/a, /b keep failing at the service");
    const limit = "the service asked for a pause (Retry-After)";
    expect(tell({ open_breakers: ["/a", "host"], reason: "paused", limit })).toBe(
      "the service does not answer, and the service asked for a pause (Retry-After)",
    );
    const earlier = "15 % of the requests fail, whatever the speed";
    expect(tell({ open_breakers: ["host"], limit: earlier })).toBe("the service does not answer");
  });

  it("tells what was retried in words, never by a bare code", () => {
    const recent_failures = { too_many_requests: 12, malformed_body: 3, http_418: 2, odd_one: 1 };
    expect(describeRecentFailures({ ...calm, recent_failures })).toBe(
      "requests retried in the last 10 minutes: 12 × too many requests (429), 3 × unreadable answer, " +
        "2 × unexpected answer (418), 1 × odd one",
    );
    expect(describeRecentFailures({ ...calm, recent_failures: { endpoint_failing: 1 } })).toMatch(
      /: 1 × an endpoint keeps failing$/,
    );
  });
});
