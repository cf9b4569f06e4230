import { quoteName } from "../../model/sql-text.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { relationDocs } from "../schema/column-docs.ts";
import { findPlaces, type SelectScope } from "./select-scopes.ts";
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
