import type { ExplainedMutants } from "../check-survivors.ts";

const slowPath =
  "What the fast path leaves, the slow path parses to the same result, at three times the cost.";
const alwaysDefined = "The default is for the compiler: the group takes part in every match.";
const chunkSize =
  "The hint is the size of a chunk; zlib decompresses the same bytes in chunks of any size above its minimum.";
const notRead = "Without a match the first element, which the mutant adds, is not read.";
const sameName = "Without the cache of names the result is the same, only slower.";
const cache = "Without the cache of the last date the result is the same, only slower.";

const sameJson = "`JSON.stringify` below gives the same text; the fast path saves two thirds of the time.";

export const explainedInModel: ExplainedMutants = {
  "src/model/column.ts": [
    {
      line: "if (found === undefined) {",
      mutants: ["ConditionalExpression: true"],
      why: sameName,
    },
    { line: "camelCased.set(name, found);", mutants: ["CallExpression: ;"], why: sameName },
  ],
  "src/model/decimal.ts": [
    {
      line: "if (!Number.isNaN(short)) {",
      mutants: ["ConditionalExpression: false", "BlockStatement: {}"],
      why: slowPath,
    },
    {
      line: "const negative = text.charCodeAt(0) === 45;",
      mutants: ["ConditionalExpression: false"],
      why: slowPath,
    },
    {
      line: "for (let i = negative ? 1 : 0; i < length; i++) {",
      mutants: [
        "ConditionalExpression: false",
        "EqualityOperator: i <= length",
        "EqualityOperator: i >= length",
        "UpdateOperator: i--",
        "BlockStatement: {}",
      ],
      why: slowPath,
    },
    {
      line: "if (code >= 48 && code <= 57) {",
      mutants: [
        "ConditionalExpression: false",
        "EqualityOperator: code > 48",
        "EqualityOperator: code < 57",
        "BlockStatement: {}",
      ],
      why: slowPath,
    },
    {
      line: "} else if (code === 46 && point < 0) point = digits;",
      mutants: ["ConditionalExpression: false", "EqualityOperator: point >= 0"],
      why: slowPath,
    },
    {
      line: "if (digits === 0 || digits > MAX_EXACT_DIGITS) return Number.NaN;",
      mutants: ["ConditionalExpression: true", "EqualityOperator: digits >= MAX_EXACT_DIGITS"],
      why: slowPath,
    },
    {
      line: "if (plain === undefined) return undefined;",
      mutants: ["ConditionalExpression: false"],
      why: "`Number(undefined)` is NaN, which the next check rejects. The compiler wants this one.",
    },
    {
      line: 'const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: alwaysDefined,
    },
    {
      line: 'const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;',
      mutants: ['StringLiteral: ""'],
      why: '`Number("")` is 0, as `Number("0")` is.',
    },
    {
      line: 'const padded = "0".repeat(Math.max(0, 1 - point)) + digits + "0".repeat(Math.max(0, point - digits.length));',
      mutants: ["ArithmeticOperator: point + digits.length"],
      why: "More zeros than needed are all behind the point, where trailing zeros are cut.",
    },
  ],
  "src/model/did-you-mean.ts": [
    {
      line: "let rowBeforePrevious: number[] = [];",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: "It is read from the second row on, when it has been replaced.",
    },
  ],
  "src/model/service-url.ts": [
    {
      line: 'const [, schemeAndUser, hosts = "", rest] = match;',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: alwaysDefined,
    },
  ],
  "src/model/response-body.ts": [
    {
      line: "function gzipLengthHint(gzipped: Uint8Array): number {",
      mutants: ["BlockStatement: {}"],
      why: chunkSize,
    },
    {
      line: "const stated = new DataView(buffer, byteOffset).getUint32(byteLength - 4, true) + 1;",
      mutants: [
        "ArithmeticOperator: new DataView(buffer, byteOffset).getUint32(byteLength - 4, true) - 1",
        "BooleanLiteral: false",
      ],
      why: chunkSize,
    },
    {
      line: "const hint = stated > byteLength ? stated : byteLength * MAX_USUAL_RATIO;",
      mutants: [
        "ConditionalExpression: true",
        "ConditionalExpression: false",
        "EqualityOperator: stated >= byteLength",
        "EqualityOperator: stated <= byteLength",
        "ArithmeticOperator: byteLength / MAX_USUAL_RATIO",
      ],
      why: chunkSize,
    },
    {
      line: "return Math.min(Math.max(hint, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES);",
      mutants: ["MethodExpression: Math.max(Math.max(hint, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES)"],
      why: chunkSize,
    },
  ],
  "src/model/row-text.ts": [
    {
      line: "const plainText = /^[ !#-[\\]-\\ud7ff\\ue000-\\uffff]*$/;",
      mutants: ["Regex: /^[ !#-[\\]-\\ud7ff\\ue000-\\uffff]$/"],
      why: sameJson,
    },
    {
      line: 'if (typeof value === "string") return plainText.test(value) ? `"${value}"` : JSON.stringify(value);',
      mutants: ["ConditionalExpression: false", 'StringLiteral: ""'],
      why: sameJson,
    },
    {
      line: 'if (value === null) return "null";',
      mutants: ["ConditionalExpression: false"],
      why: sameJson,
    },
    {
      line: 'if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";',
      mutants: ["ConditionalExpression: false", 'StringLiteral: ""'],
      why: sameJson,
    },
  ],
  "src/model/selector.ts": [
    {
      line: "const labels = names.length > 0 ? candidates.flatMap((candidate) => candidate.labels) : [];",
      mutants: [
        "ConditionalExpression: true",
        "EqualityOperator: names.length >= 0",
        'ArrayDeclaration: ["Stryker was here"]',
      ],
      why: "It saves a list of all labels that nobody reads if every name is known.",
    },
  ],
  "src/model/status/share-status.ts": [
    {
      line: "if (lag_seconds !== null && lag_seconds > MAX_SHARE_LAG_SECONDS)",
      mutants: ["ConditionalExpression: true"],
      why: "Null is not greater than the limit. The check is for the compiler.",
    },
  ],
  "src/model/tick-columns.ts": [
    {
      line: "return volume !== undefined && tickVolume === undefined && !(exact.size > 0 && exact.has(row));",
      mutants: ["ConditionalExpression: true", "EqualityOperator: exact.size >= 0"],
      why: "It saves a lookup for every row: an empty map has none of them.",
    },
  ],
  "src/model/time-range.ts": [
    {
      line: "if (range.to > last.to) merged[merged.length - 1] = { from: last.from, to: range.to };",
      mutants: ["EqualityOperator: range.to >= last.to"],
      why: "If both ends are equal, the range is replaced by an equal one.",
    },
    {
      line: "while (next < b.length && (b[next] as TimeRange).to <= from) next++;",
      mutants: ["ConditionalExpression: false", "EqualityOperator: (b[next] as TimeRange).to < from"],
      why: "It skips ranges that end before `from`. The loop below passes over them without an effect, only slower.",
    },
    {
      line: "for (let i = next; i < b.length && (b[i] as TimeRange).from < range.to; i++) {",
      mutants: ["EqualityOperator: (b[i] as TimeRange).from <= range.to"],
      why: "A cut that begins at the range's end adds what the line after the loop would add.",
    },
    {
      line: "if (x.to < y.to) i++;",
      mutants: ["EqualityOperator: x.to <= y.to"],
      why: "If both end together, either may go first: the next range of the other list begins later.",
    },
  ],
  "src/model/time.ts": [
    {
      line: 'let cachedDate = "";',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: "A date has ten characters: it equals neither text.",
    },
    {
      line: "if (date === cachedDate) return cachedDays;",
      mutants: ["ConditionalExpression: false"],
      why: cache,
    },
    {
      line: "const days = parseDateDays(text.slice(0, 10));",
      mutants: ["MethodExpression: text"],
      why: `The function reads ten characters. ${cache}`,
    },
    {
      line: "for (; at < text.length; at++) {",
      mutants: ["EqualityOperator: at <= text.length"],
      why: "Behind the text `charCodeAt` gives NaN, which is no digit and ends the loop.",
    },
    {
      line: 'const [, day, minute = "00:00", second = ":00"] = dateAndTime.exec(text) ?? [];',
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: notRead,
    },
    {
      line: 'const [, count, unit = ""] = /^(?:now)?-(\\d{1,9})([smhdw])$/.exec(text) ?? [];',
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: notRead,
    },
    {
      line: 'const [, count, unit = ""] = /^(?:now)?-(\\d{1,9})([smhdw])$/.exec(text) ?? [];',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: alwaysDefined,
    },
  ],
};
