import { fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { exportIn, inCatalogue, type Row } from "../support/export/read-export.ts";
import { fillEverything, monthStart, openAt } from "../support/export/sample-data.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { DAY, STEP } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { retract, settle } from "../support/warehouse/settle.ts";
import { storeTicks, writeTicks } from "../support/warehouse/write-records.ts";

const counted = "SELECT count(*)::INTEGER FROM index_ticks";

/** A reader in a process of its own, at its catalogue until told otherwise. */
async function quantAt(
  catalogue: string,
): Promise<{ ask(sql: string): Promise<unknown>; leave(): Promise<void> }> {
  const child = fork(join(import.meta.dirname, "../support/export/duckdb-reader-process.ts"), [catalogue]);
  onTestFinished(() => void child.kill());
  await once(child, "message");
  return {
    async ask(sql) {
      const answer = once(child, "message");
      child.send(sql);
      return (await answer)[0];
    },
    async leave() {
      child.kill();
      await once(child, "exit");
    },
  };
}

it("F16: readers of an export keep reading the old one while a new one is written, until they close it", async () => {
  const folder = temporaryFolder();
  const warehouse = openAt(folder);
  onTestFinished(() => warehouse.close());
  warehouse.transaction(fillEverything);
  await exportIn(folder);
  const quant = await quantAt(join(folder, "export/mds.duckdb"));
  const before = (await quant.ask(counted)) as Row[];
  let now = Date.now();
  for (let day = 1; day <= 2; day++) {
    now += 86_400_000;
    const late = tick(monthStart(3) + (6000 + day) * STEP, "5");
    storeTicks(warehouse, [late]);
    await exportIn(folder, { clock: { ...systemClock, now: () => now } });
    // The files of this very month were replaced, days ago by the clock.
    expect(await quant.ask(counted)).toEqual(before);
  }
  expect(await inCatalogue(join(folder, "export/mds.duckdb"), counted)).toEqual([
    [(before[0]?.[0] as number) + 2],
  ]);
  await quant.leave();

  // Anywhere else, and wherever the reader stands.
  const moved = join(folder, "moved");
  cpSync(join(folder, "export"), moved, { recursive: true });
  renameSync(join(folder, "export"), join(folder, "away"));
  const after = [[(before[0]?.[0] as number) + 2]];
  expect(await inCatalogue(join(moved, "mds.duckdb"), counted)).toEqual(after);
  const here = process.cwd();
  process.chdir(folder);
  try {
    expect(await inCatalogue("moved/mds.duckdb", counted)).toEqual(after);
    process.chdir(moved);
    expect(await inCatalogue("mds.duckdb", counted)).toEqual(after);
  } finally {
    process.chdir(here);
  }
  // Attached to another database it has to be told, unless it lies where it was written.
  const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
  onTestFinished(() => instance.closeSync());
  const connection = await instance.connect();
  await connection.run(`ATTACH '${join(moved, "mds.duckdb")}' AS mds (READ_ONLY)`);
  await expect(connection.run("SELECT count(*) FROM mds.index_ticks")).rejects.toThrow("No files found");
  await connection.run(
    "SET VARIABLE mds_export = (SELECT parse_dirpath(path) FROM duckdb_databases() WHERE database_name = 'mds')",
  );
  const rows = await connection.runAndReadAll("SELECT count(*)::INTEGER FROM mds.index_ticks");
  expect(rows.getRowsJson()).toEqual(after);
  rmSync(moved, { recursive: true });
});

it("beside a writer, an export covers only rows that it has, and all time is covered or a gap", async () => {
  const folder = temporaryFolder();
  const warehouse = openAt(folder);
  onTestFinished(() => warehouse.close());
  warehouse.transaction(fillEverything);
  const late = monthStart(3) + 20 * DAY;
  const doubted = { from: monthStart(2), to: monthStart(2) + 10 * STEP };
  let files = 0;
  let busy: unknown;
  await exportIn(folder, {
    onStep(step) {
      // The first file is this month's: its rows are written by now, those below come too late for it.
      if (step === "file stored" && ++files === 1) {
        warehouse.transaction((transaction) => {
          const line = {
            stream: "index_ticks",
            series: transaction.dictionary.getSeriesKey("GWA", "btc-id"),
          } as const;
          writeTicks(transaction, [tick(late, "5")]);
          settle(transaction, line, { from: late, to: late + STEP }, "rows");
          retract(transaction, line, doubted);
        });
      }
      if (step === "catalogue written")
        busy = warehouse.connection.database.pragma("wal_checkpoint(TRUNCATE)", { simple: true });
    },
  });
  const ask = (sql: string) => inCatalogue(join(folder, "export/mds.duckdb"), sql);
  const at = (moment: number) =>
    ask(`SELECT 'coverage' AS said, proof AS how FROM coverage WHERE stream = 'index_ticks' AND name = 'BTC'
        AND from_ts <= ${moment} AND to_ts > ${moment}
      UNION ALL SELECT 'gaps', reason FROM gaps WHERE stream = 'index_ticks' AND name = 'BTC' AND from_ts <= ${moment} AND to_ts > ${moment}`);
  expect(await ask(`SELECT count(*)::INTEGER FROM index_ticks WHERE ts = ${late}`)).toEqual([[0]]);
  expect(await at(late)).toEqual([["gaps", "pending"]]);
  expect(await at(doubted.from)).toEqual([["gaps", "not exported"]]);
  expect(await at(doubted.from - STEP)).toEqual([["coverage", "rows"]]);
  expect(await at(doubted.to)).toEqual([["coverage", "rows"]]);
  // No snapshot outlives its file: the writer's log can be cut back.
  expect(busy).toBe(0);
});
