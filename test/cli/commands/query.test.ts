import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { programEntry } from "../../support/build-program.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { standardContent } from "../../support/cli/standard-content.ts";
import { createWarehouse } from "../../support/warehouse/filled-warehouse.ts";

const query = (path: string, sql: string, ...args: string[]) =>
  runInProcess(["query", sql, "--warehouse", path, ...args]);

const assets =
  "SELECT symbol, name, length(name) AS letters, url FROM assets WHERE id LIKE '%th-id' OR id LIKE 'b%'";

describe("mds-sync query", () => {
  it("writes a table to stdout, and the duration to stderr", async () => {
    const { stdout, stderr, status } = await query(createWarehouse(standardContent), assets);
    expect(status).toBe(0);
    expect(stdout).toBe(
      [
        "symbol  name     letters  url",
        "------  -------  -------  ---",
        "BTC     Bitcoin        7",
        "ETH     Ether          5",
        "",
      ].join("\n"),
    );
    expect(stderr).toMatch(/^2 rows in \d+ ms\n$/);
  });

  it("writes valid CSV, JSON and NDJSON", async () => {
    const path = createWarehouse(standardContent);
    const odd = `SELECT 'a "b", c' AS "x,y", 1.5 AS n, NULL AS gone, x'0aff' AS bytes UNION ALL SELECT 'l1
l2', 7, 'z', NULL`;
    const [csv, json, ndjson, none] = await Promise.all([
      query(path, odd, "--format", "csv"),
      query(path, odd, "--format", "json"),
      query(path, odd, "--format", "ndjson"),
      query(path, "SELECT id FROM assets WHERE 0", "--format", "json"),
    ]);
    expect(csv.stdout).toBe('"x,y",n,gone,bytes\r\n"a ""b"", c",1.5,,0aff\r\n"l1\nl2",7,z,\r\n');
    const rows = [
      { "x,y": 'a "b", c', n: 1.5, gone: null, bytes: "0aff" },
      { "x,y": "l1\nl2", n: 7, gone: "z", bytes: null },
    ];
    expect(JSON.parse(json.stdout)).toEqual(rows);
    expect(
      ndjson.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(rows);
    expect(none).toMatchObject({ stdout: "[]\n", status: 0 });
  });

  it("aligns a long table batch by batch", async () => {
    const sql =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT i, 'x' AS x FROM n";
    const { stdout, stderr } = await query(createWarehouse(), sql);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(1202);
    expect([lines[2], lines[501], lines[502]]).toEqual(["  1  x", "500  x", " 501  x"]);
    expect(stderr).toMatch(/^1,200 rows in/);
  });

  it.each([
    [
      /the warehouse is read-only/,
      [
        "DELETE FROM assets",
        "DELETE FROM assets RETURNING id",
        "WITH x AS (SELECT 1) DELETE FROM assets",
        "WITH x AS (SELECT 1) INSERT INTO assets (id) SELECT 1 FROM x RETURNING id",
        "EXPLAIN PRAGMA query_only = 0",
        "/* */ -- x\n PRAGMA query_only(0)",
        "ATTACH 'other.sqlite' AS other",
        "VACUUM INTO 'other.sqlite'",
        "PRAGMA user_version = 7",
        "/* quietly */ PRAGMA journal_mode = DELETE",
        "PRAGMA query_only = 0",
        "BEGIN IMMEDIATE",
      ],
    ],
    [/more than one statement/, ["SELECT 1; DELETE FROM assets", "SELECT 1; SELECT 2"]],
    [/: no such table asets: did you mean assets\?/, ["SELECT * FROM asets"]],
    [/: no such column symbl: did you mean symbol\?/, ["SELECT symbl FROM assets"]],
    [/: syntax error near "SELEC": `mds-sync query` without SQL lists the relations/, ["SELEC 1"]],
    [/malformed JSON: the statement is at fault/, ["SELECT json('x')"]],
    [/integer overflow: the statement is at fault/, ["SELECT abs(-9223372036854775808)"]],
    [/not authorized: /, ["SELECT load_extension('x')"]],
    [/Missing named parameter "from": give --param from=VALUE/, ["SELECT :from"]],
  ])("rejects with %s in one line, and creates no file", async (line, statements) => {
    const path = createWarehouse(standardContent);
    for (const sql of statements) {
      const { stdout, stderr, status } = await query(path, sql);
      expect({ stdout, status }, sql).toEqual({ stdout: "", status: 2 });
      expect(stderr, sql).toMatch(line);
      // After the program's name, one colon stands between what failed and what to do.
      expect(stderr).toMatch(/^mds-sync: (?:(?!: )[^\n])*: (?:(?!: )[^\n])*\n$/);
    }
    expect(existsSync("other.sqlite")).toBe(false);
    expect(readdirSync(dirname(path)).filter((name) => name.startsWith("other"))).toEqual([]);
  });

  it("ends at Ctrl-C while SQLite runs", async () => {
    const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    const path = createWarehouse();
    const child = spawn(
      process.execPath,
      [programEntry, "query", `${endless} WHERE i < 0 OR i % 100000 = 0`, "--format", "ndjson"],
      {
        cwd: join(dirname(path)),
        env: { PATH: process.env.PATH ?? "", MDS_WAREHOUSE: path },
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    child.stdout.resume();
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([null, "SIGINT"]);
  });
});
