import { describe, expect, it } from "vitest";
import { Parking } from "../../../src/service/auth/parking.ts";
import type { RequestSender } from "../../../src/service/client/client.ts";
import { walkListPages } from "../../../src/service/pagination/list-walk.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { type ReceivedRequest, sendGzip } from "../../support/service/stub-service.ts";

const rows = Array.from({ length: 25 }, (_, at) => ({ id: `id/${at}` }));

type PageHandler = (
  request: ReceivedRequest,
  count: number,
) => { content: unknown[]; nextId?: string | null } | number;

/** Pages of ten rows, each with a `nextId`. */
const correctPage: PageHandler = ({ query }) => {
  const at = query.startAfter === undefined ? 0 : rows.findIndex(({ id }) => id === query.startAfter) + 1;
  const content = rows.slice(at, at + 10);
  const last = content.at(-1);
  return { content, ...(last ? { nextId: last.id } : {}) };
};

async function walkList(handler: PageHandler = correctPage) {
  const served = await startServedClient({
    respond: (request, response, count) => {
      const page = handler(request, count);
      return typeof page === "number" ? page : sendGzip(response, page);
    },
  });
  const { client, clock, stub } = served;
  const ids: string[] = [];
  const pages: number[] = [];
  const list = { endpoint: "/exchange-ticker", query: { exchangeId: "x" } };
  const run = async () => {
    for await (const { content } of walkListPages(client, list, readPage)) {
      ids.push(...content.map(({ id }) => id));
      pages.push(content.length);
    }
  };
  const failure = await clock.runUntil(run().catch((error: unknown) => error));
  const events = served.events.flatMap((each) => (each.kind === "walk" ? [each.event] : []));
  return { ids, pages, failure, events, queries: stub.requests.map(({ query }) => query) };
}

const allIds = rows.map(({ id }) => id);

describe("a list", () => {
  it("is followed by nextId, with the filters on every request", async () => {
    const { ids, queries, pages } = await walkList();
    expect(ids).toEqual(allIds);
    expect(queries.every(({ exchangeId }) => exchangeId === "x")).toBe(true);
    expect(queries.map(({ startAfter }) => startAfter)).toEqual([undefined, "id/9", "id/19", "id/24"]);
    expect(pages).toHaveLength(4);
  });

  it.each([null, "", undefined])("C6: ends with nextId %j", async (nextId) => {
    const { ids, queries } = await walkList(() => ({
      content: rows,
      ...(nextId === undefined ? {} : { nextId }),
    }));
    expect(ids).toEqual(allIds);
    expect(queries).toHaveLength(1);
  });

  it("C2: ends where a cursor shows only its own record", async () => {
    const { ids, failure } = await walkList(({ query }) => {
      const first = rows.findIndex(({ id }) => id === query.startAfter);
      const content = rows.slice(Math.max(0, first)).slice(0, 10);
      return { content, nextId: content.at(-1)?.id ?? null };
    });
    expect(failure).toBeUndefined();
    expect(new Set(ids)).toEqual(new Set(allIds));
  });

  it("C4: a cycle is an error, noticed without an extra request", async () => {
    const { failure, queries } = await walkList((_, count) => ({
      content: rows.slice(0, 2),
      nextId: `c${count % 3}`,
    }));
    expect(failure).toMatchObject({ code: "pagination_cycle" });
    expect(queries).toHaveLength(4);
  });

  it("C4: the number of pages is limited", async () => {
    let requests = 0;
    const client: RequestSender = {
      onEvent: () => {},
      parking: new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0),
      request: (_, read) => {
        requests++;
        if (requests > 3000) throw new Error("the walk does not end");
        const bytes = new TextEncoder().encode(
          JSON.stringify({ content: [{ id: "a" }], nextId: `n${requests}` }),
        );
        return read({ bytes, ageMs: 0, asOf: undefined, requestedAt: 0 });
      },
    };
    const run = async () => {
      for await (const _ of walkListPages(client, { endpoint: "/market" }, readPage));
    };
    await expect(run()).rejects.toMatchObject({ code: "pagination_cycle" });
    expect(requests).toBe(3000);
  });

  it("C5: more than five empty pages are an error", async () => {
    const { failure, queries } = await walkList((_, count) => ({ content: [], nextId: `c${count}` }));
    expect(failure).toMatchObject({ code: "pagination_cycle" });
    expect(queries).toHaveLength(6);
  });

  it.each([400, 404])("C9: a dead cursor (%i) restarts the list, once", async (status) => {
    const healed = await walkList((request, count) => (count === 3 ? status : correctPage(request, count)));
    // After two pages it begins again, and follows the cursors of its first try.
    expect(healed.pages).toHaveLength(6);
    expect(healed.ids).toEqual([...allIds.slice(0, 20), ...allIds]);
    expect(healed.events).toEqual(["restarted"]);
    const broken = await walkList((request, count) =>
      request.query.startAfter === "id/19" ? status : correctPage(request, count),
    );
    expect(broken.failure).toMatchObject({ code: "pagination_cycle" });
    // Without a cursor there is nothing to restart: the failure is the caller's.
    const first = await walkList(() => status);
    expect(first).toMatchObject({ failure: { code: status === 400 ? "rejected" : "not_found" }, events: [] });
  });

  it("C2: does not end with a page of several records that repeats its cursor: that is a cycle", async () => {
    const { failure, queries, events } = await walkList(({ query }) => ({
      content: rows.slice(0, 2),
      nextId: query.startAfter ?? "c",
    }));
    expect(failure).toMatchObject({ code: "pagination_cycle" });
    expect(queries).toHaveLength(2);
    expect(events).toEqual(["cycle"]);
  });
});
