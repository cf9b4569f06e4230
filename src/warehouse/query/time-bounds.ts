import { quoteName } from "../../model/sql-text.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { relationDocs } from "../schema/column-docs.ts";
import { nameOf, readSqlTokens, type SqlToken } from "./sql-tokens.ts";

/*
 * The views compute `time` from `ts`, the key. SQLite cannot turn a bound on that text into a range of the key, so it would
 * compute and compare the text of every row. The texts sort like the timestamps: each bound on `time` therefore equals a bound on
 * `ts`, and a query may have it instead.
 */

/** Relations whose `time` is the text of their `ts`. */
const timedRelations: ReadonlySet<string> = new Set(
  Object.entries(relationDocs)
    .filter(([, { columns }]) =>
      ["ts", "time"].every((name) => columns.some((column) => column.name === name)),
    )
    .map(([name]) => name),
);

/** How a bound's value is found: the values of parameters, and constant calls such as date('now'). */
interface ValueSource {
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly evaluate: (expression: string) => unknown;
}

type Tokens = readonly SqlToken[];

/** Replaces bounds on `time` by equal bounds on `ts`. What it does not understand stays as it is. */
export function rewriteTimeBounds(sql: string, values: ValueSource): string {
  if (!/\btime\b/i.test(sql)) return sql;
  const tokens = [...readSqlTokens(sql)];
  const replacements = tokens.flatMap((token, at) => {
    const found = nameOf(token) === "time" ? readBound(tokens, at, sql, values) : undefined;
    return found ? [found] : [];
  });
  return replacements
    .reverse()
    .reduce((text, { from, to, bound }) => `${text.slice(0, from)}(${bound})${text.slice(to)}`, sql);
}

const before: ReadonlySet<string> = new Set(["where", "and", "or", "not", "on", "(", "when"]);
const after: ReadonlySet<string> = new Set(
  ") and or group order having limit window union except intersect join left right full inner cross natural then ; ,".split(
    " ",
  ),
);

function readBound(tokens: Tokens, at: number, sql: string, values: ValueSource) {
  const isQualified = tokens[at - 1]?.text === ".";
  const first = isQualified ? at - 2 : at;
  const from = tokens[first]?.from;
  if (from === undefined || !before.has(tokens[first - 1]?.text ?? "")) return undefined;
  const condition = readCondition(tokens, at + 1, sql, values);
  const next = condition && tokens[condition.end];
  if (!condition || (next && !after.has(next.text))) return undefined;
  const source = isQualified ? findQualified(tokens, first) : findOnlyTimed(tokens, at);
  if (source === undefined) return undefined;
  const key = isQualified ? `${sql.slice(from, tokens[first]?.to)}.ts` : `${quoteName(source)}.ts`;
  const bound = condition.bounds.map(([operator, ts]) => `${key} ${operator} ${ts}`).join(" AND ");
  return { from, to: tokens[condition.end - 1]?.to ?? from, bound };
}

/** `<op> value`, `BETWEEN a AND b` or `LIKE 'prefix%'`, as bounds of the key. `end`: the next token. */
function readCondition(tokens: Tokens, at: number, sql: string, values: ValueSource) {
  const operator = tokens[at]?.text ?? "";
  const isBetween = operator === "between";
  const first = readValue(tokens, at + 1, sql, values);
  if (!first || (isBetween && tokens[first.end]?.text !== "and")) return undefined;
  const last = isBetween ? readValue(tokens, first.end + 1, sql, values) : first;
  if (!last) return undefined;
  const bounds = toBounds(operator, first.value, last.value);
  const isKnown = bounds.length > 0 && bounds.every(([, ts]) => ts !== undefined);
  return isKnown ? { bounds, end: last.end } : undefined;
}

type Bound = readonly [operator: "<" | "=" | ">=", ts: Micros | undefined];

/** `value` and `last` differ for BETWEEN alone. */
function toBounds(operator: string, value: string, last: string): readonly Bound[] {
  const [from, to] = [firstAtOrAfter(value), firstAfter(last)];
  if (operator === "<") return [["<", from]];
  if (operator === "<=") return [["<", to]];
  if (operator === ">") return [[">=", to]];
  if (operator === ">=") return [[">=", from]];
  const within = (low: Micros | undefined, high: Micros | undefined): readonly Bound[] => [
    [">=", low],
    ["<", high],
  ];
  if (["=", "==", "between"].includes(operator))
    return to === (from ?? 0) + 1 ? [["=", from]] : within(from, to);
  const [, prefix] = operator === "like" ? (/^([-0-9:.TZ]*)%$/.exec(value) ?? []) : [];
  // No text of time has a character as large as ~.
  return prefix === undefined ? [] : within(firstAtOrAfter(prefix), firstAtOrAfter(`${prefix}~`));
}

const constantFunctions: ReadonlySet<string> = new Set(["date", "datetime", "strftime"]);

function readValue(tokens: Tokens, at: number, sql: string, { parameters, evaluate }: ValueSource) {
  const token = tokens[at];
  if (token?.kind === "text") return { value: token.text.slice(1, -1).replaceAll("''", "'"), end: at + 1 };
  if (token?.kind === "parameter") {
    const value = parameters[token.text.slice(1)];
    return typeof value === "string" ? { value, end: at + 1 } : undefined;
  }
  if (!token || !constantFunctions.has(token.text) || tokens[at + 1]?.text !== "(") return undefined;
  const end = skipParentheses(tokens, at + 1);
  const inner = tokens.slice(at + 2, end - 1);
  if (inner.some(({ kind, text }) => kind !== "text" && kind !== "number" && text !== ",")) return undefined;
  const value = evaluate(sql.slice(token.from, tokens[end - 1]?.to));
  return typeof value === "string" ? { value, end } : undefined;
}

/** The first timestamp whose text is not less than `text`. */
function firstAtOrAfter(text: string): Micros | undefined {
  return searchTimestamp((time) => time >= text);
}

/** The first timestamp whose text is greater than `text`. */
function firstAfter(text: string): Micros | undefined {
  return searchTimestamp((time) => time > text);
}

/** Undefined if the bound is outside of what a double can count exactly. */
function searchTimestamp(isReached: (time: string) => boolean): Micros | undefined {
  let low = Number.MIN_SAFE_INTEGER;
  let high = Number.MAX_SAFE_INTEGER;
  if (isReached(formatTimestamp(low)) || !isReached(formatTimestamp(high))) return undefined;
  while (high - low > 1) {
    const middle = Math.floor(low / 2 + high / 2);
    if (isReached(formatTimestamp(middle))) high = middle;
    else low = middle;
  }
  return high;
}

/** The alias at `at` of a timed relation, also of an enclosing SELECT; undefined if it stands for something else. */
function findQualified(tokens: Tokens, at: number): string | undefined {
  const name = nameOf(tokens[at] as SqlToken) ?? "";
  for (const sources of sourcesAround(tokens, at)) {
    const relation = sources.get(name);
    if (relation !== undefined) return timedRelations.has(relation) ? name : undefined;
  }
  return undefined;
}

/** The only source that has a `time`. If there is another one that this does not know, SQLite rejects the name as ambiguous. */
function findOnlyTimed(tokens: Tokens, at: number): string | undefined {
  const [sources = new Map<string, string>()] = sourcesAround(tokens, at);
  const timed = [...sources].filter(([, relation]) => timedRelations.has(relation));
  return timed.length === 1 ? timed[0]?.[0] : undefined;
}

const clauses: ReadonlySet<string> = new Set(
  "select from where group having order limit window union except intersect".split(" "),
);
const joinWords: ReadonlySet<string> = new Set("join left right full inner outer cross natural".split(" "));
const notAliases = clauses.union(joinWords).union(new Set(["on", "using", "as", "indexed", "not"]));

/**
 * What the SELECTs around a token read, the innermost first; nothing if the token stands in another clause than WHERE or FROM: there
 * an alias comes before a column of the same name.
 */
function* sourcesAround(tokens: Tokens, at: number): Generator<ReadonlyMap<string, string>> {
  let clause = "";
  let isInner = true;
  for (let i = at - 1, depth = 0; i >= 0; i--) {
    const { text } = tokens[i] as SqlToken;
    if (text === ")") depth++;
    else if (text === "(" && depth > 0) depth--;
    else if (text === "(") clause = "";
    else if (depth === 0 && clause !== "select" && clauses.has(text)) {
      if (text !== "select") clause ||= text;
      else {
        if (isInner && clause !== "where" && clause !== "from") return;
        yield readSources(tokens, i + 1);
        // What is before it in the same parentheses is another part of a compound.
        [clause, isInner] = ["select", false];
      }
    }
  }
}

/** Alias or name → relation, of the SELECT whose columns begin at `at`. Empty: a subquery, a function, or a common table expression. */
function readSources(tokens: Tokens, at: number): ReadonlyMap<string, string> {
  const sources = new Map<string, string>();
  const expressions = findCommonTables(tokens);
  let [isFrom, isSource] = [false, false];
  for (let i = at; i < tokens.length; i++) {
    const { text } = tokens[i] as SqlToken;
    if (text === ")" || (isFrom && clauses.has(text))) break;
    if (text === "from") isFrom = true;
    if (isFrom && (text === "from" || text === "join" || text === ",")) isSource = true;
    else if (isSource && !joinWords.has(text)) {
      const next = tokens[i + 1]?.text;
      const name = nameOf(tokens[next === "." ? i + 2 : i] as SqlToken) ?? "";
      // `main.index_ticks` and functions are not worth the effort.
      const isPlain = next !== "." && next !== "(" && !expressions.has(name);
      const end = next === "." ? i + 3 : text === "(" || next === "(" ? skipParentheses(tokens, i) : i + 1;
      const alias = tokens[tokens[end]?.text === "as" ? end + 1 : end];
      const isAlias = alias && nameOf(alias) !== undefined && !notAliases.has(alias.text);
      sources.set((isAlias && nameOf(alias)) || name, isPlain ? name : "");
      [i, isSource] = [end - 1, false];
    } else if (text === "(") i = skipParentheses(tokens, i) - 1;
  }
  return sources;
}

/** The position after the parenthesis that closes the first one from `at` on. */
function skipParentheses(tokens: Tokens, at: number): number {
  let depth = 0;
  for (let i = at; i < tokens.length; i++) {
    if (tokens[i]?.text === "(") depth++;
    else if (tokens[i]?.text === ")" && --depth === 0) return i + 1;
  }
  return tokens.length;
}

const commonTable = /(\S+) (?:\([^()]*\) )?as (?:not )?(?:materialized )?\(/g;

/** The names of common table expressions: they hide relations of the same name. */
function findCommonTables(tokens: Tokens): ReadonlySet<string> {
  const text = tokens.map((token) => nameOf(token) ?? token.text).join(" ");
  return new Set([...text.matchAll(commonTable)].map(([, name = ""]) => name));
}
