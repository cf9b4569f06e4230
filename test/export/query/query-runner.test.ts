import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { buffer, json, text } from "node:stream/consumers";
import { zstdDecompressSync } from "node:zlib";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { QueryRunner } from "../../../src/export/query/query-runner.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { processEntry } from "../../support/build-program.ts";
import { fillEveryState } from "../../support/dashboard/heatmap-content.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import type { AtEnd } from "../../support/temporary-folder.ts";
import { nowTs, openFilledWarehouse } from "../../support/warehouse/filled-warehouse.ts";

const endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c";

function openRunner(
  timeoutMs?: number,
  clock: Clock = systemClock,
  atEnd: AtEnd = onTestFinished,
  processFile = processEntry("query-process"),
) {
  const { path } = openFilledWarehouse(fillEveryState, atEnd);
  const runner = new QueryRunner({
    path,
    clock,
    now: () => nowTs,
    processFile,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
  atEnd(() => runner.close());
  const ask = async (sql: string, rest: object = {}, signal = new AbortController().signal) =>
    (await runner.answer(JSON.stringify({ sql, ...rest }), signal)).result;
  return { path, ask, runner };
}

describe("a query of a page", () => {
  // One runner for most tests: it starts a process for the next query while one runs.
  let ask: ReturnType<typeof openRunner>["ask"];
  beforeAll(() => {
    ({ ask } = openRunner(undefined, systemClock, afterAll));
  });

  it("returns rows, exact integers, and parameters as times", async () => {
    const sql =
      "SELECT :from AS since, 9007199254740993 AS large, 0.5 AS half, NULL AS none, x'00ff' AS bytes";
    expect(await json(await ask(sql, { params: { from: "@-1d" } }))).toMatchObject({
      columns: ["since", "large", "half", "none", "bytes"],
      rows: [[nowTs - 86_400_000_000, "9007199254740993", 0.5, null, "00ff"]],
      is_cut: false,
      warnings: [],
    });
    expect(await text(await ask("SELECT 'a,\"b' AS t, 9007199254740993 AS n", { format: "csv" }))).toBe(
      't,n\r\n"a,""b",9007199254740993\r\n',
    );
  });

  it("has real timestamps in Parquet where a column is one of times", async () => {
    const time = "2026-03-01T12:00:00.000001Z";
    const columns = ["time", "from_time", "changed_at", "expiration", "name"];
    const sql = `SELECT ${columns.map((name) => `'${time}' AS ${name}`)}, 'soon' AS lost_at UNION ALL SELECT ${columns.map(() => "NULL")}, NULL`;
    const file = new Uint8Array(await buffer(await ask(sql, { format: "parquet" }))).buffer;
    const types = parquetMetadata(file)
      .schema.slice(1)
      .map(({ name, logical_type }) => [name, logical_type?.type]);
    expect(Object.fromEntries(types)).toEqual({
      ...{ time: "TIMESTAMP", from_time: "TIMESTAMP", changed_at: "TIMESTAMP", expiration: "TIMESTAMP" },
      ...{ name: undefined, lost_at: undefined },
    });
    const [first, second] = await parquetReadObjects({
      file,
      compressors: { ZSTD: (bytes) => zstdDecompressSync(bytes) },
    });
    expect(first).toMatchObject({ time: new Date(time), name: time, lost_at: "soon" });
    expect(second).toMatchObject({ time: null, name: null });
  });

  it("cannot write, attach, change a setting or read another file", async () => {
    // test/cli/commands/query.test.ts has more of them.
    for (const sql of ["ATTACH '/etc/passwd' AS other", "WITH x AS (SELECT 1) DELETE FROM assets", ""])
      await expect(ask(sql), sql).rejects.toMatchObject({ code: "bad_query" });
    expect(await json(await ask("SELECT count(*) FROM assets"))).toMatchObject({ rows: [[14]] });
  });

  it("is killed when it takes too long or nobody waits, and leaves no file behind", async () => {
    const { ask, path } = openRunner(300);
    await expect(ask(`${endless} ORDER BY n LIMIT 1`)).rejects.toMatchObject({
      message: "the query took longer than 0.3 s",
      remedy: "read a shorter range of time, fewer series or fewer rows",
    });
    const gone = new AbortController();
    const cancelled = ask(`${endless} ORDER BY n LIMIT 1`, { format: "parquet" }, gone.signal);
    setTimeout(() => gone.abort(), 100);
    await expect(cancelled).rejects.toMatchObject({ message: "the query was cancelled" });
    expect(readdirSync(dirname(path)).filter((file) => file.startsWith(".query"))).toEqual([]);
  });

  it("of a daemon that was killed leaves a folder until the next start; that of another file stays", async () => {
    const { path, runner } = openRunner();
    const folders = [`.query-${basename(path)}-a1B2c3`, ".query-a1B2c3", ".query-other.sqlite-a1B2c3"];
    for (const name of folders) {
      mkdirSync(join(dirname(path), name));
      writeFileSync(join(dirname(path), name, "result.parquet"), "half");
    }
    runner.removeLeftFolders();
    expect(readdirSync(dirname(path)).filter((file) => file.startsWith(".query"))).toEqual(folders.slice(2));
  });

  it("says that files are missing while the program is replaced, not that it needs memory", async () => {
    const { ask } = openRunner(undefined, systemClock, onTestFinished, "/nonexistent/query-process.js");
    await expect(ask("SELECT 1")).rejects.toMatchObject({
      code: "not_readable",
      message: "the query cannot be started: files of mds-sync are missing, or are being replaced",
      remedy: expect.stringContaining("run it again"),
    });
  });

  it("has its whole time for the statement, however long its process takes to start", async () => {
    const clock = new ManualClock();
    const { ask } = openRunner(undefined, clock);
    const slow = ask("SELECT 1 AS one");
    clock.jump(60_000);
    expect(await json(await slow)).toMatchObject({ rows: [[1]] });
    const stuck = ask("SELECT 1 AS one");
    clock.jump(120_000);
    await expect(stuck).rejects.toMatchObject({
      code: "not_readable",
      message: "the query could not be started within 120 s",
      remedy: "the machine is busy: run it again",
    });
  });

  it("tells the rows read while it runs, and its failure in the last line", async () => {
    const clock = new ManualClock();
    const { ask } = openRunner(undefined, clock);
    const work =
      "WITH RECURSIVE d(m) AS (SELECT n UNION ALL SELECT m + 1 FROM d WHERE m < n + 20000) SELECT count(*) FROM d";
    const result = await ask(endless.replace("SELECT n FROM", `SELECT n, (${work}) FROM`));
    clock.jump(30_000);
    const lines = (await text(result)).trim().split("\n");
    const [first, last] = [lines[0], lines.at(-1)].map((line) => JSON.parse(line ?? ""));
    expect(first.read).toBeGreaterThan(0);
    expect(last).toMatchObject({
      error: "the query took longer than 30 s",
      remedy: "read a shorter range of time, fewer series or fewer rows",
    });
  });

  it("explains a failure in words of the page", async () => {
    const remedies: [string, object, string][] = [
      ["SELECT * FROM zzzz", {}, "the relations and their columns are listed beside the editor"],
      ["SELECT :zzzz", {}, "give :zzzz a value"],
      ["SELECT 1", { params: { zzzz: 1 } }, "leave out :zzzz"],
    ];
    for (const [sql, rest, remedy] of remedies)
      await expect(ask(sql, rest), sql).rejects.toMatchObject({ code: "bad_query", remedy });
  });

  it("refuses more than three at once, and a result that was cut off does not look whole", async () => {
    const gone = new AbortController();
    const streams = await Promise.all([1, 2, 3].map(() => ask(endless, { format: "csv" }, gone.signal)));
    await expect(ask("SELECT 1")).rejects.toMatchObject({ code: "too_many" });
    const rest = Promise.allSettled(streams.map((stream) => buffer(stream)));
    gone.abort();
    expect((await rest).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  });
});
