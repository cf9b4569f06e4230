import { describe, expect, it } from "vitest";
import { commitPage, gap, onlyPage, startIngest } from "../../support/ingest/ingest-harness.ts";
import { at, btc, liveMessage, makeTicks, tickPage } from "../../support/ingest/pages.ts";

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
