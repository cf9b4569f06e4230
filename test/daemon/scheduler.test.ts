import { describe, expect, it, onTestFinished } from "vitest";
import { createSchedule, runSchedule, type ScheduledJob } from "../../src/daemon/scheduler.ts";
import { Failure } from "../../src/model/failure.ts";
import { silentLog } from "../../src/runtime/log.ts";
import type { JobRun } from "../../src/warehouse/tables/warehouse-state.ts";
import { ManualClock } from "../support/manual-clock.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const text = (micros: number) => new Date(micros / 1000).toISOString().slice(0, 16);

const around = (expression: string, at: string) => {
  const { latest, next } = createSchedule(expression)(Date.parse(`${at}Z`) * 1000);
  return [text(latest), text(next)];
};

it.each([
  ["10 0 * * *", "2026-03-01T00:09", "2026-02-28T00:10", "2026-03-01T00:10"],
  ["10 0 * * *", "2026-03-01T00:10", "2026-03-01T00:10", "2026-03-02T00:10"],
  ["*/20 8-9 * * *", "2026-03-01T09:59", "2026-03-01T09:40", "2026-03-02T08:00"],
  ["0 3 * * 0", "2026-03-04T12:00", "2026-03-01T03:00", "2026-03-08T03:00"],
  ["0 3 * * 7", "2026-03-04T12:00", "2026-03-01T03:00", "2026-03-08T03:00"],
  ["0 3 */2 * 1", "2026-03-12T12:00", "2026-03-09T03:00", "2026-03-23T03:00"],
  ["0 3 15 * 1", "2026-03-12T12:00", "2026-03-09T03:00", "2026-03-15T03:00"],
  ["0 0 29 2 *", "2097-01-01T00:00", "2096-02-29T00:00", "2104-02-29T00:00"],
])("the times of a cron expression of %s around %s", (expression, at, latest, next) => {
  expect(around(expression, at)).toEqual([latest, next]);
});

interface SchedulerHarness {
  readonly clock: ManualClock;
  /** Wall-clock start times of the runs. */
  readonly runs: string[];
  readonly storedRuns: Map<string, JobRun>;
  readonly outcomes: string[];
  stop(): Promise<void>;
}

function start(
  work: ScheduledJob["work"] = async () => {},
  { clock = new ManualClock("2026-03-01T12:00:00Z"), storedRuns = new Map<string, JobRun>() } = {},
): SchedulerHarness {
  const stopping = new AbortController();
  const runs: string[] = [];
  const outcomes: string[] = [];
  const done = runSchedule({
    jobs: [
      {
        name: "nightly",
        cron: "10 0 * * *",
        runsAtStart: false,
        work: (signal) => {
          runs.push(text(clock.now() * 1000));
          return work(signal);
        },
      },
    ],
    clock,
    now: () => clock.now() * 1000,
    signal: stopping.signal,
    log: silentLog,
    previousRuns: [...storedRuns.values()],
    storeRun: async (run) => void storedRuns.set(run.job, run),
    onRunEnd: (_, outcome) => void outcomes.push(outcome),
  });
  const stop = () => {
    stopping.abort(new Failure("stopped", { family: "operator", code: "stopped" }));
    return done;
  };
  onTestFinished(stop);
  return { clock, runs, storedRuns, outcomes, stop };
}

describe("a scheduled job", () => {
  it("runs at each scheduled time, but not when a warehouse is first opened", async () => {
    const { clock, runs } = start();
    await clock.advance(2 * DAY);
    expect(runs).toEqual(["2026-03-02T00:10", "2026-03-03T00:10"]);
  });

  it("that was interrupted runs again at the next start", async () => {
    const broken = start((signal) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
    await broken.clock.advance(13 * HOUR);
    await broken.stop();
    const next = start(undefined, broken);
    await next.clock.advance(MINUTE);
    expect(next.runs).toHaveLength(1);
    expect(broken.outcomes).toEqual([]);
  });

  it("never overlaps itself: times that pass while it runs become one run afterwards", async () => {
    const clock = new ManualClock("2026-03-01T12:00:00Z");
    let running = 0;
    const { runs } = start(
      async (signal) => {
        expect(++running).toBe(1);
        await clock.sleep(50 * HOUR, signal).catch(() => {});
        running--;
      },
      { clock },
    );
    await clock.advance(64 * HOUR);
    expect(runs).toEqual(["2026-03-02T00:10", "2026-03-04T02:10"]);
  });

  it("runs exactly once when the clock is set back over its scheduled time", async () => {
    const { clock, runs } = start();
    await clock.advance(12 * HOUR + 11 * MINUTE);
    clock.stepWallClock(-30 * MINUTE);
    await clock.advance(HOUR);
    expect(runs).toHaveLength(1);
    await clock.advance(DAY);
    expect(runs).toHaveLength(2);
  });

  it("continues after a clock that ran years ahead was corrected", async () => {
    const { clock, runs } = start();
    clock.stepWallClock(3000 * DAY);
    await clock.advance(MINUTE);
    expect(runs).toHaveLength(1);
    clock.stepWallClock(-3000 * DAY);
    await clock.advance(2 * DAY);
    expect(runs.slice(1)).toEqual(["2026-03-02T00:10", "2026-03-03T00:10"]);
  });

  it("that fails is retried with growing delays, and its failure code is reported", async () => {
    let calls = 0;
    const { clock, runs, outcomes, storedRuns } = start(async () => {
      if (++calls < 4) throw new Failure("no", { family: "retry", code: "incomplete" });
    });
    await clock.advance(15 * HOUR);
    expect(outcomes).toEqual(["incomplete", "incomplete", "incomplete", "ok"]);
    expect(runs).toEqual(["2026-03-02T00:10", "2026-03-02T00:25", "2026-03-02T00:55", "2026-03-02T01:55"]);
    expect(storedRuns.get("nightly")?.outcome).toBe("ok");
  });
});
