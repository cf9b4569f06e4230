import type { IndexTick } from "../records.ts";
import type { RowStream } from "../streams.ts";
import type { Micros } from "../time.ts";

/** A tick that is newer than all others of its index, as pages show it. */
export type CommittedTick = readonly [indexType: string, indexId: string, ts: Micros, price: number];

/** Undefined without a price. */
export function toCommittedTick(tick: IndexTick): CommittedTick | undefined {
  const { indexType, indexId, ts, price } = tick;
  return price ? [indexType, indexId, ts, price.real] : undefined;
}

/** What the writer sends open pages with a commit, so that nobody reads it back. */
export interface CommitNews {
  /** The streams with new or changed rows. */
  readonly streams: readonly RowStream[];
  readonly ticks: readonly CommittedTick[];
  /** By series: where rows or coverage changed otherwise. A page that shows a part of it reads that part again. */
  readonly ranges: readonly (readonly [series: number, from: Micros, to: Micros])[];
}

/** The news of several commits, in order, as those of one. */
export function joinNews(news: readonly CommitNews[]): CommitNews {
  const ranges = new Map<number, readonly [series: number, from: Micros, to: Micros]>();
  for (const [series, from, to] of news.flatMap((each) => each.ranges)) {
    const [, earliest, latest] = ranges.get(series) ?? [series, from, to];
    ranges.set(series, [series, Math.min(from, earliest), Math.max(to, latest)]);
  }
  return {
    streams: [...new Set(news.flatMap(({ streams }) => streams))],
    ticks: news.flatMap(({ ticks }) => ticks),
    ranges: [...ranges.values()],
  };
}
