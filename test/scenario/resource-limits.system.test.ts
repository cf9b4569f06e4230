import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { readLastCrash } from "../../src/warehouse/sqlite/crash-marker.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { Fault } from "../simulator/faults.ts";
import { programEntry } from "../support/build-program.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { installDaemon, watchDaemon } from "../support/daemon/installed-daemon.ts";
import { hasTool } from "../support/has-tool.ts";
import { timeLimit } from "../support/time-limit.ts";
import { cpuSeconds, nextDescriptor, peakMegabytes, setLimit } from "./process-limits.ts";

const isRoot = process.getuid?.() === 0;
/** A user id that is in no /etc/passwd. */
const UNKNOWN_UID = 54_321;

/** Makes everything but the folder $0 read-only, then runs the command `$@` as process 1 without other variables. */
const sandboxScript = `mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind / && mount -t proc proc /proc &&
  cd / && exec setpriv --reuid=${UNKNOWN_UID} --regid=${UNKNOWN_UID} --clear-groups env -i "$@"`;

function hasRoot(what: string): boolean {
  if (!isRoot) process.stderr.write(`skipped, because only root may change the user: ${what}\n`);
  return isRoot;
}

/** Small pages, so that a few rows make many pages that a crash can interrupt. */
const ROWS_PER_PAGE = 100;
const DAYS = 5;
const smallPages = [
  Fault.sizeCap(ROWS_PER_PAGE, { on: "/index-ticker" }),
  Fault.latency(10, { on: "/index-ticker" }),
];

const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

describe("G5: little memory", () => {
  it("a heap of 32 MB is enough to fill 86,000 rows and to follow the live feed: all queues are bounded", async () => {
    const installation = await installDaemon();
    const daemon = installation.start({ nodeFlags: ["--max-old-space-size=32", "--max-semi-space-size=2"] });
    await daemon.waitUntilFilled();
    await daemon.waitFor(
      "live ticks",
      () => installation.query("SELECT 1 FROM index_ticks WHERE source = 'live' LIMIT 1")[0],
    );
    expect(peakMegabytes(daemon.pid)).toBeLessThan(300);
    await daemon.stop();
    expect(installation.expectMatchesService().rows).toBeGreaterThan(86_000);
  });

  it("out of memory is a crash like any other: the next start reports it and continues", async () => {
    if (!hasTool("prlimit", "out of memory during a backfill")) return;
    const installation = await installDaemon({ refreshSeconds: 30, days: DAYS, faults: smallPages });
    const first = installation.start({ wrapper: ["prlimit", "--core=0"] });
    const requestCount = () => installation.simulator.requests.count("/v3/index-ticker");
    await first.waitFor("a part of the backfill", () => requestCount() > 40);
    // From now on the system refuses more memory, and this request makes the daemon start a dashboard thread.
    setLimit(first.pid, "as", 1_000_000);
    first.get("/api/status").catch(() => {});
    // If it survives with the memory it has, kill it like the OOM killer would.
    await Promise.race([first.ended, pause(2_000)]);
    first.child.kill("SIGKILL");
    const { code, signal } = await first.ended;
    expect(code).not.toBe(0);
    expect(installation.query("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const [storedBefore] = installation.query("SELECT count(*) AS rows FROM index_ticks");
    expect(storedBefore?.rows).toBeGreaterThan(0);

    const before = requestCount();
    const second = installation.start();
    await second.waitUntilFilled();
    // V8 usually aborts; an allocation that fails as an exception leaves another message.
    const crash = signal ? { code: "killed", line: expect.stringContaining(`(pid ${first.pid} on `) } : {};
    expect(second.log()).toContainEqual(
      expect.objectContaining({ msg: "last run ended unexpectedly", ...crash }),
    );
    expect(JSON.parse((await second.get("/api/status")).text)).toMatchObject({ last_crash: crash });
    const { stdout } = await runInProcess(["status"], {
      env: { ...installation.env },
      cwd: installation.folder,
    });
    expect(stdout).toMatch(/^daemon {2}ended unexpectedly \S+ ago: /m);
    await second.stop();
    expect(installation.expectMatchesService().rows).toBeGreaterThan((DAYS - 0.1) * 2880);
    // Committed rows are not requested again.
    expect(requestCount() - before).toBeLessThan(
      (DAYS * 2880 - Number(storedBefore?.rows)) / ROWS_PER_PAGE + 30,
    );
  });
});

describe("G6: few descriptors and few threads", () => {
  it("64 descriptors are enough; without a free one the daemon waits, logs it, uses little CPU, and recovers by itself", async () => {
    if (!hasTool("prlimit", "running out of descriptors")) return;
    const installation = await installDaemon({ refreshSeconds: 2 });
    const daemon = installation.start({ wrapper: ["prlimit", "--nofile=64"] });
    await daemon.waitUntilFilled();

    // Enough for a connection, too few for the reader thread of the dashboard.
    setLimit(daemon.pid, "nofile", nextDescriptor(daemon.pid) + 3);
    expect(await daemon.get("/api/series?name=ETH")).toEqual({
      status: 503,
      text: expect.stringContaining("(EMFILE): raise the limit of open files"),
    });
    setLimit(daemon.pid, "nofile", 64);
    expect(await daemon.get("/api/series?name=BTC")).toMatchObject({ status: 200 });

    // Every connection breaks, and there is no descriptor for a new one.
    setLimit(daemon.pid, "nofile", 12);
    const before = {
      requests: installation.simulator.requests.total,
      lines: daemon.log().length,
      cpu: cpuSeconds(daemon.pid),
    };
    installation.simulator.setFaults(Fault.hangUp(), Fault.dropConnection({ when: "tick" }));
    await daemon.waitFor("a log line with too_many_files", () =>
      daemon.log().some(({ reason }) => reason === "too_many_files"),
    );
    installation.simulator.setFaults();
    await pause(3_000);
    expect(cpuSeconds(daemon.pid) - before.cpu).toBeLessThan(2);
    expect(installation.simulator.requests.total - before.requests).toBeLessThan(20);
    const logged = daemon.log().slice(before.lines);
    expect(logged.length).toBeLessThan(25);
    expect(logged).toContainEqual(
      expect.objectContaining({
        reason: "too_many_files",
        remedy: "raise the limit of open files (LimitNOFILE, ulimit -n)",
      }),
    );
    const connected = () => daemon.log().filter(({ msg }) => msg === "live feed connected").length;
    const connections = connected();
    setLimit(daemon.pid, "nofile", 64);
    const recoveredFrom = Date.now() * 1000;
    await daemon.waitFor("a new connection", () => connected() > connections);
    await daemon.waitFor(
      "live ticks are stored",
      () => installation.query(`SELECT 1 FROM exchange_ticks WHERE ts > ${recoveredFrom} LIMIT 1`)[0],
    );
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    await daemon.stop();
    installation.expectMatchesService();
  });

  it("reports in one line that no thread can be started, and exits 1", async () => {
    const what = "a start without any free thread";
    if (!hasRoot(what) || !hasTool("prlimit", what) || !hasTool("setpriv", what)) return;
    const installation = await installDaemon({ refreshSeconds: 30 });
    chownSync(installation.folder, UNKNOWN_UID, UNKNOWN_UID);
    // The limit does not apply to root. Node itself uses the first few threads.
    const user = ["setpriv", `--reuid=${UNKNOWN_UID}`, `--regid=${UNKNOWN_UID}`, "--clear-groups"];
    const daemon = installation.start({ wrapper: [...user, "prlimit", "--nproc=7"] });
    expect(await daemon.ended).toEqual({ code: 1, signal: null });
    const last = daemon.stderr().split("\n").slice(-2);
    expect(last).toEqual([
      expect.stringMatching(/"msg":"cannot start a thread \(EAGAIN\): raise the limit of threads/),
      "",
    ]);
    expect(daemon.stderr()).not.toContain("please report");

    // A running daemon needs another thread only for the dashboard, and starts it as soon as the limit allows.
    const second = installation.start({ wrapper: user });
    await second.waitUntilFilled();
    setLimit(second.pid, "nproc", 1, UNKNOWN_UID);
    for (let visit = 0; visit < 45; visit++) {
      const { status, text } = await second.get(`/api/series?name=${visit}`);
      expect({ status, text }).toEqual({
        status: 503,
        text: expect.stringContaining("(EAGAIN): raise the limit"),
      });
    }
    setLimit(second.pid, "nproc", 1_000, UNKNOWN_UID);
    expect(await second.get("/api/series?name=BTC")).toMatchObject({ status: 200 });
    await second.stop();
  });
});

it("G10: on a core shared with a busy process every PING is answered within five seconds, and no second of the live feed counts as lost", async () => {
  if (!hasTool("taskset", "a core shared with a busy process")) return;
  const core = /Cpus_allowed_list:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  const neighbour = spawn("taskset", ["-c", core, process.execPath, "-e", "for (;;);"], { stdio: "ignore" });
  onTestFinished(() => void neighbour.kill("SIGKILL"));
  const installation = await installDaemon({
    refreshSeconds: 2,
    faults: [Fault.pingStorm(50, { when: "accept" })],
  });
  const daemon = installation.start({ wrapper: ["taskset", "-c", core] });
  await daemon.waitUntilFilled();
  const covered =
    (seconds: number, from = "from_ts") =>
    () =>
      installation.query(
        `SELECT from_ts FROM coverage WHERE stream = 'exchange_ticks' AND from_ts = ${from} AND to_ts - from_ts >= ${seconds}e6`,
      )[0];
  const { from_ts } = await daemon.waitFor("snapshots of the live feed", covered(6));
  // A period counts as lost while the next one is late, and as covered when that one has come.
  await daemon.waitFor("no lost second", covered(8, String(from_ts)));
  expect(neighbour.exitCode).toBe(null);
  const pongs = installation.simulator.pongs.summary;
  // How many come depends on how much of the core the simulator itself gets.
  expect(pongs.answered).toBeGreaterThan(15);
  expect(pongs.worstMs).toBeLessThan(timeLimit(5_000));
  expect(daemon.log().filter(({ msg }) => msg === "live feed connected")).toHaveLength(1);
  await daemon.stop();
  installation.expectMatchesService();
});

describe("G12: a container's conditions", () => {
  it("as process 1 of an unknown user without HOME, on a read-only root, it syncs, sorts and exits 0", async () => {
    const what = "the daemon as process 1 on a read-only root";
    if (!hasRoot(what) || !hasTool("unshare", what) || !hasTool("setpriv", what)) return;
    const installation = await installDaemon({ refreshSeconds: 30 });
    // The only writable folder, still empty.
    const data = join(installation.folder, "data");
    mkdirSync(data);
    chownSync(data, UNKNOWN_UID, UNKNOWN_UID);
    chmodSync(installation.folder, 0o755);
    const sandbox = ["--mount", "--pid", "--fork", "sh", "-c", sandboxScript, data];
    const inSandbox = (...command: string[]) => {
      const env = Object.entries({ ...installation.env, MDS_WAREHOUSE: join(data, "mds.sqlite") });
      const named = env.map(([name, value]) => `${name}=${value}`);
      return [...sandbox, ...named, process.execPath, programEntry, ...command];
    };
    const tried = spawnSync("unshare", [...sandbox, "true"]);
    if (tried.status !== 0) {
      process.stderr.write(`skipped, because namespaces are not available here: ${what}\n`);
      return;
    }
    const daemon = watchDaemon(
      spawn("unshare", inSandbox("run", "--no-progress"), { stdio: ["ignore", "ignore", "pipe"] }),
    );
    await daemon.waitUntilFilled();
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    expect((await daemon.get("/api/status")).status).toBe(200);

    // Too large for memory: SQLite needs a temporary file.
    const sort =
      "SELECT count(*) AS n FROM (SELECT -ts || printf('%.*c', 30000, 'x') AS x FROM index_ticks ORDER BY x LIMIT -1 OFFSET 1)";
    const sorted = spawnSync("unshare", inSandbox("query", sort, "--format", "json"), { encoding: "utf8" });
    expect(sorted).toMatchObject({ status: 0, stdout: expect.stringMatching(/"n": ?[2-9]\d{3}\b/) });

    const inside = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, "utf8").trim();
    expect(readFileSync(`/proc/${inside}/status`, "utf8")).toMatch(/^NSpid:\s+\d+\s+1$/m);
    process.kill(Number(inside), "SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(daemon.stderr()).toMatch(/"msg":"stopped cleanly"\}\n$/);
  });

  it("F24: as any user, in an empty environment and a read-only folder, it syncs and stops, even after its own folder became read-only", async () => {
    const installation = await installDaemon({ refreshSeconds: 30 });
    const data = join(installation.folder, "data");
    const elsewhere = join(installation.folder, "elsewhere");
    for (const folder of [data, elsewhere]) mkdirSync(folder);
    chmodSync(elsewhere, 0o555);
    const isOther = hasRoot("an unknown user id");
    if (isOther) chownSync(data, UNKNOWN_UID, UNKNOWN_UID);
    chmodSync(installation.folder, 0o755);
    // As a step of the stop that hangs would, the timer keeps the process alive.
    const hanging = ["--import", "data:text/javascript,setInterval(() => {}, 1000)"];
    const child = spawn(process.execPath, [...hanging, programEntry, "run", "--no-progress"], {
      cwd: elsewhere,
      env: { ...installation.env, MDS_WAREHOUSE: join(data, "mds.sqlite") },
      stdio: ["ignore", "ignore", "pipe"],
      ...(isOther ? { uid: UNKNOWN_UID, gid: UNKNOWN_UID } : {}),
    });
    const daemon = watchDaemon(child);
    await daemon.waitUntilFilled();
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    chmodSync(data, 0o555);
    const stoppedAt = performance.now();
    child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(performance.now() - stoppedAt).toBeLessThan(timeLimit(5_000));
    expect(daemon.log().filter(({ msg }) => msg === "stop step failed")).toMatchObject([
      { step: "control server" },
      { step: "ingest", error: expect.stringContaining("cannot be opened for writing (EACCES)") },
    ]);
    expect(daemon.log().at(-1)?.msg).toBe("stopped, but not cleanly: the next start checks the warehouse");
    expect(readdirSync(elsewhere)).toEqual([]);
    // The lock is free, and nobody was killed.
    chmodSync(data, 0o755);
    const next = openWriter(join(data, "mds.sqlite"), { clock: systemClock });
    next.close();
    expect(readLastCrash(next.path)).toBeUndefined();
  });
});
