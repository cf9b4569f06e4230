import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { DaemonState } from "../../src/dashboard/api-answers.ts";
import { parseCoverageQuery } from "../../src/dashboard/query-params.ts";
import type { StatusReport, WarehouseStatus } from "../../src/model/status/warehouse-status.ts";
import { readStatus } from "../../src/warehouse/read/status.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { recordSampleErrors, sendRequest, serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { fillEveryState, hostileName } from "../support/dashboard/heatmap-content.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { timeLimit } from "../support/time-limit.ts";
import { nowTs, openFilledWarehouse } from "../support/warehouse/filled-warehouse.ts";

const clock = new ManualClock();
let warehouse: WarehouseWriter;
let dashboard: Awaited<ReturnType<typeof serveDashboard>>;
let healthyDaemon: typeof dashboard.daemon;
beforeAll(async () => {
  warehouse = openFilledWarehouse(fillEveryState, afterAll);
  dashboard = await serveDashboard(warehouse.path, clock, afterAll);
  healthyDaemon = { ...dashboard.daemon };
});
beforeEach(async () => {
  Object.assign(dashboard.daemon, healthyDaemon);
  // No answer that an earlier test has cached.
  await clock.advance(60_000);
});

describe("/healthz and /readyz", () => {
  it("report the health and readiness of the daemon", async () => {
    const { fetchPage, daemon } = dashboard;
    expect(await fetchPage("/healthz")).toMatchObject({ status: 200, body: "ok\n" });
    expect(await fetchPage("/readyz")).toMatchObject({ status: 200 });
    daemon.problem = "nothing has been committed for 10 minutes";
    daemon.isReady = false;
    daemon.activity = "waiting for the service";
    expect(await fetchPage("/healthz")).toMatchObject({ status: 503, body: `${daemon.problem}\n` });
    const body = "not ready: waiting for the service\n";
    expect(await fetchPage("/readyz")).toMatchObject({ status: 503, body });
  });
});

describe("/metrics", () => {
  it("has the figures of the warehouse and the health of the daemon in the format of Prometheus", async () => {
    const { fetchPage, daemon } = dashboard;
    daemon.problem = "stuck";
    const { type, body } = await fetchPage("/metrics");
    expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(body).toContain("\nmds_sync_healthy 0\n");
    expect(body).toContain("\nmds_sync_ready 1\n");
    expect(body).toMatch(/^mds_sync_open_ranges\{stream="index_ticks"\} 13$/m);
    expect(body).toMatch(/^mds_sync_missing_scopes\{stream="derivative_ticks"\} 1$/m);
    expect(body).not.toContain("-id");
  });

  it("is rendered once per half second", async () => {
    const { fetchPage, metrics } = dashboard;
    let renderCount = 0;
    metrics.onCollect(() => void renderCount++);
    await fetchPage("/metrics");
    await fetchPage("/metrics");
    expect(renderCount).toBe(1);
    await clock.advance(600);
    await fetchPage("/metrics");
    expect(renderCount).toBe(2);
  });

  it("is served before the warehouse exists", async () => {
    const { fetchPage } = await serveDashboard(join(temporaryFolder(), "none.sqlite"));
    const [up, none] = ["mds_sync_up 1", "no warehouse"].map((text) => expect.stringContaining(text));
    expect(await fetchPage("/metrics")).toMatchObject({ status: 200, body: up });
    expect(await fetchPage("/api/status")).toMatchObject({ status: 503, body: none });
    const daemon = JSON.parse((await fetchPage("/api/daemon")).body) as DaemonState;
    expect(daemon.sentence).toBe("Running: following the live feed.");
  });
});

describe("/api", () => {
  it("status is the object that `status --json` prints", async () => {
    const { fetchPage, daemon } = dashboard;
    const { body } = await fetchPage("/api/status");
    const { generated_at, service, problem, shared, ...served } = JSON.parse(body) as StatusReport;
    expect({ service, problem, shared }).toEqual({ service: daemon.service, problem: null, shared: null });
    const { generated_at: _, ...read } = readStatus(warehouse.connection, nowTs);
    const steady = ({ streams, disk, ...rest }: Omit<WarehouseStatus, "generated_at">) => ({
      ...rest,
      disk: { ...disk, free_bytes: 0 },
      streams: streams.map(
        ({ newest_age_s, oldest_open_age_s, open_seconds, lost_seconds, ...stream }) => stream,
      ),
    });
    expect(Math.abs(Date.parse(generated_at) - nowTs / 1000)).toBeLessThan(timeLimit(60_000));
    expect(steady(served)).toEqual(steady(read));
  });

  it("daemon returns its state, its errors and its request rate", async () => {
    const { fetchPage, errors } = dashboard;
    recordSampleErrors(errors);
    const daemon = JSON.parse((await fetchPage("/api/daemon")).body) as Record<string, unknown>;
    expect(daemon).toMatchObject({ tone: "busy", problem: null, version: "0.1.0" });
    expect(daemon.errors).toMatchObject([
      { where: "/index-ticker", count: 3, message: `503 ${hostileName}` },
      { code: "forbidden" },
    ]);
    expect(daemon.requests_per_second).toHaveLength(119);
  });

  it("coverage returns more rows of a group on request, and ignores invalid parameters", async () => {
    const { fetchPage, failures } = dashboard;
    const parse = (query: string) => parseCoverageQuery(new URLSearchParams(query));
    const groups = ["index_ticks:GWA", "ohlcv:MWA"];
    // In any order: similar queries share one cached value.
    expect(parse("all=ohlcv:MWA&all=a b:c&all=index_ticks:GWA&all=ohlcv:MWA").unfolded).toEqual(groups);
    expect(parse("name= btc &problems=1")).toMatchObject({ name: "btc", onlyProblems: true });
    expect(parse(`name=${"x".repeat(500)}`).name).toHaveLength(80);
    const rowsOf = async (query: string) => {
      const { body } = await fetchPage(`/api/coverage${query}`);
      const { groups } = JSON.parse(body) as { groups: { key: string; rows: unknown[] }[] };
      return groups.find(({ key }) => key === "index_ticks:GWA")?.rows.length;
    };
    expect(await rowsOf("")).toBe(8);
    expect(await rowsOf("?all=index_ticks%3AGWA")).toBe(14);
    expect(await rowsOf("?all=&all=x&all=index_ticks:GWA,-1&all=__proto__:")).toBe(8);
    expect(failures).toEqual([]);
  });
});

describe("every page", () => {
  it("is served only to GET and HEAD with an allowed Host header", async () => {
    const { address, fetchPage, failures } = dashboard;
    const paths = (await fetchPage("/nowhere")).body.match(/\/\S*/g) ?? [];
    expect(paths).toEqual(expect.arrayContaining(["/", "/bars", "/bars.js", "/api/bars"]));
    const port = Number(new URL(address).port);
    const status = async (path: string, options: Parameters<typeof sendRequest>[2]) =>
      (await sendRequest(port, path, options)).status;
    for (const path of paths) {
      expect([path, await status(path, { host: "evil.example" })]).toEqual([path, 421]);
      expect([path, await status(path, { method: "POST" })]).toEqual([path, 405]);
      // Those need parameters, and without a name the assets are the market.
      const { [path]: expected = 200 } = { "/api/bars": 400, "/assets": 302 } as Record<string, number>;
      expect([path, await status(path, { method: "HEAD" })]).toEqual([path, expected]);
    }
    const scripts = await Promise.all(
      paths.filter((path) => path.endsWith(".js")).map((path) => fetch(new URL(path, address))),
    );
    const texts = await Promise.all(scripts.map((script) => script.text()));
    expect(texts.some((text) => /@license\s+\* TradingView Lightweight Charts™ v5/.test(text))).toBe(true);
    // No library may fetch anything from another host.
    for (const { headers } of scripts) {
      expect(headers.get("content-security-policy")).toMatch(/script-src 'self'; .*connect-src 'self'/);
      expect(headers.get("content-security-policy")).not.toContain("unsafe");
    }
    expect(failures).toEqual([]);
  });
});

describe("a page about one thing", () => {
  it("is served under any name, which the page looks up", async () => {
    const { fetchPage } = dashboard;
    for (const path of ["/bars/BTC", "/exchanges/BTC-USD", "/derivatives/ETH"]) {
      const bare = path.slice(0, path.lastIndexOf("/"));
      expect(await fetchPage(path)).toEqual(await fetchPage(bare));
    }
    for (const path of ["/bars/BTC/more", "/market/BTC", "/bars/"])
      expect([path, (await fetchPage(path)).status]).toEqual([path, 404]);
  });
});

describe("a flood of requests", () => {
  it("reads the warehouse at most once per cache period", async () => {
    const { fetchPage, countQueries } = dashboard;
    const before = countQueries();
    const pages = ["/api/status", "/api/daemon", "/metrics", "/api/coverage", "/api/missing"];
    for (let round = 0; round < 20; round++) await Promise.all(pages.map(fetchPage));
    expect(countQueries() - before).toBe(3);
    await clock.advance(60_000);
    await Promise.all(pages.map(fetchPage));
    expect(countQueries() - before).toBe(6);
  });

  it("for variants of one page leaves room for the others, and for people who type", async () => {
    const { fetchPage } = dashboard;
    const variants = {
      ...{ coverage: "name=", asset: "name=", bars: "type=GWA&id=", series: "name=", search: "name=" },
      ...{ quotes: "pair=", spreads: "pair=", derivatives: "at=2026-01-01&asset=" },
    };
    const kinds = Object.keys(variants) as (keyof typeof variants)[];
    const ask = async (kind: (typeof kinds)[number], text: string) =>
      (await fetchPage(`/api/${kind}?${variants[kind]}${text}`)).status;
    const texts = Array.from({ length: 33 }, (_, i) => `x${i}`);
    for (const flooded of kinds.slice(0, 3)) {
      const statuses = await Promise.all(texts.map((text) => ask(flooded, text)));
      expect([flooded, statuses.filter((status) => status === 503).length]).toEqual([flooded, 1]);
    }
    for (const kind of kinds.slice(3)) expect([kind, await ask(kind, "x")]).not.toEqual([kind, 503]);
    // Three people, five keys a second each.
    await clock.advance(2_000);
    for (const text of texts) {
      await clock.advance(200);
      const typed = ["a", "b", "c"].map((person) => ask("coverage", `${person}${text}`));
      expect([text, await Promise.all(typed)]).toEqual([text, [200, 200, 200]]);
    }
  });
});
