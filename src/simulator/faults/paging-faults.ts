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

/** Asks the sane server the same path with another query, or as of another moment. */
export type FetchOriginal = (query: Query, at: number) => PlainResponse;

/** A JSON answer taken apart: a list has rows and an envelope around them, a single record is one row without. */
interface Page {
  isList: boolean;
  envelope: JsonFields;
  rows: JsonFields[];
}

/** The page as a payload or paging fault leaves it, or undefined when the word is neither or the answer is no page. */
export function applyPageFault(strike: TriggeredFault, answer: PlainResponse): PlainResponse | undefined {
  const page = parsePage(answer);
  const mangled = page && (applyFaultToPage(strike, page) ?? applyFaultToRows(strike, page));
  return mangled && replacePage(answer, mangled);
}

function applyFaultToRows(strike: TriggeredFault, page: Page): Page | undefined {
  let known = false;
  const rows = page.rows.map((row, at) => {
    const mangled = applyRecordFault(strike, row);
    known ||= mangled !== undefined;
    return mangled !== undefined && appliesToRow(strike, at, page.rows.length) ? mangled : row;
  });
  return known ? { ...page, rows } : undefined;
}

function applyFaultToPage({ line, chance }: TriggeredFault, page: Page): Page | undefined {
  const { rows, envelope } = page;
  switch (line.definition.name) {
    case "next-id": {
      const is = line.textOf("is");
      if (is === "same" || is === "cycle") return undefined;
      const value = ({ null: "null", empty: '""' } as Record<string, string>)[is];
      const others = envelope.filter(([name]) => name !== "nextId");
      return { ...page, envelope: value === undefined ? others : [...others, ["nextId", value]] };
    }
    case "empty-page":
      return { ...page, rows: [] };
    case "order":
      if (line.textOf("is") === "ascending") return { ...page, rows: rows.toReversed() };
      return { ...page, rows: sortByWeight(rows, (at) => chance("order", at)) };
    case "shrink":
      return { ...page, rows: rows.slice(0, Math.ceil(rows.length * (1 - line.numberOf("by")))) };
    case "duplicate-row": {
      const row = line.textOf("row") === "first" ? rows.slice(0, 1) : rows.slice(-1);
      return { ...page, rows: line.textOf("row") === "first" ? [...row, ...rows] : [...rows, ...row] };
    }
    case "big-body": {
      // Nothing, however often, is still nothing.
      if (rows.length === 0) return page;
      const bytes = rows.reduce((sum, row) => sum + formatJsonFields(row).length + 1, 0);
      const copies = Math.ceil((line.numberOf("mb") * 2 ** 20) / bytes);
      return { ...page, rows: Array.from({ length: copies }, () => rows).flat() };
    }
    case "deep-nesting": {
      const depth = line.numberOf("depth");
      return { ...page, envelope: [...envelope, ["nested", "[".repeat(depth) + "]".repeat(depth)]] };
    }
    case "drop": {
      const others = envelope.filter(([name]) => name !== line.textOf("field"));
      return others.length < envelope.length ? { ...page, envelope: others } : undefined;
    }
    default:
      return undefined;
  }
}

function sortByWeight<T>(items: T[], weight: (at: number) => number): T[] {
  return items
    .map((item, at) => ({ item, weight: weight(at) }))
    .sort((left, right) => left.weight - right.weight)
    .map(({ item }) => item);
}

/** Faults that answer another question than the one asked. */
export class PagingFaults {
  readonly #refreshMs: number;
  /** Which request gave a cursor: what a repeated page and a cycle lead back to. */
  readonly #cursorSources = new Map<string, Query>();
  /** Cursors whose page gave its rows to the request before. */
  readonly #swappedCursors = new Set<string>();

  constructor(refreshMs: number) {
    this.#refreshMs = refreshMs;
  }

  recordCursor(query: Query, answer: PlainResponse): void {
    const nextId = readNextId(answer);
    if (nextId !== undefined) this.#cursorSources.set(nextId, query);
  }

  /** The second half of a swap needs no strike of its own: the first half has taken its rows. */
  completeSwap(
    path: string,
    query: Query,
    now: number,
    ask: FetchOriginal,
    answer: PlainResponse,
  ): PlainResponse | undefined {
    const cursor = query.get("startAfter") ?? "";
    const giver = this.#cursorSources.get(cursor);
    if (!giver || !this.#swappedCursors.has(`${path} ${cursor}`)) return undefined;
    return replaceRows(answer, ask(giver, now));
  }

  /** The answer to another question, or undefined when this strike asks none. */
  applyRequestFault(
    { line }: TriggeredFault,
    path: string,
    query: Query,
    now: number,
    ask: FetchOriginal,
    answer: PlainResponse,
  ) {
    const cursor = query.get("startAfter");
    const giver = this.#cursorSources.get(cursor ?? "");
    switch (line.definition.name) {
      case "stale": {
        const then = now - line.numberOf("age");
        const old = ask(query, then);
        return {
          ...old,
          headers: {
            ...old.headers,
            date: formatHttpDate(then),
            age: String(Math.round((now - then) / 1000)),
          },
        };
      }
      case "size-cap": {
        const size = Math.min(Number(query.get("size") ?? 10), line.numberOf("rows"));
        return ask(new Map([...query, ["size", String(size)]]), now);
      }
      case "foreign-rows":
        return ask(new Map([...query].filter(([name]) => name !== "indexId")), now);
      case "repeat-page":
        return giver && ask(giver, now);
      case "swap-pages": {
        const nextId = readNextId(answer);
        if (nextId === undefined) return undefined;
        this.#swappedCursors.add(`${path} ${nextId}`);
        return replaceRows(answer, ask(new Map([...query, ["startAfter", nextId]]), now));
      }
      case "dead-cursor": {
        if (cursor === undefined) return undefined;
        const status = Number(line.textOf("answer"));
        return Number.isNaN(status)
          ? plainJsonResponse(200, '{"content":[]}', now)
          : plainErrorResponse(status, "no such record", now);
      }
      case "torn": {
        const [old, fresh] = [parsePage(ask(query, now - this.#refreshMs)), parsePage(answer)];
        if (!old || !fresh) return undefined;
        const half = Math.ceil(fresh.rows.length / 2);
        return replacePage(answer, {
          ...fresh,
          rows: [...old.rows.slice(0, half), ...fresh.rows.slice(half)],
        });
      }
      case "next-id":
        return this.#setCycleCursor(
          line.textOf("is") === "same" ? 1 : line.numberOf("length"),
          line.textOf("is"),
          cursor,
          answer,
        );
      default:
        return undefined;
    }
  }

  /** nextId leads back to the cursor of `length` pages before this page's own successor. */
  #setCycleCursor(
    length: number,
    kind: string,
    cursor: string | undefined,
    answer: PlainResponse,
  ): PlainResponse | undefined {
    if (kind !== "same" && kind !== "cycle") return undefined;
    let back = cursor;
    for (let step = 1; step < length && back !== undefined; step++)
      back = this.#cursorSources.get(back)?.get("startAfter");
    const page = parsePage(answer);
    // Too near the start of the walk for a cycle of this length: this page stays as it is.
    if (!page || back === undefined) return answer;
    const others = page.envelope.filter(([name]) => name !== "nextId");
    return replacePage(answer, { ...page, envelope: [...others, ["nextId", JSON.stringify(back)]] });
  }
}

/** Read off the end of the body, where a sane server puts it: every page is asked for its nextId, few are changed. */
export function readNextId({ status, body }: PlainResponse): string | undefined {
  if (status !== 200) return undefined;
  const tail = Buffer.from(body.subarray(-2048)).toString();
  const found = /"nextId":("(?:[^"\\]|\\.)+")\}$/.exec(tail)?.[1];
  return found === undefined ? undefined : JSON.parse(found);
}

/** The last page of a walk: it names no successor, or one that holds nothing. */
export function isLastPage(query: Query, now: number, ask: FetchOriginal, answer: PlainResponse): boolean {
  const nextId = readNextId(answer);
  if (nextId === undefined) return true;
  return parsePage(ask(new Map([...query, ["startAfter", nextId]]), now))?.rows.length === 0;
}

function parsePage(answer: PlainResponse): Page | undefined {
  if (answer.status !== 200) return undefined;
  let json: unknown;
  try {
    json = parsePreservingDigits(Buffer.from(answer.body).toString());
  } catch {
    return undefined;
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
  if (!("content" in json)) return { isList: false, envelope: [], rows: [toJsonFields(json)] };
  if (!Array.isArray(json.content)) return undefined;
  const rows = json.content.map((row: unknown) =>
    toJsonFields(typeof row === "object" && row !== null ? row : {}),
  );
  return { isList: true, envelope: toJsonFields(json).filter(([name]) => name !== "content"), rows };
}

function replaceRows(answer: PlainResponse, other: PlainResponse): PlainResponse | undefined {
  const [page, donor] = [parsePage(answer), parsePage(other)];
  return page && donor && replacePage(answer, { ...page, rows: donor.rows });
}

function replacePage(answer: PlainResponse, { isList, envelope, rows }: Page): PlainResponse {
  const single = rows[0] ?? [];
  const text = isList
    ? formatJsonFields([["content", `[${rows.map(formatJsonFields).join(",")}]`], ...envelope])
    : formatJsonFields([...single, ...envelope]);
  return { ...answer, body: Buffer.from(text) };
}
