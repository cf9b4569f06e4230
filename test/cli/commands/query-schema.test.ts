import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { formatDay } from "../../../src/model/time.ts";
import { programEntry } from "../../support/build-program.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { standardContent } from "../../support/cli/standard-content.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createWarehouse, DAY, midnight } from "../../support/warehouse/filled-warehouse.ts";
import { changeFile } from "../../support/warehouse/warehouse-file.ts";

const query = (path: string, ...args: string[]) => runInProcess(["query", ...args, "--warehouse", path]);
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
