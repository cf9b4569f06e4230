import { copyFileSync, cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { ExportOptions, ExportStep } from "../../../src/export/export-warehouse.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { readSnapshot, readTableRows } from "../../support/export/delta-reader.ts";
import { exportIn, inWarehouse, killExport } from "../../support/export/read-export.ts";
import { S3Server } from "../../support/export/s3-server.ts";
import { fillEverything, monthStart, openAt } from "../../support/export/sample-data.ts";
import { failureOf } from "../../support/failure-of.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { viewsBesideSync } from "../../support/warehouse/empty-warehouse.ts";
import { STEP } from "../../support/warehouse/filled-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const to = "s3://lake/a dir/mds";
const prefix = "a dir/mds/";
const day = 86_400_000;

/** Waits are skipped: the client's clock says how long they were. */
function quickClock(ms = () => Date.now()) {
  const waits: number[] = [];
  const sleep = async (delay: number) => void waits.push(delay);
  return { waits, clock: { ...systemClock, now: ms, sleep } };
}

const folder = temporaryFolder(afterAll);
const pristine = temporaryFolder(afterAll);
let firstExport: [string, { bytes: Buffer; modified: Date }][] = [];
beforeAll(async () => {
  const warehouse = openAt(folder, viewsBesideSync);
  warehouse.transaction(fillEverything);
  warehouse.close();
  cpSync(folder, pristine, { recursive: true });
  const server = await new S3Server().start();
  await exportIn(folder, { to, env: server.env, clock: quickClock().clock });
  firstExport = [...server.objects];
  await server.stop();
});

/** A filled warehouse, and a bucket: empty, or with an export of it. */
async function lake(isExported = true) {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  cpSync(pristine, folder, { recursive: true });
  const warehouse = openAt(folder);
  onTestFinished(() => warehouse.close());
  const server = await new S3Server().start();
  onTestFinished(() => server.stop());
  if (isExported) for (const [key, object] of firstExport) server.objects.set(key, object);
  const run = (more: Partial<ExportOptions> = {}) =>
    exportIn(folder, { to, env: server.env, clock: quickClock().clock, ...more });
  return { folder, warehouse, server, run };
}

let copies = 0;
/** The objects as a folder. */
function copyOf({ folder, server }: { folder: string; server: S3Server }): string {
  const copy = join(folder, `copy-${copies++}`);
  server.copyTo(copy, prefix);
  return copy;
}

const relationsIn = (place: string) =>
  readdirSync(join(place, "versions")).filter((name) => name !== "generations");
const ticksIn = async (of: { folder: string; server: S3Server }) =>
  (await readTableRows(join(copyOf(of), "versions/index_ticks"))).length;
const stored = (folder: string) =>
  inWarehouse(join(folder, "mds.sqlite"), "SELECT count(*) FROM index_ticks")[0]?.[0];

let changes = 0;
const change = (warehouse: WarehouseWriter) =>
  storeTicks(warehouse, [tick(monthStart(2) + (5000 + changes++) * STEP, "7.5")]);

describe("an export to a bucket", () => {
  it("has the tables of a folder, writes only what changed, coverage last, and removes what no reader needs", async () => {
    const of = await lake(false);
    const { folder, warehouse, server, run } = of;
    let now = Date.now();
    server.now = () => new Date(now);
    const { clock } = quickClock(() => now);
    const first = await run({ clock });
    expect(first).toMatchObject({ folder: to, files_written: first.files });
    await exportIn(folder);
    const copy = copyOf(of);
    for (const relation of relationsIn(join(folder, "export"))) {
      const local = await readTableRows(join(folder, "export/versions", relation));
      if (relation !== "gaps") expect(await readTableRows(join(copy, "versions", relation))).toEqual(local);
    }
    // Rows before coverage.
    const puts = () => server.requests.filter(({ method }) => method !== "GET").map(({ key }) => key);
    const created = puts().filter((key) => key.endsWith("/00000000000000000000.json"));
    expect(created.map((key) => key.split("/").at(-3)).slice(-2)).toEqual(["coverage", "gaps"]);
    expect(created.length).toBe(19);
    expect(puts().at(-1)).toBe(`${prefix}manifest.json`);
    for (const { method, key, headers } of server.requests)
      if (method === "PUT" && (key.includes("_delta_log/0") || key.includes("generations/")))
        expect(headers["if-none-match"]).toBe("*");

    change(warehouse);
    now += 60_000;
    server.requests.length = 0;
    const second = await run({ clock });
    expect(second.months_written.length).toBe(1);
    expect(puts().filter((key) => key.endsWith(".parquet")).length).toBe(second.files_written);
    expect(await ticksIn(of)).toBe(stored(folder));
    expect((await readSnapshot(join(copyOf(of), "versions/index_ticks"))).version).toBe(1);
    // The old version stays readable for a day.
    expect((await readTableRows(join(copyOf(of), "versions/index_ticks"), 0)).length).toBe(
      Number(stored(folder)) - 1,
    );
    // An export of nothing new sends no file and commits no version, but of gaps, which grow with the time.
    server.requests.length = 0;
    await run({ clock });
    expect(puts().filter((key) => !/\/(generations|gaps)\//.test(key))).toEqual([`${prefix}manifest.json`]);
    now += day + 60_000;
    await run({ clock });
    await expect(readTableRows(join(copyOf(of), "versions/index_ticks"), 0)).rejects.toThrow(/ENOENT/);
    expect(await ticksIn(of)).toBe(stored(folder));
    expect(readdirSync(folder).filter((name) => name.includes(".export-"))).toEqual([]);
  });

  it("F20: repeats what failed for a moment, and is not confused by lost answers", async () => {
    const of = await lake(false);
    const { server, run, folder } = of;
    const failed = new Set<string>();
    const faults = [{ status: 503, code: "SlowDown" }, { cut: "during" }, { cut: "after" }] as const;
    // Every second request fails once: throttled, cut while it is sent, cut before its answer.
    server.fault = ({ method, key, query }) => {
      const name = `${method} ${key} ${query}`;
      const isGeneration = method === "PUT" && key.includes("generations/");
      if (failed.has(name) || (server.requests.length % 2 === 0 && !isGeneration)) return undefined;
      failed.add(name);
      // Its number is taken when the export asks again: by itself.
      if (isGeneration) return { cut: "after" };
      return faults[failed.size % 3];
    };
    const { waits, clock } = quickClock();
    await run({ clock });
    expect(failed.size).toBeGreaterThan(20);
    expect(waits.length).toBe(failed.size);
    expect(await ticksIn(of)).toBe(stored(folder));
    const copy = copyOf(of);
    for (const relation of relationsIn(copy))
      expect((await readSnapshot(join(copy, "versions", relation))).version, relation).toBe(0);
  });

  it("F20: says in one line what is wrong and what to do, and shows nothing half-done", async () => {
    const of = await lake();
    const { server, run, warehouse, folder } = of;
    const before = await ticksIn(of);
    change(warehouse);
    server.fault = ({ method }) => (method === "PUT" ? { status: 403, code: "AccessDenied" } : undefined);
    expect((await failureOf(run())).summary).toBe(
      `${to} refused the request (AccessDenied): allow s3:PutObject to these credentials`,
    );
    server.fault = ({ method, key }) =>
      method === "GET" && key !== "" ? { status: 403, code: "AccessDenied" } : undefined;
    expect((await failureOf(run())).summary).toMatch(/: allow s3:GetObject to these credentials$/);
    expect(await ticksIn(of)).toBe(before);
    server.fault = ({ key }) => (key.endsWith("manifest.json") ? { cut: "during" } : undefined);
    expect((await failureOf(run())).summary).toMatch(/cannot be reached \(UND_ERR_SOCKET|ECONNRESET/);
    server.fault = () => undefined;
    const wrong = { ...server.env, AWS_SECRET_ACCESS_KEY: "another-secret" };
    const command = (env: Record<string, string>, target = to) =>
      runInProcess(["export", "--log-level", "silent", "--to", target], {
        cwd: folder,
        env: { MDS_WAREHOUSE: "mds.sqlite", ...env },
      });
    const ended = await command(wrong);
    expect(ended).toMatchObject({ status: 3, stdout: "" });
    expect(ended.stderr).toContain("(SignatureDoesNotMatch): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY");
    expect(ended.stderr).not.toContain("another-secret");
    expect(await command({})).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    });
    expect((await command(server.env, "s3://")).stderr).toContain(
      "s3:// names no bucket: give s3://BUCKET/PREFIX",
    );
    expect((await command(server.env, "s3://other/x")).stderr).toContain("(NoSuchBucket): create the bucket");
    expect(await command(server.env)).toMatchObject({ status: 0 });
    expect(await ticksIn(of)).toBe(stored(folder));
  });

  it("F20: refuses a store that overwrites commits, before and after the first export", async () => {
    const of = await lake(false);
    const { server, run, warehouse, folder } = of;
    const refused = {
      exit: 2,
      summary: expect.stringMatching(
        /overwrites objects in spite of If-None-Match: use a store with conditional/,
      ),
    };
    server.ignoresConditions = true;
    expect(await failureOf(run())).toMatchObject(refused);
    expect([...server.objects.keys()]).toEqual([`${prefix}versions/generations/probe`]);
    server.ignoresConditions = false;
    for (const probes of [1, 0]) {
      await run();
      expect([...server.objects.keys()].filter((key) => key.endsWith("probe")).length).toBe(probes);
    }
    const before = new Map([...server.objects].map(([key, { bytes }]) => [key, bytes]));
    change(warehouse);
    server.ignoresConditions = true;
    expect(await failureOf(run())).toMatchObject(refused);
    expect(new Map([...server.objects].map(([key, { bytes }]) => [key, bytes]))).toEqual(before);
    server.ignoresConditions = false;
    // The probe's answer is lost: asked again, it must not be mistaken for a store without conditions.
    let isLost = false;
    server.fault = ({ method, key }) => {
      if (isLost || method !== "PUT" || !key.includes("generations/")) return undefined;
      isLost = true;
      return { cut: "after" };
    };
    await run();
    expect(isLost).toBe(true);
    expect(await ticksIn(of)).toBe(stored(folder));
  });

  it("F20: a clean-up that fails after the commit is a warning, and the next export catches up", async () => {
    const of = await lake();
    const { server, run, warehouse, folder } = of;
    let now = Date.now();
    server.now = () => new Date(now);
    const night = async () => {
      change(warehouse);
      now += 2 * day;
      return run({ clock: quickClock(() => now).clock });
    };
    const command = () =>
      runInProcess(["export", "--log-level", "silent", "--json", "--to", to], {
        cwd: folder,
        env: { MDS_WAREHOUSE: "mds.sqlite", ...server.env },
      });
    await night();
    server.fault = ({ method }) => (method === "DELETE" ? { status: 403, code: "AccessDenied" } : undefined);
    expect((await night()).warning).toBe(
      `the export is complete, but old files stay: ${to} refused the request (AccessDenied): allow s3:DeleteObject to these credentials`,
    );
    expect(await ticksIn(of)).toBe(stored(folder));
    const ended = await command();
    expect(ended).toMatchObject({ status: 0, stderr: expect.stringMatching(/is up to date/) });
    const ticks = () => [...server.objects.keys()].filter((key) => /index_ticks\/.*\.parquet$/.test(key));
    const left = ticks().length;
    server.fault = () => undefined;
    expect((await night()).warning).toBe(undefined);
    expect(ticks().length).toBeLessThanOrEqual(left);
    expect(await ticksIn(of)).toBe(stored(folder));
  });

  it("F20: of two exports at the same time one wins, and the other says so", async () => {
    const of = await lake();
    const { server, run, warehouse, folder } = of;
    change(warehouse);
    // Another machine, with a copy of the warehouse, finishes while this one is about to.
    const other = temporaryFolder();
    for (const end of ["", "-wal"]) {
      const file = join(folder, `mds.sqlite${end}`);
      if (existsSync(file)) copyFileSync(file, join(other, `mds.sqlite${end}`));
    }
    change(warehouse);
    let entered = false;
    server.fault = async ({ method, key }) => {
      if (method !== "PUT" || !key.includes("generations/") || entered) return undefined;
      entered = true;
      await exportIn(other, { to, env: server.env, clock: quickClock().clock });
      return undefined;
    };
    const failure = await failureOf(run());
    expect(failure).toMatchObject({ exit: 75, code: "export_elsewhere" });
    expect(failure.summary).toMatch(/another mds-sync exported to .* at the same time: run it again/);
    expect(await ticksIn(of)).toBe(Number(stored(folder)) - 1);
    // Another program commits to a table just before this one does.
    const intruded = new Set<string>();
    server.fault = ({ method, key }) => {
      if (method !== "PUT" || !/index_ticks\/_delta_log\/0+\d\.json$/.test(key) || intruded.size > 0)
        return undefined;
      intruded.add(key);
      server.objects.set(key, { bytes: Buffer.from('{"commitInfo":{}}\n'), modified: new Date() });
      return undefined;
    };
    await run();
    expect(await ticksIn(of)).toBe(stored(folder));
    const [taken = ""] = intruded;
    const { version } = await readSnapshot(join(copyOf(of), "versions/index_ticks"));
    expect(version).toBe(Number(/(\d+)\.json$/.exec(taken)?.[1]) + 1);
  });

  it("F20: kill -9 leaves each table old or new, and the next export heals", async () => {
    const of = await lake();
    const { server, run, warehouse, folder } = of;
    const runUntil = async (step: ExportStep) => {
      let kept = [...server.objects];
      let isReached = false;
      const onStep = (reached: ExportStep) => {
        if (reached === step && !isReached) kept = [...server.objects];
        isReached ||= reached === step;
      };
      await run({ onStep });
      server.objects.clear();
      for (const [key, object] of kept) server.objects.set(key, object);
    };
    const atFirst = await ticksIn(of);
    change(warehouse);
    await killExport(folder, { to, env: { ...process.env, ...server.env }, nth: 1 });
    expect(await ticksIn(of)).toBe(atFirst);
    // A kill at a step leaves the objects of that moment.
    for (const [step, isNew] of [
      ["generation stored", false],
      ["table committed", true],
    ] as const) {
      const before = await ticksIn(of);
      change(warehouse);
      await runUntil(step);
      expect(await ticksIn(of), step).toBe(isNew ? stored(folder) : before);
    }
    await run();
    expect(await ticksIn(of)).toBe(stored(folder));
    // Two days later nothing of the killed ones is left.
    const late = Date.now() + 2 * day;
    for (const now of [late, late + 2 * day]) await run({ clock: quickClock(() => now).clock });
    const files = [...server.objects.keys()].filter((key) => key.endsWith(".parquet"));
    const manifest = JSON.parse(String(server.objects.get(`${prefix}manifest.json`)?.bytes));
    const removed = JSON.parse(
      String(server.objects.get(`${prefix}versions/generations/${manifest.generation}.json`)?.bytes),
    ).removed as { version: string }[];
    const known = [...manifest.files, ...removed].map(({ version }: { version: string }) => prefix + version);
    expect(files.filter((key) => !known.includes(key))).toEqual([]);
  });
});
