import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { QUERY_FORMATS, rowRenderers } from "../../../src/cli/output/row-formats.ts";
import { formatDay } from "../../../src/model/time.ts";
import { programEntry } from "../../support/build-program.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { standardContent } from "../../support/cli/standard-content.ts";
import { startProgram } from "../../support/program-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createWarehouse, DAY, midnight } from "../../support/warehouse/filled-warehouse.ts";
import { changeFile } from "../../support/warehouse/warehouse-file.ts";

const query = (path: string, ...args: string[]) => runInProcess(["query", ...args, "--warehouse", path]);

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
    const args = ["query", `${endless} WHERE i < 0 OR i % 100000 = 0`, "--format", "ndjson"];
    const { child } = startProgram(args, { cwd: dirname(path), env: { MDS_WAREHOUSE: path } });
    await once(child.stdout, "data");
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([null, "SIGINT"]);
  });
});

const nowhere = () => join(temporaryFolder(), "none.sqlite");

describe("mds-sync query without SQL", () => {
  it("lists the relations with one line each, even without a warehouse", async () => {
    const [listed, json] = await Promise.all([query(nowhere()), query(nowhere(), "--json")]);
    expect(listed).toMatchObject({ stderr: "", status: 0 });
    expect(listed.stdout).toMatch(/^index_ticks {2,}GWA, MWA and LX values, every 30 seconds$/m);
    expect(listed.stdout).toMatch(/^bars_1h {2,}bars of one hour; a bar without ticks has no row$/m);
    const lines = listed.stdout.split("\n");
    expect(lines.filter((line) => line.startsWith(" ") || line.length > 80)).toEqual([]);
    expect(listed.stdout).toMatch(/^series {2,}/m);
    expect(listed.stdout).not.toContain("index_tick_rows");
    const relations = JSON.parse(json.stdout) as { name: string; summary: string }[];
    expect(relations.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["assets", "gaps", "reconcile_ohlcv"]),
    );
    expect(relations.every(({ summary }) => summary.length > 10)).toBe(true);
  });

  it("shows the columns of a relation with their meaning", async () => {
    const [table, json, inside] = await Promise.all([
      query(nowhere(), "--schema", "BARS_1H"),
      query(nowhere(), "--schema", "bars_1h", "--json"),
      query(nowhere(), "--schema", "settled_ranges"),
    ]);
    expect(table.stdout).toMatch(/^bars_1h: bars of one hour/);
    expect(table.stdout).toMatch(/^is_complete +INTEGER +1: the ledger covers the whole bar/m);
    expect(JSON.parse(json.stdout)).toMatchObject({
      name: "bars_1h",
      columns: expect.arrayContaining([
        { name: "open_exact", type: "TEXT", meaning: "open with every digit" },
      ]),
    });
    expect(inside.stdout).toContain("proof");
  });

  it("includes a view that a user has added", async () => {
    const path = createWarehouse();
    changeFile(path, "CREATE VIEW mine AS SELECT 1 AS one, symbol FROM assets");
    expect((await query(path)).stdout).toMatch(/^mine {2,}not part of mds-sync$/m);
    expect((await query(path, "--schema", "mine")).stdout).toMatch(/^symbol {2}TEXT$/m);
  });

  it("names the command that adds a relation which an older version did not have", async () => {
    const path = createWarehouse();
    changeFile(path, "DROP VIEW IF EXISTS bars_1h");
    expect((await query(path, "SELECT * FROM bars_1h")).stderr).toBe(
      "mds-sync: no such table bars_1h: this file was last written by an older version; `mds-sync run` or `mds-sync backfill` upgrades it\n",
    );
  });
});

describe("the parameters of a query", () => {
  it("are numbers, timestamps and texts", async () => {
    const path = createWarehouse(standardContent);
    const typed = "SELECT typeof(:i) AS i, typeof(:r) AS r, :t AS t, :m AS m, :zero AS zero, :e AS e";
    const params = ["i=1794700800000000", "r=0.5", "t=a=b", "m=@2026-03-01", "zero=007", "e="];
    const { stdout } = await query(path, typed, "--json", ...params.flatMap((pair) => ["--param", pair]));
    expect(JSON.parse(stdout)).toEqual([
      { i: "integer", r: "real", t: "a=b", m: 1_772_323_200_000_000, zero: "007", e: "" },
    ]);
    const week = await query(path, "SELECT :w AS w", "--json", "--param", "w=@-7d");
    expect((Date.now() * 1000 - JSON.parse(week.stdout)[0].w) / DAY).toBeCloseTo(7, 1);
    const since = "SELECT count(*) AS n FROM index_ticks WHERE name = :name AND ts >= :since";
    const values = ["--param", "name=BTC", "--param", `since=@${formatDay(midnight - 4 * DAY)}`];
    const counted = await query(path, since, "--json", ...values);
    expect(JSON.parse(counted.stdout)).toEqual([{ n: 1 }]);
    const misspelt = await query(path, since, "--param", "name=BTC", "--param", "sinse=1");
    expect(misspelt).toMatchObject({
      stderr: "mds-sync: the statement has no parameter :sinse: did you mean since?\n",
      status: 2,
    });
  });
});

describe("the integers of a query", () => {
  it("keep all their digits", async () => {
    const path = createWarehouse();
    const sql = "SELECT 9223372036854775807 AS most, -9007199254740993 AS odd, 7 AS few, 2.0 AS two";
    const [json, csv] = await Promise.all([query(path, sql, "--json"), query(path, sql, "--format", "csv")]);
    expect(json.stdout).toBe('[\n{"most":9223372036854775807,"odd":-9007199254740993,"few":7,"two":2}\n]\n');
    expect(csv.stdout).toBe("most,odd,few,two\r\n9223372036854775807,-9007199254740993,7,2\r\n");
  });
});

describe("the process of a query", () => {
  it("reads SQL from stdin, and exits silently when its reader closes the pipe", async () => {
    const path = createWarehouse(standardContent);
    const child = spawn(
      "sh",
      ["-c", `"$NODE" "$ENTRY" query - --format csv 2>"$ERRORS" | head -n 2; cat "$ERRORS"`],
      {
        env: {
          PATH: process.env.PATH ?? "",
          NODE: process.execPath,
          ENTRY: programEntry,
          MDS_WAREHOUSE: path,
          ERRORS: join(dirname(path), "errors"),
        },
        cwd: dirname(path),
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    child.stdin.end(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)\nSELECT i, 'some text' AS t FROM n;\n",
    );
    const [stdout] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect(stdout).toBe("i,t\r\n1,some text\r\n");
  });
});

describe("every format of a query", () => {
  it.each(QUERY_FORMATS)("%s streams its rows, and holds only a few of them in memory", (format) => {
    let pulled = 0;
    const endless = (function* () {
      for (;;) yield [++pulled, "text"];
    })();
    const pieces = rowRenderers[format](["n", "t"], endless)[Symbol.iterator]();
    let written = "";
    for (let i = 0; i < 4; i++) written += pieces.next().value;
    expect(written).toContain("text");
    expect(pulled).toBeLessThanOrEqual(2_000);
  });
});
