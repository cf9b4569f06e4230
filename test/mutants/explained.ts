import type { ExplainedMutants } from "./check-survivors.ts";

const slowPath =
  "What the fast path leaves, the slow path parses to the same result, at three times the cost.";
const alwaysDefined = "The default is for the compiler: the group takes part in every match.";
const chunkSize = "The hint is the size of a chunk; zlib decompresses the same bytes in chunks of any size.";
const undefinedIsNotLess = "A comparison with undefined is false. The check is for the compiler.";
const notShown = "The sentence is for a walk that cannot restart; this line is reached only if it can.";
const equalMaximum = "Replacing a maximum by an equal value changes nothing.";
const sameCall = "The branches make the same call; they differ in the types that the compiler sees.";
const notLive = "The writer asks whether the source is `live`; the type allows no third value.";
const sameRanges = "It saves writing: without it the ledger replaces a range by an equal one.";
const notRead = "Without a match the first element, which the mutant adds, is not read.";
const sameName = "Without the cache of names the result is the same, only slower.";
const cache = "Without the cache of the last date the result is the same, only slower.";

/**
 * Every mutant that survives and may: no test could tell it from the code. By file, then by the text of the
 * source line. `mutants`: mutator and replacement. `npm run mutants` fails on an entry whose line has changed.
 */
export const explainedMutants: ExplainedMutants = {
  "src/model/announced-coverage.ts": [
    {
      line: 'const [text = "", state, fromText = "", toText = "", reason = null] = rangePattern.exec(rest) ?? [];',
      mutants: ['StringLiteral: "Stryker was here!"', 'ArrayDeclaration: ["Stryker was here"]'],
      why: "Without a match neither text is a timestamp, so that the rest is not read.",
    },
    {
      line: 'windowStart: parseTimestamp(header(WINDOW_HEADER) ?? ""),',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: "Neither text is a timestamp.",
    },
  ],
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
      mutants: [
        "MethodExpression: Math.max(Math.max(hint, MIN_CHUNK_BYTES), MAX_CHUNK_BYTES)",
        "MethodExpression: Math.min(hint, MIN_CHUNK_BYTES)",
      ],
      why: chunkSize,
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
  "src/ingest/commit/live-coverage.ts": [
    {
      line: "const { exchanges, markets, cadence, startedSpans = [], endedSpans = [], retractions = [] } = change;",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: "A text in place of a span or a range has no properties: it ends no span and retracts nothing.",
    },
    {
      line: "if (liveSince.get(exchangeId) !== this.#exchanges.get(exchangeId)) this.#openPeriods.delete(exchangeId);",
      mutants: ["ConditionalExpression: false", "CallExpression: ;"],
      why: "It frees memory. A period from before a new subscription is older than it, and such periods are never settled.",
    },
    {
      line: "if (since === undefined || liveSince.get(exchangeId) === since || at < since) continue;",
      mutants: ["ConditionalExpression: false"],
      why: "Only exchanges with subscriptions have an open period: `since` is defined. The check is for the compiler.",
    },
    {
      line: "return this.#markets === null ? ticks : ticks.filter((tick) => this.#isSelected(tick));",
      mutants: ["ConditionalExpression: false"],
      why: "Without a selection every tick is selected; the check saves the copy of the list.",
    },
    {
      line: "if (ts > (newest.get(indexType) ?? 0)) newest.set(indexType, ts);",
      mutants: ["EqualityOperator: ts >= (newest.get(indexType) ?? 0)"],
      why: equalMaximum,
    },
    {
      line: "if (this.#exchanges.size === 0) return;",
      mutants: ["ConditionalExpression: false"],
      why: "Ticks of exchanges without subscriptions settle nothing; the check saves the loop over them.",
    },
    {
      line: "if (since === undefined || tick.ts < since) return;",
      mutants: ["ConditionalExpression: false", "LogicalOperator: since === undefined && tick.ts < since"],
      why: "A period that begins before `since` is never settled, whichever of its ticks opened it.",
    },
    {
      line: "} else if (progress.pendingSkip && ts > progress.pendingSkip.after && ts < progress.pendingSkip.at) {",
      mutants: [
        "ConditionalExpression: true",
        "EqualityOperator: ts >= progress.pendingSkip.after",
        "EqualityOperator: ts <= progress.pendingSkip.at",
      ],
      why: "A tick at either end splits the step into nothing and the same step; here no tick is newer than its end.",
    },
  ],
  "src/ingest/commit/live.ts": [
    {
      line: "for (const ticks of lists) for (const { ts } of ticks) if (newest === undefined || ts > newest) newest = ts;",
      mutants: ["EqualityOperator: ts >= newest"],
      why: equalMaximum,
    },
  ],
  "src/ingest/commit/snapshot.ts": [
    {
      line: 'case "exchange_ticks":',
      mutants: ['ConditionalExpression: case "exchange_ticks":'],
      why: sameCall,
    },
    {
      line: 'case "market_caps":',
      mutants: ['ConditionalExpression: case "market_caps":'],
      why: sameCall,
    },
    {
      line: 'return writeRecords(transaction, stream, records as ExchangeTick[], "rest");',
      mutants: ['StringLiteral: ""'],
      why: notLive,
    },
    {
      line: 'return writeRecords(transaction, stream, records as MarketCap[], "rest");',
      mutants: ['StringLiteral: ""'],
      why: notLive,
    },
    {
      line: 'return writeRecords(transaction, stream, records as DerivativeTick[], "rest");',
      mutants: ['StringLiteral: ""'],
      why: notLive,
    },
    {
      line: "for (const { ts } of records) if (ts <= latest && (newest === undefined || ts > newest)) newest = ts;",
      mutants: ["EqualityOperator: ts >= newest"],
      why: equalMaximum,
    },
    {
      line: 'return `${stream} ${part} ${exchangeId ?? ""}`;',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: "The text is a key in memory: it only has to differ from the ids of exchanges.",
    },
  ],
  "src/ingest/commit/targets.ts": [
    {
      line: 'endSnapshotTarget(transaction, { stream, exchangeId: id === "" ? null : id, at });',
      mutants: ["ConditionalExpression: false", 'StringLiteral: "Stryker was here!"'],
      why: "The dictionary stores null as an empty text: both have the same key.",
    },
  ],
  "src/warehouse/coverage/ledger.ts": [
    {
      line: "if (same.length === 1 && contains(same[0], range)) return;",
      mutants: [
        "ConditionalExpression: false",
        "ConditionalExpression: true",
        "EqualityOperator: same.length !== 1",
      ],
      why: `${sameRanges} Of several ranges that touch this one, none contains it: they would touch each other.`,
    },
    {
      line: "if (hasHistory(key.stream)) transaction.highWaterMarks.raise(key.stream, key.series, range.to - 1);",
      mutants: ["ArithmeticOperator: range.to + 1"],
      why: "A mark that is too high costs the writer a lookup of the row, which finds none.",
    },
    {
      line: "function contains(outer: TimeRange | undefined, inner: TimeRange): boolean {",
      mutants: ["BlockStatement: {}"],
      why: sameRanges,
    },
    {
      line: "return outer !== undefined && outer.from <= inner.from && outer.to >= inner.to;",
      mutants: [
        "ConditionalExpression: false",
        "ConditionalExpression: true",
        "EqualityOperator: outer === undefined",
        "EqualityOperator: outer.from < inner.from",
        "EqualityOperator: outer.to > inner.to",
      ],
      why: `${sameRanges} The check for undefined is for the compiler.`,
    },
    {
      line: "return found.filter(({ to }) => to >= range.from);",
      mutants: ["MethodExpression: found", "ConditionalExpression: true"],
      why: "A range that ends before is not cut and not merged: it would be replaced by itself.",
    },
    {
      line: "assertValidLedger([...newRanges].sort((a, b) => a.from - b.from));",
      mutants: ["ArrayDeclaration: []"],
      why: "It guards the file against a mistake in this module: no call can make it fail.",
    },
    {
      line: "if (from >= to || !hasHistory(stream)) return false;",
      mutants: ["ConditionalExpression: false", "EqualityOperator: from > to"],
      why: "The query finds no row in an empty range either.",
    },
  ],
  "src/warehouse/coverage/snapshot-gaps.ts": [
    {
      line: "const ownTargets = (targets.get(ledgerKeyText(key)) ?? []).map((row) => ({ ...row, isSnapshot: true }));",
      mutants: ['ArrayDeclaration: ["Stryker was here"]', "BooleanLiteral: false"],
      why: "A text as a target has no range. Whether a gap is `lost` or `open`, this pass shows it as lost.",
    },
    {
      line: "for (let gap = gaps[next]; gap && gap.from < end; gap = gaps[++next]) {",
      mutants: ["EqualityOperator: gap.from <= end"],
      why: "No gap begins where a settled range or the next part begins.",
    },
    {
      line: "const last = settled.length < RANGES_PER_READ ? undefined : settled.at(-1);",
      mutants: ["ConditionalExpression: false"],
      why: "It saves a last read, which finds nothing.",
    },
  ],
  "src/service/pagination/walk-state.ts": [
    {
      line: "return this.#oldestTs !== undefined && anchorForRow(endpoint, this.#oldestTs) < this.#anchor;",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: "newest !== undefined &&",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: "this.#oldestTs !== undefined &&",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: 'if (this.canRestart) this.#restart("dead_cursor", "the service rejects its cursor");',
      mutants: ['StringLiteral: ""'],
      why: notShown,
    },
    {
      line: 'this.#restart(rows === 0 ? "dead_cursor" : "contradiction", "a page without nextId is not the last");',
      mutants: ['StringLiteral: ""'],
      why: notShown,
    },
    {
      line: "if (this.#cursor !== undefined) this.#cursors.forget(this.#cursor);",
      mutants: ["ConditionalExpression: true"],
      why: "Deleting undefined from a set of texts does nothing. The check is for the compiler.",
    },
    {
      line: "if (this.#oldestTs === undefined || !this.canRestart) throw paginationCycleFailure(endpoint, why);",
      mutants: ["ConditionalExpression: false"],
      why: "Without an oldest row `canRestart` is false. The check is for the compiler.",
    },
  ],
};
