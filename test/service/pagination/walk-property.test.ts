import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { type Micros, parseTimestamp } from "../../../src/model/time.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { readPage } from "../../support/service/client-harness.ts";
import {
  faultyService,
  type PagingBehaviour,
  type PagingFault,
  silentFaults,
  visibleFaults,
} from "../../support/service/faulty-history.ts";
import { ProvenCoverage, WalkContradiction } from "../../support/service/proven-coverage.ts";
import type { HistoryRow } from "../../support/service/stub-history.ts";

const noon = parseTimestamp("2026-03-01T12:00:00Z") as Micros;
const period = 30_000_000;

interface Scenario {
  /** Whether each period has a row. */
  readonly rows: readonly boolean[];
  /** In periods before noon. */
  readonly gapFrom: number;
  readonly size: number;
  readonly behaviour: PagingBehaviour;
  readonly schedule: readonly PagingFault[];
}

const behaviour = (oldestFirst: fc.Arbitrary<boolean>): fc.Arbitrary<PagingBehaviour> =>
  fc.record({
    maxPageSize: fc.constantFrom(2000, 2000, 10, 6),
    isCursorInclusive: fc.boolean(),
    isBoundExclusive: fc.boolean(),
    hasNextIdAtEnd: fc.boolean(),
    isOldestFirst: oldestFirst,
  });

const scenario = (
  behaviours: fc.Arbitrary<PagingBehaviour>,
  schedules: fc.Arbitrary<readonly PagingFault[]>,
): fc.Arbitrary<Scenario> =>
  fc.record({
    rows: fc.array(fc.boolean(), { maxLength: 80 }),
    gapFrom: fc.integer({ min: 1, max: 90 }),
    size: fc.integer({ min: 11, max: 17 }),
    behaviour: behaviours,
    schedule: schedules,
  });

/** Only a retry reveals a silent fault, so no two may follow each other closely. */
const allFaults = fc
  .array(fc.constantFrom<PagingFault>("none", ...visibleFaults, ...silentFaults), { maxLength: 60 })
  .map((schedule) => {
    const spaced: PagingFault[] = [];
    for (const fault of schedule)
      spaced.push(isSilent(fault) && spaced.slice(-MIN_SILENT_DISTANCE).some(isSilent) ? "none" : fault);
    return spaced;
  });
const MIN_SILENT_DISTANCE = 2;
const isSilent = (fault: PagingFault) => silentFaults.some((silent) => silent === fault);

/** Single faults with correct responses between them. */
const transientFault = fc.record({
  pause: fc.integer({ min: 0, max: 4 }),
  fault: fc.constantFrom(...visibleFaults, ...silentFaults),
});
const transientFaults = fc
  .array(transientFault, { maxLength: 6 })
  .map((entries) =>
    entries.flatMap(({ pause, fault }, at) => [
      ...Array.from({ length: pause + (at === 0 ? 0 : 6) }, (): PagingFault => "none"),
      fault,
    ]),
  );

const faultyScenarios = scenario(behaviour(fc.boolean()), allFaults);
const recoveringScenarios = scenario(behaviour(fc.constant(false)), transientFaults);
const oldestFirstScenarios = scenario(behaviour(fc.constant(true)), fc.constant([]));

/** Walks like the engine and checks every proven range against the service's history. */
async function runWalk({ rows, gapFrom, size, behaviour, schedule }: Scenario) {
  const history = rows.flatMap((hasRow, at): HistoryRow[] =>
    hasRow ? [{ id: `${at}`, ts: noon - (at + 1) * period }] : [],
  );
  const from = noon - gapFrom * period;
  const { client, requestCount, faultCount } = faultyService(history, behaviour, schedule);
  const received = new Set<string>();
  const coverage = new ProvenCoverage({ from, to: noon });
  const filters = { indexId: "one" };
  const walk = { endpoint: "/index-ticker", filters, from, until: noon, size } as const;
  let outcome: string | undefined;
  try {
    for await (const { page, position } of walkHistoryPages(client, walk, readPage)) {
      for (const { id } of page.content) received.add(id);
      const timestamps = page.content.map(({ timestamp }) => parseTimestamp(timestamp ?? "") ?? Number.NaN);
      coverage.addPage(timestamps, position);
      expect(history.filter(({ id, ts }) => coverage.covers(ts) && !received.has(id))).toEqual([]);
      outcome = position.end;
    }
  } catch (error) {
    if (!(error instanceof Failure || error instanceof WalkContradiction)) throw error;
    outcome = error instanceof Failure ? error.code : "contradiction";
  }
  const missing = history.filter(({ id, ts }) => ts >= from && !received.has(id));
  return { outcome, open: coverage.openRanges, missing, requests: requestCount(), faults: faultCount() };
}

describe("a walk over a faulty service", () => {
  it("ends and proves no range with missing rows", async () => {
    const outcomes: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(faultyScenarios, async (input) => {
        const { outcome = "none", requests } = await runWalk(input);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        expect(requests).toBeLessThan(300);
      }),
      { numRuns: 700 },
    );
    expect(Object.keys(outcomes).sort()).toEqual([
      "contradiction",
      "exhausted",
      "pagination_cycle",
      "reached",
    ]);
    for (const times of Object.values(outcomes)) expect(times).toBeGreaterThan(10);
  });

  it("receives every row and proves the whole range when faults are transient", async () => {
    let faults = 0;
    await fc.assert(
      fc.asyncProperty(recoveringScenarios, async (input) => {
        const result = await runWalk(input);
        faults += result.faults;
        expect(result).toMatchObject({ open: [], missing: [] });
        expect(["reached", "exhausted"]).toContain(result.outcome);
      }),
      { numRuns: 700 },
    );
    expect(faults).toBeGreaterThan(250);
  });

  it("C15: pages sorted oldest first prove nothing false, however short the history", async () => {
    await fc.assert(
      fc.asyncProperty(oldestFirstScenarios, async (input) => {
        const { outcome, requests } = await runWalk(input);
        expect(outcome).toBeDefined();
        expect(requests).toBeLessThan(60);
      }),
      { numRuns: 200 },
    );
  });
});
