import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { runHere } from "../support/cli/run-command.ts";
import { hasTool } from "../support/has-tool.ts";
import {
  cpuSeconds,
  entry,
  findPlace,
  limit,
  nextDescriptor,
  peakMegabytes,
  watch,
} from "./resource-limited-daemon.ts";

const isRoot = process.getuid?.() === 0;
/** In no /etc/passwd. */
const NOBODY_KNOWN = 54_321;

/** Everything but the folder $0 cannot be written; then the rest runs as process 1, with no environment but what it names. */
const box = `mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind / && mount -t proc proc /proc &&
  cd / && exec setpriv --reuid=${NOBODY_KNOWN} --regid=${NOBODY_KNOWN} --clear-groups env -i "$@"`;

function mayBeRoot(shown: string): boolean {
  if (!isRoot) process.stderr.write(`not shown, since only root may take another user's place: ${shown}\n`);
  return isRoot;
}

/** Many pages to lose, few rows to compare. */
const ROWS_A_PAGE = 100;
const smallPages = `GET /index-ticker size-cap ${ROWS_A_PAGE}\nGET /index-ticker latency 10ms`;

const pause = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

describe("G5: little memory", () => {
  it("a heap of 32 MB is enough to fill 170,000 rows and to follow: what waits is bounded", async () => {
    const place = await findPlace({ assets: "BTC, ETH" });
    const daemon = place.start({ nodeFlags: ["--max-old-space-size=32", "--max-semi-space-size=2"] });
    await daemon.filled();
    await daemon.until(
      "ticks that came live",
      () => place.query("SELECT 1 FROM index_ticks WHERE NOT is_settled LIMIT 1")[0],
    );
    expect(peakMegabytes(daemon.pid)).toBeLessThan(300);
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(place.expectTruth().rows).toBeGreaterThan(170_000);
  });

  it("memory that runs out is a crash like any other: the next start says so and goes on where it was", async () => {
    if (!hasTool("prlimit", "memory that runs out in the midst of a backfill")) return;
    const place = await findPlace({ refreshSeconds: 30, days: 12, faults: smallPages });
    const first = place.start({ under: ["prlimit", "--core=0"] });
    const asked = () => place.simulator.requests.count("/v3/index-ticker");
    await first.until("a part of the backfill", () => (asked() > 100 ? true : undefined));
    // From now on the system has no page left for it; a thread for the dashboard would take many.
    limit(first.pid, "as", 1_000_000);
    first.get("/api/status").catch(() => {});
    // Where it makes do with the memory that it has for long, the system's killer of processes has the last word.
    await Promise.race([first.ended, pause(2_000)]);
    first.child.kill("SIGKILL");
    const { code, signal } = await first.ended;
    expect(code).not.toBe(0);
    expect(place.query("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const [kept] = place.query("SELECT count(*) AS rows FROM index_ticks");
    expect(kept?.rows).toBeGreaterThan(0);

    const before = asked();
    const second = place.start();
    await second.filled();
    // Nearly always V8 aborts; an allocation that fails as an exception leaves words of its own.
    const crash = signal ? { code: "killed", line: expect.stringContaining(`(pid ${first.pid} on `) } : {};
    expect(second.log()).toContainEqual(
      expect.objectContaining({ msg: "the last run ended unexpectedly", ...crash }),
    );
    expect(JSON.parse((await second.get("/api/status")).text)).toMatchObject({ last_crash: crash });
    const { stdout } = await runHere(["status"], { env: { ...place.env }, cwd: place.folder });
    expect(stdout).toMatch(/^daemon {2}ended unexpectedly \S+ ago: /m);
    second.child.kill("SIGTERM");
    expect(await second.ended).toEqual({ code: 0, signal: null });
    expect(place.expectTruth().rows).toBeGreaterThan(11.9 * 2880);
    // What was committed is not asked for again.
    expect(asked() - before).toBeLessThan((12 * 2880 - Number(kept?.rows)) / ROWS_A_PAGE + 30);
  });
});

describe("G6: few descriptors and few threads", () => {
  it("64 descriptors are enough; while none is left it waits, says so, spares the machine, and heals by itself", async () => {
    if (!hasTool("prlimit", "descriptors that run out")) return;
    const place = await findPlace();
    const daemon = place.start({ under: ["prlimit", "--nofile=64"] });
    await daemon.filled();

    // Enough for a visitor, too few for the thread that reads for him.
    limit(daemon.pid, "nofile", nextDescriptor(daemon.pid) + 3);
    expect(await daemon.get("/api/series?name=ETH")).toEqual({
      status: 503,
      text: expect.stringContaining("(EMFILE): raise the limit of open files"),
    });
    limit(daemon.pid, "nofile", 64);
    expect(await daemon.get("/api/series?name=BTC")).toMatchObject({ status: 200 });

    // Every connection breaks, and there is no descriptor for another.
    limit(daemon.pid, "nofile", 12);
    const before = {
      asked: place.simulator.requests.total,
      lines: daemon.log().length,
      cpu: cpuSeconds(daemon.pid),
    };
    place.simulator.setFaults("GET * hang-up\nws drop-connection 1006 on=tick");
    await daemon.until("a word about it", () =>
      daemon.log().find(({ reason }) => reason === "too_many_files") ? true : undefined,
    );
    place.simulator.setFaults("");
    await pause(3_000);
    expect(cpuSeconds(daemon.pid) - before.cpu).toBeLessThan(2);
    expect(place.simulator.requests.total - before.asked).toBeLessThan(20);
    const told = daemon.log().slice(before.lines);
    expect(told.length).toBeLessThan(25);
    expect(told).toContainEqual(
      expect.objectContaining({ reason: "too_many_files", remedy: "raise the limit of open files" }),
    );
    const connected = () => daemon.log().filter(({ msg }) => msg === "live feed connected").length;
    const connections = connected();
    limit(daemon.pid, "nofile", 64);
    const healedFrom = Date.now() * 1000;
    await daemon.until("a new connection", () => (connected() > connections ? true : undefined));
    await daemon.until(
      "what is heard is stored",
      () => place.query(`SELECT 1 FROM exchange_ticks WHERE ts > ${healedFrom} LIMIT 1`)[0],
    );
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    place.expectTruth();
  });

  it("says in one line that no thread can be started, and exits 1", async () => {
    const shown = "a start without a thread to spare";
    if (!mayBeRoot(shown) || !hasTool("prlimit", shown) || !hasTool("setpriv", shown)) return;
    const place = await findPlace({ refreshSeconds: 30 });
    chownSync(place.folder, NOBODY_KNOWN, NOBODY_KNOWN);
    // The limit binds no root. Node itself takes the first few.
    const user = ["setpriv", `--reuid=${NOBODY_KNOWN}`, `--regid=${NOBODY_KNOWN}`, "--clear-groups"];
    const daemon = place.start({ under: [...user, "prlimit", "--nproc=7"] });
    expect(await daemon.ended).toEqual({ code: 1, signal: null });
    const last = daemon.stderr().split("\n").slice(-2);
    expect(last).toEqual([
      expect.stringMatching(/^mds-sync: no thread could be started \(EAGAIN\): raise the limit of threads/),
      "",
    ]);
    expect(daemon.stderr()).not.toContain("please report");

    // A daemon that runs needs one more only for those who look on: it starts once it can, however often it could not.
    const second = place.start({ under: user });
    await second.filled();
    limit(second.pid, "nproc", 1, NOBODY_KNOWN);
    for (let visit = 0; visit < 45; visit++) {
      const { status, text } = await second.get(`/api/series?name=${visit}`);
      expect({ status, text }).toEqual({
        status: 503,
        text: expect.stringContaining("(EAGAIN): raise the limit"),
      });
    }
    limit(second.pid, "nproc", 1_000, NOBODY_KNOWN);
    expect(await second.get("/api/series?name=BTC")).toMatchObject({ status: 200 });
    second.child.kill("SIGTERM");
    expect(await second.ended).toEqual({ code: 0, signal: null });
  });
});

describe("G10: a core that is shared with a busy neighbour", () => {
  it("every PING is answered well within five seconds, and no second of what is heard counts as missed", async () => {
    if (!hasTool("taskset", "a core that is shared with a busy neighbour")) return;
    const core = /Cpus_allowed_list:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
    const neighbour = spawn("taskset", ["-c", core, process.execPath, "-e", "for (;;);"], {
      stdio: "ignore",
    });
    onTestFinished(() => void neighbour.kill("SIGKILL"));
    const place = await findPlace({ faults: "ws ping-storm 50ms on=accept" });
    const daemon = place.start({ under: ["taskset", "-c", core] });
    await daemon.filled();
    await daemon.until(
      "a first observation",
      () => place.query("SELECT 1 FROM coverage WHERE stream = 'exchange_ticks'")[0],
    );
    const watchedFrom = Date.now() * 1000;
    await pause(4_000);
    const watchedTo = (Date.now() - 2_000) * 1000;
    expect(neighbour.exitCode).toBe(null);
    const pongs = (await (await fetch(`${place.simulator.baseUrl}/simulator/pongs`)).json()) as {
      answered: number;
      worstMs: number;
    };
    expect(pongs.answered).toBeGreaterThan(40);
    expect(pongs.worstMs).toBeLessThan(5_000);
    const missed = `SELECT from_time, to_time, reason FROM gaps WHERE stream = 'exchange_ticks' AND state = 'lost'
      AND to_ts > ${watchedFrom} AND from_ts < ${watchedTo}`;
    expect(place.query(missed)).toEqual([]);
    expect(daemon.log().filter(({ msg }) => msg === "live feed connected")).toHaveLength(1);
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    place.expectTruth();
  });
});

describe("G12: a container's conditions", () => {
  it("as process 1 of an unknown user without HOME, on a root that cannot be written, it syncs, sorts and ends with 0", async () => {
    const shown = "the daemon as process 1 on a read-only root";
    if (!mayBeRoot(shown) || !hasTool("unshare", shown) || !hasTool("setpriv", shown)) return;
    const place = await findPlace({ refreshSeconds: 30 });
    // The one folder that can be written, and nothing in it yet.
    const data = join(place.folder, "data");
    mkdirSync(data);
    chownSync(data, NOBODY_KNOWN, NOBODY_KNOWN);
    chmodSync(place.folder, 0o755);
    const inBox = (...command: string[]) => {
      const env = Object.entries({ ...place.env, MDS_WAREHOUSE: join(data, "mds.sqlite") });
      const named = env.map(([name, value]) => `${name}=${value}`);
      return [
        "--mount",
        "--pid",
        "--fork",
        "sh",
        "-c",
        box,
        data,
        ...named,
        process.execPath,
        entry,
        ...command,
      ];
    };
    const tried = spawnSync("unshare", ["--mount", "--pid", "--fork", "sh", "-c", box, data, "true"]);
    if (tried.status !== 0) {
      process.stderr.write(`not shown, since no namespace can be had here: ${shown}\n`);
      return;
    }
    const daemon = watch(
      spawn("unshare", inBox("run", "--no-progress"), { stdio: ["ignore", "ignore", "pipe"] }),
    );
    await daemon.filled();
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    expect((await daemon.get("/api/status")).status).toBe(200);

    // More than memory takes: SQLite has to put it somewhere.
    const sort =
      "SELECT count(*) AS n FROM (SELECT hex(randomblob(20000)) AS x FROM index_ticks ORDER BY x LIMIT -1 OFFSET 1)";
    const sorted = spawnSync("unshare", inBox("query", sort, "--format", "json"), { encoding: "utf8" });
    expect(sorted).toMatchObject({ status: 0, stdout: expect.stringMatching(/"n": ?[2-9]\d{3}\b/) });

    const inside = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, "utf8").trim();
    expect(readFileSync(`/proc/${inside}/status`, "utf8")).toMatch(/^NSpid:\s+\d+\s+1$/m);
    process.kill(Number(inside), "SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(daemon.stderr()).toMatch(/stopped cleanly\n$/);
  });

  it("of any user, in an empty environment and a folder that cannot be written, it syncs and ends with 0", async () => {
    const place = await findPlace({ refreshSeconds: 30 });
    const data = join(place.folder, "data");
    const elsewhere = join(place.folder, "elsewhere");
    for (const folder of [data, elsewhere]) mkdirSync(folder);
    chmodSync(elsewhere, 0o555);
    const isOther = mayBeRoot("a user id that nobody has given");
    if (isOther) chownSync(data, NOBODY_KNOWN, NOBODY_KNOWN);
    chmodSync(place.folder, 0o755);
    const child = spawn(process.execPath, [entry, "run", "--no-progress"], {
      cwd: elsewhere,
      env: { ...place.env, MDS_WAREHOUSE: join(data, "mds.sqlite") },
      stdio: ["ignore", "ignore", "pipe"],
      ...(isOther ? { uid: NOBODY_KNOWN, gid: NOBODY_KNOWN } : {}),
    });
    const daemon = watch(child);
    await daemon.filled();
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    child.kill("SIGTERM");
    expect(await daemon.ended).toEqual({ code: 0, signal: null });
    expect(readdirSync(elsewhere)).toEqual([]);
  });
});
