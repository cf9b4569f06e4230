import { type Micros, parseTimestamp } from "../../../src/model/time.ts";
import {
  type HistoryWalkOptions,
  type PagePosition,
  walkHistoryPages,
} from "../../../src/service/pagination/history-walk.ts";
import { ManualClock } from "../manual-clock.ts";
import { createTestClient, readPage } from "./client-harness.ts";
import { ProvenCoverage, WalkContradiction } from "./proven-coverage.ts";
import {
  correctPage,
  type HistoryPage,
  type HistoryQuery,
  type HistoryRow,
  rowsEvery30s,
  UnknownCursorError,
} from "./stub-history.ts";
import { sendGzip, sendJson, startStubService } from "./stub-service.ts";

export const noonTs = parseTimestamp("2026-03-01T12:00:00Z") as Micros;
export const SECOND_MICROS = 1_000_000;
/** 100 rows, newest first. */
export const rows = rowsEvery30s(100, noonTs - 30 * SECOND_MICROS);
export const oldestTs = rows.at(-1)?.ts ?? 0;
export const allIds = rows.map(({ id }) => id);
export const distinct = (ids: readonly string[]) => [...new Set(ids)];

/** No walk of a test needs as many. */
const MAX_REQUESTS = 1000;

export type PageOverride = (
  query: HistoryQuery,
  count: number,
  history: readonly HistoryRow[],
) => HistoryPage | undefined;

/** Walks a history of 100 rows in pages of ten. `override` may replace any page of the correct server. */
export async function walkHistory(
  override: PageOverride = () => undefined,
  {
    history = rows,
    // Late enough to ask for noon: the service's time is known to a second.
    now = noonTs + 2 * SECOND_MICROS,
    ...settings
  }: Partial<HistoryWalkOptions> & { history?: readonly HistoryRow[]; now?: Micros } = {},
) {
  const clock = new ManualClock(now / 1000);
  const endless = new AbortController();
  const stub = await startStubService({
    clock,
    respond: ({ query }, response, count) => {
      if (count > MAX_REQUESTS) endless.abort(new Error("the walk does not end"));
      try {
        sendGzip(response, override(query, count, history) ?? correctPage(history, query));
      } catch (error) {
        if (!(error instanceof UnknownCursorError)) throw error;
        sendJson(response, {}, 404);
      }
    },
  });
  const { client, events } = createTestClient(stub.baseUrl, clock);
  const filters = { indexType: "GWA", indexId: "an/index" };
  const range = { from: oldestTs - SECOND_MICROS, until: noonTs, ...settings };
  const coverage = new ProvenCoverage({ from: range.from, to: range.coverageEnd ?? range.until });
  const ids: string[] = [];
  const positions: PagePosition[] = [];
  const run = async () => {
    const { signal } = endless;
    const walk = { endpoint: "/index-ticker", filters, size: 10, signal, ...range } as const;
    for await (const { page, position } of walkHistoryPages(client, walk, readPage)) {
      ids.push(...page.content.map(({ id }) => id));
      positions.push(position);
      try {
        coverage.addPage(page.timestamps, position);
      } catch (error) {
        if (!(error instanceof WalkContradiction)) throw error;
      }
    }
  };
  const failure = await clock.runUntil(run().catch((error: unknown) => error));
  await stub.stop();
  const received = new Set(ids);
  return {
    ids,
    positions,
    queries: stub.requests.map(({ query }) => query),
    failure,
    events: events.flatMap((each) => (each.kind === "walk" ? [each.event] : [])),
    /** Rows that the pages cover but do not contain. */
    falselyCovered: history
      .filter(({ id, ts }) => coverage.covers(ts) && !received.has(id))
      .map(({ id }) => id),
    /** The pages cover the whole range. */
    isComplete: coverage.openRanges.length === 0,
    end: positions.at(-1)?.end,
  };
}
