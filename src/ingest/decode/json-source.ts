/**
 * Finds the source text of values, since `JSON.parse` loses how a number was written. The input must be valid
 * JSON. The search does not recurse, so that deep nesting cannot exhaust the stack.
 */

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Deeper values become one string with their source. */
const MAX_DEPTH = 64;

/** The source of each element of the array `text`, in order. */
export function sliceElements(text: string): string[] {
  const slices: string[] = [];
  let at = skipWhitespace(text, skipWhitespace(text, 0) + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = findValueEnd(text, at);
    slices.push(text.slice(at, end));
    at = skipWhitespace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipWhitespace(text, at + 1);
  }
  return slices;
}

/**
 * The source of each property's value of the object `text`. As in `JSON.parse`, the last of equal keys wins.
 */
export function sliceProperties(text: string): Map<string, string> {
  const slices = new Map<string, string>();
  let at = skipWhitespace(text, skipWhitespace(text, 0) + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
    const endOfKey = findStringEnd(text, at);
    const quoted = text.slice(at, endOfKey);
    const key = quoted.includes("\\") ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
    const start = skipWhitespace(text, skipWhitespace(text, endOfKey) + 1);
    const end = findValueEnd(text, start);
    slices.set(key, text.slice(start, end));
    at = skipWhitespace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipWhitespace(text, at + 1);
  }
  return slices;
}

/**
 * The same JSON in canonical form: sorted keys, no whitespace, normalised strings, numbers as they were
 * written.
 */
export function toCanonicalJson(text: string, depth = 0): string {
  const start = skipWhitespace(text, 0);
  const first = text.charCodeAt(start);
  if (first === QUOTE) return JSON.stringify(JSON.parse(text));
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return text.trim();
  if (depth >= MAX_DEPTH) return JSON.stringify(text.trim());
  if (first === OPEN_BRACKET)
    return `[${sliceElements(text)
      .map((slice) => toCanonicalJson(slice, depth + 1))
      .join(",")}]`;
  const members = [...sliceProperties(text)].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, slice]) => `${JSON.stringify(key)}:${toCanonicalJson(slice, depth + 1)}`).join(",")}}`;
}

function skipWhitespace(text: string, from: number): number {
  let at = from;
  while (isWhitespace(text.charCodeAt(at))) at++;
  return at;
}

function isWhitespace(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

/** The position after the string that begins at `from`. */
function findStringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    // An even number of backslashes are escaped backslashes: the quote is a real one.
    if ((at - before) % 2 === 1) return at + 1;
  }
  return text.length;
}

/** The position after the value that begins at `from`. */
function findValueEnd(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return findStringEnd(text, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let at = from;
    while (at < text.length && !endsScalar(text.charCodeAt(at))) at++;
    return at;
  }
  let depth = 0;
  for (let at = from; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = findStringEnd(text, at);
      continue;
    }
    at++;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at;
  }
  return text.length;
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || isWhitespace(code);
}
