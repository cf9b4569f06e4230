import { type Micros, parseInstant } from "../../../src/model/time.ts";
import { type PagePosition, type Walk, walkBackwards } from "../../../src/service/pagination/history-walk.ts";
import { TurnedClock } from "../manual-clock.ts";
import { clientOf, readPage } from "./client-harness.ts";
import { Alarm, WalkCredit } from "./proven-coverage.ts";
import {
  DeadCursor,
  type HistoryPage,
  type HistoryQuery,
  type HistoryRow,
  honestPage,
  rowsEvery30s,
} from "./stub-history.ts";
import { json, startStub, zipped } from "./stub-service.ts";

export const noon = parseInstant("2026-03-01T12:00:00Z") as Micros;
export const second = 1_000_000;
/** A hundred, newest first. */
export const rows = rowsEvery30s(100, noon - 30 * second);
export const oldestTs = rows.at(-1)?.ts ?? 0;
export const allIds = rows.map(({ id }) => id);
export const distinct = (ids: readonly string[]) => [...new Set(ids)];

export type Answer = (
  query: HistoryQuery,
  count: number,
  history: readonly HistoryRow[],
) => HistoryPage | undefined;

export interface Walked {
  readonly ids: string[];
  readonly positions: PagePosition[];
  readonly queries: Record<string, string>[];
  readonly failure: unknown;
  readonly events: string[];
  /** Rows of the walk's range that the pages settled, though they did not bring them. */
  readonly falselyCovered: string[];
  /** The whole range was settled. */
  readonly isWhole: boolean;
  readonly end: PagePosition["end"];
}

/** Walks a history of 100 rows in pages of ten, where `answer` gives every page that the honest server does not. */
export async function walked(
  answer: Answer = () => undefined,
  {
    history = rows,
    now = noon,
    ...settings
  }: Partial<Walk> & { history?: readonly HistoryRow[]; now?: Micros } = {},
): Promise<Walked> {
  const clock = new TurnedClock(now / 1000);
  const stub = await startStub({
    clock,
    answer: ({ query }, response, count) => {
      try {
        zipped(response, answer(query, count, history) ?? honestPage(history, query));
      } catch (error) {
        if (!(error instanceof DeadCursor)) throw error;
        json(response, {}, 404);
      }
    },
  });
  const { client, observed } = clientOf(stub.baseUrl, clock);
  const filters = { indexType: "GWA", indexId: "an/index" };
  const range = { from: oldestTs - second, until: noon, ...settings };
  const credit = new WalkCredit({ from: range.from, to: range.claimedTo ?? range.until });
  const ids: string[] = [];
  const positions: PagePosition[] = [];
  const run = async () => {
    const walk = { endpoint: "/index-ticker", filters, size: 10, ...range } as const;
    for await (const { page, position } of walkBackwards(client, walk, readPage)) {
      ids.push(...page.content.map(({ id }) => id));
      positions.push(position);
      try {
        credit.take(
          page.content.flatMap(({ timestamp = "" }) => parseInstant(timestamp) ?? []),
          position,
        );
      } catch (error) {
        if (!(error instanceof Alarm)) throw error;
      }
    }
  };
  const failure = await clock.runUntil(
    run().then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  await stub.stop();
  const given = new Set(ids);
  return {
    ids,
    positions,
    queries: stub.requests.map(({ query }) => query),
    failure,
    events: observed.flatMap((each) => (each.kind === "walk" ? [each.event] : [])),
    falselyCovered: history.filter(({ id, ts }) => credit.has(ts) && !given.has(id)).map(({ id }) => id),
    isWhole: credit.open.length === 0,
    end: positions.at(-1)?.end,
  };
}
