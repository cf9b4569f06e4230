import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { syncSettings, withSyncSession } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { Failure } from "../../src/model/failure.ts";
import { seededRandom } from "../../src/runtime/backoff.ts";
import type { Log } from "../../src/runtime/log.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { backfill } from "../../src/sync/history/backfill.ts";
import { verify } from "../../src/sync/history/verify.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { TurnedClock } from "../support/manual-clock.ts";
import { expectHonest, expectTruth } from "../support/sync/oracle.ts";
import { isFault } from "./fault-lines.ts";
import { drawSchedule, type Schedule, type Stop } from "./schedule.ts";

const SECRET = "kestrel-secret/with+signs=&yes";
const DAY = 86_400_000;
/** No run takes longer than this, whatever goes wrong: the liveness bound. */
const LONGEST_RUN_MS = 12 * 3_600_000;

export interface Outcome {
  readonly seed: number;
  /** Empty: proven. */
  readonly problems: readonly string[];
  readonly struck: number;
  readonly requests: number;
  readonly rows: number;
  /** How each run ended: an exit code, or the code of a failure. */
  readonly ends: readonly (number | string)[];
}

/**
 * Lives through the schedule of one seed: a service with faults, runs that end or are stopped; then the service is
 * sound, one more run, and the warehouse has to be what the service is.
 */
export async function prove(seed: number): Promise<Outcome> {
  const schedule = drawSchedule(seed);
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-proof-"));
  const clock = new TurnedClock(schedule.start);
  const simulator = await startSimulator({
    clock,
    seed,
    size: schedule.size,
    refreshSeconds: schedule.refreshSeconds,
    quirks: schedule.quirks,
    clientSecret: SECRET,
  });
  try {
    simulator.setFaults(schedule.faults);
    return await live(schedule, folder, clock, simulator);
  } finally {
    await clock.runUntil(simulator.stop());
    rmSync(folder, { recursive: true, force: true });
  }
}

async function live(
  schedule: Schedule,
  folder: string,
  clock: TurnedClock,
  simulator: Simulator,
): Promise<Outcome> {
  const problems: string[] = [];
  const ends: (number | string)[] = [];
  const said: string[] = [];
  const engine = engineOf(schedule, folder, clock, simulator, said);
  for (const step of schedule.steps) {
    if (step.kind === "pass") {
      await clock.advance(step.ms);
      continue;
    }
    const stopping = new AbortController();
    const stop = () => stopping.abort(stopped());
    const cancel = step.stop ? plan(step.stop, clock, simulator, stop) : () => {};
    const begun = clock.monotonic();
    const end = await engine.run(stopping.signal);
    cancel();
    if (clock.monotonic() - begun > LONGEST_RUN_MS) problems.push("a run did not come to its end");
    // Whatever the service does, it is no bug of ours that ends a run.
    if (end.error !== undefined && !(end.error instanceof Failure && end.error.family !== "bug"))
      problems.push(`a run broke: ${inspect(end.error)}`);
    ends.push(end.exit);
    problems.push(...engine.dishonesties());
  }
  const struck = simulator.struck
    .filter(({ text }) => isFault(text))
    .reduce((sum, line) => sum + line.struck, 0);
  if (struck === 0) problems.push("no fault struck: the schedule proves nothing");

  simulator.setFaults("");
  if (schedule.healing === "next-day") await clock.advance(DAY);
  if (schedule.healing === "verify") {
    // A comparison leaves out the youngest periods, which may still change: what was falsified there is to be older.
    await clock.advance(6 * schedule.refreshSeconds * 1000);
    const first = await engine.run();
    ends.push(first.exit);
    await engine.verifyAll();
  }
  const last = await engine.run();
  ends.push(last.exit);
  if (last.exit !== 0) problems.push(`the last run ended with ${last.exit}: ${last.problems}`);
  let rows = 0;
  try {
    rows = engine.expectTruth().rows;
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  const requests = simulator.requests.total;
  const polite = politeRequests(schedule, ends.length, rows, struck);
  if (rows > 0 && requests > polite) problems.push(`${requests} requests where ${polite} would be polite`);
  problems.push(...secretsTold(folder, said));
  return { seed: schedule.seed, problems, struck, requests, rows, ends };
}

/** Has `act` done when its time has come; gives back how to call it off. */
function plan(stop: Stop, clock: TurnedClock, { requests }: Simulator, act: () => void): () => void {
  if ("ms" in stop) return clock.after(stop.ms, act);
  const add = requests.add.bind(requests);
  let left = stop.pages;
  requests.add = (request) => {
    if (/^\/v3\/(index-ticker|ohlcv)\b/.test(request.target) && --left === 0) act();
    return add(request);
  };
  return () => {
    requests.add = add;
  };
}

/** Each page twice, each fault met answered by another try or two, and what every run asks for anyway. */
function politeRequests({ faults, settings }: Schedule, runs: number, rows: number, struck: number): number {
  const caps = [...faults.matchAll(/ size-cap (\d+)/g)].map(([, cap]) => Number(cap));
  const pages = Math.ceil(rows / Math.min(2000, ...caps));
  const aRun = settings.includes("derivatives: {") ? 70 : 30;
  return aRun * runs + 2 * pages + 2 * struck;
}

function engineOf(
  { settings, seed, healing }: Schedule,
  folder: string,
  clock: TurnedClock,
  simulator: Simulator,
  said: string[],
) {
  const path = join(folder, "mds.sqlite");
  const file = join(folder, "mds-sync.yaml");
  writeFileSync(file, settings);
  const env = {
    MDS_BASE_URL: simulator.baseUrl,
    MDS_WS_URL: simulator.wsUrl,
    MDS_CLIENT_ID: simulator.clientId,
    MDS_CLIENT_SECRET: simulator.clientSecret,
    MDS_WAREHOUSE: path,
  };
  const line = (fields: Record<string, unknown>, message: string) =>
    void said.push(`${message} ${inspect(fields, { depth: 8 })}`);
  const log: Log = { debug: line, info: line, warn: line, error: line };
  const loaded = loadSettings({ env, directory: folder, file });
  const synced = syncSettings(loaded);
  const random = seededRandom(seed);
  let asOf = 0;
  return {
    async run(stopping: AbortSignal = new AbortController().signal) {
      try {
        const report = await clock.runUntil(
          withSyncSession(loaded, { clock, stopping, random }, log, ({ intake, reader }) =>
            backfill(intake, { settings: synced, reader, random, scope: {} }),
          ),
        );
        asOf = report.asOf;
        said.push(inspect(report, { depth: 8 }));
        return { exit: report.exit, problems: JSON.stringify(report.problems), error: undefined };
      } catch (error) {
        said.push(inspect(error, { depth: 8 }));
        const exit = error instanceof Failure ? error.code : "broken";
        return { exit, problems: String(error), error };
      }
    },
    async verifyAll() {
      const { refreshSeconds, concurrency } = synced;
      const stopping = new AbortController().signal;
      await clock.runUntil(
        withSyncSession(loaded, { clock, stopping, random }, log, ({ intake, reader }) =>
          verify(intake, { reader, random, refreshSeconds, concurrency, sample: undefined }),
        ),
      );
    },
    /** Whatever the service did: what the ledger claims must be so, at any moment. */
    dishonesties(): string[] {
      if (!existsSync(path)) return [];
      const reader = openReader(path);
      try {
        // What was told wrongly is stored so; what was denied is believed for a day. All else is judged.
        const judged = { run: ["rows", "empty"], "next-day": ["rows"], verify: [] } as const;
        expectHonest(reader, simulator, clock.now(), judged[healing]);
        return [];
      } catch (error) {
        return [`the ledger lies: ${error instanceof Error ? error.message : String(error)}`];
      } finally {
        reader.close();
      }
    },
    expectTruth() {
      const reader = openReader(path);
      try {
        return expectTruth(reader, simulator, clock.now(), asOf);
      } finally {
        reader.close();
      }
    },
  };
}

/** Neither the logs, the reports and the errors nor any file on disk may hold the secret or a token. */
function secretsTold(folder: string, said: readonly string[]): string[] {
  const isTold = (text: string) => text.includes("kestrel") || /Bearer [^<\s]{8}/.test(text);
  const lines = said.filter(isTold).map((text) => `a secret was told: ${text.slice(0, 200)}`);
  const files = readdirSync(folder).filter((name) => isTold(readFileSync(join(folder, name), "latin1")));
  return [...lines, ...files.map((name) => `a secret stands in ${name}`)];
}

function stopped(): Failure {
  return new Failure("stopped by the schedule", { family: "operator", code: "stopped", exit: 0 });
}
