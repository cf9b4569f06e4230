import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { withSyncSession } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { Failure } from "../../src/model/failure.ts";
import { createForwardingLog } from "../../src/runtime/log.ts";
import { startWorker } from "../../src/runtime/thread.ts";
import { backfill } from "../../src/sync/history/backfill.ts";
import { verify } from "../../src/sync/history/verify.ts";
import { SyncSupervisor } from "../../src/sync/supervisor.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { startIngestInProcess } from "../support/ingest/in-process-ingest.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { makeMemoryFolder } from "../support/memory-folder.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { expectCoverageCorrect, expectWarehouseMatches } from "../support/sync/oracle.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { copyEmptyWarehouse } from "../support/warehouse/empty-warehouse.ts";
import { isFault } from "./draw-faults.ts";
import { HiddenRecords } from "./hidden-rows.ts";
import { drawSchedule, type FaultSchedule, type StopPoint } from "./schedule.ts";

const SECRET = "kestrel-secret/with+signs=&yes";
const WAREHOUSE_FILE = "mds.sqlite";
/** All views but those that the sync, the audit and the oracle read: every connection parses the text of all views. */
const unusedViews =
  /^(?!.*_tick_rows$|market_cap_rows$|(index_ticks|ohlcv|gaps|coverage|markets|derivative_contracts)$)/;
const unusedWithoutBars =
  /^(?!.*_tick_rows$|market_cap_rows$|(index_ticks|gaps|coverage|markets|derivative_contracts)$)/;
const DAY_MS = 86_400_000;
/** Two answers about an absence are this far apart: a little more than `sync.withdrawals.over`. */
const CONFIRMATION_MS = 11 * 60_000;
/** Two answers about an end that begin at different slices count for what both are about: a third confirms the rest. */
const MAX_CONFIRMATION_ROUNDS = 3;
/** No run may take longer, whatever faults the service has. */
const MAX_RUN_MS = 12 * 3_600_000;

export interface ProofOutcome {
  readonly seed: number;
  /** Empty if the warehouse equals the service in the end. */
  readonly problems: readonly string[];
  /** Number of faults that struck. */
  readonly struck: number;
  readonly requests: number;
  readonly rows: number;
  /** How each run ended: an exit code, or the code of a failure. */
  readonly exits: readonly (number | string)[];
}

/**
 * Plays the schedule of one seed: several runs against a service with faults, some of them stopped or killed, and perhaps
 * the live feed. Then removes the faults and runs once more; after that the warehouse must equal the service.
 */
export async function prove(seed: number): Promise<ProofOutcome> {
  const schedule = drawSchedule(seed);
  const folder = makeMemoryFolder("mds-sync-proof-");
  const clock = new ManualClock(schedule.start);
  const hidden = new HiddenRecords(schedule.lies);
  const simulator = await startSimulator({
    clock,
    seed,
    onChanged: (change) => hidden.record(change),
    size: schedule.size,
    refreshSeconds: schedule.refreshSeconds,
    quirks: schedule.quirks,
    clientSecret: SECRET,
  });
  try {
    simulator.setFaults(...schedule.faults);
    const unused = schedule.settings.includes("ohlcv: false") ? unusedWithoutBars : unusedViews;
    if (!schedule.isNewFile) copyEmptyWarehouse(join(folder, WAREHOUSE_FILE), unused);
    return await playSchedule(schedule, folder, clock, simulator, hidden);
  } finally {
    await clock.runUntil(simulator.stop());
    rmSync(folder, { recursive: true, force: true });
  }
}

async function playSchedule(
  schedule: FaultSchedule,
  folder: string,
  clock: ManualClock,
  simulator: Simulator,
  hidden: HiddenRecords,
): Promise<ProofOutcome> {
  const problems: string[] = [];
  const exits: (number | string)[] = [];
  const output: string[] = [];
  const engine = createEngine(schedule, folder, clock, simulator, hidden, output);
  for (const step of schedule.steps) {
    if (step.kind === "wait") {
      await clock.advance(step.ms);
      continue;
    }
    if (step.kind === "follow") {
      const followed = await engine.follow(step.ms);
      problems.push(...describeBug(followed.error), ...engine.findFalseCoverage());
      exits.push(followed.exit);
      continue;
    }
    const stopping = new AbortController();
    let restore = () => {};
    const stop = () => {
      // A thread of its own may be in the middle of a commit: a copy of its files would not be what a kill leaves.
      if (step.signal === "kill" && !schedule.hasIngestThread)
        restore = captureFiles(join(folder, WAREHOUSE_FILE));
      stopping.abort(stoppedFailure());
    };
    const cancel = step.stop ? scheduleStop(step.stop, clock, simulator, stop) : () => {};
    const startedAt = clock.monotonic();
    const end = await engine.run(stopping.signal);
    cancel();
    restore();
    if (clock.monotonic() - startedAt > MAX_RUN_MS) problems.push("a run took too long");
    problems.push(...describeBug(end.error), ...engine.findFalseCoverage());
    exits.push(end.exit);
  }
  const struck = simulator.faultCounts
    .filter(({ fault }) => isFault(fault))
    .reduce((sum, line) => sum + line.struck, 0);
  if (struck === 0) problems.push("no fault struck, so the schedule proves nothing");

  simulator.setFaults();
  const runOnce = async () => {
    const end = await engine.run();
    exits.push(end.exit);
    problems.push(...engine.findFalseCoverage());
    return end;
  };
  if (schedule.recovery === "night") await clock.advance(DAY_MS);
  // Verification skips the newest periods, which may still change. Wait until the falsified rows are older.
  if (schedule.recovery === "verify") await clock.advance(6 * schedule.refreshSeconds * 1000);
  let last = await runOnce();
  if (schedule.recovery === "verify") {
    await engine.verifyAll();
    await clock.advance(CONFIRMATION_MS);
    last = await runOnce();
  }
  // The service repeats where its histories end; after a 404 it tells so one round later.
  const isDone = () => last.exit === 0 && !last.isUnconfirmed;
  for (let round = 0; !isDone() && round < MAX_CONFIRMATION_ROUNDS; round++) {
    await clock.advance(CONFIRMATION_MS);
    last = await runOnce();
  }
  if (last.exit !== 0) problems.push(`the last run ended with ${last.exit}: ${last.problems}`);
  let rows = 0;
  try {
    rows = engine.expectMatchesService().rows;
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
  }
  const requests = simulator.requests.total;
  const maxRequests = maxExpectedRequests(schedule, exits.length, rows, struck);
  if (rows > 0 && requests > maxRequests)
    problems.push(`${requests} requests, at most ${maxRequests} allowed`);
  problems.push(...findLeakedSecrets(folder, output));
  return { seed: schedule.seed, problems, struck, requests, rows, exits };
}

/**
 * The files of a warehouse at this moment, between two operations of the ingest: then no commit is half done. Returns a function that
 * puts them in the place of those that the run has left, as if it had been killed at that moment.
 */
function captureFiles(path: string): () => void {
  const contents = ["", "-wal"].flatMap((suffix) =>
    existsSync(path + suffix) ? [{ file: path + suffix, bytes: readFileSync(path + suffix) }] : [],
  );
  return () => {
    for (const suffix of ["", "-wal", "-shm", ".end"]) rmSync(path + suffix, { force: true });
    for (const { file, bytes } of contents) writeFileSync(file, bytes);
  };
}

/** No behaviour of the service may end a run with a bug. */
function describeBug(error: unknown): string[] {
  if (error === undefined || (error instanceof Failure && error.family !== "bug")) return [];
  return [`a run failed with a bug: ${inspect(error)}`];
}

/** Calls `act` at the stop point. Returns a function that cancels the call. */
function scheduleStop(
  stop: StopPoint,
  clock: ManualClock,
  { requests }: Simulator,
  act: () => void,
): () => void {
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

/** Three requests per page (a night compares), two per fault, the fixed requests of each run, and two a minute while the feed is followed. */
function maxExpectedRequests(
  { faults, settings, quirks, steps }: FaultSchedule,
  runs: number,
  rows: number,
  struck: number,
): number {
  const caps = faults.flatMap(({ maxRows }) => maxRows ?? []);
  const { maxSize = 2000, maxPageRows = 2000 } = quirks;
  // A size that is refused is halved until it is accepted.
  const pages = Math.ceil(rows / Math.min(maxSize / 2, maxPageRows, ...caps));
  // Every walk in flight learns the accepted size for itself.
  const perRun = (settings.includes("derivatives: {") ? 70 : 30) + (maxSize < 2000 ? 60 : 0);
  const followedMs = steps.reduce((sum, step) => sum + (step.kind === "follow" ? step.ms : 0), 0);
  return perRun * runs + 3 * pages + 2 * struck + (2 * followedMs) / 60_000;
}

function createEngine(
  { settings, seed, hasIngestThread }: FaultSchedule,
  folder: string,
  clock: ManualClock,
  simulator: Simulator,
  hidden: HiddenRecords,
  output: string[],
) {
  const path = join(folder, WAREHOUSE_FILE);
  const file = join(folder, "mds-sync.yaml");
  writeFileSync(file, settings);
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  const log = createForwardingLog((entry) => output.push(inspect(entry, { depth: 8 })));
  const loaded = loadSettings({ env, directory: folder, file });
  const random = seededRandom(seed);
  const session = {
    clock,
    random,
    stopping: new AbortController().signal,
    startWorker: hasIngestThread ? startWorker : startIngestInProcess,
  };
  let asOf = 0;
  return {
    async run(stopping = session.stopping) {
      try {
        const report = await clock.runUntil(
          withSyncSession(loaded, { ...session, stopping }, log, (syncContext) => backfill(syncContext)),
        );
        asOf = report.asOf;
        output.push(inspect(report, { depth: 8 }));
        const isUnconfirmed = report.streams.some(({ unconfirmed }) => unconfirmed > 0);
        return {
          exit: report.exit,
          problems: JSON.stringify(report.problems),
          error: undefined,
          isUnconfirmed,
        };
      } catch (error) {
        output.push(inspect(error, { depth: 8 }));
        const exit = error instanceof Failure ? error.code : "broken";
        return { exit, problems: String(error), error, isUnconfirmed: false };
      }
    },
    /** Follows the live feed for `ms`, then stops as on SIGTERM. */
    async follow(ms: number) {
      const stopping = new AbortController();
      const failures: unknown[] = [];
      try {
        await clock.runUntil(
          withSyncSession(loaded, { ...session, stopping: stopping.signal }, log, async (syncContext) => {
            const ending = AbortSignal.any([syncContext.signal, stopping.signal]);
            const supervisor = new SyncSupervisor(
              { ...syncContext, signal: ending },
              {
                wsUrl: simulator.wsUrl,
                onFailure: (_, error) => void failures.push(error),
                onProblems: () => {},
                onActivity: () => {},
                onFilled: () => {},
                onLiveCommit: () => {},
                onFeedMessage: () => {},
              },
            );
            const cancel = clock.after(ms, () => stopping.abort(stoppedFailure()));
            await supervisor.run().finally(cancel);
          }),
        );
      } catch (error) {
        failures.push(error);
      }
      output.push(inspect(failures, { depth: 8 }));
      const bug = failures.find((error) => describeBug(error).length > 0);
      return { exit: "followed", error: bug };
    },
    async verifyAll() {
      await clock.runUntil(withSyncSession(loaded, session, log, (syncContext) => verify(syncContext, {})));
    },
    /** The coverage must be correct after every run, whatever faults the service had. */
    findFalseCoverage(): string[] {
      if (!existsSync(path)) return [];
      try {
        withReader(path, (reader) => expectCoverageCorrect(reader, simulator, clock.now(), hidden));
        return [];
      } catch (error) {
        return [`wrong coverage: ${error instanceof Error ? error.message : String(error)}`];
      }
    },
    expectMatchesService: () =>
      withReader(path, (reader) => expectWarehouseMatches(reader, simulator, clock.now(), asOf)),
  };
}

/** No log, report, error or file may contain the secret or a token. */
function findLeakedSecrets(folder: string, output: readonly string[]): string[] {
  // Where SQLite has reused a part of a page, `[secret]` may be cut, or follow as other bytes. No token begins with a bracket.
  const isLeak = (text: string) => text.includes("kestrel") || /Bearer (?!\[)[!-;=-~]{8}/.test(text);
  const lines = output.filter(isLeak).map((text) => `leaked secret: ${text.slice(0, 200)}`);
  const files = readdirSync(folder).filter((name) => isLeak(readFileSync(join(folder, name), "latin1")));
  return [...lines, ...files.map((name) => `leaked secret in ${name}`)];
}

function stoppedFailure(): Failure {
  return new Failure("stopped by the schedule", { family: "operator", code: "stopped", exit: 0 });
}
