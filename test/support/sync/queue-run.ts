import { INTRADAY_WINDOW, MAX_PAGE_SIZE } from "../../../src/model/streams.ts";
import { MICROS_PER_MS, type Micros, parseTimestamp } from "../../../src/model/time.ts";
import { normalise, type TimeRange, type TimeRanges } from "../../../src/model/time-range.ts";
import { Parking } from "../../../src/service/auth/parking.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import type { PageSummary } from "../../../src/service/pagination/request-page.ts";
import { cutIntoSlices, type SliceWalk, urgencies } from "../../../src/sync/history/walk-planner.ts";
import { WalkQueue } from "../../../src/sync/history/walk-queue.ts";

export interface QueueRunOptions {
  /** Ascending timestamps of each series; whole seconds. */
  readonly histories: readonly (readonly Micros[])[];
  /** What is to be filled, the same for each series. */
  readonly open: TimeRanges;
  readonly targetEnd: Micros;
  readonly windowStart: Micros;
  readonly cadence: Micros;
  readonly workers: number;
  readonly pageSize?: number;
  /** The last page has a cursor too. */
  readonly hasNextIdAtEnd?: boolean;
}

interface StubPage extends PageSummary {
  /** The rows of the series that it has: from the first to before the end. */
  readonly first: number;
  readonly end: number;
  /** The service's time, in milliseconds. */
  readonly asOf: number;
}

/** Fills gaps from an honest service in memory, with the real queue and the real walk. */
export async function runQueue(options: QueueRunOptions) {
  const { histories, open, targetEnd, windowStart, cadence, workers } = options;
  const pageSize = options.pageSize ?? MAX_PAGE_SIZE;
  const requests = histories.map(() => 0);
  /** Per series and row: 1 if a page had it. */
  const received = histories.map(({ length }) => new Uint8Array(length));
  const covered: TimeRange[][] = histories.map(() => []);
  const pending: (() => void)[] = [];
  /** Requests at the same time, at most; steps until the end if every request takes one. */
  let [inFlight, maxInFlight, steps] = [0, 0, 0];

  const answer = (series: number, timestamp: string, startAfter: unknown, size: number): StubPage => {
    const rows = histories[series] as readonly Micros[];
    const bound = startAfter === undefined ? (parseTimestamp(timestamp) as Micros) + 1 : Number(startAfter);
    const end = lowerIndex(rows, bound);
    const first = Math.max(0, end - Math.min(size, pageSize));
    const timestamps = rows.slice(first, end);
    const oldest = timestamps[0];
    const isLast = oldest === undefined || first === 0;
    const distances = timestamps.slice(1).map((ts, at) => ts - (timestamps[at] as Micros));
    return {
      rows: timestamps.length,
      nextId: oldest === undefined || (isLast && !options.hasNextIdAtEnd) ? undefined : String(oldest),
      oldest,
      newest: timestamps.at(-1),
      isDescending: true,
      rowDistance: distances.sort((a, b) => b - a)[2],
      first,
      end,
      asOf: (windowStart + INTRADAY_WINDOW) / MICROS_PER_MS,
    };
  };
  const client = {
    parking: new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0),
    onEvent: () => {},
    async request<T>({ query = {} }: { query?: Record<string, unknown> }, read: (body: never) => Promise<T>) {
      const series = Number(query.indexId);
      requests[series] = (requests[series] ?? 0) + 1;
      maxInFlight = Math.max(maxInFlight, ++inFlight);
      await new Promise<void>((resolve) => pending.push(resolve));
      inFlight--;
      return read(
        answer(series, String(query.timestamp), query.startAfter, Number(query.size)) as unknown as never,
      );
    },
  };
  const slices = cutIntoSlices({ stream: "index_ticks", targetEnd, cadence }, open, windowStart);
  const walks = histories.flatMap((_, series) =>
    slices.map(
      (slice) => ({ ...slice, series: { key: { stream: "index_ticks", series }, cadence } }) as SliceWalk,
    ),
  );
  const queue = new WalkQueue(
    walks,
    () => undefined,
    ({ urgency }) => urgencies.indexOf(urgency),
  );
  const work = async () => {
    while (!queue.isDone) {
      const active = queue.take();
      if (!active) {
        await queue.changed;
        continue;
      }
      const { range } = active.walk;
      const { series } = active.walk.series.key;
      const walk = {
        endpoint: "/index-ticker" as const,
        filters: { indexType: "GWA", indexId: String(series) },
        get from() {
          return active.from;
        },
        extend: (lowerBound: Micros) => active.extend(lowerBound),
        isExploring: active.isExploring,
        spacing: active.spacing,
        get size() {
          return Math.min(MAX_PAGE_SIZE, active.pageSize + 8);
        },
        until: range.to,
        cadence,
      };
      let pageCount = 0;
      let hasFoundEnd = false;
      const read = async (body: unknown) => body as StubPage;
      for await (const { page, position } of walkHistoryPages(client as never, walk, read)) {
        active.onPage(page, position.size);
        pageCount++;
        received[series]?.fill(1, page.first, page.end);
        const from =
          position.end === "exhausted" ? position.from : Math.max(position.from, (page.oldest ?? 0) + 1);
        const to = Math.min(range.to, position.provenFrom);
        if (from < to) covered[series]?.push({ from, to });
        if (position.end !== "exhausted") continue;
        hasFoundEnd = true;
        for (const gap of open) {
          const below = { from: gap.from, to: Math.min(gap.to, position.from) };
          if (below.from < below.to) covered[series]?.push(below);
        }
      }
      queue.finish(active, { kind: pageCount === 0 ? "empty" : "filled", hasFoundEnd });
    }
  };
  const all = Promise.all(Array.from({ length: workers }, work));
  let isOver = false;
  const setOver = () => {
    isOver = true;
  };
  all.then(setOver, setOver);
  while (!isOver) {
    await new Promise(setImmediate);
    steps++;
    for (const resolve of pending.splice(0)) resolve();
  }
  await all;
  return { requests, received, covered: covered.map((ranges) => normalise(ranges)), maxInFlight, steps };
}

/** The number of rows before `bound`. */
function lowerIndex(rows: readonly Micros[], bound: Micros): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle] as Micros) < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
