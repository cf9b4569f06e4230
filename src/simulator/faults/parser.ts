import { type FaultDefinition, type FaultEventKind, faultConditions, faultDefinitions } from "./catalogue.ts";

/** When a line triggers; all conditions must hold. `faultConditions` describes each; times are in milliseconds. */
interface FaultConditions {
  p: number;
  times: number;
  after: number;
  total: number;
  from: number;
  to: number;
  page: "any" | "first" | "later";
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
const CONDITION_NAMES = Object.keys(faultConditions);

/** A syntax error in a script; the message names the line and suggests a correction. */
export class FaultScriptError extends Error {
  override name = "FaultScriptError";
}

export function parseFaultLines(script: string): FaultLine[] {
  return script.split(/\r?\n/).flatMap((text, index) => {
    const tokens = tokenise(text, index + 1);
    return tokens.length === 0 ? [] : [parseLine(tokens, text.trim(), index + 1)];
  });
}

function parseDurationMs(text: string): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  return match ? Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? Number.NaN) : undefined;
}

interface Token {
  /** Present for key=value. */
  key?: string;
  value: string;
}

/** Splits a line into words and key=value pairs (values may be quoted). A # at the start of a word starts a comment. */
function tokenise(text: string, line: number): Token[] {
  const tokens: Token[] = [];
  let rest = text.trimStart();
  while (rest !== "" && !rest.startsWith("#")) {
    const match = /^(?:([a-z][a-z-]*)=)?(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))(?=\s|$)/.exec(rest);
    if (!match)
      throw new FaultScriptError(
        `line ${line}: cannot read ${rest}; quote values that contain spaces: key="a b"`,
      );
    const value = match[2]?.replace(/\\(.)/g, "$1") ?? match[3] ?? "";
    tokens.push(match[1] === undefined ? { value } : { key: match[1], value });
    rest = rest.slice(match[0].length).trimStart();
  }
  return tokens;
}

function parseLine(tokens: Token[], text: string, lineNumber: number): FaultLine {
  const fail = (problem: string): never => {
    throw new FaultScriptError(`line ${lineNumber}: ${problem}`);
  };
  const unknown = (kind: string, name: string, known: readonly string[]) =>
    fail(`unknown ${kind} "${name}"; did you mean "${findNearest(name, known)}"? Known: ${known.join(", ")}`);

  const remaining = [...tokens];
  const next = (what: string) => {
    const token = remaining.shift();
    if (token === undefined || token.key !== undefined) return fail(`${what} is missing`);
    return token.value;
  };
  const method = next("where (GET, POST, *, ws or port)");
  if (!METHODS.includes(method)) unknown("method", method, METHODS);
  const eventKinds: readonly FaultEventKind[] =
    method === "ws"
      ? ["upgrade", "accept", "subscribe", "unsubscribe", "tick"]
      : [method === "port" ? "port" : "request"];
  const path = eventKinds.includes("request") ? next("the path (or *)") : "*";
  if (path !== "*" && !path.startsWith("/")) fail(`a path starts with "/" or is "*", not "${path}"`);

  const name = next("the name of the fault");
  const candidates = faultDefinitions.filter((known) =>
    known.eventKinds.some((kind) => eventKinds.includes(kind)),
  );
  const definition =
    candidates.find((known) => known.name === name) ??
    unknown(
      "fault",
      name,
      candidates.map((known) => known.name),
    );
  const given = new Map<string, string>();
  const query: (readonly [string, string])[] = [];
  const names = Object.keys(definition.parameters);
  for (const [position, { key = names[position], value }] of remaining.entries()) {
    if (key === undefined) return fail(`"${value}" is one value too many for ${name}`);
    if (key === "query") {
      const separator = value.indexOf("=");
      if (separator < 1) fail(`query=NAME=VALUE, not query=${value}`);
      query.push([value.slice(0, separator), value.slice(separator + 1)]);
    } else {
      if (!names.includes(key) && !CONDITION_NAMES.includes(key))
        unknown(`parameter of ${name}`, key, [...names, ...CONDITION_NAMES]);
      if (given.has(key)) fail(`${key} is given twice`);
      given.set(key, value);
    }
  }

  const values = new Map<string, string | number>();
  for (const [key, { kind, choices, defaultValue }] of Object.entries(definition.parameters)) {
    const value = given.get(key) ?? defaultValue ?? fail(`${name} needs ${key}=…`);
    if (choices && !choices.includes(value)) unknown(`value of ${key}`, value, choices);
    if (kind === "rows" && !/^(all|first|last|0?\.\d+)$/.test(value))
      fail(`${key} is all, first, last or a share such as 0.1, not "${value}"`);
    values.set(key, kind === "number" || kind === "duration" ? parseMeasure(key, value, kind, fail) : value);
  }
  const condition = (key: string, kind: "number" | "duration", fallback: number) => {
    const value = given.get(key);
    return value === undefined ? fallback : parseMeasure(key, value, kind, fail);
  };
  const p = condition("p", "number", 1);
  if (p < 0 || p > 1) fail(`p is a probability between 0 and 1, not ${p}`);
  const page = given.get("page") ?? "any";
  if (page !== "any" && page !== "first" && page !== "later")
    return unknown("value of page", page, ["first", "later"]);
  return {
    lineNumber,
    text,
    method,
    path,
    definition,
    eventKinds: definition.eventKinds.filter((kind) => eventKinds.includes(kind)),
    textOf: (parameter) => String(values.get(parameter) ?? ""),
    numberOf: (parameter) => Number(values.get(parameter)),
    conditions: {
      p,
      times: condition("times", "number", Number.POSITIVE_INFINITY),
      after: condition("after", "number", 0),
      total: condition("total", "number", Number.POSITIVE_INFINITY),
      from: condition("from", "duration", 0),
      to: condition("to", "duration", Number.POSITIVE_INFINITY),
      page,
      query,
    },
  };
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

/** The known word with the smallest edit distance. */
function findNearest(given: string, known: readonly string[]): string {
  let best = "";
  let smallest = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const edits = editDistance(given.toLowerCase(), candidate.toLowerCase());
    if (edits < smallest) [best, smallest] = [candidate, edits];
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
