import { exitCode, Failure } from "../../../src/model/failure.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { formatTimestamp, parseTimestamp } from "../../../src/model/time.ts";
import { Parking } from "../../../src/service/auth/parking.ts";
import type { RequestSender } from "../../../src/service/client/client.ts";
import type { ServiceRequest } from "../../../src/service/http/request.ts";
import {
  type HistoryPage,
  type HistoryQuery,
  type HistoryRow,
  toHistoryPage,
  UnknownCursorError,
} from "./stub-history.ts";

/** Choices that the specification leaves open; a service never changes them. */
export interface PagingBehaviour {
  /** The service never returns more rows per page. */
  readonly maxPageSize: number;
  readonly isCursorInclusive: boolean;
  readonly isBoundExclusive: boolean;
  /** The last page has a `nextId`: the id of its own last row. */
  readonly hasNextIdAtEnd: boolean;
  /** Sorts oldest first before it truncates: a request by timestamp returns the oldest rows of all. */
  readonly isOldestFirst: boolean;
}

/** Faults that a client can detect, or that do no harm. */
export const visibleFaults = [
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
/** Well-formed pages that omit rows. */
export const silentFaults = ["empty-end", "short-end", "empty-page", "next-pages-rows"] as const;
export type PagingFault = (typeof visibleFaults)[number] | (typeof silentFaults)[number] | "none";

type PageHandler = (query: HistoryQuery) => HistoryPage;

export function correctService(history: readonly HistoryRow[], behaviour: PagingBehaviour): PageHandler {
  const sorted = behaviour.isOldestFirst ? history.toReversed() : history;
  return ({ timestamp = "", startAfter, size }) => {
    const bound = parseTimestamp(timestamp) ?? Number.NaN;
    let remaining = sorted.filter(({ ts }) => (behaviour.isBoundExclusive ? ts < bound : ts <= bound));
    if (startAfter !== undefined) {
      const at = sorted.findIndex(({ id }) => id === startAfter);
      if (at < 0) throw new UnknownCursorError();
      remaining = sorted.slice(behaviour.isCursorInclusive ? at : at + 1);
    }
    const pageSize = Math.min(Number(size), behaviour.maxPageSize);
    const page = toHistoryPage(remaining.slice(0, pageSize));
    return remaining.length > pageSize || behaviour.hasNextIdAtEnd ? page : { content: page.content };
  };
}

/** Applies one scheduled fault per request; after the schedule it behaves correctly. */
export function faultyService(
  history: readonly HistoryRow[],
  behaviour: PagingBehaviour,
  schedule: readonly PagingFault[],
): { client: RequestSender; requestCount: () => number; faultCount: () => number } {
  const correct = correctService(history, behaviour);
  const cursors: string[] = [];
  let previous: HistoryPage["content"] = [];
  let count = 0;
  let faultCount = 0;

  const applyFault = (query: HistoryQuery, fault: PagingFault): HistoryPage => {
    const hasCursor = query.startAfter !== undefined;
    if (hasCursor && fault === "dead-cursor") throw new UnknownCursorError();
    if (hasCursor && fault === "repeat-first") return correct({ ...query, startAfter: undefined });
    if (fault === "empty-end") return { content: [] };
    const page = correct(fault === "capped" ? { ...query, size: "10" } : query);
    const { content, nextId } = page;
    const [first, second] = content;
    switch (fault) {
      case "short-end":
        return { content: content.slice(0, Math.ceil(content.length / 3)) };
      case "empty-page":
        return { ...page, content: [] };
      case "next-pages-rows": {
        const next = nextId ? correct({ ...query, startAfter: nextId }).content : [];
        return next.length > 0 ? { ...page, content: next } : page;
      }
      case "inclusive": {
        const row = history.find(({ id }) => id === query.startAfter);
        return row
          ? { ...page, content: [{ id: row.id, timestamp: formatTimestamp(row.ts) }, ...content] }
          : page;
      }
      case "previous-rows":
        return hasCursor ? { ...page, content: previous } : page;
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
    if (fault !== "none") faultCount++;
    const page = applyFault(query, fault);
    previous = page.content;
    if (page.nextId) cursors.push(page.nextId);
    return page;
  };

  const client: RequestSender = {
    onEvent: () => {},
    parking: new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0),
    request: async <T>(request: ServiceRequest, read: (body: ResponseBody) => Promise<T>) => {
      if (count > 500) throw new Error("the walk does not end");
      const params = Object.entries(request.query ?? {}).filter(([, value]) => value !== undefined);
      try {
        const page = answer(Object.fromEntries(params.map(([name, value]) => [name, String(value)])));
        return read({
          bytes: new TextEncoder().encode(JSON.stringify(page)),
          ageMs: 0,
          asOf: undefined,
          requestedAt: 0,
        });
      } catch (error) {
        if (!(error instanceof UnknownCursorError)) throw error;
        throw new Failure("gone", { family: "operator", code: "not_found", exit: exitCode.incomplete });
      }
    },
  };
  return { client, requestCount: () => count, faultCount: () => faultCount };
}
