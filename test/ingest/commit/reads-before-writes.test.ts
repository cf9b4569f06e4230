import { beforeEach, describe, expect, it } from "vitest";
import { commitLiveMessages, LiveState } from "../../../src/ingest/commit/live.ts";
import { commitLookup } from "../../../src/ingest/commit/lookup.ts";
import { commitSnapshot, commitSnapshotCoverage } from "../../../src/ingest/commit/snapshot.ts";
import { commitNotFound } from "../../../src/ingest/commit/walk-page.ts";
import { type Page, readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { Connection, Statement } from "../../../src/warehouse/sqlite/connection.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { onlyPage } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import {
  assetRecord as asset,
  at,
  exchangeMessage,
  jsonBody,
  liveMessage,
  tickRecord,
} from "../../support/ingest/pages.ts";

/* A commit is read, decide, write: the rule has seen all that it decides by before anything is written. */

/** Numbers of names, of entries, of commits and of the open part: each is read once and then kept in memory. */
const memory =
  /(FROM|INTO) "?(series|listings|contracts|changes|commits|row_parts)\b|FROM warehouse_state|max\(revision\)/i;

const write = /^\s*(INSERT|REPLACE|UPDATE|DELETE)\b/i;

/** The SQL that a connection runs from now on. */
function trace(connection: Connection): string[] {
  const ran: string[] = [];
  const prepare = connection.statement.bind(connection);
  const watch = (statement: Statement, sql: string): Statement =>
    new Proxy(statement, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (name === "run" || name === "get" || name === "all" || name === "iterate") ran.push(sql);
          const result: unknown = value.apply(target, args);
          return result === target ? watch(target, sql) : result;
        };
      },
    });
  connection.statement = <Row>(sql: string) => watch(prepare(sql), sql) as Statement<Row>;
  return ran;
}

/** What was read after the first write. */
function readsAfterWrite(ran: readonly string[]): readonly string[] {
  const relevant = ran.filter((sql) => !memory.test(sql));
  const first = relevant.findIndex((sql) => write.test(sql));
  if (first < 0) return [];
  const late = relevant.slice(first).filter((sql) => /^\s*(SELECT|WITH)\b/i.test(sql));
  return late.length === 0 ? [] : [`after ${relevant[first]}`, ...late];
}

const T = (time: string) => at(`${time}:00`);
const ticks = (...times: readonly string[]) => times.map((time) => tickRecord({ ts: T(time) }));
const prices = (price: string, ...times: readonly string[]) =>
  times.map((time) => ({ ...tickRecord({ ts: T(time) }), price }));

let pages: ReturnType<typeof openPages>;
let warehouse: WarehouseWriter;
let ran: string[];
beforeEach(() => {
  pages = openPages();
  warehouse = pages.warehouse;
  ran = trace(warehouse.connection);
});

/** What the commit reads after its first write, and whether it wrote at all. */
function inspect(commit: () => unknown) {
  ran.length = 0;
  commit();
  return { hasWritten: ran.some((sql) => write.test(sql)), late: readsAfterWrite(ran) };
}
const clean = { hasWritten: true, late: [] };

describe("nothing is read after the first write of", () => {
  const position = { gap: { from: T("17:00"), to: T("17:50") }, provenFrom: T("17:50") };

  it("a page of a history, whatever it changes", () => {
    const commit = (records: readonly object[], more = {}) =>
      inspect(() => pages.commit(jsonBody({ content: records }), { position, ...more }));
    expect(commit(ticks("17:40", "17:30", "17:20", "17:10"))).toEqual(clean);
    // Corrected, gone and added rows.
    expect(commit([...prices("9", "17:40", "17:35"), ...ticks("17:20", "17:10")])).toEqual(clean);
    // Of another index too, and two records of a moment.
    const foreign = { ...tickRecord({ ts: T("17:31") }), indexId: "other" };
    expect(commit([foreign, ...prices("8", "17:20"), ...prices("7", "17:20", "17:10")])).toEqual(clean);
    // Unreadable records, and an end of the history that moves.
    expect(commit([...ticks("17:20"), { timestamp: "now" }])).toEqual(clean);
    expect(commit([])).toEqual(clean);
  });

  it("a batch of live ticks: in covered and in empty ranges, beside rows of REST, twice", () => {
    pages.commit(jsonBody({ content: ticks("17:40", "17:30", "17:20", "17:10") }), { position });
    const live = new LiveState();
    const batch = ["17:05", "17:25", "17:25", "17:30", "17:55"].map((time) =>
      liveMessage({ ts: T(time), price: time === "17:25" ? "3" : "4" }),
    );
    live.feed = {
      ...live.feed,
      cadence: 60 * MICROS_PER_SECOND,
      exchanges: new Map([[null, { since: 0, periods: [] }]]),
    };
    const receive = () =>
      commitLiveMessages(warehouse, live, [
        ...batch,
        exchangeMessage("17:57:00"),
        exchangeMessage("17:58:00"),
      ]);
    expect(inspect(receive)).toEqual(clean);
    expect(inspect(receive).late).toEqual([]);
  });

  it("a snapshot and its coverage", () => {
    const exchange = { stream: "exchange_ticks", exchangeId: "kraken" } as const;
    const record = (id: string, price: string) => ({
      ...{ id, exchangeId: "kraken", marketId: id, last: price, volume: "2", bid: "1", ask: "2" },
      timestamp: "2026-03-01T17:55:00Z",
    });
    const commit = (...records: readonly object[]) =>
      inspect(() => {
        const read = readPage({ stream: "exchange_ticks" }, jsonBody({ content: records }));
        const page = receivePage(read.page) as Page<"exchange_ticks">;
        commitSnapshot(warehouse, page, { ...exchange, request: "GET" });
      });
    expect(commit(record("a", "1"), record("b", "1"))).toEqual(clean);
    expect(commit(record("a", "2"), record("b", "3"), record("b", "4"))).toEqual(clean);
    const timestamps = [T("17:55")];
    const cover = (listed: number) =>
      inspect(() =>
        warehouse.transaction((t) =>
          commitSnapshotCoverage(t, {
            ...exchange,
            cadence: 60 * MICROS_PER_SECOND,
            parts: [{ part: "all", listed, rejected: 0, timestamps, storedTimestamps: timestamps }],
          }),
        ),
      );
    expect(cover(2)).toEqual(clean);
    expect(cover(0)).toEqual(clean);
  });

  it("a list, and an answer that an index does not exist", () => {
    const commit = (...records: readonly object[]) =>
      inspect(() => {
        const page = receivePage(readPage({ stream: "assets" }, jsonBody({ content: records })).page);
        const list = {
          stream: "assets",
          serviceUrl: "https://service.test",
          request: "GET /assets",
        } as const;
        commitLookup(warehouse, [page as Page<"assets">], list);
      });
    expect(commit(asset("a"), asset("b"))).toEqual(clean);
    expect(commit(asset("a", "INACTIVE"))).toEqual(clean);
    const key = { stream: "index_ticks", series: 1 } as const;
    const { timing, confirmation } = onlyPage;
    const notFound = { key, indexType: "MWA", range: position.gap, timing, confirmation };
    expect(inspect(() => warehouse.transaction((t) => commitNotFound(t, notFound)))).toEqual(clean);
  });
});
