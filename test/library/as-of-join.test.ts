import { describe, expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp, MICROS_PER_SECOND } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { seed } from "../support/seed.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

const T = parseTs("2026-03-01T00:00:00Z");
const at = (seconds: number) => T + seconds * MICROS_PER_SECOND;

/** Three series; one has no price, and ledgers end before their ticks. */
function fill() {
  const writer = openTestWarehouse({ clock: systemClock });
  const random = seededRandom(seed);
  const ticks = ["a", "b"].flatMap((indexId) =>
    Array.from({ length: 200 }, () => Math.floor(random() * 7_000))
      .toSorted((x, y) => x - y)
      .filter((second, i, all) => second !== all[i - 1])
      .map((second, i) =>
        tick(at(second), i % 9 === 0 ? "1" : String(i), { indexId, ...(i % 9 === 0 && { price: null }) }),
      ),
  );
  ticks.push(tick(T, "1", { indexId: "c", price: null }));
  writer.transaction((transaction) => {
    writeTicks(transaction, ticks);
    const key = { stream: "index_ticks", series: 1 } as const;
    settle(transaction, key, { from: at(0), to: at(2_000) }, "rows");
    settle(transaction, key, { from: at(2_500), to: at(5_000) }, "rows");
  });
  const rows = Array.from({ length: 300 }, (_, id) => {
    const ts = at(Math.floor(random() * 8_000) - 500);
    return { id, name: ["a", "b", "c"][id % 3] ?? "", ts, time: formatTimestamp(ts) };
  });
  return { path: writer.path, rows };
}

const inPython = `
import sys, json, mds, pandas as pd
w = mds.open(sys.argv[1])
rows = pd.DataFrame(json.load(sys.stdin))
rows["moment"] = pd.to_datetime(rows["time"], utc=True)
def show(found):
    return [[None if price != price else price, None if time is pd.NaT else time.isoformat(timespec="microseconds"),
        None if age is pd.NaT else age.total_seconds(), bool(complete)] for price, time, age, complete
        in zip(found.asof_price, found.asof_time, found.asof_age, found.asof_complete)]
print(json.dumps([show(w.asof_join(rows)), show(w.asof_join(rows, on="ts", max_age="1m")), show(w.asof_join(rows, on="moment"))]))
`;

describe("an as-of join", () => {
  it("adds to each row what asOf returns for its time, in TypeScript and Python", () => {
    const { path, rows } = fill();
    using warehouse = openWarehouse(path);
    const joined = warehouse.asOfJoin(rows);
    const expected = rows.map(({ name, ts }) => warehouse.asOf(ts, name)[0]);
    expect(
      joined.map(({ asof_price: price, asof_ts: ts, asof_complete: complete }) => ({ price, ts, complete })),
    ).toEqual(expected.map((row) => ({ price: row?.price, ts: row?.ts, complete: row?.is_complete })));
    expect(joined.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
    expect(new Set(joined.map((row) => row.asof_complete))).toEqual(new Set([0, 1]));
    const fresh = warehouse.asOfJoin(rows, { on: "ts", maxAge: "1m" });
    expect(fresh.map((row) => row.asof_ts)).toEqual(
      joined.map(({ asof_ts, asof_age_seconds: age }) => (age !== null && age <= 60 ? asof_ts : null)),
    );

    if (!hasModules("pandas", "an as-of join in Python")) return;
    const stdout = runPython(inPython, [path], { input: rows });
    const show = (found: typeof joined) =>
      found.map((row) => [
        row.asof_price,
        row.asof_ts === null ? null : formatTimestamp(row.asof_ts).replace("Z", "+00:00"),
        row.asof_age_seconds,
        row.asof_complete === 1,
      ]);
    expect(JSON.parse(stdout)).toEqual([show(joined), show(fresh), show(joined)]);
  });

  it("says in one line what is no time, name or age", () => {
    const { path } = fill();
    using warehouse = openWarehouse(path);
    const join =
      (row: object, options = {}) =>
      () =>
        warehouse.asOfJoin([row], options);
    expect(join({ name: "a" })).toThrow("undefined is not a time");
    expect(join({ time: "now", name: "d" })).toThrow("d");
    expect(join({ time: "now", name: "a" }, { maxAge: "soon" })).toThrow("an age cannot be soon");
    expect(join({ time: null, name: "a" })).toThrow("null is not a time");
    expect(warehouse.asOfJoin([])).toEqual([]);
  });

  it("finds a series by each of its names", () => {
    const { path } = fill();
    using warehouse = openWarehouse(path);
    const rows = ["a", "GWA:a", "b"].map((name) => ({ name, time: at(3_000) }));
    const prices = rows.map(({ name, time }) => warehouse.asOf(time, name)[0]?.price);
    expect(warehouse.asOfJoin(rows).map((row) => row.asof_price)).toEqual(prices);
  });
});
