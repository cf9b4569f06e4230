import { describe, expect, it } from "vitest";
import { DEFAULT_CADENCE, INTRADAY_WINDOW } from "../../../src/model/streams.ts";
import { formatToMillisecond, MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../../../src/model/time.ts";
import { Parking } from "../../../src/service/auth/parking.ts";
import type { RequestSender } from "../../../src/service/client/client.ts";
import type { RequestQuery, ServiceRequest } from "../../../src/service/http/request.ts";
import {
  type HistoryWalkOptions,
  type PagePosition,
  walkHistoryPages,
} from "../../../src/service/pagination/history-walk.ts";
import type { RowSpacing } from "../../../src/service/pagination/missing-row-checks.ts";
import { readPage } from "../../support/service/client-harness.ts";
import {
  correctPage,
  type HistoryPage,
  type HistoryRow,
  toHistoryPage,
} from "../../support/service/stub-history.ts";
import { noonTs, oldestTs, rows } from "../../support/service/walk-history.ts";

const period = DEFAULT_CADENCE;
/** No walk here needs as many. */
const MAX_REQUESTS = 100;
const tenRows = (at: number) => toHistoryPage(rows.slice(at, at + 10));
const withoutCursor = ({ content }: HistoryPage): HistoryPage => ({ content });

interface ServedWalk {
  readonly history?: readonly HistoryRow[];
  /** The service's time; undefined: the n-th response has none. */
  readonly asOf?: (count: number) => Micros | undefined;
  /** Replaces the page of the n-th request. */
  readonly answer?: (query: RequestQuery, count: number) => HistoryPage | undefined;
  /** Called before each page is yielded to the walk's caller. */
  readonly onPage?: (position: PagePosition) => void;
}

/** Walks the rows in pages of ten, without a server. */
async function walk(
  options: Partial<HistoryWalkOptions> = {},
  { history = rows, asOf = () => undefined, answer, onPage }: ServedWalk = {},
) {
  const requests: ServiceRequest[] = [];
  const client: RequestSender = {
    onEvent: () => {},
    parking: new Parking({ monotonic: () => 0, boottime: () => 0 }, () => 0),
    request: (request, read) => {
      const count = requests.push(request);
      if (count > MAX_REQUESTS) throw new Error("the walk does not end");
      const query = Object.fromEntries(
        Object.entries(request.query ?? {}).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, String(value)]],
        ),
      );
      const page = answer?.(query, count) ?? correctPage(history, query);
      const bytes = new TextEncoder().encode(JSON.stringify(page));
      const time = asOf(count);
      return read({ bytes, ageMs: 0, asOf: time && time / MICROS_PER_MS, requestedAt: 0 });
    },
  };
  const positions: PagePosition[] = [];
  // Keeps getters: the walk reads some options again for each page.
  const walked: HistoryWalkOptions = Object.create(
    { endpoint: "/index-ticker", filters: { indexId: "x" }, from: oldestTs - 1, until: noonTs, size: 10 },
    Object.getOwnPropertyDescriptors(options),
  ) as HistoryWalkOptions;
  const rowCounts: number[] = [];
  for await (const { page, position } of walkHistoryPages(client, walked, readPage)) {
    rowCounts.push(page.rows);
    positions.push(position);
    onPage?.(position);
  }
  const last = positions.at(-1);
  return { requests, positions, rowCounts, last, sizes: requests.map(({ query }) => query?.size) };
}

describe("the requests of a walk", () => {
  it("have the size that the option has at the time", async () => {
    let size = 10;
    const { sizes, positions } = await walk(
      {
        from: noonTs - 50 * period,
        get size() {
          return size;
        },
      },
      { onPage: () => (size += 10) },
    );
    expect(sizes).toEqual([10, 20, 30]);
    expect(positions.map((position) => position.size)).toEqual([10, 20, 30]);
  });
});

describe("the start of a walk", () => {
  it.each([
    // Rows with the timestamp of the oldest one are left to this walk.
    ["to the oldest row: one more page", noonTs - 10 * period, [undefined, "reached"]],
    ["above the oldest row: another walk took over what is below", noonTs - 10 * period + 1, [undefined]],
  ])("may rise %s", async (_, risen, ends) => {
    let from = oldestTs - 1;
    const { requests, positions } = await walk(
      {
        get from() {
          return from;
        },
      },
      { onPage: () => (from = risen) },
    );
    expect(positions.map(({ end }) => end)).toEqual(ends);
    expect(requests).toHaveLength(ends.length);
  });

  it("is reached below it: the next page may have more rows with its timestamp", async () => {
    const bounds: Micros[] = [];
    const { positions } = await walk({
      from: noonTs - 10 * period,
      extend: (lowerBound) => void bounds.push(lowerBound),
    });
    expect(positions.map(({ end }) => end)).toEqual([undefined, "reached"]);
    expect(bounds).toEqual([noonTs - 20 * period]);
  });

  it("may fall when the walk has reached it: the walk goes on", async () => {
    let from = noonTs - 5 * period;
    const bounds: Micros[] = [];
    const { positions } = await walk({
      get from() {
        return from;
      },
      extend: (lowerBound) => {
        bounds.push(lowerBound);
        from = Math.min(from, bounds.length === 1 ? noonTs - 25 * period : from);
      },
    });
    expect(bounds).toEqual([noonTs - 10 * period, noonTs - 30 * period]);
    expect(positions.map(({ end, from: judged }) => [end, judged])).toEqual([
      [undefined, noonTs - 25 * period],
      [undefined, noonTs - 25 * period],
      ["reached", noonTs - 25 * period],
    ]);
  });

  it("may fall at the end of the history too", async () => {
    const bounds: Micros[] = [];
    await walk({ from: oldestTs - period + 1, extend: (bound) => void bounds.push(bound) });
    expect(new Set(bounds)).toEqual(new Set([oldestTs - period]));
  });

  it("stays where the history has no row to measure from", async () => {
    const bounds: Micros[] = [];
    const { last } = await walk({ extend: (bound) => void bounds.push(bound) }, { history: [] });
    expect(last?.end).toBe("exhausted");
    expect(bounds).toEqual([]);
  });
});

describe("the end of the history", () => {
  const twoDays = [noonTs - MICROS_PER_DAY, noonTs - 2 * MICROS_PER_DAY];
  const bars = twoDays.map((ts, at) => ({ id: `b${at}`, ts }));
  const lastBarTs = noonTs - 2 * MICROS_PER_DAY;
  const atEdge = () => oldestTs + INTRADAY_WINDOW;
  it.each<
    [what: string, options: Partial<HistoryWalkOptions>, served: ServedWalk, askedAgainAt: Micros | undefined]
  >([
    ["less than a period above the start", { from: oldestTs - period + 1 }, {}, oldestTs],
    ["and at the edge of the window", { from: oldestTs - period + 1 }, { asOf: atEdge }, undefined],
    ["a period above, at the edge", { from: oldestTs - period }, { asOf: atEdge }, oldestTs],
    [
      "a given period above, at the edge",
      { from: oldestTs - period, cadence: period + 1 },
      { asOf: atEdge },
      undefined,
    ],
    [
      "of bars, less than a day above the start",
      { endpoint: "/ohlcv", from: lastBarTs - MICROS_PER_DAY + 1 },
      { history: bars, asOf: atEdge },
      lastBarTs + MICROS_PER_DAY,
    ],
  ])("%s", async (_, options, served, askedAgainAt) => {
    const { last, requests } = await walk(options, served);
    expect(last).toMatchObject({ end: "exhausted" });
    const restart = requests.findLast(({ query }) => query?.startAfter === undefined)?.query?.timestamp;
    expect(restart).toBe(formatToMillisecond(askedAgainAt === undefined ? noonTs : askedAgainAt + 1000));
  });

  it("that only one answer shows is asked for again, even if the walk began just above the oldest row", async () => {
    const until = oldestTs + MICROS_PER_MS;
    const cut = withoutCursor(toHistoryPage(rows.slice(-1)));
    const history = [...rows, { id: "older", ts: oldestTs - period }];
    const from = oldestTs - MICROS_PER_DAY;
    const { rowCounts } = await walk(
      { until, from },
      { history, answer: (_, count) => (count === 1 ? cut : undefined) },
    );
    expect(rowCounts).toEqual([1, 2, 1]);
  });

  it("is not shown by a page that ignores the timestamp", async () => {
    const answer = () => withoutCursor(tenRows(0));
    await expect(walk({ from: oldestTs }, { answer })).rejects.toMatchObject({ code: "pagination_cycle" });
  });
});

describe("a page that claims to be the last", () => {
  const from = oldestTs - MICROS_PER_DAY;
  it.each<[what: string, fault: HistoryPage, faultAt: number, rowCounts: number[]]>([
    ["with rows counts, and others follow", withoutCursor(tenRows(20)), 3, [10, 10, 10]],
    ["without rows is no page of the walk", { content: [] }, 3, [10, 10, 10]],
    ["with rows that cannot be read is none either", { content: [{ id: "x", timestamp: "?" }] }, 1, [10, 10]],
  ])("%s", async (_, fault, faultAt, rowCounts) => {
    const result = await walk({ from }, { answer: (_, count) => (count === faultAt ? fault : undefined) });
    expect(result.rowCounts.slice(0, rowCounts.length)).toEqual(rowCounts);
    expect(result.positions.map(({ number }) => number)).toEqual(result.positions.map((_, at) => at + 1));
    expect(result.last).toMatchObject({ end: "exhausted" });
  });

  it("confirms a silence only if it has neither rows nor a cursor", async () => {
    const ten = await walk({}, { history: rows.slice(0, 10) });
    expect(ten.last).toMatchObject({ end: "exhausted", isSilenceConfirmed: false });
    const { positions } = await walk(
      { coverageEnd: noonTs - 30 * period },
      { answer: (_, count) => (count <= 3 ? { content: [], nextId: "r71" } : undefined) },
    );
    expect(positions[0]).toMatchObject({ end: undefined, isSilenceConfirmed: false });
    const empty = await walk({}, { history: [] });
    expect(empty.last).toMatchObject({ end: "exhausted", isSilenceConfirmed: true });
  });
});

describe("a walk that explores", () => {
  const withoutAnyCursor: ServedWalk["answer"] = ({ size, timestamp }) =>
    withoutCursor(correctPage(rows, { size: String(size), timestamp: String(timestamp) }));
  it.each<
    [what: string, options: Partial<HistoryWalkOptions>, served: ServedWalk, requests: number, pages: number]
  >([
    ["ends without a page where nothing is", {}, { history: [] }, 1, 0],
    ["does not: it confirms that", { isExploring: false }, { history: [] }, 3, 1],
    ["yields the rows that it finds", {}, {}, 12, 11],
    ["yields rows without a cursor", { size: 100 }, { answer: withoutAnyCursor }, 2, 2],
    [
      "follows the cursor of an empty page",
      { coverageEnd: noonTs - 30 * period },
      { answer: (_, count) => (count <= 3 ? { content: [], nextId: "r71" } : undefined) },
      12,
      9,
    ],
  ])("%s", async (_, options, served, requests, pages) => {
    const result = await walk({ isExploring: true, ...options }, served);
    expect([result.requests.length, result.positions.length]).toEqual([requests, pages]);
  });
});

describe("the coverage of a walk", () => {
  it.each([
    ["ends where its caller says", noonTs - period, noonTs - period],
    ["ends where the walk begins at the latest", noonTs + period, noonTs],
    ["ends where the walk begins by default", undefined, noonTs],
  ])("%s", async (_, coverageEnd, provenFrom) => {
    const { positions } = await walk({ coverageEnd, from: noonTs - 15 * period });
    expect(positions[0]).toMatchObject({ provenFrom, isSilenceConfirmed: false });
  });

  it("may begin with a silence that a second response confirmed", async () => {
    const { positions, sizes } = await walk({}, { history: rows.slice(20) });
    expect(positions.map(({ isSilenceConfirmed }) => isSilenceConfirmed)).toEqual([
      true,
      ...Array<boolean>(8).fill(false),
    ]);
    expect(sizes.slice(0, 3)).toEqual([10, 5, 10]);
  });

  it("learns how far apart rows are from other walks of the series", async () => {
    const history = rows.filter((_, at) => at < 20 || at > 40);
    const probes = async (spacing: RowSpacing) =>
      (await walk({ spacing }, { history })).sizes.filter((size) => size === 5).length;
    expect(await probes({ maxDistance: period })).toBe(1);
    expect(await probes({ maxDistance: 22 * period })).toBe(0);
  });

  it("ends with an empty page if the row has left the window by the service's clock", async () => {
    const answer = (query: RequestQuery, count: number) =>
      count > 10 && query.startAfter === undefined ? { content: [] } : undefined;
    const from = oldestTs - MICROS_PER_DAY;
    const later = oldestTs + 200 * MICROS_PER_DAY;
    for (const asOf of [() => later, (count: number) => (count === 1 ? later : undefined)])
      expect((await walk({ from }, { asOf, answer })).last).toMatchObject({ end: "exhausted" });
    for (const asOf of [() => noonTs, () => undefined])
      await expect(walk({ from }, { asOf, answer })).rejects.toMatchObject({ code: "pagination_cycle" });
  });
});
