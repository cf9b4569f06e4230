import { describe, expect, it } from "vitest";
import { INTRADAY_WINDOW } from "../../../src/model/streams.ts";
import type { Micros } from "../../../src/model/time.ts";
import {
  correctPage,
  rowsEvery30s,
  toHistoryPage,
  UnknownCursorError,
} from "../../support/service/stub-history.ts";
import {
  allIds,
  distinct,
  noonTs,
  oldestTs,
  rows,
  SECOND_MICROS,
  walkHistory,
} from "../../support/service/walk-history.ts";

/** The end of the history is asked for once more, by the oldest row's timestamp. */
const idsToEnd = [...allIds, "r1"];

describe("a backward walk", () => {
  it("yields every page once, newest first, and sends filters, timestamp and size with each request", async () => {
    const result = await walkHistory();
    expect(result.ids).toEqual(idsToEnd);
    expect(result.queries).toHaveLength(12);
    for (const [at, query] of result.queries.entries()) {
      expect(query).toMatchObject({
        indexType: "GWA",
        indexId: "an/index",
        size: "10",
        timestamp: at < 11 ? "2026-03-01T12:00:00.000Z" : "2026-03-01T11:10:00.001Z",
      });
    }
    expect(result.queries.map(({ startAfter }) => startAfter)).toEqual([
      undefined,
      ...allIds.filter((_, at) => at % 10 === 9),
      undefined,
    ]);
    expect(result.end).toBe("exhausted");
  });

  it("ends with the first page that goes below its start", async () => {
    const result = await walkHistory(undefined, { from: noonTs - 600 * SECOND_MICROS });
    expect(result.positions.map(({ end }) => end)).toEqual([undefined, undefined, "reached"]);
    expect(result.queries).toHaveLength(3);
  });

  it("reports what is proven before each page", async () => {
    const { positions } = await walkHistory();
    expect(positions[0]).toMatchObject({
      number: 1,
      link: "timestamp",
      provenFrom: noonTs,
      end: undefined,
      isSilenceConfirmed: false,
    });
    expect(positions[1]).toMatchObject({
      number: 2,
      link: "cursor",
      provenFrom: (rows[9]?.ts ?? 0) + 1,
      end: undefined,
      isSilenceConfirmed: false,
    });
  });

  it("C1: the same page sent twice does no harm", async () => {
    const result = await walkHistory((_, count, history) =>
      count === 4 ? toHistoryPage(history.slice(20, 30)) : undefined,
    );
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.failure).toBeUndefined();
  });

  it("C1: a gap in the service's data needs one probe", async () => {
    const withGap = rows.filter((_, at) => at < 20 || at > 40);
    const result = await walkHistory(undefined, { history: withGap });
    expect(distinct(result.ids)).toEqual(withGap.map(({ id }) => id));
    expect(result.queries.filter(({ size }) => size === "5")).toHaveLength(1);
  });

  it("C2: inclusive cursors cause no loop and no failure, even at the end", async () => {
    const result = await walkHistory((query, _, history) => {
      const at = history.findIndex(({ id }) => id === query.startAfter);
      return at < 0 ? undefined : toHistoryPage(history.slice(at, at + 10));
    });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.end).toBe("exhausted");
    expect(result.queries.length).toBeLessThanOrEqual(14);
  });

  it("C3: thirty rows with one timestamp are complete, by cursor alone", async () => {
    const tied = rows.map(({ id }, at) => ({ id, ts: rows[at < 20 ? at : Math.max(20, at - 29)]?.ts ?? 0 }));
    const from = (tied.at(-1)?.ts ?? 0) - SECOND_MICROS;
    const result = await walkHistory(undefined, { history: tied, from });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.queries).toHaveLength(12);
  });

  it.each([2, 50])("C4: a cycle of %i cursors to the same page ends as pagination_cycle", async (length) => {
    const result = await walkHistory((_, count, history) => ({
      ...toHistoryPage(history.slice(0, 10)),
      nextId: `c${count % length}`,
    }));
    expect(result.failure).toMatchObject({ code: "pagination_cycle", exit: 4 });
    expect(result.queries.length).toBeLessThanOrEqual(length + 3);
    expect(result.end).toBeUndefined();
  });

  it("C4: a cycle is noticed without an extra request", async () => {
    const result = await walkHistory((_, count, history) =>
      count <= 3
        ? { ...toHistoryPage(history.slice(count * 10 - 10, count * 10)), nextId: count === 2 ? "b" : "a" }
        : undefined,
    );
    expect(result.queries[3]?.startAfter).toBeUndefined();
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.events).toEqual(["cycle"]);
  });

  it("C5: five empty pages with new cursors are followed", async () => {
    const result = await walkHistory((query, count) => {
      if (count >= 3 && count <= 7) return { content: [], nextId: `e${count}` };
      return query.startAfter === "e7"
        ? correctPage(rows, { ...query, startAfter: rows[19]?.id })
        : undefined;
    });
    expect(result.ids).toEqual(idsToEnd);
    expect(result.events).toEqual([]);
  });

  it("C5: a walk with only empty pages fails instead of ending", async () => {
    const result = await walkHistory((_, count) => ({ content: [], nextId: `e${count}` }));
    expect(result.failure).toMatchObject({ code: "pagination_cycle" });
    expect(result.end).toBeUndefined();
    expect(result.queries).toHaveLength(8);
  });

  it.each([null, "", undefined])("C6: nextId %j on a page with rows ends the walk", async (nextId) => {
    const result = await walkHistory((query, _, history) => {
      const page = correctPage(history, query);
      return page.nextId === rows.at(-1)?.id
        ? { content: page.content, ...(nextId === undefined ? {} : { nextId }) }
        : page;
    });
    expect(result.ids).toEqual(idsToEnd);
    expect(result.end).toBe("exhausted");
    expect(result.queries).toHaveLength(11);
  });

  it("C7: a limited page size is reported once, and the walk reaches the end", async () => {
    const result = await walkHistory((query, _, history) => correctPage(history, { ...query, size: "3" }));
    expect(result.ids).toEqual(idsToEnd);
    expect(result.events).toEqual(["size_ignored"]);
  });

  it("C9: the real end needs one request more, and none if it is at the edge of the window and of the walk", async () => {
    const count = async (from: Micros, now?: Micros) =>
      (await walkHistory(undefined, { from, now })).queries.length;
    const later = oldestTs + INTRADAY_WINDOW;
    expect(await count(oldestTs - 3600 * SECOND_MICROS)).toBe(12);
    expect(await count(oldestTs - SECOND_MICROS)).toBe(12);
    expect(await count(oldestTs - SECOND_MICROS, later)).toBe(11);
    expect(await count(oldestTs - 3600 * SECOND_MICROS, later)).toBe(12);
  });

  it("C11: new rows at the head during a walk have no effect", async () => {
    const result = await walkHistory((query, count) =>
      correctPage(
        [
          ...rowsEvery30s(count, noonTs + 3600 * SECOND_MICROS).map((row) => ({
            ...row,
            id: `new-${row.id}`,
          })),
          ...rows,
        ],
        query,
      ),
    );
    expect(result.ids).toEqual(idsToEnd);
  });

  it("C15: ascending pages are reported, and the walk reaches the end", async () => {
    const result = await walkHistory((query, _, history) => {
      const page = correctPage(history, query);
      const reversed = page.content.toReversed();
      const last = reversed.at(-1);
      return { content: reversed, ...(last ? { nextId: last.id } : {}) };
    });
    expect(distinct(result.ids).sort()).toEqual(allIds.toSorted());
    expect(result.failure).toBeUndefined();
    expect(result.events).toContain("unordered");
  });

  it("C15: an unordered page is requested again, so its stray old row does not end the walk", async () => {
    const result = await walkHistory(
      (query, count, history) => {
        if (count !== 2) return undefined;
        const page = correctPage(history, query);
        page.content.unshift({ id: "stray", timestamp: "2020-01-01T00:00:00Z" });
        return page;
      },
      { from: noonTs - 1500 * SECOND_MICROS },
    );
    expect(result.ids).toContain("r51");
    expect(result.ids).not.toContain("stray");
    expect(result.end).toBe("reached");
  });

  it("a 404 for the first page is thrown to the caller", async () => {
    const result = await walkHistory(() => {
      throw new UnknownCursorError();
    });
    expect(result.failure).toMatchObject({ code: "not_found" });
    expect(result.queries).toHaveLength(1);
  });
});
