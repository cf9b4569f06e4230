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

interface Replacement {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** Replaces bounds on `time` by equal bounds on `ts`. What it does not understand stays as it is. */
export function rewriteTimeBounds(sql: string, values: ValueSource): string {
  if (!/\btime\b/i.test(sql)) return sql;
  const tokens = [...readSqlTokens(sql)];
  const places = findPlaces(tokens);
  let result = sql;
  const replacements = tokens.flatMap((token, at): Replacement[] => {
    const place = places[at];
    if (nameOf(token) !== "time" || !place?.scope || !["where", "from"].includes(place.clause)) return [];
    const found = readBound(tokens, at, place.scope, sql, values);
    return found ? [found] : [];
  });
  for (const { from, to, text } of replacements.reverse())
    result = `${result.slice(0, from)}${text}${result.slice(to)}`;
  return result;
}

const before: ReadonlySet<string> = new Set(["where", "and", "or", "not", "on", "(", "when"]);
const after: ReadonlySet<string> = new Set(
  ") and or group order having limit window union except intersect join left right full inner cross natural then ; ,".split(
    " ",
  ),
);

function readBound(
  tokens: readonly SqlToken[],
  at: number,
  scope: SelectScope,
  sql: string,
  values: ValueSource,
): Replacement | undefined {
  const isQualified = tokens[at - 1]?.text === ".";
  const first = isQualified ? at - 2 : at;
  const qualifier = isQualified ? tokens[first] : undefined;
  const source = qualifier ? findQualified(scope, nameOf(qualifier)) : findOnlyTimed(scope);
  const from = tokens[first]?.from;
  if (source === undefined || from === undefined || !before.has(tokens[first - 1]?.text ?? ""))
    return undefined;
  const key = `${qualifier ? sql.slice(qualifier.from, qualifier.to) : quoteName(source)}.ts`;
  const condition = readCondition(tokens, at + 1, key, sql, values);
  const next = condition && tokens[condition.end];
  if (!condition || (next && !after.has(next.text))) return undefined;
  return { from, to: tokens[condition.end - 1]?.to ?? from, text: `(${condition.text})` };
}

/** `<op> value`, `BETWEEN a AND b` or `LIKE 'prefix%'`, as a condition on the key. `end`: the next token. */
function readCondition(
  tokens: readonly SqlToken[],
  at: number,
  key: string,
  sql: string,
  values: ValueSource,
): { readonly text: string; readonly end: number } | undefined {
  const operator = tokens[at]?.text ?? "";
  const first = readValue(tokens, at + 1, sql, values);
  if (!first) return undefined;
  const { value, end } = first;
  const between = (from: Micros | undefined, to: Micros | undefined, last: number) =>
    from === undefined || to === undefined
      ? undefined
      : { text: `${key} >= ${from} AND ${key} < ${to}`, end: last };
  if (operator === "between") {
    const second = tokens[end]?.text === "and" ? readValue(tokens, end + 1, sql, values) : undefined;
    return second && between(firstAtOrAfter(value), firstAfter(second.value), second.end);
  }
  if (operator === "like") {
    const [, prefix] = /^([-0-9:.TZ]*)%$/.exec(value) ?? [];
    // No text of time has a character as large as ~.
    return prefix === undefined
      ? undefined
      : between(firstAtOrAfter(prefix), firstAtOrAfter(`${prefix}~`), end);
  }
  if (operator === "=" || operator === "==") {
    const ts = firstAtOrAfter(value);
    if (ts === undefined) return undefined;
    return { text: formatTimestamp(ts) === value ? `${key} = ${ts}` : `${key} < ${key}`, end };
  }
  const isStrict = operator === ">" || operator === "<=";
  const bound = isStrict ? firstAfter(value) : firstAtOrAfter(value);
  if (bound === undefined) return undefined;
  if (operator === ">" || operator === ">=") return { text: `${key} >= ${bound}`, end };
  return operator === "<" || operator === "<=" ? { text: `${key} < ${bound}`, end } : undefined;
}

const constantFunctions: ReadonlySet<string> = new Set(["date", "datetime", "strftime"]);

function readValue(
  tokens: readonly SqlToken[],
  at: number,
  sql: string,
  { parameters, evaluate }: ValueSource,
): { readonly value: string; readonly end: number } | undefined {
  const token = tokens[at];
  if (token?.kind === "text") return { value: token.text.slice(1, -1).replaceAll("''", "'"), end: at + 1 };
  if (token?.kind === "parameter") {
    const value = parameters[token.text.slice(1)];
    return typeof value === "string" ? { value, end: at + 1 } : undefined;
  }
  if (token?.kind !== "word" || !constantFunctions.has(token.text) || tokens[at + 1]?.text !== "(")
    return undefined;
  const close = tokens.findIndex(({ text }, place) => place > at && text === ")");
  const inner = tokens.slice(at + 2, close);
  if (close < 0 || inner.some(({ kind, text }) => kind !== "text" && kind !== "number" && text !== ","))
    return undefined;
  const value = evaluate(sql.slice(token.from, tokens[close]?.to));
  return typeof value === "string" ? { value, end: close + 1 } : undefined;
}

/** The alias of a timed relation, also of an enclosing SELECT; undefined if the name stands for something else. */
function findQualified(scope: SelectScope | undefined, name: string | undefined): string | undefined {
  if (scope === undefined || name === undefined) return undefined;
  const relation = scope.sources.get(name);
  if (relation === undefined) return findQualified(scope.outer, name);
  return relation !== null && timedRelations.has(relation) ? name : undefined;
}

/** The only source that has a `time`. If there is another one that this does not know, SQLite rejects the name as ambiguous. */
function findOnlyTimed({ sources }: SelectScope): string | undefined {
  const timed = [...sources].filter(([, relation]) => relation !== null && timedRelations.has(relation));
  return timed.length === 1 ? timed[0]?.[0] : undefined;
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

/** One SELECT of a statement, with what its FROM names. */
interface SelectScope {
  readonly outer: SelectScope | undefined;
  /** Alias or name → relation; null: a subquery, a function, or a common table expression. */
  readonly sources: Map<string, string | null>;
}

interface Frame {
  scope: SelectScope | undefined;
  /** Of the scope: only in WHERE and in the ON of a join does a column come before an alias of the same name. */
  clause: string;
  /** The next name is a source. */
  expectsSource: boolean;
  /** The parentheses contain a SELECT of their own. */
  hasSelect: boolean;
}

const newFrame = (from?: Frame): Frame => ({
  scope: from?.scope,
  clause: from?.clause ?? "",
  expectsSource: false,
  hasSelect: false,
});

const clauses: ReadonlySet<string> = new Set(
  "select from where group having order limit window union except intersect".split(" "),
);
const joinWords: ReadonlySet<string> = new Set("join left right full inner outer cross natural".split(" "));
const notAliases: ReadonlySet<string> = new Set([
  ...clauses,
  ...joinWords,
  "on",
  "using",
  "as",
  "indexed",
  "not",
]);

/** For each token: the SELECT and the clause that it belongs to. */
function findPlaces(tokens: readonly SqlToken[]): readonly Pick<Frame, "scope" | "clause">[] {
  const expressions = findCommonTables(tokens);
  const frames: Frame[] = [newFrame()];
  return tokens.map((token, at) => {
    const frame = frames.at(-1) ?? newFrame();
    const { text, kind } = token;
    if (kind === "sign") {
      if (text === "(") {
        if (frame.expectsSource) addSource(frame, tokens, skipParentheses(tokens, at), null);
        frames.push(newFrame(frame));
      } else if (text === ")" && frames.length > 1) frames.pop();
      else if (text === "," && frame.hasSelect && frame.clause === "from") frame.expectsSource = true;
    } else if (kind === "word" && text === "select") {
      const enclosing = frames.at(-2)?.scope;
      frame.scope = { outer: frames.length > 1 ? enclosing : undefined, sources: new Map() };
      frame.clause = text;
      frame.hasSelect = true;
    } else if (kind === "word" && clauses.has(text) && frame.hasSelect) {
      frame.clause = text;
      frame.expectsSource = text === "from";
    } else if (kind === "word" && text === "join") frame.expectsSource = frame.hasSelect;
    else if (frame.expectsSource && nameOf(token) !== undefined && !joinWords.has(text))
      readSource(frame, tokens, at, expressions);
    return { scope: frame.scope, clause: frame.clause };
  });
}

function readSource(
  frame: Frame,
  tokens: readonly SqlToken[],
  at: number,
  expressions: ReadonlySet<string>,
): void {
  const name = nameOf(tokens[at] as SqlToken) ?? "";
  const next = tokens[at + 1]?.text;
  // `main.index_ticks` and functions are not worth the effort.
  const isPlain = next !== "." && next !== "(" && tokens[at - 1]?.text !== ".";
  const relation = isPlain && !expressions.has(name) ? name : null;
  addSource(frame, tokens, next === "(" ? skipParentheses(tokens, at + 1) : at + 1, relation, name);
  if (next === ".") frame.expectsSource = true;
}

function addSource(
  frame: Frame,
  tokens: readonly SqlToken[],
  at: number,
  relation: string | null,
  name = "",
): void {
  frame.expectsSource = false;
  const aliasAt = tokens[at]?.text === "as" ? at + 1 : at;
  const alias = tokens[aliasAt] && nameOf(tokens[aliasAt]);
  const isAlias = alias !== undefined && !(tokens[aliasAt]?.kind === "word" && notAliases.has(alias));
  frame.scope?.sources.set(isAlias ? alias : name, relation);
}

/** The position after the parenthesis that closes the one at `at`. */
function skipParentheses(tokens: readonly SqlToken[], at: number): number {
  let depth = 0;
  for (let i = at; i < tokens.length; i++) {
    if (tokens[i]?.kind !== "sign") continue;
    if (tokens[i]?.text === "(") depth++;
    else if (tokens[i]?.text === ")" && --depth === 0) return i + 1;
  }
  return tokens.length;
}

/** The names of common table expressions: `name AS (`, `name (columns) AS (`. They hide relations of the same name. */
function findCommonTables(tokens: readonly SqlToken[]): ReadonlySet<string> {
  const names = new Set<string>();
  if (!tokens.some(({ kind, text }) => kind === "word" && text === "with")) return names;
  tokens.forEach((token, at) => {
    const name = nameOf(token);
    if (name === undefined) return;
    const after = tokens[at + 1]?.text === "(" ? skipParentheses(tokens, at + 1) : at + 1;
    if (tokens[after]?.text !== "as") return;
    const body = tokens
      .slice(after + 1, after + 4)
      .find(({ text }) => text !== "not" && text !== "materialized");
    if (body?.text === "(") names.add(name);
  });
  return names;
}
