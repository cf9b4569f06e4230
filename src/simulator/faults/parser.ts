import { faultConditions, faultDefinitions } from "./catalogue.ts";
import type { FaultDefinition, FaultEventKind } from "./fault-definition.ts";

/** When a line strikes; all of it must hold. Counts are per line and per very request. */
export interface FaultConditions {
  /** Probability of each draw. */
  p: number;
  /** At most so many strikes on the same request. */
  times: number;
  /** One draw in so many, evenly; each request has its own phase. */
  every: number;
  /** The same request passes so many times first. */
  after: number;
  /** At most so many strikes in all: the one condition that depends on the order of arrival. */
  total: number;
  /** Virtual milliseconds since the script was set, [from, to). */
  from: number;
  to: number;
  page: "any" | "first" | "later" | "last";
  /** Query parameters (for the websocket: properties of the message or tick) that must have these values. */
  query: readonly (readonly [string, string])[];
}

export interface FaultLine {
  lineNumber: number;
  text: string;
  method: string;
  path: string;
  definition: FaultDefinition;
  eventKinds: readonly FaultEventKind[];
  textOf(parameter: string): string;
  numberOf(parameter: string): number;
  conditions: FaultConditions;
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const METHODS = ["GET", "POST", "*", "ws", "port"];
const conditions = Object.keys(faultConditions);

/** A script that cannot be read; the message names the line and what would be right. */
export class FaultScriptError extends Error {
  override name = "FaultScriptError";
}

export function parseFaultLines(script: string): FaultLine[] {
  return script.split(/\r?\n/).flatMap((text, index) => {
    const tokens = tokenise(text, index + 1);
    return tokens.length === 0 ? [] : [parseLine(tokens, text.trim(), index + 1)];
  });
}

export function parseDurationMs(text: string): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN) : undefined;
}

interface Token {
  /** Present for key=value. */
  key?: string;
  value: string;
}

/** Words and key="quoted values"; a # that starts a word starts a comment. */
function tokenise(text: string, line: number): Token[] {
  const tokens: Token[] = [];
  let rest = text.trimStart();
  while (rest !== "" && !rest.startsWith("#")) {
    const match = /^(?:([a-z][a-z-]*)=)?(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))(?=\s|$)/.exec(rest);
    if (!match)
      throw new FaultScriptError(
        `line ${line}: cannot read ${rest}; quote values that hold spaces: key="a b"`,
      );
    const value = match[2]?.replace(/\\(.)/g, "$1") ?? match[3] ?? "";
    tokens.push(match[1] === undefined ? { value } : { key: match[1], value });
    rest = rest.slice(match[0].length).trimStart();
  }
  return tokens;
}

function parseLine(tokens: Token[], text: string, number: number): FaultLine {
  const fail = (problem: string): never => {
    throw new FaultScriptError(`line ${number}: ${problem}`);
  };
  const unknown = (kind: string, name: string, known: readonly string[]) =>
    fail(`unknown ${kind} "${name}"; did you mean "${findNearest(name, known)}"? Known: ${known.join(", ")}`);

  const queue = [...tokens];
  const next = (what: string) => {
    const token = queue.shift();
    if (token === undefined || token.key !== undefined) return fail(`${what} is missing`);
    return token.value;
  };
  const method = next("where (GET, POST, *, ws or port)");
  if (!METHODS.includes(method)) unknown("place", method, METHODS);
  const moments: readonly FaultEventKind[] =
    method === "ws"
      ? ["upgrade", "accept", "subscribe", "unsubscribe", "tick"]
      : [method === "port" ? "port" : "request"];
  const path = moments.includes("request") ? next("the path (or *)") : "*";
  if (path !== "*" && !path.startsWith("/")) fail(`a path starts with "/" or is "*", not "${path}"`);

  const name = next("the fault's word");
  const here = faultDefinitions.filter((known) =>
    known.eventKinds.some((moment) => moments.includes(moment)),
  );
  const word =
    here.find((known) => known.name === name) ??
    unknown(
      "fault",
      name,
      here.map((known) => known.name),
    );
  const given = new Map<string, string>();
  const query: (readonly [string, string])[] = [];
  const names = Object.keys(word.parameters);
  for (const [position, { key = names[position], value }] of queue.entries()) {
    if (key === undefined) return fail(`"${value}" is one value too many for ${name}`);
    if (key === "query") {
      const cut = value.indexOf("=");
      if (cut < 1) fail(`query=NAME=VALUE, not query=${value}`);
      query.push([value.slice(0, cut), value.slice(cut + 1)]);
    } else {
      if (!names.includes(key) && !conditions.includes(key))
        unknown(`parameter of ${name}`, key, [...names, ...conditions]);
      if (given.has(key)) fail(`${key} is given twice`);
      given.set(key, value);
    }
  }

  const values = new Map<string, string | number>();
  for (const [key, { kind, choices, defaultValue: standard }] of Object.entries(word.parameters)) {
    const value = given.get(key) ?? standard ?? fail(`${name} needs ${key}=…`);
    if (choices && !choices.includes(value)) unknown(`value of ${key}`, value, choices);
    if (kind === "rows" && !/^(all|first|last|0?\.\d+)$/.test(value))
      fail(`${key} is all, first, last or a share such as 0.1, not "${value}"`);
    values.set(key, kind === "number" || kind === "duration" ? parseMeasure(key, value, kind, fail) : value);
  }
  const condition = (key: string, kind: "number" | "duration", standard: number) => {
    // A word may have a parameter of the same name (`ping-storm every=100ms`): then it is not the condition.
    const value = key in word.parameters ? undefined : given.get(key);
    return value === undefined ? standard : parseMeasure(key, value, kind, fail);
  };
  const p = condition("p", "number", 1);
  if (p < 0 || p > 1) fail(`p is a probability between 0 and 1, not ${p}`);
  const every = condition("every", "number", 1);
  if (every < 1 || !Number.isInteger(every)) fail(`every is a whole number from 1 on, not ${every}`);
  const page = given.get("page") ?? "any";
  if (!isPageCondition(page)) return unknown("value of page", page, ["first", "later", "last"]);
  return {
    lineNumber: number,
    text,
    method,
    path,
    definition: word,
    eventKinds: word.eventKinds.filter((moment) => moments.includes(moment)),
    textOf: (parameter) => String(values.get(parameter) ?? ""),
    numberOf: (parameter) => Number(values.get(parameter)),
    conditions: {
      p,
      times: condition("times", "number", Number.POSITIVE_INFINITY),
      every,
      after: condition("after", "number", 0),
      total: condition("total", "number", Number.POSITIVE_INFINITY),
      from: condition("from", "duration", 0),
      to: condition("to", "duration", Number.POSITIVE_INFINITY),
      page,
      query,
    },
  };
}

function isPageCondition(text: string): text is FaultConditions["page"] {
  return ["any", "first", "later", "last"].includes(text);
}

function parseMeasure(
  key: string,
  value: string,
  kind: "number" | "duration",
  fail: (problem: string) => never,
): number {
  if (kind === "duration")
    return parseDurationMs(value) ?? fail(`${key} is a duration such as 500ms, 7s, 5m or 1h, not "${value}"`);
  if (!/^-?\d+(\.\d+)?$/.test(value)) return fail(`${key} is a number, not "${value}"`);
  return Number(value);
}

/** The known word with the fewest edits to the one given. */
export function findNearest(given: string, known: readonly string[]): string {
  let best = "";
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const edits = editDistance(given.toLowerCase(), candidate.toLowerCase());
    if (edits < least) [best, least] = [candidate, edits];
  }
  return best;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const substituted = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(substituted, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
