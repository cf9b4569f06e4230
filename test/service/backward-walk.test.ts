import { afterEach, describe, expect, it } from "vitest";
import { type Micros, parseInstant } from "../../src/model/instant.ts";
import { type PagePosition, walkBackwards } from "../../src/service/backward-walk.ts";
import { TurnedClock } from "../support/turned-clock.ts";
import { clientOf, readPage } from "./client-under-test.ts";
import {
  DeadCursor,
  type HistoryPage,
  type HistoryQuery,
  type HistoryRow,
  honestPage,
  pageOf,
  rowsEvery30s,
} from "./stub-history.ts";
import { json, type StubService, startStub, zipped } from "./stub-service.ts";

const noon = parseInstant("2026-03-01T12:00:00Z") as Micros;
const second = 1_000_000;
const rows = rowsEvery30s(100, noon - 30 * second);
const oldestTs = rows.at(-1)?.ts ?? 0;
let stub: StubService | undefined;
afterEach(async () => stub?.stop());

type Answer = (query: HistoryQuery, count: number, history: readonly HistoryRow[]) => HistoryPage | undefined;

interface Walked {
  ids: string[];
  positions: PagePosition[];
  queries: Record<string, string>[];
  failure: unknown;
  events: string[];
}

/** Walks a history of 100 rows in pages of ten, where `answer` gives every page that the honest server does not. */
async function walk(
  answer: Answer = () => undefined,
  { history = rows, from = oldestTs - second, until = noon, size = 10 } = {},
): Promise<Walked> {
  const clock = new TurnedClock();
  stub = await startStub({
    clock,
    answer: ({ query }, response, count) => {
      try {
        zipped(response, answer(query, count, history) ?? honestPage(history, query));
      } catch (error) {
        if (!(error instanceof DeadCursor)) throw error;
        json(response, {}, 404);
      }
    },
  });
  const { client, observed } = clientOf(stub.baseUrl, clock);
  const walked: Walked = { ids: [], positions: [], queries: [], failure: undefined, events: [] };
  const filters = { indexType: "GWA", indexId: "an/index" };
  const run = async () => {
    const pages = walkBackwards(client, { endpoint: "/index-ticker", filters, from, until, size }, readPage);
    for await (const { page, position } of pages) {
      walked.ids.push(...page.content.map(({ id }) => id));
      walked.positions.push(position);
    }
  };
  await clock.runUntil(
    run().catch((error: unknown) => {
      walked.failure = error;
    }),
  );
  walked.queries = stub.requests.map(({ query }) => query);
  walked.events = observed.flatMap((each) => (each.kind === "walk" ? [each.event] : []));
  return walked;
}

const allIds = rows.map(({ id }) => id);
const distinct = (ids: string[]) => [...new Set(ids)];
const endOf = ({ positions }: Walked) => positions.at(-1)?.end;

describe("a backward walk", () => {
  it("gives every page once, newest first, and sends filters, timestamp and size with each", async () => {
    const walked = await walk();
    expect(walked.ids).toEqual(allIds);
    expect(walked.queries).toHaveLength(11);
    for (const query of walked.queries) {
      expect(query).toMatchObject({
        indexType: "GWA",
        indexId: "an/index",
        size: "10",
        timestamp: "2026-03-01T12:00:00.000Z",
      });
    }
    expect(walked.queries.map(({ startAfter }) => startAfter)).toEqual([
      undefined,
      ...allIds.filter((_, at) => at % 10 === 9),
    ]);
    expect(endOf(walked)).toBe("served_out");
  });

  it("ends with the first page that goes below its start, and says so", async () => {
    const walked = await walk(undefined, { from: noon - 600 * second });
    expect(walked.positions.map(({ end }) => end)).toEqual([undefined, undefined, "reached"]);
    expect(walked.queries).toHaveLength(3);
  });

  it("names for each page the moment below which it is gapless", async () => {
    const { positions } = await walk();
    expect(positions[0]).toEqual({ number: 1, link: "timestamp", ceiling: noon, end: undefined });
    expect(positions[1]).toEqual({
      number: 2,
      link: "cursor",
      ceiling: (rows[9]?.ts ?? 0) + 1,
      end: undefined,
    });
  });

  it("C1: the same page sent twice does no harm", async () => {
    const walked = await walk((_, count, history) =>
      count === 4 ? pageOf(history.slice(20, 30)) : undefined,
    );
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.failure).toBeUndefined();
  });

  it("C1: swapped pages are noticed by the rows that they leave out, and asked again", async () => {
    const walked = await walk((_, count, history) => {
      if (count === 3) return { ...pageOf(history.slice(30, 40)), nextId: history[29]?.id ?? "" };
      return undefined;
    });
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.events).toEqual(["contradiction"]);
    for (const [at, { ceiling }] of walked.positions.entries()) {
      if (at > 0) expect(ceiling).toBeLessThan(walked.positions[at - 1]?.ceiling ?? 0);
    }
  });

  it("C1: a gap that the service really has costs one small question", async () => {
    const holed = rows.filter((_, at) => at < 20 || at > 40);
    const walked = await walk(undefined, { history: holed });
    expect(walked.ids).toEqual(holed.map(({ id }) => id));
    expect(walked.queries.filter(({ size }) => size === "5")).toHaveLength(1);
  });

  it("C2: a cursor that includes its own row makes no loop and no failure, even at the end", async () => {
    const walked = await walk((query, _, history) => {
      const at = history.findIndex(({ id }) => id === query.startAfter);
      return at < 0 ? undefined : pageOf(history.slice(at, at + 10));
    });
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(endOf(walked)).toBe("served_out");
    expect(walked.queries.length).toBeLessThanOrEqual(14);
  });

  it("C3: thirty rows that tie on one moment come whole, by cursor alone", async () => {
    const tied = rows.map(({ id }, at) => ({ id, ts: rows[at < 20 ? at : Math.max(20, at - 29)]?.ts ?? 0 }));
    const walked = await walk(undefined, { history: tied, from: (tied.at(-1)?.ts ?? 0) - second });
    expect(walked.ids).toEqual(allIds);
    expect(walked.queries).toHaveLength(11);
  });

  it("C4: nextId that stays the same for ever: the walk goes on by timestamp, one request a page", async () => {
    const walked = await walk((query, _, history) => ({
      ...honestPage(history, { ...query, startAfter: undefined }),
      nextId: "X",
    }));
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.failure).toBeUndefined();
    expect(walked.queries.length).toBeLessThanOrEqual(14);
    expect(walked.events).toContain("cycle");
  });

  it.each([2, 50])(
    "C4: a cycle of %i cursors that shows the same page ends as pagination_cycle",
    async (length) => {
      const walked = await walk((_, count, history) => ({
        ...pageOf(history.slice(0, 10)),
        nextId: `c${count % length}`,
      }));
      expect(walked.failure).toMatchObject({ code: "pagination_cycle", exit: 4 });
      expect(walked.queries.length).toBeLessThanOrEqual(length + 3);
      expect(endOf(walked)).toBeUndefined();
    },
  );

  it("C4: a cycle is noticed before a request is spent on it", async () => {
    const walked = await walk((_, count, history) =>
      count <= 3
        ? { ...pageOf(history.slice(count * 10 - 10, count * 10)), nextId: count === 2 ? "b" : "a" }
        : undefined,
    );
    expect(walked.queries[3]?.startAfter).toBeUndefined();
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.events).toEqual(["cycle"]);
  });

  it("C5: empty pages with fresh cursors are followed five times", async () => {
    const walked = await walk((query, count) => {
      if (count >= 3 && count <= 7) return { content: [], nextId: `e${count}` };
      return query.startAfter === "e7" ? honestPage(rows, { ...query, startAfter: rows[19]?.id }) : undefined;
    });
    expect(walked.ids).toEqual(allIds);
    expect(walked.events).toEqual([]);
  });

  it("C5: more of them are trouble: the walk goes on by timestamp", async () => {
    const walked = await walk((query, count) =>
      query.startAfter?.startsWith("e") || query.startAfter === "r81"
        ? { content: [], nextId: `e${count}` }
        : undefined,
    );
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.events).toEqual(["empty_pages"]);
    expect(walked.failure).toBeUndefined();
  });

  it("C5: nothing but empty pages is an error, not an end", async () => {
    const walked = await walk((_, count) => ({ content: [], nextId: `e${count}` }));
    expect(walked.failure).toMatchObject({ code: "pagination_cycle" });
    expect(endOf(walked)).toBeUndefined();
    expect(walked.queries).toHaveLength(8);
  });

  it.each([null, "", undefined])(
    "C6: nextId %j on a page with rows is the service's own end",
    async (nextId) => {
      const walked = await walk((query, _, history) => {
        const page = honestPage(history, query);
        return page.nextId === rows.at(-1)?.id
          ? { content: page.content, ...(nextId === undefined ? {} : { nextId }) }
          : page;
      });
      expect(walked.ids).toEqual(allIds);
      expect(endOf(walked)).toBe("served_out");
      expect(walked.queries).toHaveLength(10);
    },
  );

  it("C6: an empty history is an end at once", async () => {
    const walked = await walk(undefined, { history: [] });
    expect(walked.positions).toEqual([{ number: 1, link: "timestamp", ceiling: noon, end: "served_out" }]);
  });

  it("C7: a server that caps the page size is read to the end, and noticed once", async () => {
    const walked = await walk((query, _, history) => honestPage(history, { ...query, size: "3" }));
    expect(walked.ids).toEqual(allIds);
    expect(walked.events).toEqual(["size_ignored"]);
  });

  it("C9: a cursor whose record is gone (404) is replaced by its timestamp", async () => {
    let history = rows;
    const walked = await walk((query, count) => {
      if (count === 4) history = rows.filter(({ id }) => id !== query.startAfter);
      return honestPage(history, query);
    });
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.events).toEqual(["dead_cursor"]);
    const anew = walked.positions.find(({ link, number }) => link === "timestamp" && number > 1);
    expect(anew?.ceiling).toBe((rows[29]?.ts ?? 0) + 1);
  });

  it("C9: a dead cursor that is answered by silence is told from the end", async () => {
    const walked = await walk((_, count) => (count === 4 ? { content: [] } : undefined), {
      from: oldestTs - 3600 * second,
    });
    expect(distinct(walked.ids)).toEqual(allIds);
    expect(walked.positions.filter(({ end }) => end !== undefined)).toHaveLength(1);
    expect(endOf(walked)).toBe("served_out");
  });

  it("C9: the true end is confirmed with one request, and with none right above the walk's start", async () => {
    expect((await walk(undefined, { from: oldestTs - 3600 * second })).queries).toHaveLength(12);
    expect((await walk(undefined, { from: oldestTs - second })).queries).toHaveLength(11);
  });

  it("C11: new rows at the head during a walk shift nothing", async () => {
    const walked = await walk((query, count) =>
      honestPage(
        [
          ...rowsEvery30s(count, noon + 3600 * second).map((row) => ({ ...row, id: `new-${row.id}` })),
          ...rows,
        ],
        query,
      ),
    );
    expect(walked.ids).toEqual(allIds);
  });

  it("C15: ascending pages are read to the end, and reported", async () => {
    const walked = await walk((query, _, history) => {
      const page = honestPage(history, query);
      const turned = page.content.toReversed();
      const last = turned.at(-1);
      return { content: turned, ...(last ? { nextId: last.id } : {}) };
    });
    expect(distinct(walked.ids).sort()).toEqual(allIds.toSorted());
    expect(walked.failure).toBeUndefined();
    expect(walked.events).toContain("unordered");
  });

  it("C15: a page that is disordered once is asked for again, so its stray row does not end the walk", async () => {
    const walked = await walk(
      (query, count, history) => {
        if (count !== 2) return undefined;
        const page = honestPage(history, query);
        page.content.unshift({ id: "stray", timestamp: "2020-01-01T00:00:00Z" });
        return page;
      },
      { from: noon - 1500 * second },
    );
    expect(walked.ids).toContain("r51");
    expect(walked.ids).not.toContain("stray");
    expect(endOf(walked)).toBe("reached");
  });

  it("asked without its first answer, an index that does not exist is the caller's to judge", async () => {
    const walked = await walk(() => {
      throw new DeadCursor();
    });
    expect(walked.failure).toMatchObject({ code: "not_found" });
    expect(walked.queries).toHaveLength(1);
  });
});
