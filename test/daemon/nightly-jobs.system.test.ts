import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { barsOf, onlyTicks } from "../support/sync/backfill-harness.ts";
import { timeLimit } from "../support/time-limit.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../support/warehouse/empty-warehouse.ts";
import { changeFile } from "../support/warehouse/warehouse-file.ts";

const settings = `
retention: { exchangeTicks: 1d }
schedule: { export: "11 0 * * *" }
${onlyTicks("[BTC]", {
  ...{ lookups: "{ every: 1d }", confirmEvery: "1h", ohlcv: barsOf("[BTC, LIBRA]") },
  exchangeTickers: "{ exchanges: [Kraken], markets: [BTC/USD] }",
})}`;

it("the nightly jobs verify slices, retry series with a 404, prune rows, and run late after a sleep or a stop", async () => {
  const daemon = await createDaemonHarness({ start: "2026-03-01T23:58:07Z", settings });
  const { clock, simulator, path, query } = daemon;
  copyEmptyWarehouse(path, viewsBesideSync);
  const first = await daemon.startFilled();
  const jobs = () => query("SELECT job, outcome FROM job_runs ORDER BY job");
  await first.runUntil(() => jobs().length === 4);
  expect(jobs()).toEqual([
    { job: "export", outcome: "new" },
    { job: "nightly", outcome: "new" },
    // Runs at every start.
    { job: "retention", outcome: "ok" },
    { job: "upkeep", outcome: "new" },
  ]);

  expect(await first.readMetric('jobs_total{task="nightly",outcome="ok"}')).toBe(0);

  // Change one covered row and delete another; the ledger still says that the range is covered.
  const [row] = query(
    "SELECT series, ts FROM index_tick_rows WHERE ts < (SELECT max(ts) FROM index_tick_rows) - 36e9 ORDER BY ts DESC LIMIT 1",
  );
  changeFile(
    path,
    `UPDATE index_tick_rows SET price = 1 WHERE series = ${row?.series} AND ts = ${row?.ts};
      DELETE FROM index_tick_rows WHERE series = ${row?.series} AND ts = ${Number(row?.ts) - 30e6}`,
  );
  // The service adds a property: that is no difference.
  simulator.setFaults(Fault.set("venues", 7, { on: "/index-ticker" }));
  const libra = simulator.universe.assets.find(({ symbol }) => symbol === "LIBRA")?.id ?? "";
  const libraRequests = () =>
    simulator.requests.list.filter(({ target }) => target.startsWith("/v3/ohlcv") && target.includes(libra))
      .length;
  const requestsBefore = libraRequests();
  // The export cannot take its lock. The same failure code from the daemon's own writer would end the daemon.
  const obstacle = join(dirname(path), "export/.mds-sync/export.lock");
  mkdirSync(obstacle, { recursive: true });
  await first.runUntil(() => jobs().every(({ outcome }) => outcome !== "new"));
  expect(jobs().map(({ outcome }) => outcome)).toEqual(["db_not_writable", "ok", "ok", "ok"]);
  expect(new Date(clock.now()).toISOString()).toMatch(/^2026-03-02T00:1[0-4]/);
  expect(await first.readMetric('jobs_total{task="export",outcome="db_not_writable"}')).toBe(1);
  expect((await first.getPage("/api/daemon")).text).toContain("cannot be opened for writing");
  expect((await first.getPage("/healthz")).status).toBe(200);
  rmdirSync(obstacle);
  await first.runUntil(() => jobs().every(({ outcome }) => outcome === "ok"));
  expect(new Date(clock.now()).toISOString()).toMatch(/^2026-03-02T00:2[6-9]/);
  await first.runUntil(() => libraRequests() > requestsBefore);
  expect(await first.readMetric('audit_differences_total{stream="index_ticks"}')).toBe(1);
  expect(await first.readMetric('rows_total{stream="index_ticks",kind="changed"}')).toBe(1);
  expect(await first.readMetric('jobs_total{task="nightly",outcome="ok"}')).toBe(1);
  expect(query("SELECT count(*) AS n FROM revisions WHERE name = 'BTC' AND stream = 'index_ticks'")).toEqual([
    { n: 1 },
  ]);
  simulator.setFaults();
  const exported = JSON.parse(readFileSync(join(dirname(path), "export/manifest.json"), "utf8"));
  expect(exported.files.map(({ relation }: { relation: string }) => relation)).toContain("index_ticks");

  // The machine sleeps through two nights; after waking the jobs run once, and old snapshots are pruned.
  const covered = "SELECT proof, reason FROM coverage WHERE stream = 'exchange_ticks' AND proof <> 'rows'";
  expect(query(covered)).toEqual([]);
  clock.suspend(50 * 3_600_000);
  const runs = () => query("SELECT ended_at FROM job_runs WHERE job = 'nightly' AND outcome = 'ok'");
  const [awake] = runs();
  await first.runUntil(() => runs()[0]?.ended_at !== awake?.ended_at);
  expect(await first.readMetric('jobs_total{task="nightly",outcome="ok"}')).toBe(2);
  await first.runUntil(() => query(covered).length === 1);
  expect(query(covered)).toEqual([{ proof: "lost", reason: "retention" }]);
  expect(await first.stop()).toBeLessThan(timeLimit(5_000));

  // Stopped over a night: the missed jobs run at the start.
  await clock.advance(26 * 3_600_000);
  const [latest] = runs();
  daemon.configure(settings.replace(/schedule: .*/, ""));
  const second = await daemon.startFilled();
  expect(await second.readMetric('job_last_success_timestamp_seconds{task="nightly"}')).toBeGreaterThan(
    1.7e9,
  );
  await second.runUntil(() => runs()[0]?.ended_at !== latest?.ended_at);
  expect(await second.readMetric('jobs_total{task="nightly",outcome="ok"}')).toBe(1);
  await second.stop();
  daemon.expectMatchesService();
});
