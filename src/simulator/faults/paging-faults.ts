import { hashText } from "../market/hash.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import { formatHttpDate, plainErrorResponse, plainJsonResponse } from "./body-faults.ts";
import {
  appliesToRow,
  applyRecordFault,
  formatJsonFields,
  type JsonFields,
  parsePreservingDigits,
  toJsonFields,
} from "./record-faults.ts";
import type { TriggeredFault } from "./script.ts";

type Query = ReadonlyMap<string, string>;

/** A request that may be for a page. */
export interface PageRequest {
  readonly path: string;
  readonly query: Query;
  readonly nowMs: number;
  /** The response without faults to the same path with another query, or at another time. */
  fetch(query: Query, nowMs?: number): PlainResponse;
}

/** A parsed JSON response. A list has rows in an envelope; a single record is one row without an envelope. */
interface Page {
  isList: boolean;
  envelope: JsonFields;
  rows: JsonFields[];
}

/** Applies a payload or paging fault. Undefined when it is another fault or the response is not a page. */
export function applyPageFault(fault: TriggeredFault, response: PlainResponse): PlainResponse | undefined {
  const applyToPage = PAGE_FAULTS[fault.line.definition.name];
  // Asks with an empty record first: parsing the real page takes longer than everything else.
  const changesRows = applyRecordFault(fault, []) !== undefined;
  if (!applyToPage && !changesRows) return undefined;
  return changePage(response, (page) => {
    const changed = applyToPage?.(page, fault);
    if (changed || !changesRows) return changed;
    const rows = page.rows.map((row, at) =>
      appliesToRow(fault, at, page.rows.length) ? (applyRecordFault(fault, row) ?? row) : row,
    );
    return { ...page, rows };
  });
}

/** Undefined when the response is not a page, or the page stays as it is. */
function changePage(
  response: PlainResponse,
  change: (page: Page) => Page | undefined,
): PlainResponse | undefined {
  const page = parsePage(response);
  const changed = page && change(page);
  return changed && replacePage(response, changed);
}

/** The same for lists only. */
function changeList(response: PlainResponse, change: (page: Page) => Page | undefined) {
  return changePage(response, (page) => (page.isList ? change(page) : undefined));
}

/** `json`: the new value; undefined removes the property. */
function withNextId(page: Page, json: string | undefined): Page {
  const others = page.envelope.filter(([name]) => name !== "nextId");
  return { ...page, envelope: json === undefined ? others : [...others, ["nextId", json]] };
}

/** The value of a property as JSON. */
function readField(row: JsonFields | undefined, pattern: RegExp): string | undefined {
  return row?.find(([name]) => pattern.test(name))?.[1];
}

const pageAfter = (query: Query, id: string): Query => new Map([...query, ["startAfter", id]]);
const sizeOf = (query: Query) => Number(query.get("size") ?? 10);

const PAGE_FAULTS: Record<string, (page: Page, fault: TriggeredFault) => Page | undefined> = {
  "next-id"(page, { line }) {
    const is = line.textOf("is");
    if (is === "same" || is === "cycle") return undefined;
    return withNextId(page, ({ null: "null", empty: '""' } as Record<string, string>)[is]);
  },
  "empty-page": (page) => ({ ...page, rows: [] }),
  order(page, { line, chance }) {
    if (line.textOf("is") === "ascending") return { ...page, rows: page.rows.toReversed() };
    return { ...page, rows: sortByWeight(page.rows, (at) => chance("order", at)) };
  },
  shrink: (page, { line }) => ({
    ...page,
    rows: page.rows.slice(0, Math.ceil(page.rows.length * (1 - line.numberOf("by")))),
  }),
  "duplicate-row"(page, { line }) {
    const { rows } = page;
    const isFirst = line.textOf("row") === "first";
    return { ...page, rows: isFirst ? [...rows.slice(0, 1), ...rows] : [...rows, ...rows.slice(-1)] };
  },
  "big-body"(page, { line }) {
    // Copies of an empty page never reach the size.
    if (page.rows.length === 0) return page;
    const bytes = page.rows.reduce((sum, row) => sum + formatJsonFields(row).length + 1, 0);
    const copies = Math.ceil((line.numberOf("mb") * 2 ** 20) / bytes);
    return { ...page, rows: Array.from({ length: copies }, () => page.rows).flat() };
  },
  "deep-nesting"(page, { line }) {
    const depth = line.numberOf("depth");
    return { ...page, envelope: [...page.envelope, ["nested", "[".repeat(depth) + "]".repeat(depth)]] };
  },
  drop(page, { line }) {
    const envelope = page.envelope.filter(([name]) => name !== line.textOf("field"));
    return envelope.length < page.envelope.length ? { ...page, envelope } : undefined;
  },
};

function sortByWeight<T>(items: T[], weight: (at: number) => number): T[] {
  return items
    .map((item, at) => ({ item, weight: weight(at) }))
    .sort((left, right) => left.weight - right.weight)
    .map(({ item }) => item);
}

/** Faults that respond to another request than the received one. */
export class PagingFaults {
  /** By cursor: the query of the page that returned the cursor, for faults that serve an earlier page again. */
  readonly #cursorSources = new Map<string, Query>();
  /** Cursors whose rows were already served with the previous page. */
  readonly #swappedCursors = new Set<string>();
  /** By cursor: the second record of its moment, which the page with the first one left out. */
  readonly #splitPairs = new Map<string, JsonFields>();

  recordCursor(query: Query, response: PlainResponse): void {
    const nextId = readNextId(response);
    if (nextId !== undefined) this.#cursorSources.set(nextId, query);
  }

  /** Serves the second page of a swap with the rows of the first. The trigger on the first page covers both. */
  completeSwap({ path, query, fetch }: PageRequest, response: PlainResponse): PlainResponse | undefined {
    const cursor = query.get("startAfter") ?? "";
    const source = this.#cursorSources.get(cursor);
    if (!source || !this.#swappedCursors.has(`${path} ${cursor}`)) return undefined;
    return replaceRows(response, fetch(source));
  }

  /** The response to the changed request; undefined when the fault does not change the request. */
  applyRequestFault(
    { line }: TriggeredFault,
    { path, query, nowMs, fetch }: PageRequest,
    response: PlainResponse,
  ) {
    const cursor = query.get("startAfter");
    const source = this.#cursorSources.get(cursor ?? "");
    switch (line.definition.name) {
      case "stale": {
        const earlierMs = nowMs - line.numberOf("age");
        const old = fetch(query, earlierMs);
        return {
          ...old,
          headers: {
            ...old.headers,
            date: formatHttpDate(earlierMs),
            age: String(Math.round((nowMs - earlierMs) / 1000)),
          },
        };
      }
      case "lag": {
        const { status, body } = fetch(query, nowMs - line.numberOf("by"));
        return { ...response, status, body };
      }
      case "late-rows":
        return withoutLateRows(response, nowMs - line.numberOf("by"), line.numberOf("share"));
      case "page-limit":
        return sizeOf(query) > line.numberOf("rows")
          ? plainErrorResponse(line.numberOf("code"), "the page is too large", nowMs)
          : undefined;
      case "foreign-rows": {
        const unfiltered = new Map([...query].filter(([name]) => name !== "indexId"));
        const count = line.numberOf("rows");
        return count === 0
          ? fetch(unfiltered)
          : insertForeignRows(response, query, count, (size) =>
              fetch(size === undefined ? unfiltered : new Map([...unfiltered, ["size", size]])),
            );
      }
      case "repeat-page":
        return source && fetch(source);
      case "swap-pages": {
        const nextId = readNextId(response);
        if (nextId === undefined) return undefined;
        this.#swappedCursors.add(`${path} ${nextId}`);
        return replaceRows(response, fetch(pageAfter(query, nextId)));
      }
      case "dead-cursor": {
        if (cursor === undefined) return undefined;
        const status = Number(line.textOf("answer"));
        return Number.isNaN(status)
          ? plainJsonResponse(200, '{"content":[]}', nowMs)
          : plainErrorResponse(status, "no such record", nowMs);
      }
      case "withdraw":
        return withdrawRecords(query, response, fetch, line.textOf("since"), line.textOf("until"));
      case "begins":
        return cutOldRecords(response, Date.parse(line.textOf("since")));
      case "second-records":
        return this.#listTwice(query, line.numberOf("rows"), fetch);
      case "retention":
        return cutOldRecords(response, nowMs - line.numberOf("age"));
      case "next-id":
        if (line.textOf("is") === "same") return this.#setCycleCursor(1, cursor, response);
        if (line.textOf("is") !== "cycle") return undefined;
        return this.#setCycleCursor(line.numberOf("length"), cursor, response);
      default:
        return undefined;
    }
  }

  /** Lists the predecessor of each record behind it; the two may be on two pages. */
  #listTwice(query: Query, maxRows: number, fetchPage: PageRequest["fetch"]): PlainResponse | undefined {
    const cursor = query.get("startAfter") ?? "";
    const response = fetchPage(cursor === "" ? query : pageAfter(query, cursor.replace(PREDECESSOR, "")));
    return changeList(response, (page) => {
      const split = this.#splitPairs.get(cursor);
      const rows = [...(split ? [split] : []), ...page.rows.flatMap((row) => [row, toPredecessor(row)])];
      const hasPages = query.has("size");
      const kept = hasPages ? rows.slice(0, Math.min(maxRows, sizeOf(query))) : rows;
      const lastId = readField(kept.at(-1), /^id$/);
      const isLast = kept.length === rows.length && readNextId(response) === undefined;
      if (!hasPages || lastId === undefined || isLast) return { ...page, rows: kept };
      const last: string = JSON.parse(lastId);
      if (!last.endsWith(PREDECESSOR)) this.#splitPairs.set(last, toPredecessor(kept.at(-1) ?? []));
      return withNextId({ ...page, rows: kept }, lastId);
    });
  }

  /** Sets nextId to a cursor of an earlier page, so that the walk repeats `length` pages. */
  #setCycleCursor(
    length: number,
    cursor: string | undefined,
    response: PlainResponse,
  ): PlainResponse | undefined {
    let target = cursor;
    for (let step = 1; step < length && target !== undefined; step++)
      target = this.#cursorSources.get(target)?.get("startAfter");
    // The walk is still shorter than the cycle: leave this page unchanged.
    if (target === undefined) return response;
    return changePage(response, (page) => withNextId(page, JSON.stringify(target))) ?? response;
  }
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

/** Adds the newest `count` rows of other series than the requested one, below the page's first row. */
function insertForeignRows(
  response: PlainResponse,
  query: Query,
  count: number,
  fetchUnfiltered: (size?: string) => PlainResponse,
): PlainResponse | undefined {
  const ownId = JSON.stringify(query.get("indexId"));
  const isForeign = (row: JsonFields) => row.some(([name, value]) => name === "indexId" && value !== ownId);
  const findForeign = (source: PlainResponse) =>
    (parsePage(source)?.rows ?? []).filter(isForeign).slice(0, count);
  return changeList(response, (page) => {
    const fewRows = 2 * count + 2;
    // A few rows nearly always suffice, and the whole page takes long to render and parse.
    const newest = fewRows < sizeOf(query) ? findForeign(fetchUnfiltered(String(fewRows))) : [];
    const foreign = newest.length === count ? newest : findForeign(fetchUnfiltered());
    return foreign.length === 0 ? undefined : { ...page, rows: page.rows.toSpliced(1, 0, ...foreign) };
  });
}

/** The query of a service that serves at most `maxRows` rows per page. */
export function capSize(query: Query, maxRows: number): Query {
  return new Map([...query, ["size", String(Math.min(sizeOf(query), maxRows))]]);
}

const TIMESTAMP = /^(startT|t)imestamp$/;

/** NaN without a timestamp. */
function readTimeMs(row: JsonFields): number {
  return Date.parse((readField(row, TIMESTAMP) ?? "").replaceAll('"', ""));
}

/** Ends the history at `oldestMs`: the page that reaches it is the last. */
function cutOldRecords(response: PlainResponse, oldestMs: number): PlainResponse | undefined {
  return changeList(response, (page) => {
    const rows = page.rows.filter((row) => !(readTimeMs(row) < oldestMs));
    return rows.length === page.rows.length ? undefined : withNextId({ ...page, rows }, "null");
  });
}

/** Leaves out the withdrawn records and fills the page with older ones. */
function withdrawRecords(
  query: Query,
  response: PlainResponse,
  fetch: PageRequest["fetch"],
  since: string,
  until: string,
): PlainResponse | undefined {
  const isWithdrawn = (row: JsonFields) => {
    const ms = readTimeMs(row);
    return ms >= Date.parse(since) && ms < Date.parse(until);
  };
  return changeList(response, (page) => {
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
  });
}

/** Reads nextId from the end of the body, where the simulator puts it. Cheaper than parsing every page. */
function readNextId({ status, body }: PlainResponse): string | undefined {
  if (status !== 200) return undefined;
  const tail = Buffer.from(body.subarray(-2048)).toString();
  const found = /"nextId":("(?:[^"\\]|\\.)+")\}$/.exec(tail)?.[1];
  return found === undefined ? undefined : JSON.parse(found);
}

/** Undefined for a body that is no page, or that another fault has nested too deeply to be read and written. */
function parsePage(response: PlainResponse): Page | undefined {
  if (response.status !== 200) return undefined;
  try {
    return toPage(parsePreservingDigits(Buffer.from(response.body).toString()));
  } catch {
    return undefined;
  }
}

function toPage(json: unknown): Page | undefined {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  if (!("content" in json)) return { isList: false, envelope: [], rows: [toJsonFields(json)] };
  if (!Array.isArray(json.content)) return undefined;
  const rows = json.content.map((row: unknown) =>
    toJsonFields(typeof row === "object" && row !== null ? row : {}),
  );
  return { isList: true, envelope: toJsonFields(json).filter(([name]) => name !== "content"), rows };
}

/** Hides a share of the rows newer than `publishedMs`. Row and share alone decide, so each row appears once and stays. */
function withoutLateRows(
  response: PlainResponse,
  publishedMs: number,
  share: number,
): PlainResponse | undefined {
  const isLate = (row: JsonFields) => {
    const about = `late ${readField(row, /^indexId$/) ?? ""} ${readField(row, TIMESTAMP) ?? ""}`;
    return readTimeMs(row) > publishedMs && hashText(about) / 2 ** 32 < share;
  };
  return changePage(response, (page) => ({ ...page, rows: page.rows.filter((row) => !isLate(row)) }));
}

function replaceRows(response: PlainResponse, source: PlainResponse): PlainResponse | undefined {
  const rows = parsePage(source)?.rows;
  return rows && changePage(response, (page) => ({ ...page, rows }));
}

function replacePage(response: PlainResponse, { isList, envelope, rows }: Page): PlainResponse {
  const single = rows[0] ?? [];
  const text = isList
    ? formatJsonFields([["content", `[${rows.map(formatJsonFields).join(",")}]`], ...envelope])
    : formatJsonFields([...single, ...envelope]);
  return { ...response, body: Buffer.from(text) };
}
