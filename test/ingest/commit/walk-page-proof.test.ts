import { describe, expect, it } from "vitest";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { commitPage, gap, onlyPage, startIngest } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, btc, jsonBody, liveMessage, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";
import { tick } from "../../support/warehouse/records.ts";

/** The first page of a walk over the range. */
const over = (from: string, to: string) => {
  const range = { from: at(from), to: at(to) };
  return { position: { gap: range, provenFrom: range.to } };
};
const lastHour = over("11:00:00", "12:00:00");
const pageAt = (...times: string[]) =>
  tickPage(
    times.map((time) => ({ ts: at(time) })),
    "more",
  );

/** A warehouse with ticks that REST or the websocket has served, in ranges that are open. */
function openWith({ rest = [], live = [] }: { rest?: readonly string[]; live?: readonly string[] }) {
  const opened = openPages();
  const ticksAt = (times: readonly string[]) => times.map((time) => tick(at(time), "1"));
  opened.warehouse.transaction((t) => {
    writeRecords(t, "index_ticks", ticksAt(rest), "rest");
    writeRecords(t, "index_ticks", ticksAt(live), "live");
  });
  const times = "SELECT substr(time, 12, 8) AS at FROM index_ticks ORDER BY ts";
  return { ...opened, storedTimes: () => opened.query(times).map((row) => row.at) };
}

const rows = ["11:00:00", "12:00:00", "rows", null];
const empty = ["11:00:00", "12:00:00", "empty", "no records"];

describe("the proven range of a page", () => {
  it.each([
    { records: ["11:59:30", "10:59:30"], settled: [rows], cached: [rows] },
    { records: ["11:00:00", "10:59:30"], settled: [rows], cached: [rows] },
    { records: ["12:00:00", "10:59:30"], settled: [empty], cached: [] },
    { records: ["12:00:30", "10:59:30"], settled: [empty], cached: [] },
    { records: ["10:59:30"], settled: [empty], cached: [] },
  ])(
    "with records at $records is settled by those inside; a cached page never settles it as empty",
    ({ records, settled, cached }) => {
      const current = openWith({ rest: ["12:30:00"] });
      expect(current.commit(pageAt(...records), lastHour)).toMatchObject({ isComplete: true });
      expect(current.coverage()).toEqual(settled);
      const stale = openWith({ rest: ["12:30:00"] });
      const result = stale.commit({ ...pageAt(...records), ageMs: 60_000 }, lastHour);
      expect(result).toMatchObject({
        alarm: undefined,
        isComplete: cached.length > 0,
        learnedOffset: undefined,
      });
      expect(stale.coverage()).toEqual(cached);
    },
  );

  it("is not younger than what was final when an earlier page of the walk was made", () => {
    const { position } = over("10:00:00", "12:00:00");
    const provenBy = (page: string, earliest: string) => {
      const { commit, coverage } = openPages();
      const body = { ...tickPage([]), asOf: at(page) / 1000 };
      const later = { ...position, provenFrom: at("10:30:00"), madeAt: at(earliest) };
      const { isComplete } = commit(body, { position: later });
      return [coverage()[0]?.[1], isComplete];
    };
    expect(provenBy("12:05:00", "10:20:55")).toEqual(["10:20:00", false]);
    expect(provenBy("10:20:55", "12:05:00")).toEqual(["10:20:00", false]);
    expect(provenBy("12:05:00", "12:04:00")).toEqual([expect.anything(), true]);
  });
});

describe("B16: a page from a cache that differs from a stored row", () => {
  const cached = (...times: string[]) => ({ ...pageAt(...times), ageMs: 60_000 });

  it.each([
    { where: "within the range", stored: "11:45:00", alarm: "older_than_stored" },
    // The next page would settle it.
    { where: "that is the oldest of the page", stored: "11:30:00", alarm: "older_than_stored" },
    { where: "below the page", stored: "11:15:00", alarm: undefined },
  ] as const)("$where: $alarm", ({ stored, alarm }) => {
    const { commit, coverage } = openWith({ rest: ["12:30:00", stored] });
    expect(commit(cached("11:45:00", "11:40:00", "11:30:00"), lastHour)).toMatchObject({ alarm });
    expect(coverage()).toEqual(alarm ? [] : [["11:30:00", "12:00:00", "rows", null]]);
  });

  it("below its gap settles the gap", () => {
    const { commit, coverage } = openWith({ rest: ["12:30:00", "10:45:00"] });
    expect(commit(cached("11:45:00", "10:45:00", "10:30:00"), lastHour)).toMatchObject({ alarm: undefined });
    expect(coverage()).toEqual([rows]);
  });

  it("settles nothing if it has no records at all", () => {
    const { commit, coverage, storedTimes } = openWith({ rest: ["12:30:00", "11:45:00"] });
    const body = { ...tickPage([]), ageMs: 60_000 };
    expect(commit(body, lastHour)).toMatchObject({ withdrawn: 0, pending: [], proven: undefined });
    expect(coverage()).toEqual([]);
    expect(storedTimes()).toEqual(["11:45:00", "12:30:00"]);
  });
});

describe("a page that lacks many stored rows", () => {
  const timesIn = (from: string, to: string) =>
    makeTicks(at(from), at(to)).map(({ ts }) => new Date(ts / 1000).toISOString().slice(11, 19));
  const stored = timesIn("11:00:00", "12:00:00");
  const confirmation = { answers: 3, over: 0 };
  const lacking = (from: string, to: string) => [
    ...stored.filter((time) => time < from || time >= to),
    "10:59:30",
  ];

  it.each([
    {
      lacks: ["11:20:00", "11:40:00"],
      settled: [
        ["11:00:00", "11:20:00", "rows", null],
        ["11:40:00", "12:00:00", "rows", null],
      ],
    },
    { lacks: ["11:00:00", "11:30:00"], settled: [["11:30:00", "12:00:00", "rows", null]] },
    { lacks: ["11:30:00", "12:00:00"], settled: [["11:00:00", "11:30:00", "rows", null]] },
  ])("between $lacks settles the rest, from its oldest record up", ({ lacks, settled }) => {
    const { commit, coverage, storedTimes } = openWith({ rest: stored });
    const [from = "", to = ""] = lacks;
    const result = commit(pageAt(...lacking(from, to)), { ...over("10:59:45", "12:00:00"), confirmation });
    expect(result).toMatchObject({ withdrawn: 0, pending: [{ range: { from: at(from), to: at(to) } }] });
    expect(coverage()).toEqual(settled);
    expect(storedTimes()).toHaveLength(stored.length + 1);
  });

  it("does not prove that the range above them is empty", () => {
    const { commit, coverage } = openWith({ rest: timesIn("11:00:00", "11:30:00") });
    const below = [...timesIn("11:00:00", "11:10:00"), "10:59:30"];
    commit(pageAt(...below), { ...over("11:00:00", "11:30:00"), confirmation });
    const settled = [["11:00:00", "11:10:00", "rows", null]];
    expect(coverage()).toEqual(settled);
    expect(commit(pageAt("12:00:00", ...below), { ...lastHour, confirmation })).toMatchObject({
      pending: [{ answers: 2, range: { from: at("11:10:00"), to: at("11:30:00") } }],
    });
    expect(coverage()).toEqual(settled);
  });
});

describe("live ticks near the records of a page", () => {
  const offsetSql = "SELECT live_offset / 1000000 AS seconds FROM stream_states WHERE stream = 'index_ticks'";

  it.each([
    { live: "11:29:46", stored: ["11:30:00", "11:40:00"], learnedOffset: -14 * SECOND },
    { live: "11:29:45", stored: ["11:29:45", "11:30:00", "11:40:00"], learnedOffset: undefined },
  ])(
    "at $live, below its oldest record, are that record within a quarter of the settle delay",
    (expected) => {
      const { commit, query, storedTimes } = openWith({ live: [expected.live] });
      const { learnedOffset } = commit(pageAt("11:40:00", "11:30:00"));
      expect({ learnedOffset, stored: storedTimes() }).toEqual({
        learnedOffset: expected.learnedOffset,
        stored: expected.stored,
      });
      expect(query("SELECT * FROM revisions")).toEqual([]);
    },
  );

  it("stay if the page is from a cache", () => {
    const { commit, storedTimes } = openWith({ live: ["11:30:03"] });
    const cached = { ...pageAt("11:40:00", "11:30:00"), ageMs: 60_000 };
    expect(commit(cached)).toMatchObject({ learnedOffset: undefined });
    expect(storedTimes()).toEqual(["11:30:00", "11:30:03", "11:40:00"]);
  });

  it("tell the offset until a page has other ones", () => {
    const { commit, query } = openWith({ live: ["11:30:03"] });
    expect(commit(pageAt("11:40:00", "11:30:00"))).toMatchObject({ learnedOffset: 3 * SECOND });
    expect(commit(pageAt("11:20:00", "11:10:00"))).toMatchObject({ learnedOffset: undefined });
    expect(commit(tickPage([], "more"))).toMatchObject({ learnedOffset: undefined });
    expect(query(offsetSql)).toEqual([{ seconds: 3 }]);
  });

  it("stay if the records are bars, and do not limit what these prove", () => {
    const { commit, query, storedTimes } = openWith({ live: ["00:00:03", "23:59:30"] });
    const day = { from: at("00:00:00"), to: at("00:00:00") + 86_400 * SECOND };
    const content = [
      {
        id: "bar",
        indexId: btc.indexId,
        indexType: "GWA",
        open: "1",
        high: "9",
        low: "1",
        close: "2",
        volume: "5",
        startTimestamp: "2026-03-01T00:00:00Z",
        endTimestamp: "2026-03-01T23:59:59.999Z",
      },
    ];
    const page = {
      series: { ...btc, stream: "ohlcv" as const },
      position: { gap: day, provenFrom: day.to },
      rules: { ...onlyPage.rules, period: day.to - day.from },
      request: "GET /ohlcv",
    };
    const body = { ...jsonBody({ content }), asOf: (day.to + 600 * SECOND) / 1000 };
    expect(commit(body, page)).toMatchObject({
      written: { inserted: 1 },
      learnedOffset: undefined,
      proven: { to: day.to },
    });
    expect(storedTimes()).toEqual(["00:00:03", "23:59:30"]);
    expect(query("SELECT stream, rows, live_offset FROM stream_states ORDER BY stream")).toEqual([
      { stream: "index_ticks", rows: 2, live_offset: null },
      { stream: "ohlcv", rows: 1, live_offset: null },
    ]);
  });
});

const rowsInEmptySql = `SELECT count(*) AS n FROM index_ticks t JOIN coverage c ON c.stream = 'index_ticks'
  AND c.index_id = t.index_id AND t.ts >= c.from_ts AND t.ts < c.to_ts WHERE c.proof = 'empty'`;
const emptySql =
  "SELECT substr(from_time, 12, 5) AS since, substr(to_time, 12, 5) AS until FROM coverage WHERE proof = 'empty'";

/** Proves that 11:00 to 12:00 is empty. */
async function startWithEmptyHour() {
  const thread = await startIngest();
  const hour = { from: at("11:00:00"), to: gap.to };
  // The service has published records after that hour.
  const after = { from: gap.to, to: at("12:05:00") };
  const position = { gap: after, provenFrom: after.to };
  await commitPage(
    thread.ingest,
    { ...onlyPage, position },
    tickPage(makeTicks(after.from, after.to), "more"),
  );
  const older = makeTicks(at("09:00:00"), at("10:00:00"));
  await commitPage(
    thread.ingest,
    { ...onlyPage, position: { gap: hour, provenFrom: hour.to } },
    tickPage(older, "more"),
  );
  expect(thread.query(emptySql)).toEqual([{ since: "11:00", until: "12:00" }]);
  return thread;
}
const hourBefore = { from: at("10:00:00"), to: at("11:00:00") };

describe("a range proven empty", () => {
  it("H3: is open again when a page for another range has a row in it", async () => {
    const { ingest, query } = await startWithEmptyHour();
    const position = { gap: hourBefore, provenFrom: hourBefore.to };
    const rows = makeTicks(at("09:59:00"), at("11:15:00"));
    const commit = await commitPage(ingest, { ...onlyPage, position }, tickPage(rows, "more"));
    expect(commit).toMatchObject({ hasReopened: true, isComplete: true });
    expect(query(rowsInEmptySql)).toEqual([{ n: 0 }]);
    expect(query(emptySql)).toEqual([]);
    // The rows of the page's own range are proven.
    expect(query("SELECT to_time FROM coverage WHERE proof = 'rows'")).toContainEqual({
      to_time: "2026-03-01T11:00:00.000000Z",
    });
  });

  it("H3: is open again when a page of another index has a row in it", async () => {
    const { ingest, query } = await startWithEmptyHour();
    const eth = { ...btc, indexId: "eth-id" };
    const foreign = [...makeTicks(at("11:00:00"), at("11:01:00")), { ts: at("10:59:00"), indexId: "eth-id" }];
    await commitPage(ingest, { ...onlyPage, series: eth }, tickPage(foreign));
    expect(query(rowsInEmptySql)).toEqual([{ n: 0 }]);
  });

  it("H3: is open again when a live tick or a cached page has a row in it", async () => {
    const first = await startWithEmptyHour();
    await first.ingest.call("commitLiveMessages", [liveMessage({ ts: at("11:30:00") })]);
    expect(first.query(rowsInEmptySql)).toEqual([{ n: 0 }]);
    expect(first.query(emptySql)).toEqual([]);

    const second = await startWithEmptyHour();
    const cached = { ...tickPage(makeTicks(hourBefore.from, at("11:15:00"))), ageMs: 3_600_000 };
    await commitPage(
      second.ingest,
      { ...onlyPage, position: { gap: hourBefore, provenFrom: hourBefore.to } },
      cached,
    );
    expect(second.query(rowsInEmptySql)).toEqual([{ n: 0 }]);
  });

  it("stays empty when the rows of a page end beside it", async () => {
    const { ingest, query } = await startWithEmptyHour();
    const position = { gap: hourBefore, provenFrom: hourBefore.to };
    const commit = await commitPage(
      ingest,
      { ...onlyPage, position },
      tickPage(makeTicks(at("09:59:00"), hourBefore.to), "more"),
    );
    expect(commit).toMatchObject({ hasReopened: false, isComplete: true });
    expect(query(emptySql)).toEqual([{ since: "11:00", until: "12:00" }]);
  });
});
