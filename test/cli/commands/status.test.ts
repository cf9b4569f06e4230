import { existsSync, mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { runProgram } from "../../../src/cli/program.ts";
import { Failure } from "../../../src/model/failure.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { recordStreamHealth } from "../../../src/warehouse/rows/stream-stats.ts";
import { recordCrash } from "../../../src/warehouse/sqlite/crash-marker.ts";
import { recordSize } from "../../../src/warehouse/tables/size-history.ts";
import { recordClockSkew, recordJobRun } from "../../../src/warehouse/tables/warehouse-state.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { expectNarrow, unwrap } from "../../support/cli/expect-output.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { addLookups, standardContent } from "../../support/cli/standard-content.ts";
import { serveDashboard } from "../../support/dashboard/dashboard-harness.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createWarehouse, openForWriting } from "../../support/warehouse/filled-warehouse.ts";
import { changeFile } from "../../support/warehouse/warehouse-file.ts";

/** A busy machine takes longer than the two seconds that `status` waits for a daemon. */
const patient: Clock = { ...systemClock, after: (ms, callback) => systemClock.after(60 * ms, callback) };
const status = (path: string, ...args: string[]) =>
  runInProcess(["status", "--warehouse", path, ...args], { clock: patient });

describe("mds-sync status", () => {
  it("shows every stream on 80 columns, also while a writer is open", async () => {
    const path = createWarehouse((transaction) => {
      standardContent(transaction);
      recordStreamHealth(transaction, [
        { stream: "ohlcv", error: "/ohlcv failed at the service (503)", missingScopes: [] },
        { stream: "exchange_ticks", error: null, missingScopes: ["read:exchange-ticker"] },
      ]);
    });
    const writer = openForWriting(path);
    onTestFinished(() => writer.close());
    const { stdout, stderr, status: exit } = await status(path);
    expect({ stderr, exit }).toEqual({ stderr: "", exit: 0 });
    expectNarrow(stdout);
    expect(stdout).toMatch(/^stream +from +covered to +rows +open +unconfirmed +lost +age$/m);
    expect(stdout).toMatch(/^assets +- +- +5 +0 +0 +0 +\d+[sm]$/m);
    expect(stdout).toMatch(/^ohlcv +\d{4}-\d\d-\d\d +(\d{4}-\d\d-\d\d|00:00) +1 +0 +1 +0 +30d$/m);
    expect(stdout).toMatch(/^index_ticks +[\d-]{10} +[\d:-]{5,10} +2 +3 +2 +1 +4d$/m);
    expect(stdout).toMatch(/^market_caps +- +- +0 +0 +0 +0 +-$/m);
    expect(stdout).toMatch(/^ohlcv {2}last error, \d+[sm] ago: \/ohlcv failed at the service \(503\)$/m);
    expect(stdout).toMatch(/^exchange_ticks {2}lacks read:exchange-ticker: ask the provider to add it/m);
    expect(unwrap(stdout)).toMatch(
      /3 ranges open, at most \d+d.* of a series; 2 ranges lost, at most .* of a series: `mds-sync gaps` lists them\./,
    );
  });

  it("prints the documented object with --json", async () => {
    const path = createWarehouse((transaction) => {
      standardContent(transaction);
      recordClockSkew(transaction, 7200e6);
    });
    const { stdout } = await status(path, "--json");
    const report = JSON.parse(stdout);
    // The service's clock is two hours ahead of this machine's.
    expect((Date.parse(report.generated_at) - Date.now()) / 3_600_000).toBeCloseTo(2, 1);
    expect(report.clock_skew_s).toBe(7200);
    expect(unwrap((await status(path)).stdout)).toContain(
      "clock this machine's clock was 2h behind the service's at the last comparison: synchronise it with NTP",
    );
    const warehouse = "generated_at warehouse streams confirmations disk jobs withdrawals last_crash";
    const others = "service_url clock_skew_s service problem shared";
    expect(Object.keys(report)).toEqual(`${warehouse} ${others}`.split(" "));
    expect(report.warehouse).toBe(path);
    const lookups = "assets markets exchanges derivative_contracts";
    const rows = "ohlcv index_ticks exchange_ticks market_caps derivative_ticks";
    const names = report.streams.map(({ stream }: { stream: string }) => stream);
    expect(names).toEqual(`${lookups} ${rows}`.split(" "));
    const ticks = report.streams[5];
    const counts = { rows: 2, open: 3, unconfirmed: 2, lost: 1 };
    expect(ticks).toMatchObject({ ...counts, last_error: null, missing_scopes: [] });
    expect(ticks.from_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    expect(ticks.newest_age_s).toBeGreaterThan(4 * 86_400 - 3600);
  });

  it("B17: shows how the service limits the running daemon of this warehouse", async () => {
    const path = createWarehouse(standardContent);
    const { address, daemon } = await serveDashboard(path);
    const { port } = new URL(address);
    daemon.service = {
      concurrency: 8,
      per_second: 9.2,
      reason: "rate_limited",
      limit: "the service accepts 9.2 requests a second",
      limit_since: "2026-03-01T12:07:10.123Z",
      throttled: true,
      open_breakers: ["/market-cap"],
      recent_failures: { malformed_body: 22, too_many_requests: 12 },
    };
    const { stdout } = await status(path, "--http-port", port);
    expect(unwrap(stdout)).toContain(
      "service /market-cap keeps failing at the service, and the service accepts 9.2 requests a second, since 2026-03-01 12:07 UTC",
    );
    expect(unwrap(stdout)).toContain(
      "service requests retried in the last 10 minutes: 22 × unreadable answer, 12 × too many requests (429)",
    );
    const json = await status(path, "--http-port", port, "--json");
    expect(JSON.parse(json.stdout).service).toEqual(daemon.service);
    const other = await status(createWarehouse(standardContent), "--http-port", port, "--json");
    expect(JSON.parse(other.stdout)).toMatchObject({ service: null, problem: null });
  });

  it("says why a running daemon is unhealthy", async () => {
    const path = createWarehouse(standardContent);
    const { daemon, address } = await serveDashboard(path);
    const { port } = new URL(address);
    daemon.problem = "no useful answer from https://api.example.com since 2026-03-01 12:07:10 UTC";
    const { stdout } = await status(path, "--http-port", port);
    expect(unwrap(stdout)).toContain(`daemon ${daemon.problem}`);
    const json = await status(path, "--http-port", port, "--json");
    expect(JSON.parse(json.stdout).problem).toBe(daemon.problem);
  });

  it("reports that a warehouse has no history yet", async () => {
    const [empty, looked] = await Promise.all([
      status(createWarehouse()),
      status(createWarehouse(addLookups)),
    ]);
    for (const { stdout, status: exit } of [empty, looked]) {
      expect(exit).toBe(0);
      expect(stdout).toMatch(/^No history is synced yet: `mds-sync backfill` fills the warehouse\.$/m);
    }
  });
});

describe("a warehouse that cannot be shown", () => {
  const backfill = "`mds-sync backfill` creates and fills it; if it is elsewhere, set warehouse.path";

  it("is reported as missing, and is not created", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "data", "mds.sqlite");
    const line = `mds-sync: there is no warehouse at ${path}: nothing is synced yet: ${backfill}\n`;
    const missing = { stdout: "", stderr: line, status: 4 };
    expect(await runInProcess(["status", "--warehouse", path])).toEqual(missing);
    expect(await runInProcess(["gaps", "--warehouse", path, "--json"])).toEqual(missing);
    expect(existsSync(join(folder, "data"))).toBe(false);
  });

  it("is rejected in one line if the file is something else", async () => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    writeFileSync(at("empty"), "");
    mkdirSync(at("folder"));
    writeFileSync(at("text"), "a letter to my aunt\n".repeat(500));
    symlinkSync("loop", at("loop"));
    changeFile(at("foreign"), "CREATE TABLE t (x)");
    const newer = createWarehouse();
    changeFile(newer, "PRAGMA user_version = 99");
    const damaged = createWarehouse(standardContent);
    truncateSync(damaged, 3 * 4096);

    const cases: [path: string, exit: number, line: RegExp][] = [
      [at("empty"), 4, /is empty: nothing is synced yet: /],
      [at("folder"), 2, /is not a file: set warehouse\.path/],
      [at("text"), 2, /is not an SQLite database: set warehouse\.path/],
      [at("loop"), 2, /cannot be read \(ELOOP\): let this user read/],
      [at("foreign"), 2, /is the database of another program: set warehouse\.path/],
      [newer, 2, /was written by a newer version of mds-sync: install that version/],
      [damaged, 1, /is damaged \(SQLITE_CORRUPT\w*\): `mds-sync backfill` quarantines the file/],
    ];
    const ended = await Promise.all(cases.map(([path]) => status(path)));
    for (const [n, [path, exit, line]] of cases.entries()) {
      expect(ended[n]).toEqual({ stdout: "", stderr: expect.stringMatching(line), status: exit });
      expect(ended[n]?.stderr).toMatch(/^mds-sync: [^\n]*\n$/);
      expect(ended[n]?.stderr).toContain(path);
    }
    expect(readdirSync(dirname(damaged)).filter((name) => name.includes("aside"))).toEqual([]);
  });
});

async function watch(args: readonly string[], terminal?: { rows: number }) {
  const path = createWarehouse(standardContent);
  const clock = new ManualClock();
  const stopping = new AbortController();
  const stdout = Object.assign(new PassThrough(), terminal ? { isTTY: true, ...terminal } : {});
  const drawn: string[] = [];
  stdout.on("data", (chunk: Buffer) => void drawn.push(String(chunk)));
  const done = runProgram(["status", "--watch", "--warehouse", path, ...args], {
    env: {},
    directory: temporaryFolder(),
    clock,
    stdout,
    stderr: new PassThrough(),
    stopping: stopping.signal,
  });
  while (drawn.length < 3) await clock.advance(1_000);
  const seconds = clock.monotonic() / 1000;
  stopping.abort();
  return { drawn: drawn.slice(0, 3), exit: await done, seconds };
}

describe("mds-sync status --watch", () => {
  it("redraws in place, never more lines than the terminal has, and exits 0", async () => {
    const { drawn, exit, seconds } = await watch([], { rows: 10 });
    expect(exit).toBe(0);
    expect(seconds).toBeGreaterThanOrEqual(4);
    expect(drawn[0]?.startsWith("\r\u001b[J")).toBe(true);
    expect(drawn[1]?.startsWith("\u001b[9A\r\u001b[J")).toBe(true);
    expect(drawn[2]?.split("\n")).toHaveLength(10);
  });

  it("prints one JSON object per line with --json", async () => {
    const { drawn, exit } = await watch(["--json"]);
    expect(exit).toBe(0);
    for (const line of drawn) expect(JSON.parse(line).streams).toHaveLength(9);
    expect(drawn.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
  });
});

describe("the warnings of a status", () => {
  it("F18, G8: reports a disk that will soon be full (doctor too), a failed job and a crashed daemon", async () => {
    const path = createWarehouse(standardContent);
    const clock = new ManualClock();
    const warehouse = openWriter(path, { clock });
    for (let hour = 0; hour < 4; hour++) {
      // A growth that fills any disk within days.
      warehouse.transaction((transaction) => recordSize(transaction, hour * 1e12));
      clock.stepWallClock(3_600_000);
    }
    warehouse.transaction((transaction) =>
      recordJobRun(transaction, { job: "nightly", scheduledAt: 0, outcome: "endpoint_failing" }),
    );
    warehouse.close();
    const crash = new Failure("the ingest thread has ended", { family: "bug", code: "ingest_died" });
    recordCrash(path, crash, clock.now() * 1000);
    const { stdout } = await runInProcess(["status", "--warehouse", path], { clock });
    expect(stdout).toMatch(/^daemon {2}ended unexpectedly \d+s ago: the ingest thread has ended$/m);
    expect(stdout).toMatch(
      /^the disk will be full in [\d.]+ days at the current growth: [\d.]+ GiB are free$/m,
    );
    expect(stdout).toMatch(/^nightly {2}the last run failed, \d+s ago: an endpoint keeps failing$/m);
    const { disk, jobs } = JSON.parse(
      (await runInProcess(["status", "--json", "--warehouse", path], { clock })).stdout,
    );
    expect(disk).toEqual({
      warehouse_bytes: expect.any(Number),
      wal_bytes: expect.any(Number),
      free_bytes: expect.any(Number),
      full_in_days: expect.any(Number),
    });
    expect(jobs).toEqual([{ job: "nightly", ended_at: expect.any(String), outcome: "endpoint_failing" }]);
    const doctor = await runInProcess(["doctor", "--warehouse", path]);
    expect(doctor.stdout + doctor.stderr).toMatch(/free, enough for [\d.]+ days at the current\s+growth/);
  });
});
