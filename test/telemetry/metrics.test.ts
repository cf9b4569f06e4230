import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { metricsFile, metricsPage } from "../../scripts/metrics-page.ts";
import { METRIC_PREFIX, type MetricDeclaration, metricTable } from "../../src/telemetry/metric-table.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { ManualClock } from "../support/manual-clock.ts";

const request = {
  kind: "request",
  endpoint: "/index-ticker",
  status: 200,
  outcome: "ok",
  ms: 40,
  bytes: 1000,
  attempt: 1,
  stale: false,
} as const;

function start() {
  const clock = new ManualClock();
  const metrics = new Metrics(clock, "1.2.3");
  /** The values of the exposition, by name and labels. */
  const read = async () => {
    await clock.advance(1_000);
    const lines = (await metrics.exposition()).split("\n").filter((line) => line && !line.startsWith("#"));
    return new Map(
      lines.map((line) => {
        const space = line.lastIndexOf(" ");
        const value = Number(line.slice(space + 1).replace("+Inf", "Infinity"));
        return [line.slice(METRIC_PREFIX.length, space), value];
      }),
    );
  };
  return { clock, metrics, read };
}

describe("the metrics", () => {
  it("count requests by endpoint and outcome, their time, bytes and retries", async () => {
    const { metrics, read } = start();
    metrics.observe(request);
    metrics.observe({ ...request, attempt: 2, ms: 900, stale: true });
    metrics.observe({ ...request, outcome: "http_503", bytes: 0 });
    const values = await read();
    expect(values.get('requests_total{endpoint="/index-ticker",outcome="ok"}')).toBe(2);
    expect(values.get('requests_total{endpoint="/index-ticker",outcome="http_503"}')).toBe(1);
    expect(values.get('request_seconds_bucket{le="0.05",endpoint="/index-ticker"}')).toBe(2);
    expect(values.get('request_seconds_count{endpoint="/index-ticker"}')).toBe(3);
    expect(values.get('response_bytes_total{endpoint="/index-ticker"}')).toBe(2000);
    expect(values.get('request_retries_total{endpoint="/index-ticker"}')).toBe(1);
    expect(values.get('stale_answers_total{endpoint="/index-ticker"}')).toBe(1);
    expect(values.get("last_answer_timestamp_seconds")).toBe(Date.parse("2026-03-01T12:00:00Z") / 1000);
  });

  it("show exactly one state of the tokens and of ingest at a time", async () => {
    const { metrics, read } = start();
    metrics.observe({ kind: "auth", audience: "https://user:pass@md.example", state: "ok" });
    metrics.observe({ kind: "auth", audience: "wss://md.example/ws", state: "credentials_rejected" });
    metrics.setIngest(3, "disk_full");
    const values = await read();
    const ones = [...values].filter(([name, value]) => /^(auth|ingest)_state/.test(name) && value === 1);
    expect(ones.map(([name]) => name)).toEqual([
      'auth_state{audience="rest",state="ok"}',
      'auth_state{audience="live",state="credentials_rejected"}',
      'ingest_state{state="disk_full"}',
    ]);
    expect(values.get("ingest_queued")).toBe(3);
  });

  it("show the figures of each stream, and remove the age of a stream without rows", async () => {
    const { metrics, read } = start();
    const figures = {
      stream: "index_ticks" as const,
      rows: 7,
      open: 2,
      open_seconds: 90,
      unconfirmed: 5,
      oldest_open_age_s: 3600,
      lost: 1,
      lost_seconds: 30,
      newest_age_s: 12,
      is_followed: true,
      last_error: "403 Forbidden",
      missing_scopes: ["read:LX"],
    };
    metrics.setStreams([figures]);
    const values = await read();
    expect(values.get('open_ranges{stream="index_ticks"}')).toBe(2);
    expect(values.get('unconfirmed_ranges{stream="index_ticks"}')).toBe(5);
    expect(values.get('oldest_open_age_seconds{stream="index_ticks"}')).toBe(3600);
    expect(values.get('lost_seconds{stream="index_ticks"}')).toBe(30);
    expect(values.get('newest_age_seconds{stream="index_ticks"}')).toBe(12);
    expect(values.get('stream_failing{stream="index_ticks"}')).toBe(1);
    expect(values.get('missing_scopes{stream="index_ticks"}')).toBe(1);
    for (const change of [{ newest_age_s: null }, { is_followed: false }]) {
      metrics.setStreams([figures]);
      metrics.setStreams([{ ...figures, oldest_open_age_s: null, ...change }]);
      const later = await read();
      expect(later.has('newest_age_seconds{stream="index_ticks"}')).toBe(false);
      expect(later.get('oldest_open_age_seconds{stream="index_ticks"}')).toBe(0);
    }
  });

  it("let no identifier, token or flood of values into a label", async () => {
    const { metrics, read } = start();
    const secrets = [
      "/asset/1f0c7a52-6f0e-4f9e-8f10-0a5b7f3a9c11",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
      'quoted"} 1\nmds_sync_up 0',
    ];
    for (const secret of secrets) metrics.observe({ ...request, endpoint: secret, outcome: secret });
    for (let i = 0; i < 500; i++) metrics.observe({ kind: "feed", event: "ended", reason: `close_${i}` });
    const values = await read();
    expect(values.get('requests_total{endpoint="other",outcome="other"}')).toBe(3);
    expect([...values.keys()].filter((name) => name.startsWith("feed_events_total"))).toHaveLength(65);
    expect(await metrics.exposition()).not.toMatch(/1f0c7a52|eyJ|quoted/);
  });
});

describe("docs/metrics.md", () => {
  const declared: [string, MetricDeclaration][] = Object.entries(metricTable);

  it("equals the table of the metrics", () => {
    expect(readFileSync(metricsFile, "utf8"), "run `npm run docs`").toBe(metricsPage());
  });

  it("lists exactly the metrics of the exposition", async () => {
    const { metrics } = start();
    const names = [...(await metrics.exposition()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
      ([, name, type]) => [name, type],
    );
    expect(names).toEqual(declared.map(([name, { type }]) => [METRIC_PREFIX + name, type]));
  });
});
