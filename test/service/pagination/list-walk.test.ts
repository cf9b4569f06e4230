import { afterEach, describe, expect, it } from "vitest";
import type { Requests } from "../../../src/service/client/client.ts";
import { followList, type ListPosition } from "../../../src/service/pagination/list-walk.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import {
  json,
  type SeenRequest,
  type StubService,
  startStub,
  zipped,
} from "../../support/service/stub-service.ts";

const rows = Array.from({ length: 25 }, (_, at) => ({ id: `id/${at}` }));
let stub: StubService | undefined;
afterEach(async () => stub?.stop());

type Answer = (
  request: SeenRequest,
  count: number,
) => { content: unknown[]; nextId?: string | null } | number;

/** Pages of ten, `nextId` on each that has rows, as long as the test says nothing else. */
const honest: Answer = ({ query }) => {
  const at = query.startAfter === undefined ? 0 : rows.findIndex(({ id }) => id === query.startAfter) + 1;
  const content = rows.slice(at, at + 10);
  const last = content.at(-1);
  return { content, ...(last ? { nextId: last.id } : {}) };
};

async function follow(answer: Answer = honest) {
  const clock = new TurnedClock();
  stub = await startStub({
    clock,
    answer: (request, response, count) => {
      const page = answer(request, count);
      if (typeof page === "number") json(response, {}, page);
      else zipped(response, page);
    },
  });
  const { client, observed } = clientOf(stub.baseUrl, clock);
  const ids: string[] = [];
  const positions: ListPosition[] = [];
  const list = { endpoint: "/exchange-ticker", filters: { exchangeId: "x" } };
  const run = async () => {
    for await (const { page, position } of followList(client, list, readPage)) {
      ids.push(...page.content.map(({ id }) => id));
      positions.push(position);
    }
  };
  const failure = await clock.runUntil(
    run().then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  const events = observed.flatMap((each) => (each.kind === "walk" ? [each.event] : []));
  return { ids, positions, failure, events, queries: stub.requests.map(({ query }) => query) };
}

const all = rows.map(({ id }) => id);

describe("a list", () => {
  it("is followed wherever a nextId appears, with its filters on every page", async () => {
    const { ids, queries, positions } = await follow();
    expect(ids).toEqual(all);
    expect(queries.every(({ exchangeId }) => exchangeId === "x")).toBe(true);
    expect(queries.map(({ startAfter }) => startAfter)).toEqual([undefined, "id/9", "id/19", "id/24"]);
    expect(positions.map(({ last }) => last)).toEqual([false, false, false, true]);
  });

  it.each([null, "", undefined])("C6: ends with nextId %j", async (nextId) => {
    const { ids, queries } = await follow(() => ({
      content: rows,
      ...(nextId === undefined ? {} : { nextId }),
    }));
    expect(ids).toEqual(all);
    expect(queries).toHaveLength(1);
  });

  it("C2: ends where a cursor shows only its own record", async () => {
    const { ids, failure } = await follow(({ query }) => {
      const at = Math.max(
        0,
        rows.findIndex(({ id }) => id === query.startAfter),
      );
      const content = rows.slice(at, at + 10);
      return { content, nextId: content.at(-1)?.id ?? null };
    });
    expect(failure).toBeUndefined();
    expect(new Set(ids)).toEqual(new Set(all));
  });

  it("C4: a cycle is an error, noticed before a request is spent on it", async () => {
    const { failure, queries } = await follow((_, count) => ({
      content: rows.slice(0, 2),
      nextId: `c${count % 3}`,
    }));
    expect(failure).toMatchObject({ code: "pagination_cycle" });
    expect(queries).toHaveLength(4);
  });

  it("C4: ever fresh cursors are not followed for ever", async () => {
    let asked = 0;
    const client: Requests = {
      observe: () => {},
      request: (_, read) => {
        asked++;
        const bytes = new TextEncoder().encode(
          JSON.stringify({ content: [{ id: "a" }], nextId: `n${asked}` }),
        );
        return read({
          bytes,
          ageMs: 0,
          asOf: undefined,
          askedAt: 0,
        });
      },
    };
    const run = async () => {
      for await (const _ of followList(client, { endpoint: "/market" }, readPage));
    };
    await expect(run()).rejects.toMatchObject({ code: "pagination_cycle" });
    expect(asked).toBe(3000);
  });

  it("C5: empty pages are followed five times, then they are an error", async () => {
    const { failure, queries } = await follow((_, count) => ({ content: [], nextId: `c${count}` }));
    expect(failure).toMatchObject({ code: "pagination_cycle" });
    expect(queries).toHaveLength(6);
  });

  it.each([400, 404])("C9: a cursor that dies (%i) begins the list again, once", async (status) => {
    const healed = await follow((request, count) => (count === 3 ? status : honest(request, count)));
    expect(new Set(healed.ids)).toEqual(new Set(all));
    expect(healed.positions.at(-1)).toMatchObject({ last: true, restarted: true });
    expect(healed.events).toEqual(["restarted"]);
    await stub?.stop();
    const broken = await follow((request, count) =>
      request.query.startAfter === "id/19" ? status : honest(request, count),
    );
    expect(broken.failure).toMatchObject({ code: "pagination_cycle" });
  });
});
