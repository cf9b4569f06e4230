import { type Conditions, type Fault, type HttpStrike, hashText, httpFault, type Options } from "../fault.ts";
import type { PlainResponse } from "../plain-response.ts";
import {
  changeList,
  changePage,
  formatFields,
  type JsonFields,
  type Page,
  pageAfter,
  parsePage,
  readField,
  readNextId,
  readTimeMs,
  replaceRows,
  sizeOf,
  TIMESTAMP,
  withNextId,
} from "./page.ts";
import { errorResponse, formatHttpDate, jsonResponse } from "./responses.ts";

type RequestEffect = (response: PlainResponse, strike: HttpStrike) => PlainResponse | undefined;
const requestFault = (name: string, conditions: Conditions, request: RequestEffect): Fault =>
  httpFault(name, conditions, { request });
const cursorFault = (name: string, conditions: Conditions, request: RequestEffect): Fault =>
  httpFault(name, conditions, { request, usesCursors: true });
const pageFault = (
  name: string,
  conditions: Conditions,
  page: (page: Page, strike: HttpStrike) => Page | undefined,
): Fault => httpFault(name, conditions, { page });

/** Responds like a stale cache: the page of `ageMs` ago, with its old Date and an Age. */
export function stale(ageMs: number, conditions: Conditions = {}): Fault {
  return requestFault("stale", conditions, (_, { fetch, query, nowMs }) => {
    const old = fetch(query, nowMs - ageMs);
    const headers = { date: formatHttpDate(nowMs - ageMs), age: String(Math.round(ageMs / 1000)) };
    return { ...old, headers: { ...old.headers, ...headers } };
  });
}

/** Responds with the records of `ms` ago, with the present Date: REST publishes late. */
export function lag(ms: number, conditions: Conditions = {}): Fault {
  return requestFault("lag", conditions, (response, { fetch, query, nowMs }) => {
    const { status, body } = fetch(query, nowMs - ms);
    return { ...response, status, body };
  });
}

/** Leaves out this share of the rows until they are `ms` old. Row and share alone decide, so each row appears once and stays. */
export function lateRows(ms: number, share: number, conditions: Conditions = {}): Fault {
  return requestFault("lateRows", conditions, (response, { nowMs }) => {
    const isLate = (row: JsonFields) => {
      const about = `late ${readField(row, /^indexId$/) ?? ""} ${readField(row, TIMESTAMP) ?? ""}`;
      return readTimeMs(row) > nowMs - ms && hashText(about) / 2 ** 32 < share;
    };
    return changePage(response, (page) => ({ ...page, rows: page.rows.filter((row) => !isLate(row)) }));
  });
}

/** Limits the rows per page, even if `size` is larger. */
export function sizeCap(rows: number, conditions: Conditions = {}): Fault {
  return httpFault("sizeCap", conditions, { maxRows: rows });
}

/** Responds with this status if `size` is larger. */
export function pageLimit(rows: number, options: Options<{ code?: number }> = {}): Fault {
  return requestFault("pageLimit", options, (_, { query, nowMs }) =>
    sizeOf(query) > rows ? errorResponse(options.code ?? 413, "the page is too large", nowMs) : undefined,
  );
}

/** Adds the newest `count` rows of other series below the page's first row. 0: ignores indexId. */
export function foreignRows(count: number, conditions: Conditions = {}): Fault {
  return requestFault("foreignRows", conditions, (response, { query, fetch }) => {
    const unfiltered = new Map([...query].filter(([name]) => name !== "indexId"));
    if (count === 0) return fetch(unfiltered);
    const ownId = JSON.stringify(query.get("indexId"));
    const isForeign = (row: JsonFields) => row.some(([name, value]) => name === "indexId" && value !== ownId);
    const findForeign = (source: PlainResponse) =>
      (parsePage(source)?.rows ?? []).filter(isForeign).slice(0, count);
    return changeList(response, (page) => {
      const fewRows = 2 * count + 2;
      // A few rows nearly always suffice, and the whole page takes long to render and parse.
      const few = new Map([...unfiltered, ["size", String(fewRows)]]);
      const newest = fewRows < sizeOf(query) ? findForeign(fetch(few)) : [];
      const foreign = newest.length === count ? newest : findForeign(fetch(unfiltered));
      return foreign.length === 0 ? undefined : { ...page, rows: page.rows.toSpliced(1, 0, ...foreign) };
    });
  });
}

/** Responds to a cursor with the page that returned that cursor. */
export function repeatPage(conditions: Conditions = {}): Fault {
  return cursorFault("repeatPage", conditions, (_, { query, memory, fetch }) => {
    const source = memory.cursorSources.get(query.get("startAfter") ?? "");
    return source && fetch(source);
  });
}

/** Swaps the rows of this page and the next. */
export function swapPages(conditions: Conditions = {}): Fault {
  return cursorFault("swapPages", conditions, (response, { query, memory, fetch }) => {
    const nextId = readNextId(response);
    if (nextId === undefined) return undefined;
    memory.swappedCursors.add(nextId);
    return replaceRows(response, fetch(pageAfter(query, nextId)));
  });
}

/** Rejects startAfter: 400, 404, or an empty last page. */
export function deadCursor(answer: 400 | 404 | "empty", conditions: Conditions = {}): Fault {
  return requestFault(`deadCursor ${answer}`, conditions, (_, { query, nowMs }) => {
    if (!query.has("startAfter")) return undefined;
    return answer === "empty"
      ? jsonResponse(200, '{"content":[]}', nowMs)
      : errorResponse(answer, "no such record", nowMs);
  });
}

/** Serves no records of [since, until), as if they had never been published; the page is filled with older ones. */
export function withdraw(since: string, until: string, conditions: Conditions = {}): Fault {
  const withdrawn = { from: Date.parse(since), to: Date.parse(until) };
  const isWithdrawn = (row: JsonFields) => {
    const ms = readTimeMs(row);
    return ms >= withdrawn.from && ms < withdrawn.to;
  };
  const fault = requestFault("withdraw", conditions, (response, { query, fetch }) =>
    changeList(response, (page) => {
      if (!page.rows.some(isWithdrawn)) return undefined;
      const size = sizeOf(query);
      const idOf = (row: JsonFields | undefined) => readField(row, /^id$/);
      const rows = page.rows.filter((row) => !isWithdrawn(row));
      let nextId = readNextId(response);
      while (nextId !== undefined && rows.length <= size) {
        const next = fetch(pageAfter(query, nextId));
        // With inclusive cursors a page begins with the cursor's own record.
        const older = (parsePage(next)?.rows ?? []).filter((row) => idOf(row) !== JSON.stringify(nextId));
        nextId = older.length === 0 ? undefined : readNextId(next);
        rows.push(...older.filter((row) => !isWithdrawn(row)));
      }
      const kept = rows.slice(0, size);
      return withNextId(
        { ...page, rows: kept },
        (rows.length > size ? idOf(kept.at(-1)) : undefined) ?? "null",
      );
    }),
  );
  return { ...fault, withdrawn };
}

/** Serves no records older than this time, as a service that has not loaded them yet: the page that reaches it is the last. */
export function begins(since: string, conditions: Conditions = {}): Fault {
  return requestFault("begins", conditions, (response) => cutOldRecords(response, Date.parse(since)));
}

/** Serves no records older than this, as a service that stores them for a shorter time. */
export function retention(ageMs: number, conditions: Conditions = {}): Fault {
  return requestFault("retention", conditions, (response, { nowMs }) =>
    cutOldRecords(response, nowMs - ageMs),
  );
}

function cutOldRecords(response: PlainResponse, oldestMs: number): PlainResponse | undefined {
  return changeList(response, (page) => {
    const rows = page.rows.filter((row) => !(readTimeMs(row) < oldestMs));
    return rows.length === page.rows.length ? undefined : withNextId({ ...page, rows }, "null");
  });
}

/**
 * Lists a second record of each moment behind the first, with another id and other figures; at most `maxRows` to a page, so
 * that the two may be on two pages.
 */
export function secondRecords(maxRows = 2000, conditions: Conditions = {}): Fault {
  return requestFault("secondRecords", conditions, (_, { query, fetch, memory }) => {
    const cursor = query.get("startAfter") ?? "";
    const response = fetch(cursor === "" ? query : pageAfter(query, cursor.replace(PREDECESSOR, "")));
    return changeList(response, (page) => {
      const split = memory.splitPairs.get(cursor);
      const rows = [...(split ? [split] : []), ...page.rows.flatMap((row) => [row, toPredecessor(row)])];
      const hasPages = query.has("size");
      const kept = hasPages ? rows.slice(0, Math.min(maxRows, sizeOf(query))) : rows;
      const lastId = readField(kept.at(-1), /^id$/);
      const isLast = kept.length === rows.length && readNextId(response) === undefined;
      if (!hasPages || lastId === undefined || isLast) return { ...page, rows: kept };
      const last: string = JSON.parse(lastId);
      if (!last.endsWith(PREDECESSOR)) memory.splitPairs.set(last, toPredecessor(kept.at(-1) ?? []));
      return withNextId({ ...page, rows: kept }, lastId);
    });
  });
}

/** At the end of the id of a record that another one has replaced. */
const PREDECESSOR = "-replaced";

/** Another record of the same moment, with other figures. */
function toPredecessor(row: JsonFields): JsonFields {
  return row.map(([name, value]) => {
    if (name === "id") return [name, value.replace(/"$/, `${PREDECESSOR}"`)];
    return [name, /^"\d+\.\d+"$/.test(value) ? value.replace(/"$/, '7"') : value];
  });
}

/** Sets nextId to the cursor of an earlier page, so that the walk repeats `length` pages. 1: the same for ever. */
export function cycle(length: number, conditions: Conditions = {}): Fault {
  return cursorFault("cycle", conditions, (response, { query, memory }) => {
    let target = query.get("startAfter");
    for (let step = 1; step < length && target !== undefined; step++)
      target = memory.cursorSources.get(target)?.get("startAfter");
    // While the walk is shorter than the cycle, the page stays as it is.
    if (target === undefined) return undefined;
    return changePage(response, (page) => withNextId(page, JSON.stringify(target)));
  });
}

/** Says that this page is the last. */
export function nextId(is: "null" | "empty" | "absent", conditions: Conditions = {}): Fault {
  const json = { null: "null", empty: '""', absent: undefined }[is];
  return pageFault(`nextId ${is}`, conditions, (page) => withNextId(page, json));
}

/** Sends no rows, but the correct nextId. */
export const emptyPage = (conditions: Conditions = {}): Fault =>
  pageFault("emptyPage", conditions, (page) => ({ ...page, rows: [] }));

/** Sends the rows in another order than newest first. */
export function order(is: "ascending" | "shuffled", conditions: Conditions = {}): Fault {
  return pageFault(`order ${is}`, conditions, (page, { chance }) => {
    if (is === "ascending") return { ...page, rows: page.rows.toReversed() };
    const weighed = page.rows.map((row, at) => ({ row, weight: chance("order", at) }));
    return { ...page, rows: weighed.sort((left, right) => left.weight - right.weight).map(({ row }) => row) };
  });
}

/** Drops this share of the rows. */
export function shrink(by = 0.9, conditions: Conditions = {}): Fault {
  return pageFault("shrink", conditions, (page) => ({
    ...page,
    rows: page.rows.slice(0, Math.ceil(page.rows.length * (1 - by))),
  }));
}

/** Sends a row twice. */
export function duplicateRow(row: "first" | "last", conditions: Conditions = {}): Fault {
  return pageFault(`duplicateRow ${row}`, conditions, (page) => {
    const { rows } = page;
    return { ...page, rows: row === "first" ? [...rows.slice(0, 1), ...rows] : [...rows, ...rows.slice(-1)] };
  });
}

/** Repeats the rows until the body has this size. */
export function bigBody(megabytes: number, conditions: Conditions = {}): Fault {
  return pageFault("bigBody", conditions, (page) => {
    // Copies of an empty page never reach the size.
    if (page.rows.length === 0) return page;
    const bytes = page.rows.reduce((sum, row) => sum + formatFields(row).length + 1, 0);
    const copies = Math.ceil((megabytes * 2 ** 20) / bytes);
    return { ...page, rows: Array.from({ length: copies }, () => page.rows).flat() };
  });
}

/** Adds a property with this nesting depth. */
export function deepNesting(depth = 100_000, conditions: Conditions = {}): Fault {
  return pageFault("deepNesting", conditions, (page) => ({
    ...page,
    envelope: [...page.envelope, ["nested", "[".repeat(depth) + "]".repeat(depth)]],
  }));
}
