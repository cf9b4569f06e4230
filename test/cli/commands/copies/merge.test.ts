import { copyFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../../src/model/time.ts";
import { settle } from "../../../../src/warehouse/coverage/ledger.ts";
import { openTarget } from "../../../../src/warehouse/coverage/targets.ts";
import { writeRecords } from "../../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../../src/warehouse/tables/transaction.ts";
import { runInProcess } from "../../../support/cli/run-command.ts";
import { startProgram } from "../../../support/program-process.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { createEarlierWarehouse } from "../../../support/warehouse/earlier-warehouse.ts";
import {
  createWarehouse,
  DAY,
  midnight,
  openForWriting,
} from "../../../support/warehouse/filled-warehouse.ts";
import { tick } from "../../../support/warehouse/records.ts";

const STEP = 30 * MICROS_PER_SECOND;
const ROWS_PER_DAY = DAY / STEP;
const rules = { settleDelay: 2 * STEP, period: STEP, step: 1, serviceWindow: 200 * DAY };

/** Covers whole days of a series, counted back from today. */
function coverDays(transaction: Transaction, indexId: string, days: readonly number[]): void {
  const key = { stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", indexId) } as const;
  for (const day of days) {
    const from = midnight - day * DAY;
    openTarget(transaction, { key, from, ...rules }, false);
    const rows = Array.from({ length: ROWS_PER_DAY }, (_, n) =>
      tick(from + n * STEP, String(n + 1), { indexId }),
    );
    writeRecords(transaction, "index_ticks", rows, "rest");
    settle(transaction, key, { from, to: from + DAY }, "rows");
  }
}

const merge = (path: string, ...args: string[]) =>
  runInProcess(["merge", ...args], { env: { MDS_WAREHOUSE: path } });

function read(path: string, sql: string): unknown[] {
  const database = new Database(path, { readonly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

const coveredSql =
  "SELECT name, sum(to_ts - from_ts) / 86400000000 AS days FROM coverage GROUP BY name ORDER BY name";

describe("mds-sync merge", () => {
  it("F15: brings rows and coverage of another copy, once, and reports them", async () => {
    const path = createWarehouse((transaction) => coverDays(transaction, "btc", [3, 2]));
    const other = createWarehouse((transaction) => {
      coverDays(transaction, "eth", [5]);
      coverDays(transaction, "btc", [4, 3]);
    });
    const bytes = readFileSync(other);
    const planned = JSON.parse((await merge(path, other, "--dry-run", "--json")).stdout);
    expect(planned).toMatchObject({ dry_run: true, warehouse: path, file: other });
    expect(read(path, coveredSql)).toEqual([{ name: "btc", days: 2 }]);
    const { stdout, stderr, status } = await merge(path, other, "--json");
    expect([stderr, status]).toEqual(["", 0]);
    const report = JSON.parse(stdout);
    expect(report.streams).toEqual(planned.streams);
    expect(report.streams).toContainEqual({
      stream: "index_ticks",
      rows: 2 * ROWS_PER_DAY,
      replaced: 0,
      withdrawn: 0,
      seconds: (2 * DAY) / MICROS_PER_SECOND,
    });
    expect(read(path, coveredSql)).toEqual([
      { name: "btc", days: 3 },
      { name: "eth", days: 1 },
    ]);
    expect((await runInProcess(["verify", "--ledger"], { env: { MDS_WAREHOUSE: path } })).status).toBe(0);
    expect(readFileSync(other).equals(bytes)).toBe(true);
    const second = await merge(path, other);
    expect(second.stdout).toMatch(/index_ticks +0 +0 +0 +-\n/);
  });

  it("completes what a killed merge left, and the ledger is sound at every kill", async () => {
    const original = createWarehouse((transaction) => coverDays(transaction, "btc", [1]));
    const other = createWarehouse((transaction) =>
      coverDays(
        transaction,
        "eth",
        Array.from({ length: 30 }, (_, n) => n + 1),
      ),
    );
    const path = join(temporaryFolder(), "mds.sqlite");
    copyFileSync(original, path);
    const rowsNow = () =>
      Number((read(path, "SELECT count(*) AS n FROM index_ticks WHERE name = 'eth'")[0] as { n: number }).n);
    const running = startProgram(["merge", other], { cwd: dirname(path), env: { MDS_WAREHOUSE: path } });
    // Killed after the first commits of rows.
    await waitUntil(() => rowsNow() > 0, 5);
    running.child.kill("SIGKILL");
    await running.result;
    const claimed = read(
      path,
      "SELECT sum(to_ts - from_ts) / 30000000 AS n FROM coverage WHERE name = 'eth'",
    );
    expect(claimed).toEqual([{ n: rowsNow() }]);
    expect((await merge(path, other)).status).toBe(0);
    expect(read(path, coveredSql)).toEqual([
      { name: "btc", days: 1 },
      { name: "eth", days: 30 },
    ]);
    expect((await runInProcess(["verify", "--ledger"], { env: { MDS_WAREHOUSE: path } })).status).toBe(0);
  });

  it("merges a copy of an older version, which stays as it is", async () => {
    const path = createWarehouse((transaction) => coverDays(transaction, "btc", [1]));
    const older = createEarlierWarehouse(join(temporaryFolder(), "older.sqlite"));
    const bytes = readFileSync(older);
    expect((await merge(path, older)).status).toBe(0);
    expect(read(path, "SELECT count(*) AS n FROM index_ticks WHERE index_id = 'btc-id'")).toEqual([
      { n: 451 },
    ]);
    expect(readFileSync(older).equals(bytes)).toBe(true);
  });

  it("refuses with exit 75 while a writer holds the warehouse; a dry run works beside it", async () => {
    const path = createWarehouse((transaction) => coverDays(transaction, "btc", [1]));
    const other = createWarehouse((transaction) => coverDays(transaction, "eth", [1]));
    const writer = openForWriting(path);
    const env = { MDS_WAREHOUSE: path };
    const refused = await startProgram(["merge", other], { cwd: dirname(path), env }).result;
    const dry = await startProgram(["merge", other, "--dry-run"], { cwd: dirname(path), env }).result;
    writer.close();
    expect([refused.status, dry.status]).toEqual([75, 0]);
    expect(dry.stdout).toMatch(/index_ticks +2,880 +0 +0 +1d\n/);
    expect(dry.stdout).toContain("nothing was changed");
  });

  it("needs a warehouse to merge into, and a warehouse to merge", async () => {
    const other = createWarehouse((transaction) => coverDays(transaction, "eth", [1]));
    expect(await merge(join(temporaryFolder(), "none.sqlite"), other)).toMatchObject({
      status: 4,
      stderr: expect.stringContaining("there is no warehouse"),
    });
    expect((await merge(other, join(temporaryFolder(), "none.sqlite"))).status).toBe(2);
    expect((await merge(other, other)).status).toBe(2);
  });
});
