import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { withReader } from "../../src/warehouse/reader.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../simulator/simulator.ts";
import { type ProgramProcess, startProgram } from "../support/program-process.ts";
import { type ComparisonResult, expectWarehouseMatches } from "../support/sync/oracle.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";

/** A simulator, a settings file, a warehouse, and `mds-sync backfill` in its own process. */
export interface BackfillInstallation {
  readonly simulator: Simulator;
  start(...flags: string[]): ProgramProcess;
  /** Compares the warehouse with the service, as of the end of the latest run. */
  expectMatchesService(): ComparisonResult;
  query(sql: string): Record<string, unknown>[];
}

export async function installBackfill(
  settings: string,
  options: SimulatorOptions = {},
  folder = temporaryFolder(),
): Promise<BackfillInstallation> {
  const simulator = await startSimulator(options);
  onTestFinished(() => simulator.stop());
  writeFileSync(join(folder, "mds-sync.yaml"), settings);
  const path = join(folder, "mds.sqlite");
  onTestFinished(() => expectSoundFile(path, Date.now()));
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  const query = (sql: string) => withReader(path, (reader) => reader.rows<Record<string, unknown>>(sql));
  return {
    simulator,
    query,
    start: (...flags) => startProgram(["backfill", "--no-progress", ...flags], { cwd: folder, env }),
    expectMatchesService: () =>
      withReader(path, (reader) => {
        // The time of the latest run: the end of the coverage plus the settle delay.
        const [last] = query(
          `SELECT max(s.to_ts) + max(w.settle_delay) AS asOf FROM settled_ranges s
            JOIN targets w ON w.stream = s.stream AND w.series = s.series WHERE s.stream = 'index_ticks'`,
        );
        return expectWarehouseMatches(reader, simulator, Date.now(), Number(last?.asOf));
      }),
  };
}
