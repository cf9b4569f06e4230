import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Body } from "../../src/model/body.ts";
import { exitCode, Failure } from "../../src/model/failure.ts";
import { type Micros, parseInstant } from "../../src/model/instant.ts";
import { walkBackwards } from "../../src/service/backward-walk.ts";
import type { Ask } from "../../src/service/endpoints.ts";
import type { Requests } from "../../src/service/service-client.ts";
import { readPage } from "./client-under-test.ts";
import { DeadCursor, type HistoryPage, type HistoryRow, honestPage } from "./stub-history.ts";

const noon = parseInstant("2026-03-01T12:00:00Z") as Micros;
const period = 30_000_000;

const faults = [
  "none",
  "dead-cursor",
  "silent-cursor",
  "inclusive",
  "repeat-first",
  "reversed",
  "swapped",
  "capped",
  "same-next",
  "old-next",
  "no-such-next",
  "next-pages-rows",
  "previous-rows",
] as const;
type Fault = (typeof faults)[number];

/** A service that tells no lie about what it has, but stumbles over its own pages as the schedule says. */
function stumbling(history: readonly HistoryRow[], schedule: readonly Fault[]) {
  const cursors: string[] = [];
  let previous: HistoryPage["content"] = [];
  let count = 0;
  const answer = (query: Record<string, string | undefined>): HistoryPage => {
    const fault = schedule[count++] ?? "none";
    const byCursor = query.startAfter !== undefined;
    if (byCursor && fault === "dead-cursor") throw new DeadCursor();
    if (byCursor && fault === "silent-cursor") return { content: [] };
    if (byCursor && fault === "repeat-first") return honestPage(history, { ...query, startAfter: undefined });
    const page = honestPage(history, fault === "capped" ? { ...query, size: "10" } : query);
    if (byCursor && fault === "inclusive") {
      const row = history.find(({ id }) => id === query.startAfter);
      if (row) page.content.unshift({ id: row.id, timestamp: new Date(row.ts / 1000).toISOString() });
    }
    if (byCursor && fault === "next-pages-rows" && page.nextId) {
      const next = honestPage(history, { ...query, startAfter: page.nextId });
      if (next.content.length > 0) page.content = next.content;
    }
    if (byCursor && fault === "previous-rows") page.content = previous;
    previous = page.content;
    if (fault === "reversed") page.content.reverse();
    const [first, next] = page.content;
    if (fault === "swapped" && first && next) page.content.splice(0, 2, next, first);
    if (page.nextId && fault === "same-next") page.nextId = query.startAfter ?? page.nextId;
    if (page.nextId && fault === "old-next")
      page.nextId = cursors[count % Math.max(1, cursors.length)] ?? page.nextId;
    if (page.nextId && fault === "no-such-next") page.nextId = `unknown-${count}`;
    if (page.nextId) cursors.push(page.nextId);
    return page;
  };
  const client: Requests = {
    observe: () => {},
    request: async <T>(ask: Ask, read: (body: Body) => Promise<T>) => {
      if (count > 500) throw new Error("the walk does not end");
      try {
        const query = Object.fromEntries(
          Object.entries(ask.query ?? {}).map(([name, value]) => [
            name,
            value === undefined ? undefined : String(value),
          ]),
        );
        const bytes = new TextEncoder().encode(JSON.stringify(answer(query)));
        return read({
          bytes,
          encoding: "identity",
          serverTime: undefined,
          ageMs: 0,
          asOf: undefined,
          askedAt: 0,
        });
      } catch (error) {
        if (!(error instanceof DeadCursor)) throw error;
        throw new Failure("gone", { family: "operator", code: "not_found", exit: exitCode.incomplete });
      }
    },
  };
  return { client, asked: () => count };
}

const histories = fc.record({
  /** How many rows share each moment. */
  ties: fc.constantFrom(1, 3).chain((most) => fc.array(fc.integer({ min: 0, max: most }), { maxLength: 80 })),
  holeFrom: fc.integer({ min: 0, max: 90 }),
  /** A server that ignores it gives ten. */
  size: fc.integer({ min: 11, max: 17 }),
  schedule: fc.array(fc.constantFrom(...faults), { maxLength: 60 }),
});

describe("a walk over a service that stumbles", () => {
  it("ends, and proves nothing that it has not been given", async () => {
    const met = { served_out: 0, reached: 0, failed: 0 };
    await fc.assert(
      fc.asyncProperty(histories, async ({ ties, holeFrom, size, schedule }) => {
        const history = ties.flatMap((many, at) =>
          Array.from({ length: many }, (_, n) => ({ id: `${at}-${n}`, ts: noon - (at + 1) * period })),
        );
        const from = noon - holeFrom * period;
        const { client, asked } = stumbling(history, schedule);
        const given = new Set<string>();
        try {
          // One index has one row at a time; all of them together tie.
          const filters = ties.some((many) => many > 1) ? {} : { indexId: "one" };
          const walk = { endpoint: "/index-ticker", filters, from, until: noon, size } as const;
          for await (const { page, position } of walkBackwards(client, walk, readPage)) {
            for (const { id } of page.content) given.add(id);
            if (!page.descending) continue;
            const provenFrom = position.end
              ? from
              : page.oldest === undefined
                ? position.ceiling
                : page.oldest + 1;
            const unseen = history.filter(
              ({ id, ts }) => ts >= provenFrom && ts < position.ceiling && !given.has(id),
            );
            expect(unseen).toEqual([]);
            if (position.end) met[position.end]++;
          }
        } catch (error) {
          expect(error).toMatchObject({ code: "pagination_cycle" });
          met.failed++;
        }
        expect(asked()).toBeLessThan(200);
      }),
      { numRuns: 1500 },
    );
    expect(Math.min(met.served_out, met.reached)).toBeGreaterThan(100);
  });
});
