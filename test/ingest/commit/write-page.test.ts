import { describe, expect, it } from "vitest";
import { settleAsMoved } from "../../../src/warehouse/coverage/ledger.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, jsonBody, makeTicks, SECOND, tickRecord } from "../../support/ingest/pages.ts";

const key = { stream: "index_ticks", series: 1 } as const;
const hour = { from: at("11:00:00"), to: at("12:00:00") };
const records = makeTicks(at("10:00:00"), hour.to).map(tickRecord);
/** The last hour, and what the page has below it. */
const position = { gap: hour, provenFrom: hour.to };

/** A warehouse whose ticks of 10:15 to 10:30 are elsewhere. */
function openWithMoved() {
  const opened = openPages();
  opened.commit(jsonBody({ content: records, nextId: "more" }));
  const moved = { from: at("10:15:00"), to: at("10:30:00") };
  opened.warehouse.transaction((t) => {
    t.statement("DELETE FROM index_tick_rows WHERE ts >= ? AND ts < ?").run([moved.from, moved.to]);
    settleAsMoved(t, key, moved, "the lake");
  });
  const countRows = (indexId = "btc-id") =>
    opened.query(`SELECT count(*) AS n FROM index_ticks WHERE index_id = '${indexId}'`)[0]?.n;
  return { ...opened, countRows };
}

describe("a page that reaches below its gap into ticks that are elsewhere", () => {
  it.each([
    ["in columns", records],
    ["in objects", records.map((record) => ({ ...record, flag: true }))],
  ])("brings none of them back, %s", (_title, content) => {
    const { commit, countRows, coverage } = openWithMoved();
    const before = coverage();
    expect(countRows()).toBe(210);
    expect(commit(jsonBody({ content, nextId: "more" }), { position })).toMatchObject({ isComplete: true });
    expect(countRows()).toBe(210);
    expect(coverage()).toEqual(before);
  });

  it("brings them back if they are in its gap: they were requested", () => {
    const { commit, countRows } = openWithMoved();
    const gap = { from: at("10:00:00"), to: hour.to };
    commit(jsonBody({ content: records, nextId: "more" }), { position: { gap, provenFrom: gap.to } });
    expect(countRows()).toBe(240);
  });

  it("brings them back if its gap is among them", () => {
    const { commit, countRows } = openWithMoved();
    const gap = { from: at("10:20:00"), to: at("10:25:00") };
    const own = records.filter(({ timestamp }) => /T10:2[0-4]/.test(timestamp));
    commit(jsonBody({ content: own, nextId: "more" }), { position: { gap, provenFrom: gap.to } });
    expect(countRows()).toBe(220);
  });

  it("stores its other records, and those of other series under their own", () => {
    const { commit, countRows } = openWithMoved();
    const foreign = { ...records[0], indexId: "eth-id" };
    const content = [foreign, ...records.map((record) => ({ ...record, price: "7" }))];
    expect(commit(jsonBody({ content, nextId: "more" }), { position })).toMatchObject({
      foreign: 1,
      alarm: "foreign_rows",
      written: { changed: 210, inserted: 0 },
    });
    expect([countRows(), countRows("eth-id")]).toEqual([210, 1]);
  });

  it("is written whole where nothing is elsewhere", () => {
    const { commit, query } = openPages();
    const older = makeTicks(hour.from - 60 * SECOND, hour.to).map(tickRecord);
    commit(jsonBody({ content: older, nextId: "more" }), { position });
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 122 }]);
    // An empty page of a series writes nothing.
    expect(commit(jsonBody({ content: [], nextId: "more" }), { position }).written.inserted).toBe(0);
  });
});
