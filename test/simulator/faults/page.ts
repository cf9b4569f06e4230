import type { PlainResponse } from "../plain-response.ts";

export type Query = ReadonlyMap<string, string>;

/**
 * The properties of a JSON object in order, each value as JSON text. This form can hold duplicate keys, __proto__, and
 * numbers of any length.
 */
export type JsonFields = [name: string, json: string][];

/** A parsed JSON response. A list has rows in an envelope; a single record is one row without an envelope. */
export interface Page {
  readonly isList: boolean;
  readonly envelope: JsonFields;
  readonly rows: JsonFields[];
}

/** What faults remember of earlier pages. */
export class PageMemory {
  /** By cursor: the query of the page that returned the cursor. */
  readonly cursorSources = new Map<string, Query>();
  /** Cursors whose rows were already served with the previous page. */
  readonly swappedCursors = new Set<string>();
  /** By cursor: the second record of its moment, which the page with the first one left out. */
  readonly splitPairs = new Map<string, JsonFields>();
  /** By audience: the token that was issued last. */
  readonly issuedTokens = new Map<string, { token: object; expiresAtMs: number }>();

  recordCursor(query: Query, response: PlainResponse): void {
    const nextId = readNextId(response);
    if (nextId !== undefined) this.cursorSources.set(nextId, query);
  }

  /** Remembers the token of a response. */
  recordToken(body: string, nowMs: number, response: PlainResponse): void {
    const token = response.status === 200 ? parseObject(Buffer.from(response.body).toString()) : {};
    const seconds = Number(token.expires_in);
    if (token.access_token === undefined || !Number.isFinite(seconds)) return;
    this.issuedTokens.set(readAudience(body), { token, expiresAtMs: nowMs + seconds * 1000 });
  }

  /** Serves the second page of a swap with the rows of the first. The strike on the first page covers both. */
  completeSwap(
    query: Query,
    response: PlainResponse,
    fetch: (query: Query) => PlainResponse,
  ): PlainResponse | undefined {
    const cursor = query.get("startAfter") ?? "";
    const source = this.cursorSources.get(cursor);
    return source && this.swappedCursors.has(cursor) ? replaceRows(response, fetch(source)) : undefined;
  }
}

/** JSON.rawJSON and the reviver's source text preserve the digits of numbers. TypeScript has no types for them yet. */
const json = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
};

function parsePreservingDigits(text: string): unknown {
  // A reviver takes ten times as long: most pages have their decimals as strings.
  if (!/":-?\d/.test(text)) return JSON.parse(text);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? json.rawJSON(source) : value,
  );
}

/** Without properties if it is no object. */
export function parseFields(text: string): JsonFields {
  return toFields(parsePreservingDigits(text));
}

function toFields(record: unknown): JsonFields {
  if (typeof record !== "object" || record === null) return [];
  return Object.entries(record).map(([name, value]) => [name, JSON.stringify(value)]);
}

export function formatFields(fields: JsonFields): string {
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

/** The value of a property as JSON. */
export function readField(row: JsonFields | undefined, pattern: RegExp): string | undefined {
  return row?.find(([name]) => pattern.test(name))?.[1];
}

export const TIMESTAMP = /^(startT|t)imestamp$/;

/** NaN without a timestamp. */
export function readTimeMs(row: JsonFields): number {
  return Date.parse((readField(row, TIMESTAMP) ?? "").replaceAll('"', ""));
}

/** Reads nextId from the end of the body, where the simulator puts it. Cheaper than parsing every page. */
export function readNextId({ status, body }: PlainResponse): string | undefined {
  if (status !== 200) return undefined;
  const tail = Buffer.from(body.subarray(-2048)).toString();
  const found = /"nextId":("(?:[^"\\]|\\.)+")\}$/.exec(tail)?.[1];
  return found === undefined ? undefined : JSON.parse(found);
}

/** Undefined for a body that is no page, or that another fault has nested too deeply to be read and written. */
export function parsePage({ status, body }: PlainResponse): Page | undefined {
  if (status !== 200) return undefined;
  try {
    const parsed = parsePreservingDigits(Buffer.from(body).toString());
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    if (!("content" in parsed)) return { isList: false, envelope: [], rows: [toFields(parsed)] };
    const { content, ...envelope } = parsed;
    if (!Array.isArray(content)) return undefined;
    return { isList: true, envelope: toFields(envelope), rows: content.map(toFields) };
  } catch {
    return undefined;
  }
}

/** Undefined when the response is not a page, or the page stays as it is. */
export function changePage(
  response: PlainResponse,
  change: (page: Page) => Page | undefined,
): PlainResponse | undefined {
  const page = parsePage(response);
  const changed = page && change(page);
  if (!changed) return undefined;
  const { isList, envelope, rows } = changed;
  const text = isList
    ? formatFields([["content", `[${rows.map(formatFields).join(",")}]`], ...envelope])
    : formatFields([...(rows[0] ?? []), ...envelope]);
  return { ...response, body: Buffer.from(text) };
}

/** The same for lists only. */
export function changeList(response: PlainResponse, change: (page: Page) => Page | undefined) {
  return changePage(response, (page) => (page.isList ? change(page) : undefined));
}

export function replaceRows(response: PlainResponse, source: PlainResponse): PlainResponse | undefined {
  const rows = parsePage(source)?.rows;
  return rows && changePage(response, (page) => ({ ...page, rows }));
}

/** `json`: the new value; undefined removes the property. */
export function withNextId(page: Page, json: string | undefined): Page {
  const others = page.envelope.filter(([name]) => name !== "nextId");
  return { ...page, envelope: json === undefined ? others : [...others, ["nextId", json]] };
}

export const pageAfter = (query: Query, id: string): Query => new Map([...query, ["startAfter", id]]);
export const sizeOf = (query: Query) => Number(query.get("size") ?? 10);

/** The query of a service that serves at most `maxRows` rows per page. */
export function capSize(query: Query, maxRows: number): Query {
  return new Map([...query, ["size", String(Math.min(sizeOf(query), maxRows))]]);
}

export const TOKEN_PATH = "/oauth/token";

export function readAudience(body: string): string {
  return String(parseObject(body).audience ?? "");
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
