import { exitCode, Failure } from "../../../src/model/failure.ts";
import type { Body } from "../../../src/model/response-body.ts";
import { formatInstant, parseInstant } from "../../../src/model/time.ts";
import type { Requests } from "../../../src/service/client/client.ts";
import type { Ask } from "../../../src/service/http/request.ts";
import { DeadCursor, type HistoryPage, type HistoryQuery, type HistoryRow, pageOf } from "./stub-history.ts";

/** What the specification leaves open, and what a service does for ever. */
export interface Nature {
  /** Rows on a page, at most. */
  readonly cap: number;
  readonly inclusiveCursor: boolean;
  readonly exclusiveBound: boolean;
  /** The last page names its own last row as the next. */
  readonly ownIdAtEnd: boolean;
  /** Sorts the other way, and then cuts off: what a timestamp asks for is the oldest of all. */
  readonly oldestFirst: boolean;
}

/** Answers that show by themselves that they are wrong, or do no harm. */
export const loudFaults = [
  "dead-cursor",
  "inclusive",
  "repeat-first",
  "reversed",
  "swapped-rows",
  "capped",
  "same-next",
  "old-next",
  "no-such-next",
  "previous-rows",
] as const;
/** Answers that are well-formed and say less than there is. */
export const quietFaults = ["empty-end", "short-end", "empty-page", "next-pages-rows"] as const;
export type Fault = (typeof loudFaults)[number] | (typeof quietFaults)[number] | "none";

type Answer = (query: HistoryQuery) => HistoryPage;

export function honestService(history: readonly HistoryRow[], nature: Nature): Answer {
  const listed = nature.oldestFirst ? history.toReversed() : history;
  return ({ timestamp = "", startAfter, size }) => {
    const bound = parseInstant(timestamp) ?? Number.NaN;
    let left = listed.filter(({ ts }) => (nature.exclusiveBound ? ts < bound : ts <= bound));
    if (startAfter !== undefined) {
      const at = listed.findIndex(({ id }) => id === startAfter);
      if (at < 0) throw new DeadCursor();
      left = listed.slice(nature.inclusiveCursor ? at : at + 1);
    }
    const most = Math.min(Number(size), nature.cap);
    const page = pageOf(left.slice(0, most));
    return left.length > most || nature.ownIdAtEnd ? page : { content: page.content };
  };
}

/** Tells no lie for long about what it has, but stumbles over its pages as the schedule says. */
export function stumblingService(
  history: readonly HistoryRow[],
  nature: Nature,
  schedule: readonly Fault[],
): { client: Requests; asked: () => number; struck: () => number } {
  const honest = honestService(history, nature);
  const cursors: string[] = [];
  let previous: HistoryPage["content"] = [];
  let count = 0;
  let struck = 0;

  const stumble = (query: HistoryQuery, fault: Fault): HistoryPage => {
    const byCursor = query.startAfter !== undefined;
    if (byCursor && fault === "dead-cursor") throw new DeadCursor();
    if (byCursor && fault === "repeat-first") return honest({ ...query, startAfter: undefined });
    if (fault === "empty-end") return { content: [] };
    const page = honest(fault === "capped" ? { ...query, size: "10" } : query);
    const { content, nextId } = page;
    const [first, second] = content;
    switch (fault) {
      case "short-end":
        return { content: content.slice(0, Math.ceil(content.length / 3)) };
      case "empty-page":
        return { ...page, content: [] };
      case "next-pages-rows": {
        const next = nextId ? honest({ ...query, startAfter: nextId }).content : [];
        return next.length > 0 ? { ...page, content: next } : page;
      }
      case "inclusive": {
        const row = history.find(({ id }) => id === query.startAfter);
        return row
          ? { ...page, content: [{ id: row.id, timestamp: formatInstant(row.ts) }, ...content] }
          : page;
      }
      case "previous-rows":
        return byCursor ? { ...page, content: previous } : page;
      case "reversed":
        return { ...page, content: content.toReversed() };
      case "swapped-rows":
        return first && second ? { ...page, content: [second, first, ...content.slice(2)] } : page;
      case "same-next":
        return nextId ? { ...page, nextId: query.startAfter ?? nextId } : page;
      case "old-next":
        return nextId ? { ...page, nextId: cursors[count % Math.max(1, cursors.length)] ?? nextId } : page;
      case "no-such-next":
        return nextId ? { ...page, nextId: `unknown-${count}` } : page;
      default:
        return page;
    }
  };

  const answer = (query: HistoryQuery): HistoryPage => {
    const fault = schedule[count++] ?? "none";
    if (fault !== "none") struck++;
    const page = stumble(query, fault);
    previous = page.content;
    if (page.nextId) cursors.push(page.nextId);
    return page;
  };

  const client: Requests = {
    observe: () => {},
    request: async <T>(ask: Ask, read: (body: Body) => Promise<T>) => {
      if (count > 500) throw new Error("the walk does not end");
      const given = Object.entries(ask.query ?? {}).filter(([, value]) => value !== undefined);
      try {
        const page = answer(Object.fromEntries(given.map(([name, value]) => [name, String(value)])));
        return read({
          bytes: new TextEncoder().encode(JSON.stringify(page)),
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
  return { client, asked: () => count, struck: () => struck };
}
