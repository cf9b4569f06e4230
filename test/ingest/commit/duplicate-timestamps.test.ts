import { describe, expect, it } from "vitest";
import { commitSnapshot } from "../../../src/ingest/commit/snapshot.ts";
import { type Page, readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import { gap, startIngest } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, jsonBody, liveMessage, makeTicks, SECOND, tickRecord } from "../../support/ingest/pages.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

const SECOND_RECORD = "second record of one moment";
const ticks = makeTicks(gap.from, gap.from + 600 * SECOND).map(tickRecord);
const COUNT = ticks.length;

/** The predecessor of a record, which stays listed behind it. */
const earlier = <R extends { id: string; price: string }>(record: R): R => ({
  ...record,
  ...{ id: `${record.id} (1)`, price: `${record.price}7` },
});
const twice = ticks.flatMap((record) => [record, earlier(record)]);

type Opened = ReturnType<typeof openPages>;

/** Everything that a reading may change. */
const contentOf = ({ query }: Opened) =>
  query(`SELECT (SELECT json_group_array(json_array(ts, price_exact, quality)) FROM index_ticks) AS ticks,
    (SELECT json_group_array(raw) FROM rejects) AS rejects, (SELECT count(*) FROM revisions) AS revisions`);
const rejectsOf = ({ query }: Opened) =>
  query("SELECT raw FROM rejects WHERE reason = 'second record of one moment' ORDER BY reject").map(
    ({ raw }) => JSON.parse(String(raw)) as (typeof ticks)[number],
  );
const rowsOf = ({ query }: Opened) =>
  query("SELECT price_exact AS price, quality FROM index_ticks ORDER BY ts DESC");

/** The prices as the views show them. */
const plain = (price: string) => String(Number(price));

describe("two records of one moment on a page", () => {
  it.each([
    ["another price", twice],
    ["only another id", ticks.flatMap((record) => [record, { ...record, id: `${record.id} (1)` }])],
    [
      "the same microsecond",
      ticks.flatMap((record) => [
        { ...record, timestamp: record.timestamp.replace("Z", "900Z") },
        { ...earlier(record), timestamp: record.timestamp.replace("Z", "100Z") },
      ]),
    ],
  ])("C19: with %s: the first is the row, the second is in rejects, and quality says so", (_, content) => {
    const opened = openPages();
    const commit = opened.commit(jsonBody({ content }));
    expect(commit).toMatchObject({ written: { inserted: COUNT }, rejected: COUNT, isComplete: true });
    expect(rowsOf(opened)).toEqual(
      ticks.map(({ price }) => ({ price: plain(price), quality: SECOND_RECORD })),
    );
    expect(rejectsOf(opened)).toEqual(content.filter((_record, i) => i % 2 === 1));
    const before = contentOf(opened);
    const again = opened.commit(jsonBody({ content }));
    expect(again).toMatchObject({ written: { inserted: 0, changed: 0, extraChanged: 0 }, rejected: 0 });
    expect(contentOf(opened)).toEqual(before);
  });

  it("C19: the same record twice is one record", () => {
    const opened = openPages();
    const reordered = ticks.map(({ id, ...record }) => ({ ...record, id }));
    opened.commit(jsonBody({ content: ticks.flatMap((record, i) => [record, reordered[i]]) }));
    expect(rejectsOf(opened)).toEqual([]);
    expect(rowsOf(opened)).toEqual(ticks.map(({ price }) => ({ price: plain(price), quality: null })));
  });

  it("C19: another order of the same records changes nothing", () => {
    const opened = openPages();
    opened.commit(jsonBody({ content: twice }));
    const before = contentOf(opened);
    const swapped = ticks.flatMap((record) => [earlier(record), record]);
    opened.commit(jsonBody({ content: swapped }));
    opened.commit(jsonBody({ content: twice.toReversed() }));
    expect(contentOf(opened)).toEqual(before);
  });

  it("C19: a recalculation of stored rows gives the same rows as if they had never been read before", () => {
    const fresh = openPages();
    fresh.commit(jsonBody({ content: twice }));
    const opened = openPages();
    opened.commit(jsonBody({ content: ticks.map(earlier) }));
    const commit = opened.commit(jsonBody({ content: twice }));
    expect(commit).toMatchObject({ written: { changed: COUNT }, rejected: COUNT });
    expect(rowsOf(opened)).toEqual(rowsOf(fresh));
    expect(rejectsOf(opened)).toEqual(rejectsOf(fresh));
    const before = contentOf(opened);
    opened.commit(jsonBody({ content: twice }));
    expect(contentOf(opened)).toEqual(before);
  });

  it("C19: a third record is kept too, and the newest is the row", () => {
    const opened = openPages();
    opened.commit(jsonBody({ content: twice }));
    const thrice = ticks.flatMap((record) => [
      { ...record, id: `${record.id} (3)`, price: "7" },
      record,
      earlier(record),
    ]);
    expect(opened.commit(jsonBody({ content: thrice }))).toMatchObject({ rejected: COUNT, alarm: undefined });
    expect(rowsOf(opened)).toEqual(ticks.map(() => ({ price: "7", quality: SECOND_RECORD })));
    expect(rejectsOf(opened)).toHaveLength(2 * COUNT);
  });

  it("C19: the remark goes when the page shows one record of the moment", () => {
    const opened = openPages();
    opened.commit(jsonBody({ content: twice }));
    opened.commit(jsonBody({ content: ticks }));
    const remarks = rowsOf(opened).map(({ quality }) => quality);
    // What a page has at its ends may go on in its neighbours.
    expect(remarks).toEqual([SECOND_RECORD, ...Array<null>(COUNT - 2).fill(null), SECOND_RECORD]);
  });
});

describe("two records of one moment on two pages", () => {
  /** A walk over the records, `size` to a page. */
  function walk({ commit }: Opened, content: readonly (typeof ticks)[number][], size: number): number {
    let provenFrom = gap.to;
    let rejected = 0;
    for (let from = 0; from < content.length; from += size) {
      const rows = content.slice(from, from + size);
      const nextId = from + size < content.length ? rows.at(-1)?.id : undefined;
      const result = commit(jsonBody({ content: rows, nextId }), { position: { gap, provenFrom } });
      expect(result).toMatchObject({ alarm: undefined, withdrawn: 0 });
      rejected += result.rejected;
      provenFrom = at(rows.at(-1)?.timestamp.slice(11, 19) ?? "") + 1;
    }
    return rejected;
  }

  it.each([
    ["in columns", twice],
    ["in objects", twice.map((record) => ({ ...record, flag: true }))],
  ])("C19: the row is that of the first page, wherever the walk begins, %s", (_, content) => {
    const opened = openPages();
    expect(walk(opened, content, 1)).toBe(COUNT);
    expect(rowsOf(opened)).toEqual(
      ticks.map(({ price }) => ({ price: plain(price), quality: SECOND_RECORD })),
    );
    expect(rejectsOf(opened)).toHaveLength(COUNT);
    const before = contentOf(opened);
    for (const size of [1, 3, 7, 2 * COUNT]) expect(walk(opened, content, size)).toBe(0);
    expect(contentOf(opened)).toEqual(before);
  });

  it("C19: a third record continues the moment of the page before", () => {
    const opened = openPages();
    const [newest, ...older] = ticks;
    if (!newest) throw new Error("no ticks");
    const content = [newest, earlier(newest), { ...newest, id: "third", price: "7" }, ...older];
    expect(walk(opened, content, 1)).toBe(2);
    expect(rowsOf(opened)[0]).toEqual({ price: plain(newest.price), quality: SECOND_RECORD });
    expect(walk(opened, content, 2)).toBe(0);
    expect(opened.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 0 }]);
  });
});

describe("two records of one moment elsewhere", () => {
  it("C19: of an asset in a ranking and an exchange ticker: every one is kept", () => {
    const warehouse = openTestWarehouse({ hasAllViews: true });
    const query = (sql: string) => queryRows(warehouse, sql);
    const commit = (stream: "market_caps" | "exchange_ticks", content: object[]) => {
      const page = receivePage(readPage({ stream }, jsonBody({ content })).page);
      return commitSnapshot(warehouse, page as Page<typeof stream>, { stream, request: "GET /list" });
    };
    const timestamp = "2026-03-01T12:00:00Z";
    const cap = { assetId: "btc-id", price: "1", marketCap: "2", timestamp };
    const caps = [
      { ...cap, marketCapRank: 1 },
      { ...cap, assetId: "eth-id", marketCapRank: 2 },
      { ...cap, marketCapRank: 3 },
    ];
    const tick = { exchangeId: "kraken", marketId: "btc-usd", last: "1", timestamp };
    const tickers = [tick, { ...tick, last: "2" }, tick];
    for (const rejected of [1, 0]) {
      expect(commit("market_caps", caps)).toMatchObject({ listed: 3, rejected });
      expect(commit("exchange_ticks", tickers)).toMatchObject({ listed: 2, rejected });
    }
    expect(query("SELECT asset_id, rank, quality FROM market_caps ORDER BY rank")).toEqual([
      { asset_id: "btc-id", rank: 1, quality: SECOND_RECORD },
      { asset_id: "eth-id", rank: 2, quality: null },
    ]);
    expect(query("SELECT last, quality FROM exchange_ticks")).toEqual([{ last: 1, quality: SECOND_RECORD }]);
    const rejected = { reason: SECOND_RECORD, request: "GET /list" };
    expect(query("SELECT stream, reason, request, raw FROM rejects ORDER BY stream")).toEqual([
      { stream: "exchange_ticks", ...rejected, raw: JSON.stringify(tickers[1]) },
      { stream: "market_caps", ...rejected, raw: JSON.stringify(caps[2]) },
    ]);
    expect(query("SELECT * FROM revisions")).toEqual([]);
  });

  it("C19: of the live feed: the later one is the row, the earlier one is in revisions", async () => {
    const { ingest, query } = await startIngest();
    const ts = at("11:00:00");
    const messages = [..."122"].map((price) => ({ ts, price }));
    await ingest.call("commitLiveMessages", [...messages, { ts: ts + 1, price: "3" }].map(liveMessage));
    await ingest.call("commitLiveMessages", [liveMessage({ ts: ts + 1, price: "4" })]);
    expect(query("SELECT price, quality FROM index_ticks ORDER BY ts")).toEqual([
      { price: 2, quality: SECOND_RECORD },
      { price: 4, quality: SECOND_RECORD },
    ]);
    expect(query("SELECT before ->> '$.price' AS price FROM revisions ORDER BY ts")).toEqual([
      { price: "1" },
      { price: "3" },
    ]);
  });
});
