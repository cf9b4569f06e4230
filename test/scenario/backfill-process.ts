import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { type ProgramProcess, startProgram } from "../support/program-process.ts";
import { type Agreement, expectTruth } from "../support/sync/oracle.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A service, a settings file and a warehouse, and `mds-sync backfill` as a process of its own. */
export interface Installation {
  readonly simulator: Simulator;
  start(...flags: string[]): ProgramProcess;
  /** Holds the warehouse against the service, as of the latest claim. */
  expectTruth(): Agreement;
  query(sql: string): Record<string, unknown>[];
}

export async function install(
  settings: string,
  options: SimulatorOptions = {},
  folder = temporaryFolder(),
): Promise<Installation> {
  const simulator = await startSimulator(options);
  onTestFinished(() => simulator.stop());
  writeFileSync(join(folder, "mds-sync.yaml"), settings);
  const path = join(folder, "mds.sqlite");
  const env = {
    MDS_BASE_URL: simulator.baseUrl,
    MDS_WS_URL: simulator.wsUrl,
    MDS_CLIENT_ID: simulator.clientId,
    MDS_CLIENT_SECRET: simulator.clientSecret,
    MDS_WAREHOUSE: path,
  };
  const look = <T>(work: (reader: ReturnType<typeof openReader>) => T): T => {
    const reader = openReader(path);
    try {
      return work(reader);
    } finally {
      reader.close();
    }
  };
  const query = (sql: string) =>
    look((reader) => reader.database.prepare(sql).all() as Record<string, unknown>[]);
  return {
    simulator,
    query,
    start: (...flags) => startProgram(["backfill", "--no-progress", ...flags], { cwd: folder, env }),
    expectTruth: () =>
      look((reader) => {
        // The claim of the latest run: a line's settled end, plus the delay that it kept from the service's now.
        const [last] = query(
          `SELECT max(s.to_ts) + max(w.settle_delay) AS asOf FROM settled_ranges s
            JOIN wanted_ranges w ON w.stream = s.stream AND w.series = s.series WHERE s.stream = 'index_ticks'`,
        );
        return expectTruth(reader, simulator, Date.now(), Number(last?.asOf));
      }),
  };
}
