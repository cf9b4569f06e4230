import { describe, expect, it } from "vitest";
import { gap } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, btc, jsonBody, makeTicks, tickPage, tickRecord } from "../../support/ingest/pages.ts";

const eth = { ...btc, indexId: "eth-id" };
const ticksOf = (indexId: string, price?: string) =>
  makeTicks(gap.from, gap.to).map((row) => ({ ...row, indexId, ...(price === undefined ? {} : { price }) }));

const pricesSql = (indexId: string) =>
  `SELECT price_exact AS price, source, count(*) AS rows FROM index_ticks WHERE index_id = '${indexId}' GROUP BY 1, 2`;

describe("H12: a page with records of another index", () => {
  it("changes no row of that index that REST has settled, and reopens nothing", () => {
    const { commit, query } = openPages();
    commit(tickPage(ticksOf("eth-id", "2000")), { series: eth });
    const covered = query("SELECT index_id, from_time, to_time, proof FROM coverage");
    const page = [...ticksOf("btc-id").slice(0, 20), ...ticksOf("eth-id", "1")];
    expect(commit(tickPage(page))).toMatchObject({ alarm: "foreign_rows", foreign: 240, proven: undefined });
    expect(query(pricesSql("eth-id"))).toEqual([{ price: "2000", source: "rest", rows: 240 }]);
    expect(query("SELECT * FROM revisions")).toEqual([]);
    expect(query("SELECT index_id, from_time, to_time, proof FROM coverage")).toEqual(covered);
  });

  it("writes no row where the other index is proven to have none", () => {
    const { commit, query } = openPages();
    const quiet = ticksOf("eth-id", "2000").filter(({ ts }) => ts < at("11:00:00") || ts > at("11:20:00"));
    commit(tickPage(quiet), { series: eth });
    commit(tickPage(ticksOf("eth-id", "1")));
    expect(query(pricesSql("eth-id"))).toEqual([{ price: "2000", source: "rest", rows: quiet.length }]);
  });

  it("adds rows where nothing is known of the other index, without coverage; its own page replaces them", () => {
    const { commit, query } = openPages();
    commit(tickPage([...ticksOf("eth-id", "1"), ...ticksOf("btc-id")]));
    expect(query(pricesSql("eth-id"))).toEqual([{ price: "1", source: "live", rows: 240 }]);
    commit(tickPage(ticksOf("eth-id", "3")));
    expect(query(pricesSql("eth-id"))).toEqual([{ price: "1", source: "live", rows: 240 }]);
    expect(query("SELECT * FROM coverage")).toEqual([]);
    commit(tickPage(ticksOf("eth-id", "2000")), { series: eth });
    expect(query(pricesSql("eth-id"))).toEqual([{ price: "2000", source: "rest", rows: 240 }]);
  });

  it("of the same id and another type counts as foreign too", () => {
    const { commit, query } = openPages();
    const content = makeTicks(gap.from, gap.to).map((row) => ({ ...tickRecord(row), indexType: "MWA" }));
    expect(commit(jsonBody({ content }))).toMatchObject({ foreign: 240 });
    expect(query("SELECT DISTINCT index_type, source FROM index_ticks")).toEqual([
      { index_type: "MWA", source: "live" },
    ]);
  });
});
