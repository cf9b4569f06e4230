/**
 * Where things stand in a JSON text. `JSON.parse` is fast but forgets how a number was written; these functions
 * give the text of single values back. They expect text that `JSON.parse` has accepted, and loop instead of
 * calling themselves, so that no depth of nesting can exhaust the stack.
 */

const QUOTE = 34;
const COMMA = 44;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

/** Nesting that is kept as structure; what lies deeper is kept as one string with its text. */
const DEEPEST = 64;

/** The source of each element, in order, of the array that `text` is. */
export function elementSlices(text: string): string[] {
  const slices: string[] = [];
  let at = skipBlanks(text, skipBlanks(text, 0) + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = endOfValue(text, at);
    slices.push(text.slice(at, end));
    at = skipBlanks(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipBlanks(text, at + 1);
  }
  return slices;
}

/** The source of each property's value of the object that `text` is. As in `JSON.parse`, the last of two equal keys counts. */
export function propertySlices(text: string): Map<string, string> {
  const slices = new Map<string, string>();
  let at = skipBlanks(text, skipBlanks(text, 0) + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
    const endOfKey = endOfString(text, at);
    const quoted = text.slice(at, endOfKey);
    const key = quoted.includes("\\") ? String(JSON.parse(quoted)) : quoted.slice(1, -1);
    const start = skipBlanks(text, skipBlanks(text, endOfKey) + 1);
    const end = endOfValue(text, start);
    slices.set(key, text.slice(start, end));
    at = skipBlanks(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipBlanks(text, at + 1);
  }
  return slices;
}

/**
 * The same JSON in one fixed form: sorted keys, no blanks, one way to write each string, numbers as they were
 * written. Two texts that differ only in the order of properties become equal.
 */
export function canonicalJson(text: string, depth = 0): string {
  const start = skipBlanks(text, 0);
  const first = text.charCodeAt(start);
  if (first === QUOTE) return JSON.stringify(JSON.parse(text));
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return text.trim();
  if (depth >= DEEPEST) return JSON.stringify(text.trim());
  if (first === OPEN_BRACKET)
    return `[${elementSlices(text)
      .map((slice) => canonicalJson(slice, depth + 1))
      .join(",")}]`;
  const members = [...propertySlices(text)].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, slice]) => `${JSON.stringify(key)}:${canonicalJson(slice, depth + 1)}`).join(",")}}`;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at++;
  return at;
}

function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}

/** The position after the string that begins at `from`. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    // An even number of backslashes are escaped backslashes: the quote is a real one.
    if ((at - before) % 2 === 1) return at + 1;
  }
  return text.length;
}

/** The position after the value that begins at `from`. */
function endOfValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return endOfString(text, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let at = from;
    while (at < text.length && !endsScalar(text.charCodeAt(at))) at++;
    return at;
  }
  let depth = 0;
  for (let at = from; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    at++;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at;
  }
  return text.length;
}

function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || isBlank(code);
}
