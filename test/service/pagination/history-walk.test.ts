import { describe, expect, it } from "vitest";
import { DeadCursor, honestPage, pageOf, rowsEvery30s } from "../../support/service/stub-history.ts";
import {
  allIds,
  distinct,
  noon,
  oldestTs,
  rows,
  second,
  walked,
} from "../../support/service/walk-history.ts";

describe("a backward walk", () => {
  it("gives every page once, newest first, and sends filters, timestamp and size with each", async () => {
    const result = await walked();
    expect(result.ids).toEqual(allIds);
    expect(result.queries).toHaveLength(11);
    for (const query of result.queries) {
      expect(query).toMatchObject({
        indexType: "GWA",
        indexId: "an/index",
        size: "10",
        timestamp: "2026-03-01T12:00:00.000Z",
      });
    }
    expect(result.queries.map(({ startAfter }) => startAfter)).toEqual([
      undefined,
      ...allIds.filter((_, at) => at % 10 === 9),
    ]);
    expect(result.end).toBe("served_out");
  });

  it("ends with the first page that goes below its start, and says so", async () => {
    const result = await walked(undefined, { from: noon - 600 * second });
    expect(result.positions.map(({ end }) => end)).toEqual([undefined, undefined, "reached"]);
    expect(result.queries).toHaveLength(3);
  });

  it("names for each page the moment below which it is gapless", async () => {
    const { positions } = await walked();
    expect(positions[0]).toEqual({ number: 1, link: "timestamp", ceiling: noon, end: undefined });
    expect(positions[1]).toEqual({
      number: 2,
      link: "cursor",
      ceiling: (rows[9]?.ts ?? 0) + 1,
      end: undefined,
    });
  });

  it("C1: the same page sent twice does no harm", async () => {
    const result = await walked((_, count, history) =>
      count === 4 ? pageOf(history.slice(20, 30)) : undefined,
    );
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.failure).toBeUndefined();
  });

  it("C1: swapped pages are noticed by the rows that they leave out, and asked again", async () => {
    const result = await walked((_, count, history) => {
      if (count === 3) return { ...pageOf(history.slice(30, 40)), nextId: history[29]?.id ?? "" };
      return undefined;
    });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.events).toEqual(["contradiction"]);
    for (const [at, { ceiling }] of result.positions.entries()) {
      if (at > 0) expect(ceiling).toBeLessThan(result.positions[at - 1]?.ceiling ?? 0);
    }
  });

  it("C1: a gap that the service really has costs one small question", async () => {
    const holed = rows.filter((_, at) => at < 20 || at > 40);
    const result = await walked(undefined, { history: holed });
    expect(result.ids).toEqual(holed.map(({ id }) => id));
    expect(result.queries.filter(({ size }) => size === "5")).toHaveLength(1);
  });

  it("C2: a cursor that includes its own row makes no loop and no failure, even at the end", async () => {
    const result = await walked((query, _, history) => {
      const at = history.findIndex(({ id }) => id === query.startAfter);
      return at < 0 ? undefined : pageOf(history.slice(at, at + 10));
    });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.end).toBe("served_out");
    expect(result.queries.length).toBeLessThanOrEqual(14);
  });

  it("C3: thirty rows that tie on one moment come whole, by cursor alone", async () => {
    const tied = rows.map(({ id }, at) => ({ id, ts: rows[at < 20 ? at : Math.max(20, at - 29)]?.ts ?? 0 }));
    const result = await walked(undefined, { history: tied, from: (tied.at(-1)?.ts ?? 0) - second });
    expect(result.ids).toEqual(allIds);
    expect(result.queries).toHaveLength(11);
  });

  it("C4: nextId that stays the same for ever: the walk goes on by timestamp, one request a page", async () => {
    const result = await walked((query, _, history) => ({
      ...honestPage(history, { ...query, startAfter: undefined }),
      nextId: "X",
    }));
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.failure).toBeUndefined();
    expect(result.queries.length).toBeLessThanOrEqual(14);
    expect(result.events).toContain("cycle");
  });

  it.each([2, 50])(
    "C4: a cycle of %i cursors that shows the same page ends as pagination_cycle",
    async (length) => {
      const result = await walked((_, count, history) => ({
        ...pageOf(history.slice(0, 10)),
        nextId: `c${count % length}`,
      }));
      expect(result.failure).toMatchObject({ code: "pagination_cycle", exit: 4 });
      expect(result.queries.length).toBeLessThanOrEqual(length + 3);
      expect(result.end).toBeUndefined();
    },
  );

  it("C4: a cycle is noticed before a request is spent on it", async () => {
    const result = await walked((_, count, history) =>
      count <= 3
        ? { ...pageOf(history.slice(count * 10 - 10, count * 10)), nextId: count === 2 ? "b" : "a" }
        : undefined,
    );
    expect(result.queries[3]?.startAfter).toBeUndefined();
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.events).toEqual(["cycle"]);
  });

  it("C5: empty pages with fresh cursors are followed five times", async () => {
    const result = await walked((query, count) => {
      if (count >= 3 && count <= 7) return { content: [], nextId: `e${count}` };
      return query.startAfter === "e7" ? honestPage(rows, { ...query, startAfter: rows[19]?.id }) : undefined;
    });
    expect(result.ids).toEqual(allIds);
    expect(result.events).toEqual([]);
  });

  it("C5: more of them are trouble: the walk goes on by timestamp", async () => {
    const result = await walked((query, count) =>
      query.startAfter?.startsWith("e") || query.startAfter === "r81"
        ? { content: [], nextId: `e${count}` }
        : undefined,
    );
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.events).toEqual(["empty_pages"]);
    expect(result.failure).toBeUndefined();
  });

  it("C5: nothing but empty pages is an error, not an end", async () => {
    const result = await walked((_, count) => ({ content: [], nextId: `e${count}` }));
    expect(result.failure).toMatchObject({ code: "pagination_cycle" });
    expect(result.end).toBeUndefined();
    expect(result.queries).toHaveLength(8);
  });

  it.each([null, "", undefined])(
    "C6: nextId %j on a page with rows is the service's own end",
    async (nextId) => {
      const result = await walked((query, _, history) => {
        const page = honestPage(history, query);
        return page.nextId === rows.at(-1)?.id
          ? { content: page.content, ...(nextId === undefined ? {} : { nextId }) }
          : page;
      });
      expect(result.ids).toEqual(allIds);
      expect(result.end).toBe("served_out");
      expect(result.queries).toHaveLength(10);
    },
  );

  it("C6: an empty history is an end at once", async () => {
    const result = await walked(undefined, { history: [] });
    expect(result.positions).toEqual([{ number: 1, link: "timestamp", ceiling: noon, end: "served_out" }]);
  });

  it("C7: a server that caps the page size is read to the end, and noticed once", async () => {
    const result = await walked((query, _, history) => honestPage(history, { ...query, size: "3" }));
    expect(result.ids).toEqual(allIds);
    expect(result.events).toEqual(["size_ignored"]);
  });

  it("C9: a cursor whose record is gone (404) is replaced by its timestamp", async () => {
    let history = rows;
    const result = await walked((query, count) => {
      if (count === 4) history = rows.filter(({ id }) => id !== query.startAfter);
      return honestPage(history, query);
    });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.events).toEqual(["dead_cursor"]);
    const anew = result.positions.find(({ link, number }) => link === "timestamp" && number > 1);
    expect(anew?.ceiling).toBe((rows[29]?.ts ?? 0) + 1);
  });

  it("C9: a dead cursor that is answered by silence is told from the end", async () => {
    const result = await walked((_, count) => (count === 4 ? { content: [] } : undefined), {
      from: oldestTs - 3600 * second,
    });
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.positions.filter(({ end }) => end !== undefined)).toHaveLength(1);
    expect(result.end).toBe("served_out");
  });

  it("C9: the true end is confirmed with one request, and with none right above the walk's start", async () => {
    expect((await walked(undefined, { from: oldestTs - 3600 * second })).queries).toHaveLength(12);
    expect((await walked(undefined, { from: oldestTs - second })).queries).toHaveLength(11);
  });

  it("C11: new rows at the head during a walk shift nothing", async () => {
    const result = await walked((query, count) =>
      honestPage(
        [
          ...rowsEvery30s(count, noon + 3600 * second).map((row) => ({ ...row, id: `new-${row.id}` })),
          ...rows,
        ],
        query,
      ),
    );
    expect(result.ids).toEqual(allIds);
  });

  it("C15: ascending pages are read to the end, and reported", async () => {
    const result = await walked((query, _, history) => {
      const page = honestPage(history, query);
      const turned = page.content.toReversed();
      const last = turned.at(-1);
      return { content: turned, ...(last ? { nextId: last.id } : {}) };
    });
    expect(distinct(result.ids).sort()).toEqual(allIds.toSorted());
    expect(result.failure).toBeUndefined();
    expect(result.events).toContain("unordered");
  });

  it("C15: a page that is disordered once is asked for again, so its stray row does not end the walk", async () => {
    const result = await walked(
      (query, count, history) => {
        if (count !== 2) return undefined;
        const page = honestPage(history, query);
        page.content.unshift({ id: "stray", timestamp: "2020-01-01T00:00:00Z" });
        return page;
      },
      { from: noon - 1500 * second },
    );
    expect(result.ids).toContain("r51");
    expect(result.ids).not.toContain("stray");
    expect(result.end).toBe("reached");
  });

  it("asked without its first answer, an index that does not exist is the caller's to judge", async () => {
    const result = await walked(() => {
      throw new DeadCursor();
    });
    expect(result.failure).toMatchObject({ code: "not_found" });
    expect(result.queries).toHaveLength(1);
  });
});
