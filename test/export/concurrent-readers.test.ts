import { fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { exportIn, inCatalogue, type Row } from "../support/export/read-export.ts";
import { fillEverything, monthStart, openAt } from "../support/export/sample-data.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { STEP } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

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

describe("readers of an export", () => {
  it("F16: keep reading the old one while a new one is written, until they close it", async () => {
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
});
