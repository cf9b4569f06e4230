import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SubscriptionStates } from "../../src/service/live/subscription-states.ts";
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
        return [
          line.slice(METRIC_PREFIX.length, space),
          Number(line.slice(space + 1).replace("+Inf", "Infinity")),
        ];
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

  it("show what limits the requests, and which endpoints fail", async () => {
    const { metrics, read } = start();
    const text = "the service accepts 9.5 requests a second";
    const limits = {
      concurrency: 4,
      perSecond: 9.5,
      reason: "rate_limited",
      text,
      since: 1_700_000_000_000,
    } as const;
    metrics.observe({ kind: "limits", limits });
    metrics.observe({ kind: "breaker", endpoint: "/market-cap", state: "open" });
    const limited = await read();
    expect(limited.get("request_concurrency_limit")).toBe(4);
    expect(limited.get("request_rate_limit")).toBe(9.5);
    expect(limited.get('request_limit_state{state="rate_limited"}')).toBe(1);
    expect(limited.get('request_limit_state{state="settings"}')).toBe(0);
    expect(limited.get('breaker_open{endpoint="/market-cap"}')).toBe(1);
    expect(limited.get(`request_limit_info{limit="${text}"}`)).toBe(1);
    expect(limited.get("request_limit_since_timestamp_seconds")).toBe(1_700_000_000);
    const none = { concurrency: 8, perSecond: undefined, reason: "settings", text: undefined } as const;
    metrics.observe({ kind: "limits", limits: { ...none, since: undefined } });
    const unlimited = await read();
    expect(unlimited.get("request_rate_limit")).toBe(Number.POSITIVE_INFINITY);
    expect([...unlimited.keys()].filter((name) => name.startsWith("request_limit_info"))).toEqual([
      'request_limit_info{limit="settings"}',
    ]);
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

  it("count the current subscriptions of the live feed by state", async () => {
    const { metrics, read } = start();
    const ids = ["live", "silent", "refused", "parked", "new"];
    const subscriptions = new SubscriptionStates(ids.map((indexId) => ({ source: "index", indexId })));
    metrics.onCollect(() => metrics.setFeed(subscriptions));
    const readCounts = async () => {
      const values = await read();
      const count = (state: string) => values.get(`feed_subscriptions{state="${state}"}`);
      return [values.get("feed_connected"), count("following"), count("doubt"), count("parked")];
    };
    expect(await readCounts()).toEqual([0, 0, 0, 0]);
    const [live, silent, refused, parked] = subscriptions.current;
    subscriptions.connect();
    live?.confirm();
    silent?.confirm();
    silent?.apply("silent");
    refused?.apply("refused");
    parked?.park("403", 0);
    expect(await readCounts()).toEqual([1, 1, 2, 1]);
    subscriptions.disconnect();
    expect(await readCounts()).toEqual([0, 0, 3, 1]);
    subscriptions.replace([]);
    expect(await readCounts()).toEqual([undefined, 0, 0, 0]);
  });

  it("count committed rows by stream and kind", async () => {
    const { metrics, read } = start();
    metrics.countCommit("index_ticks", "rest", { inserted: 2000, changed: 0, withdrawn: 1, rejected: 2 });
    metrics.countCommit("index_ticks", "live", { inserted: 10, outranked: 4 });
    metrics.countAlarm("mass_withdrawal");
    const values = await read();
    expect(values.get('rows_total{stream="index_ticks",kind="inserted"}')).toBe(2010);
    expect(values.get('rows_total{stream="index_ticks",kind="withdrawn"}')).toBe(1);
    expect(values.get('rows_total{stream="index_ticks",kind="changed"}')).toBe(0);
    expect(values.get('commits_total{stream="index_ticks",source="live"}')).toBe(1);
    expect(values.get('alarms_total{alarm="mass_withdrawal"}')).toBe(1);
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

  it("show the free space, and the seconds until the disk is full once they are known", async () => {
    const { metrics, read } = start();
    const size = { warehouseBytes: 1000, walBytes: 20, freeBytes: 5000 };
    metrics.setStorage({ ...size, daysUntilFull: undefined });
    expect((await read()).get("disk_full_seconds")).toBeNaN();
    metrics.setStorage({ ...size, daysUntilFull: 2.5 });
    const values = await read();
    expect(values.get("disk_full_seconds")).toBe(216_000);
    expect(values.get("wal_bytes")).toBe(20);
  });

  it("count jobs under a label that does not collide with Prometheus' own", async () => {
    const { metrics, read } = start();
    metrics.setJobSuccess("retention", 1_700_000_000);
    metrics.countJob("nightly", "ok");
    metrics.countJob("nightly", "incomplete");
    metrics.registerJob("upkeep");
    // Its last run before this start failed.
    metrics.registerJob("export", "export_unreachable");
    const values = await read();
    const failing = [...values].filter(([name]) => name.startsWith("job_failing"));
    expect(failing).toEqual([
      ['job_failing{task="nightly"}', 1],
      ['job_failing{task="upkeep"}', 0],
      ['job_failing{task="export"}', 1],
    ]);
    expect(values.get('jobs_total{task="nightly",outcome="incomplete"}')).toBe(1);
    expect(values.get('job_last_success_timestamp_seconds{task="nightly"}')).toBeGreaterThan(1_700_000_000);
    expect(values.get('job_last_success_timestamp_seconds{task="retention"}')).toBe(1_700_000_000);
    expect([...values.keys()].filter((name) => /[{,]job=/.test(name))).toEqual([]);
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
  const document = readFileSync(join(import.meta.dirname, "../../docs/metrics.md"), "utf8");
  const declared: [string, MetricDeclaration][] = Object.entries(metricTable);

  it("has one line for every metric, with its type, labels and meaning", () => {
    const lines = declared.map(([name, { type, labels, meaning }]) => {
      const labelText = labels.map((label) => `\`${label}\``).join(", ");
      return `| \`${METRIC_PREFIX}${name}\` | ${type} | ${labelText || "–"} | ${meaning} |`;
    });
    expect(document.split("\n").filter((line) => line.startsWith("| `"))).toEqual(lines);
  });

  it("lists exactly the metrics of the exposition", async () => {
    const { metrics } = start();
    const names = [...(await metrics.exposition()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
      ([, name, type]) => [name, type],
    );
    expect(names).toEqual(declared.map(([name, { type }]) => [METRIC_PREFIX + name, type]));
  });
});
