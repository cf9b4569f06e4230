import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { type Micros, parseInstant } from "../../../src/model/time.ts";
import { walkBackwards } from "../../../src/service/pagination/history-walk.ts";
import { readPage } from "../../support/service/client-harness.ts";
import {
  type Fault,
  loudFaults,
  type Nature,
  quietFaults,
  stumblingService,
} from "../../support/service/faulty-history.ts";
import { Alarm, WalkCredit } from "../../support/service/proven-coverage.ts";
import type { HistoryRow } from "../../support/service/stub-history.ts";

const noon = parseInstant("2026-03-01T12:00:00Z") as Micros;
const period = 30_000_000;

interface Scene {
  /** How many rows share each moment. */
  readonly ties: readonly number[];
  /** In periods before noon. */
  readonly holeFrom: number;
  readonly size: number;
  readonly nature: Nature;
  readonly schedule: readonly Fault[];
}

const nature = (oldestFirst: fc.Arbitrary<boolean>): fc.Arbitrary<Nature> =>
  fc.record({
    cap: fc.constantFrom(2000, 2000, 10, 6),
    inclusiveCursor: fc.boolean(),
    exclusiveBound: fc.boolean(),
    ownIdAtEnd: fc.boolean(),
    oldestFirst,
  });

const one = fc.record({ ties: fc.array(fc.integer({ min: 0, max: 1 }), { maxLength: 80 }) });
const tied = fc.record({ ties: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 80 }) });

const scene = (
  histories: fc.Arbitrary<Pick<Scene, "ties">>,
  natures: fc.Arbitrary<Nature>,
  schedules: fc.Arbitrary<readonly Fault[]>,
): fc.Arbitrary<Scene> =>
  fc
    .tuple(
      histories,
      fc.record({
        holeFrom: fc.integer({ min: 1, max: 90 }),
        size: fc.integer({ min: 11, max: 17 }),
        nature: natures,
        schedule: schedules,
      }),
    )
    .map(([history, more]) => ({ ...history, ...more }));

/** A quiet fault is noticed by asking again, so it must not be told again at once. */
const wild = fc
  .array(fc.constantFrom<Fault>("none", ...loudFaults, ...quietFaults), { maxLength: 60 })
  .map((schedule) => {
    const kept: Fault[] = [];
    for (const fault of schedule)
      kept.push(isQuiet(fault) && kept.slice(-QUIET_DISTANCE).some(isQuiet) ? "none" : fault);
    return kept;
  });
const QUIET_DISTANCE = 2;
const isQuiet = (fault: Fault) => quietFaults.some((quiet) => quiet === fault);
const loud = fc.array(fc.constantFrom<Fault>("none", ...loudFaults), { maxLength: 60 });

/** One thing goes wrong, then all is well for a while. */
const passing = (faults: readonly Fault[]) =>
  fc
    .array(fc.record({ calm: fc.integer({ min: 0, max: 4 }), fault: fc.constantFrom(...faults) }), {
      maxLength: 6,
    })
    .map((strikes) =>
      strikes.flatMap(({ calm, fault }, at) => [
        ...Array.from({ length: calm + (at === 0 ? 0 : 6) }, (): Fault => "none"),
        fault,
      ]),
    );

/** Which of several tied rows a page left out, its moments do not tell: there the faults are loud. */
const stumbling = fc.oneof(
  { weight: 3, arbitrary: scene(one, nature(fc.boolean()), wild) },
  { weight: 1, arbitrary: scene(tied, nature(fc.constant(false)), loud) },
);
const healing = fc.oneof(
  {
    weight: 3,
    arbitrary: scene(one, nature(fc.constant(false)), passing([...loudFaults, ...quietFaults])),
  },
  { weight: 1, arbitrary: scene(tied, nature(fc.constant(false)), passing(loudFaults)) },
);
const oldestFirst = scene(fc.oneof(one, tied), nature(fc.constant(true)), fc.constant([]));

/** Walks as the engine does, and holds every claim against the service's history at once. */
async function walked({ ties, holeFrom, size, nature, schedule }: Scene) {
  const history: HistoryRow[] = ties.flatMap((many, at) =>
    Array.from({ length: many }, (_, n) => ({ id: `${at}-${n}`, ts: noon - (at + 1) * period })),
  );
  const from = noon - holeFrom * period;
  const { client, asked, struck } = stumblingService(history, nature, schedule);
  const given = new Set<string>();
  const credit = new WalkCredit({ from, to: noon });
  // One index has one row at a time; all of them together tie.
  const filters = ties.some((many) => many > 1) ? {} : { indexId: "one" };
  const walk = { endpoint: "/index-ticker", filters, from, until: noon, size } as const;
  let outcome: string | undefined;
  try {
    for await (const { page, position } of walkBackwards(client, walk, readPage)) {
      for (const { id } of page.content) given.add(id);
      const moments = page.content.map(({ timestamp }) => parseInstant(timestamp ?? "") ?? Number.NaN);
      credit.take(moments, position);
      expect(history.filter(({ id, ts }) => credit.has(ts) && !given.has(id))).toEqual([]);
      outcome = position.end;
    }
  } catch (error) {
    if (!(error instanceof Failure || error instanceof Alarm)) throw error;
    outcome = error instanceof Failure ? error.code : "alarm";
  }
  const missing = history.filter(({ id, ts }) => ts >= from && !given.has(id));
  return { outcome, open: credit.open, missing, asked: asked(), struck: struck() };
}

describe("a walk over a service that stumbles", () => {
  it("ends, and proves nothing that it has not been given", async () => {
    const met: Record<string, number> = {};
    await fc.assert(
      fc.asyncProperty(stumbling, async (each) => {
        const { outcome = "none", asked } = await walked(each);
        met[outcome] = (met[outcome] ?? 0) + 1;
        expect(asked).toBeLessThan(300);
      }),
      { numRuns: 3000 },
    );
    expect(Object.keys(met).sort()).toEqual(["alarm", "pagination_cycle", "reached", "served_out"]);
    for (const times of Object.values(met)) expect(times).toBeGreaterThan(50);
  });

  it("comes to every row and proves the whole range when its faults are passing", async () => {
    let struck = 0;
    await fc.assert(
      fc.asyncProperty(healing, async (each) => {
        const result = await walked(each);
        struck += result.struck;
        expect(result).toMatchObject({ open: [], missing: [] });
        expect(["reached", "served_out"]).toContain(result.outcome);
      }),
      { numRuns: 3000 },
    );
    expect(struck).toBeGreaterThan(1000);
  });

  it("C15: oldest first with a limit proves nothing that is false, however short the history", async () => {
    await fc.assert(
      fc.asyncProperty(oldestFirst, async (each) => {
        const { outcome, asked } = await walked(each);
        expect(outcome).toBeDefined();
        expect(asked).toBeLessThan(60);
      }),
      { numRuns: 500 },
    );
  });
});
