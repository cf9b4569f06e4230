import { nameOf, type SqlToken } from "./sql-tokens.ts";

/** One SELECT of a statement, with what its FROM names. */
export interface SelectScope {
  readonly outer: SelectScope | undefined;
  /** Alias or name → relation; null: a subquery, a function, or a common table expression. */
  readonly sources: Map<string, string | null>;
}

/** Where a token stands. */
interface TokenPlace {
  readonly scope: SelectScope | undefined;
  /** The clause of the scope: only in WHERE and in the ON of a join does a column come before an alias of the same name. */
  readonly clause: string;
}

interface Frame {
  scope: SelectScope | undefined;
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
export function findPlaces(tokens: readonly SqlToken[]): readonly TokenPlace[] {
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
