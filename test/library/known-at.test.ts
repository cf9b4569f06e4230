import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IncompleteFailure, openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp, type Micros } from "../../src/model/time.ts";
import { normalise } from "../../src/model/time-range.ts";
import { applyChange, HISTORY_FROM, HISTORY_TO, someHistory } from "../support/library/random-history.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seed } from "../support/seed.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const from = HISTORY_FROM;
const to = HISTORY_TO;
const hour = 3_600_000_000;

interface State {
  readonly knownAt?: Micros | string;
}

/** What a call gives, or why it fails. */
function outcome(ask: () => unknown): unknown {
  try {
    return ask();
  } catch (error) {
    if (error instanceof IncompleteFailure) return "incomplete";
    return error instanceof Error ? error.message : error;
  }
}

/** Everything that the readers say about a series. The reasons of open gaps depend on settings, which have no past. */
function askEverything(warehouse: Warehouse, name: string, state: State): Record<string, unknown> {
  const inRange = { from, to, ...state };
  const part = { from: from + 5 * hour + 1, to: from + 29 * hour, ...state };
  const gaps = () => {
    const found = warehouse.gaps({ stream: "index_ticks", series: name, ...inRange });
    const ranges = found.map(({ from_ts, to_ts }) => ({ from: from_ts, to: to_ts }));
    const lost = found.filter(({ reason }) => reason === "test reason");
    return { missing: normalise(ranges), lost };
  };
  const asked: Record<string, () => unknown> = {
    ticks: () => warehouse.ticks(name, state),
    "ticks of a part": () => warehouse.ticks(name, part),
    columns: () => warehouse.ticks(name, { as: "columns", columns: ["price", "volume"], ...inRange }),
    "1h": () => warehouse.bars(name, { every: "1h", ...state, to }),
    "2h of a part": () => warehouse.bars(name, { every: "2h", ...part }),
    "7m": () => warehouse.bars(name, { every: "7m", ...part }),
    "1d": () => warehouse.bars(name, { every: "1d", ...inRange }),
    "daily bars": () => warehouse.bars(name, { every: "1d", source: "ohlcv", ...inRange }),
    "as of": () => [0, 3, 20, 47, 90].map((at) => warehouse.asOf(from + at * hour + 5, name, state)),
    coverage: () => warehouse.coverage({ series: name, ...state }),
    gaps,
    "is whole": () => [
      warehouse.isWhole(name, inRange),
      warehouse.isWhole(name, part),
      warehouse.isWhole(name, { ...part, stream: "ohlcv" }),
    ],
    complete: () => warehouse.bars(name, { every: "1h", requireComplete: true, ...part }),
  };
  return Object.fromEntries(Object.entries(asked).map(([title, ask]) => [title, outcome(ask)]));
}

describe(`an earlier state (seed ${seed})`, () => {
  it("is answered exactly as it was, by its moment and by its token", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock, hasAllViews: true });
    writer.connection.database.pragma("synchronous = OFF");
    const warehouse = openWarehouse(writer.path);
    let runs = 0;
    let states = 0;
    fc.assert(
      fc.property(someHistory, (history) => {
        const name = `series-${runs++}`;
        const seen: { at: Micros; token: string; answers: Record<string, unknown> }[] = [];
        for (const changes of history) {
          clock.jump(60_000);
          writer.transaction((transaction) => {
            for (const change of changes) applyChange(transaction, name, change);
          });
          clock.jump(1_000);
          const answers = askEverything(warehouse, name, {});
          seen.push({ at: clock.now() * 1000, token: warehouse.cite(), answers });
        }
        for (const { at, token, answers } of seen) {
          states++;
          expect(askEverything(warehouse, name, { knownAt: at })).toEqual(answers);
          expect(askEverything(warehouse, name, { knownAt: token })).toEqual(answers);
        }
      }),
      { numRuns: 60 },
    );
    expect(states).toBeGreaterThan(200);
    warehouse.close();
  });

  it("has its moment as the present", () => {
    const clock = new ManualClock();
    const writer = openTestWarehouse({ clock });
    writer.transaction((transaction) =>
      applyChange(transaction, "one", { kind: "page", from: 0, versions: Array(60).fill(0), offset: 0 }),
    );
    using warehouse = openWarehouse(writer.path);
    const knownAt = formatTimestamp(clock.now() * 1000 + 1);
    const [asOf] = warehouse.asOf("now", "one", { knownAt });
    expect(asOf?.age_seconds).toBe((clock.now() * 1000 + 1 - (from + 59 * 600e6)) / 1e6);
    const relative = { from: `now-${9 * 24 - 3}h`, knownAt };
    expect(warehouse.ticks("one", relative)).toHaveLength(0);
    expect(warehouse.ticks("one", { from: `now-${9 * 24 + 12 - 5}h`, knownAt })).toHaveLength(29);
  });
});
