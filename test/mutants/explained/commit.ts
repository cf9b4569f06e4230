import type { ExplainedMutants } from "../check-survivors.ts";

const equalMaximum = "Replacing a maximum by an equal value changes nothing.";

const noPage =
  "A text in place of a page has neither a time nor a range: it supersedes no page, and goes first.";

export const explainedInCommit: ExplainedMutants = {
  "src/ingest/commit/committed-pages.ts": [
    {
      line: "const pages = this.#pagesBySeries.get(ledgerKeyText({ stream, series })) ?? [];",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: noPage,
    },
    { line: "pages = [];", mutants: ['ArrayDeclaration: ["Stryker was here"]'], why: noPage },
  ],
  "src/ingest/commit/lookup.ts": [
    {
      line: 'const ids = pageIds.flatMap((pageId) => pages.get("assets", pageId).records.map(({ id }) => id));',
      mutants: ['StringLiteral: ""'],
      why: "A page is found by its number; the stream tells the compiler which records it has.",
    },
  ],
  "src/ingest/commit/late-records.ts": [
    {
      line: "if (!before || oldest === undefined || isDaily(key.stream)) return;",
      mutants: ["ConditionalExpression: false"],
      why: "A page without timestamps has no late ones; the check of the oldest is for the compiler.",
    },
    {
      line: "if (unknown.length === 0) return;",
      mutants: ["ConditionalExpression: false"],
      why: "It saves a query: without unknown timestamps none is late.",
    },
  ],
  "src/ingest/commit/refresh-periods.ts": [
    {
      line: "} else if (!last || ts > last.ts) {",
      mutants: ["EqualityOperator: ts >= last.ts"],
      why: "An equal timestamp is handled by the branch before.",
    },
    {
      line: "const isNextRefresh = last !== undefined && ts > last.ts && ts - last.ts <= reach;",
      mutants: ["EqualityOperator: ts >= last.ts"],
      why: "The observation of an equal timestamp begins where this one does.",
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
      line: "return lastTickTs !== undefined && lastTickTs >= since ? [] : [{ indexType, indexId, lastTickTs }];",
      mutants: ["ConditionalExpression: true"],
      why: "An unknown timestamp is not at a time or later; the check is for the compiler.",
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
      line: "if (!ticks.some(({ ts }) => ts > latest)) return ticks;",
      mutants: [
        "ConditionalExpression: false",
        "ConditionalExpression: true",
        "EqualityOperator: ts >= latest",
      ],
      why: "It saves copying the list: the filter keeps all ticks if none is ahead.",
    },
    {
      line: 'ahead[stream].push({ reason: AHEAD_REASON, raw: truncateRaw(texts[stream][at] ?? "") });',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: "Each tick has its text; the default is for the compiler.",
    },
    {
      line: "for (const ticks of lists) for (const { ts } of ticks) if (newest === undefined || ts > newest) newest = ts;",
      mutants: ["EqualityOperator: ts >= newest"],
      why: equalMaximum,
    },
  ],
  "src/ingest/commit/snapshot.ts": [
    {
      line: "for (const { ts } of records) if (ts <= latest && (newest === undefined || ts > newest)) newest = ts;",
      mutants: ["EqualityOperator: ts >= newest"],
      why: equalMaximum,
    },
    {
      line: 'const key = partKey(snapshot, "all");',
      mutants: ['StringLiteral: ""'],
      why: "The refresh periods are a map of their own: stream and exchange tell its keys apart.",
    },
    {
      line: 'return `${stream} ${part} ${exchangeId ?? ""}`;',
      mutants: ['StringLiteral: "Stryker was here!"'],
      why: "The text is a key in memory: it only has to differ from the ids of exchanges.",
    },
  ],
  "src/ingest/commit/walk-page.ts": [
    {
      line: 'if (stream !== "index_ticks" || newest === undefined || oldest === undefined) return [];',
      mutants: ["ConditionalExpression: false"],
      why: "SQL finds no row near an unknown timestamp: the checks of the timestamps are for the compiler.",
    },
  ],
};
