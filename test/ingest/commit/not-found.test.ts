import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commitTargets } from "../../../src/ingest/commit/targets.ts";
import { commitNotFound } from "../../../src/ingest/commit/walk-page.ts";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { onlyPage } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, btc, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { bar } from "../../support/warehouse/records.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const MINUTE = 60 * SECOND;
const [ten, eleven, half, twelve] = [at("10:00:00"), at("11:00:00"), at("11:30:00"), at("12:00:00")];
/** Silence of a day counts, though no other series shows that REST does not lag. */
const nextDay = at("18:00:00") + MICROS_PER_DAY;
const morning = { from: ten, to: eleven };
const noon = { from: eleven, to: twelve };
const over = (gap: TimeRange) => ({ position: { gap, provenFrom: gap.to } });
/** As the settings have it: an end counts after two answers, what contradicts stored rows after three. */
const confirmation = { answers: 3, over: 10 * MINUTE };

function declareTarget(warehouse: WarehouseWriter, from: number): void {
  warehouse.transaction((t) =>
    commitTargets(t, {
      stream: btc.stream,
      targets: [{ ...btc, from }],
      rules: { settleDelay: 60 * SECOND, period: 30 * SECOND, step: 1, serviceWindow: null },
      unresolvedIndexTypes: [],
      at: at("18:00:00"),
    }),
  );
}

describe("an end of the history", () => {
  it("H9: counts after a second answer ten minutes later, whether or not the daemon was restarted", () => {
    const { commit, coverage, advance, warehouse } = openPages();
    const rows = tickPage(makeTicks(half, twelve));
    const page = { ...over(noon), confirmation };
    const proven = [["11:30:00", "12:00:00", "rows", null]];
    expect(commit(rows, page)).toMatchObject({
      pending: [{ kind: "end", range: { from: eleven, to: half + 1 }, answers: 1, rows: 0 }],
      isComplete: true,
    });
    advance(10 * MINUTE - 1);
    expect(commit(rows, page)).toMatchObject({ pending: [{ answers: 2 }] });
    // The oldest record waits too: another one of its moment may be on another server's next page.
    expect(coverage()).toEqual(proven);
    const path = join(temporaryFolder(), "copy.sqlite");
    warehouse.connection.database.prepare("VACUUM INTO ?").run(path);
    const restarted = openPages({ path, now: at("18:10:00") });
    expect(restarted.commit(rows, page)).toMatchObject({ pending: [], believed: [] });
    expect(restarted.coverage()).toEqual([["11:00:00", "11:30:00", "empty", "nothing older"], ...proven]);
    expect(restarted.query("SELECT * FROM pending_claims")).toEqual([]);
  });

  it("that was accepted holds for the time since at once, until there is a record", () => {
    const { commit, coverage, advance } = openPages({ now: nextDay });
    commit(tickPage([]), over(morning));
    expect(commit(tickPage([]), { ...over(noon), confirmation })).toMatchObject({ pending: [] });
    expect(coverage()).toEqual([["10:00:00", "12:00:00", "empty", "nothing older"]]);
    const later = tickPage(makeTicks(at("12:30:00"), at("13:00:00")));
    const page = { ...over({ from: twelve, to: at("13:00:00") }), confirmation };
    expect(commit(later, page)).toMatchObject({ pending: [{ kind: "end" }], hasReopened: false });
    expect(coverage()[1]).toEqual(["12:30:00", "13:00:00", "rows", null]);
    advance(10 * MINUTE);
    expect(commit(later, page)).toMatchObject({ pending: [] });
    expect(coverage()).toEqual([
      ["10:00:00", "12:30:00", "empty", "nothing older"],
      ["12:30:00", "13:00:00", "rows", null],
    ]);
  });

  it("H14: above stored rows counts after three answers; the rows stay, until an older record appears", () => {
    const { commit, coverage, query, advance, warehouse } = openPages();
    declareTarget(warehouse, at("09:00:00"));
    commit(tickPage(makeTicks(ten - 30 * SECOND, eleven), "more"), over(morning));
    const before = coverage();
    const answer = () => commit(tickPage(makeTicks(half, twelve)), { ...over(noon), confirmation });
    for (let answers = 1; answers <= 2; answers++) {
      expect(answer()).toMatchObject({
        pending: [{ kind: "end moved", rows: 121, answers }],
        endsAt: half,
        withdrawn: 0,
      });
      // Above its oldest record the page is like any other.
      expect(coverage()).toEqual([...before, ["11:30:00", "12:00:00", "rows", null]]);
      advance(5 * MINUTE);
    }
    expect(answer()).toMatchObject({ pending: [], believed: [{ kind: "end moved", answers: 3 }] });
    const given = [
      ["09:00:00", "10:00:00", "lost", "no longer served"],
      ["10:00:00", "11:00:00", "rows", null],
      ["11:00:00", "11:30:00", "lost", "no longer served"],
      ["11:30:00", "12:00:00", "rows", null],
    ];
    expect(coverage()).toEqual(given);
    // A comparison of what is covered claims nothing, and changes nothing.
    expect(commit(tickPage([]), { ...over(morning), confirmation })).toMatchObject({
      pending: [],
      believed: [],
      withdrawn: 0,
      endsAt: eleven,
    });
    expect(coverage()).toEqual(given);
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 181 }]);
    expect(commit(tickPage(makeTicks(ten, twelve), "more"), over(noon))).toMatchObject({ hasReopened: true });
    expect(coverage()).toEqual([["10:00:00", "12:00:00", "rows", null]]);
  });
});

describe("an index that the service does not have", () => {
  const notFound = (
    warehouse: WarehouseWriter,
    range: TimeRange,
    { stream = "index_ticks" as HistoryStream, rules = confirmation } = {},
  ) => {
    const series = warehouse.transaction((t) => t.dictionary.getSeriesKey("GWA", btc.indexId));
    const key = { stream, series };
    return warehouse.transaction((t) =>
      commitNotFound(t, {
        ...{ key, indexType: "GWA", range, confirmation: rules },
        timing: onlyPage.timing,
      }),
    );
  };
  const atOnce = { answers: 1, over: 0 };

  it("has an empty history after a second answer, and at once for the time since", () => {
    const { coverage, advance, warehouse } = openPages();
    declareTarget(warehouse, at("09:30:00"));
    expect(notFound(warehouse, morning)).toMatchObject({ pending: [{ kind: "not found", answers: 1 }] });
    expect(coverage()).toEqual([]);
    advance(10 * MINUTE);
    expect(notFound(warehouse, morning)).toMatchObject({ pending: [], believed: [] });
    expect(coverage()).toEqual([["09:30:00", "11:00:00", "empty", "not found"]]);
    expect(notFound(warehouse, noon)).toMatchObject({ pending: [] });
    expect(coverage()).toEqual([["09:30:00", "12:00:00", "empty", "not found"]]);
  });

  it("had a history up to its newest row: what is missing before it is lost, and its rows stay", () => {
    const { commit, coverage, query, warehouse, advance } = openPages();
    commit(tickPage(makeTicks(half, twelve), "more"), over(noon));
    const answer = () => notFound(warehouse, { from: ten, to: at("13:00:00") });
    expect(answer()).toMatchObject({ pending: [{ kind: "not found", answers: 1 }], withdrawn: 0 });
    advance(10 * MINUTE);
    expect(answer()).toMatchObject({ pending: [], withdrawn: 0 });
    expect(coverage()).toEqual([
      ["10:00:00", "11:30:00", "lost", "not found"],
      ["11:30:00", "12:00:00", "rows", null],
      ["12:00:00", "13:00:00", "empty", "not found"],
    ]);
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 60 }]);
  });

  it("has lost whole days of its daily bars", () => {
    const { query, warehouse } = openPages();
    const midnight = at("00:00:00");
    const day = (count: number) => midnight - count * MICROS_PER_DAY;
    warehouse.transaction((t) => writeRecords(t, "ohlcv", [bar(day(3), "1")]));
    notFound(warehouse, { from: day(5), to: midnight }, { stream: "ohlcv", rules: atOnce });
    const sql = "SELECT proof, (to_ts - from_ts) / 86400000000 AS days FROM coverage ORDER BY from_ts";
    expect(query(sql)).toEqual([
      { proof: "lost", days: 3 },
      { proof: "empty", days: 2 },
    ]);
  });

  it("exists after all if a page has one of its records", () => {
    const { commit, query, warehouse } = openPages();
    notFound(warehouse, noon);
    commit(tickPage(makeTicks(ten, twelve), "more"), over(noon));
    expect(query("SELECT * FROM pending_claims")).toEqual([]);
  });
});
