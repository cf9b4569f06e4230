/** A word, literal or sign of an SQL statement. */
export interface SqlToken {
  readonly kind: "word" | "name" | "text" | "number" | "parameter" | "sign";
  /** As written; a word in lower case. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Comments and white space are skipped. `name`: an identifier in quotes. What is not closed reaches to the end: a search for
 * its close that failed would be repeated from each of its characters.
 */
const tokenPattern =
  /\s+|--[^\n]*|\/\*.*?(?:\*\/|$)|(?<text>'[^']*(?:''[^']*)*(?:'|$))|(?<name>"[^"]*(?:""[^"]*)*(?:"|$)|`[^`]*(?:``[^`]*)*(?:`|$)|\[[^\]]*(?:\]|$))|(?<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|(?<parameter>[:@$]\w+|\?\d*)|(?<word>[a-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<sign><=|>=|<>|!=|==|\|\||<<|>>|.)/gis;

/** Each token is read when it is asked for. */
export function* readSqlTokens(sql: string): Generator<SqlToken, void, undefined> {
  for (const match of sql.matchAll(tokenPattern)) {
    const [kind, text] = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined) ?? [];
    if (kind === undefined || text === undefined) continue;
    const token = kind as SqlToken["kind"];
    yield {
      kind: token,
      text: token === "word" ? text.toLowerCase() : text,
      from: match.index,
      to: match.index + text.length,
    };
  }
}

/** The name that a word or an identifier in quotes stands for, in lower case. */
export function nameOf({ kind, text }: SqlToken): string | undefined {
  if (kind === "word") return text;
  if (kind !== "name") return undefined;
  const quote = text.at(-1) ?? "";
  const inner = text.slice(1, -1);
  return (quote === "]" ? inner : inner.replaceAll(quote + quote, quote)).toLowerCase();
}
