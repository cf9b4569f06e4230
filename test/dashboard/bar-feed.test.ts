import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BarFeed, type ReadBars } from "../../src/dashboard/page/bars/bar-feed.ts";
import type { SeriesMatch } from "../../src/model/answers/heatmap.ts";
import type { BarWidth } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { fillDailyBars } from "../support/dashboard/bars-warehouse.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { lastHour } from "../support/present.ts";
import { openFilledWarehouse } from "../support/warehouse/filled-warehouse.ts";

const HOUR = 3_600;
/** Of the daemon and of the page, in seconds. */
let now = 0;
let query: <Row>(sql: string) => Row[];
let read: ReadBars;
let requests: Parameters<ReadBars>[2][] = [];

beforeAll(async () => {
  const { path, connection } = openFilledWarehouse(fillDailyBars, afterAll);
  query = <Row>(sql: string) => connection.database.prepare<[], Row>(sql).raw().all() as Row[];
  const { fetchPage } = await serveDashboard(path, systemClock, afterAll, () => now * 1e6);
  read = async ({ index_type: type, index_id: id }, width, range) => {
    requests.push(range);
    const iso = (seconds = 0) => new Date(seconds * 1000).toISOString();
    const times = Object.entries(range).map(([name, time]) => [name, iso(time)]);
    const query = new URLSearchParams({ type, id, width, ...Object.fromEntries(times) });
    const { status, body } = await fetchPage(`/api/bars?${query}`);
    expect([status, body]).toEqual([200, body]);
    return JSON.parse(body);
  };
});
beforeEach(() => {
  now = lastHour / 1e6 - 5 * HOUR + 30;
  requests = [];
});

function openFeed(width: BarWidth, symbol = "eth"): BarFeed {
  const series = { index_type: "GWA", index_id: `${symbol}-id`, has_ticks: true } as SeriesMatch;
  return new BarFeed({ series, width, read, now: () => now });
}

/** The start and the close of each bar that is loaded, and those that the warehouse has. */
function compare(feed: BarFeed): [loaded: unknown, stored: unknown] {
  const { from = 0, to = 0, bars = [] } = feed.loaded ?? {};
  const stored = query(`SELECT ts / 1000000, close FROM bars_${feed.options.width}
    WHERE index_id = '${feed.options.series.index_id}' AND ts >= ${from * 1e6} AND ts < ${to * 1e6} ORDER BY ts`);
  return [bars.map(([start, , , , close]) => [start, close]), stored];
}

describe("the feed of bars", () => {
  it.each(["1m", "1h"] as const)("of %s goes on after hours in which nobody saw the page", async (width) => {
    const feed = openFeed(width);
    await feed.start({ from: now - 6 * HOUR });
    const before = feed.loaded?.bars.length ?? 0;
    for (const pause of [150, 2 * HOUR]) {
      now += pause;
      await feed.refresh();
      expect(feed.loaded?.to).toBeGreaterThan(now);
      const [loaded, stored] = compare(feed);
      expect(loaded).toEqual(stored);
    }
    expect(feed.isLive).toBe(true);
    expect(feed.loaded?.bars.length).toBeGreaterThan(before + (width === "1m" ? 120 : 0));
  });

  it("is outdated when more is missing than one request returns, and not before", async () => {
    const feed = openFeed("1m");
    await feed.start({ from: now - HOUR });
    now += 2 * 24 * HOUR;
    expect(feed.isOutdated).toBe(false);
    now += 2 * 24 * HOUR;
    expect(feed.isOutdated).toBe(true);
    const ended = openFeed("1m");
    await ended.start({ from: now - 8 * 24 * HOUR, to: now - 7 * 24 * HOUR });
    expect(ended.isOutdated).toBe(false);
  });

  it("of a range that has ended reads only what has changed, until newer bars are loaded", async () => {
    now = lastHour / 1e6;
    const feed = openFeed("1m");
    const to = now - 49 * HOUR;
    await feed.start({ from: to - HOUR, to });
    expect(feed.isLive).toBe(false);
    const { length } = requests;
    await feed.refresh();
    await feed.refresh(now);
    expect(requests).toHaveLength(length);
    await feed.refresh(to - 600);
    expect(requests).toHaveLength(length + 1);
    while (await feed.loadNewer());
    expect(feed.isLive).toBe(true);
    const [loaded, stored] = compare(feed);
    expect(loaded).toEqual(stored);
  });

  it("goes back to daily bars before the ticks, and to the first of them", async () => {
    const feed = openFeed("1h", "xrp");
    await feed.start({ from: now - 24 * HOUR });
    while (await feed.loadOlder());
    const daily = feed.loaded?.bars.filter(([, , , , , ticks]) => ticks === null) ?? [];
    const [[first, count] = []] = query<[number, number]>(
      `SELECT min(ts) / 1000000, count(*) FROM ohlcv WHERE index_id = 'xrp-id'
        AND day < (SELECT date(min(ts) / 1000000, 'unixepoch') FROM index_ticks WHERE index_id = 'xrp-id')`,
    );
    expect([daily[0]?.[0], daily.length]).toEqual([first, count]);
  });
});
