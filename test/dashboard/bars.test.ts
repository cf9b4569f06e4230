import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseBarsQuery } from "../../src/dashboard/query-params.ts";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { readChartBars } from "../../src/library/reading/chart-bars.ts";
import { type ChartBarsResult, MAX_BARS } from "../../src/model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../src/model/answers/heatmap.ts";
import type { SearchMatch } from "../../src/model/answers/page-address.ts";
import { type BarWidth, formatTimestamp, MICROS_PER_SECOND, startOfDay } from "../../src/model/time.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { DAILY_BARS, fillBars, fillDailyBars, gapRanges, LOST } from "../support/dashboard/bars-warehouse.ts";
import { serveDashboard } from "../support/dashboard/dashboard-harness.ts";
import { fillEveryState, hostileName } from "../support/dashboard/heatmap-content.ts";
import { fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { lastHour } from "../support/present.ts";
import { DAY, HOUR, nowTs, openFilledWarehouse } from "../support/warehouse/filled-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { readWholeHeatmap } from "../support/warehouse/whole-heatmap.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

const now = parseTs("2026-03-10T12:34:56Z");
const parse = (query: string) => parseBarsQuery(new URLSearchParams(query), now);

describe("the query of /api/bars", () => {
  it("is widened to whole bars, up to the current bar", () => {
    expect(parse("type=GWA&id=x&width=4h&from=2026-03-09T05:00:00Z")).toEqual({
      ...{ indexType: "GWA", indexId: "x", width: "4h" },
      from: parseTs("2026-03-09T04:00:00Z"),
      to: parseTs("2026-03-10T16:00:00Z"),
    });
    expect(parse("type=LX&id=x&width=1d&from=2026-03-01&to=2026-03-02T00:00:01Z")).toMatchObject({
      from: parseTs("2026-03-01T00:00:00Z"),
      to: parseTs("2026-03-03T00:00:00Z"),
    });
    expect(parse("type=MWA&id=x")).toMatchObject({ width: "1h", to: parseTs("2026-03-10T13:00:00Z") });
    // A range never reaches beyond the current bar.
    expect(parse("type=MWA&id=x&to=2099-01-01")).toMatchObject({ to: parseTs("2026-03-10T13:00:00Z") });
  });

  it("is rejected with one line that names the error", () => {
    const wrong = {
      "id=x": /^type must be one of GWA, MWA, LX, exchange_ticks, market_caps, derivative_ticks$/,
      "type=NX&id=x": /^type must be one of/,
      "type=GWA": /^id must be/,
      [`type=GWA&id=${"x".repeat(500)}`]: /^id must be/,
      "type=GWA&id=x&width=2h": /^width must be one of 1m, 5m, 15m, 1h, 4h, 1d$/,
      "type=GWA&id=x&width=constructor": /^width must be one of/,
      "type=GWA&id=x&from=yesterday": /^from and to must be YYYY-MM-DD/,
      "type=GWA&id=x&to=2026-13-01": /^from and to must be YYYY-MM-DD/,
      "type=GWA&id=x&from=2026-03-09&to=2026-03-08": /^from must be earlier/,
      "type=GWA&id=x&from=2027-01-01": /^from must be earlier/,
      "type=GWA&id=x&width=1m&from=2026-03-01": /^at most 5,000 bars/,
    };
    for (const [query, line] of Object.entries(wrong)) expect(parse(query)).toMatch(line);
  });
});

const clock = new ManualClock();
let warehouse: WarehouseWriter;
let dashboard: Awaited<ReturnType<typeof serveDashboard>>;
beforeAll(async () => {
  warehouse = openFilledWarehouse(fillBars, afterAll);
  dashboard = await serveDashboard(warehouse.path, clock, afterAll);
});

describe("/api/bars", () => {
  const path = "/api/bars?type=GWA&id=btc-id&width=1h";

  it("returns the bars, and a reason for every range without bars", async () => {
    const { fetchPage } = dashboard;
    const from = new Date(lastHour / 1_000 - 4 * 86_400_000).toISOString();
    const page = await fetchPage(`${path}&from=${from}`);
    expect(page).toMatchObject({ status: 200, type: "application/json; charset=utf-8" });
    const { bars, spans, ...rest } = JSON.parse(page.body) as ChartBarsResult;
    expect(rest).toMatchObject({ name: "BTC", width: "1h", is_cut: false });
    const seconds = ({ from, to }: { from: number; to: number }) => ({
      from: from / MICROS_PER_SECOND,
      to: to / MICROS_PER_SECOND,
    });
    expect(spans).toMatchObject([
      { state: "none", reason: "not selected", to: (lastHour - 3 * DAY) / MICROS_PER_SECOND },
      { state: "lost", reason: "aged out", ...seconds(gapRanges.lost) },
      { state: "open", reason: "pending", ...seconds(gapRanges.open) },
      { state: "empty", reason: "the service has none", ...seconds(gapRanges.empty) },
      { state: "open", reason: "pending", ...seconds(gapRanges.sliver) },
      { state: "unconfirmed", reason: "settling" },
    ]);
    const barAt = (ts: number) => bars.find(([start]) => start === ts / MICROS_PER_SECOND);
    expect(bars).toHaveLength(64);
    expect(barAt(gapRanges.open.from)).toBeUndefined();
    const [, open, high, low, close, ...quality] = barAt(lastHour - 3 * DAY) ?? [];
    expect(open).toBe(61_000);
    expect(high).toBeGreaterThan(close as number);
    expect(low).toBeLessThanOrEqual(open as number);
    expect(quality).toEqual([120, 120, 1, 1, 1000.5]);
    expect(barAt(gapRanges.sliver.from - HOUR / 2)?.slice(5, 9)).toEqual([110, 120, 11 / 12, 0]);
  });

  it("answers a wrong query with one line", async () => {
    const { fetchPage, countQueries, failures } = dashboard;
    const before = countQueries();
    expect(await fetchPage("/api/bars?type=GWA&id=btc-id&width=7h")).toMatchObject({
      status: 400,
      type: "text/plain; charset=utf-8",
      body: "width must be one of 1m, 5m, 15m, 1h, 4h, 1d\n",
    });
    const injection = encodeURIComponent("' OR 1=1 --");
    expect(await fetchPage(`/api/bars?type=GWA&id=${injection}`)).toMatchObject({
      status: 404,
      body: "no index has this type and id\n",
    });
    expect(countQueries() - before).toBe(1);
    expect(failures).toEqual([]);
  });

  it("reads the newest bars first, and stops when its time is up", () => {
    const { connection } = warehouse;
    const to = Math.ceil(nowTs / HOUR) * HOUR;
    const from = to - MAX_BARS * HOUR;
    const options = { indexType: "GWA", indexId: "eth-id", width: "1h", from, to } as const;
    const cut = readChartBars(connection, options, () => false);
    expect(cut).toMatchObject({ is_cut: true, to: to / MICROS_PER_SECOND });
    expect(cut?.from).toBeGreaterThan(options.from / MICROS_PER_SECOND);
    expect(cut?.bars.length).toBeGreaterThan(70);
    expect(readChartBars(connection, options, () => true)).toMatchObject({
      is_cut: false,
      from: options.from / MICROS_PER_SECOND,
      bars: cut?.bars,
    });
  });
});

describe("the newest minute of /api/bars", () => {
  const minute = 60 * MICROS_PER_SECOND;
  const to = Math.ceil((nowTs + 1) / minute) * minute;
  const options = { indexType: "GWA", indexId: "eth-id", width: "1m" as const, from: to - HOUR, to };

  it("is not called unselected while the clock of the views is behind that of the daemon", () => {
    const { connection } = openFilledWarehouse(fillBars);
    // No answer has corrected the stored skew since the service is down.
    connection.database.prepare("UPDATE warehouse_state SET clock_skew = ?").run(-minute);
    const spans = readChartBars(connection, options, () => true)?.spans ?? [];
    expect(spans.map(({ state }) => state)).toEqual(["unconfirmed"]);
    expect(spans.at(-1)?.to).toBeCloseTo((Date.now() - 60_000) / 1000, -1);
  });

  it("has the newest price, which is not that of a tick from the far future", () => {
    const { connection } = openFilledWarehouse((transaction) => {
      fillBars(transaction);
      const future = tick(nowTs + 900 * DAY, "5", { indexId: "eth-id" });
      writeRecords(transaction, "index_ticks", [future], "rest");
    });
    const { price } =
      connection.database
        .prepare<[], { price: number }>("SELECT price FROM latest_index_ticks WHERE index_id = 'eth-id'")
        .get() ?? {};
    expect(readChartBars(connection, options, () => true)).toMatchObject({ last_price: price });
    expect(price).toBeGreaterThan(1_000);
  });
});

describe("/api/bars of a series with daily bars", () => {
  let own: WarehouseWriter;
  beforeAll(() => {
    own = openFilledWarehouse(fillDailyBars, afterAll);
  });
  const today = startOfDay(nowTs);
  const read = (indexId: string, width: BarWidth, from: number) =>
    readChartBars(
      own.connection,
      { indexType: "GWA", indexId, width, from, to: width === "1d" ? today + DAY : lastHour + HOUR },
      () => true,
    );
  const query = (sql: string) => own.connection.database.prepare(sql).all();

  it("takes the days before the first tick from them, and their proof from their own ledger", () => {
    const answer = read("xrp-id", "1d", today - 100 * DAY);
    const bars = answer?.bars ?? [];
    const ofTicks = bars.filter(([, , , , , ticks]) => ticks !== null);
    const firstTickDay = startOfDay(lastHour - 3 * DAY);
    const daily = bars.filter(([, , , , , ticks]) => ticks === null);
    expect(daily.map(([start, , , , close]) => ({ start, close }))).toEqual(
      query(`SELECT ts / 1000000 AS start, close FROM ohlcv WHERE index_id = 'xrp-id' AND ts >= ${today - 100 * DAY}
        AND ts < ${(ofTicks[0]?.[0] ?? 0) * MICROS_PER_SECOND} ORDER BY ts`),
    );
    // The day on which the ticks begin is whole only in its daily bar, unless they begin with it.
    expect(ofTicks[0]?.[0]).toBe((firstTickDay + (lastHour % DAY === 0 ? 0 : DAY)) / MICROS_PER_SECOND);
    expect(answer?.spans.filter(({ stream }) => stream === "ohlcv")).toEqual([
      {
        ...{ stream: "ohlcv", state: "lost", reason: "aged out" },
        from: (today - LOST.from * DAY) / MICROS_PER_SECOND,
        to: (today - LOST.to * DAY) / MICROS_PER_SECOND,
      },
    ]);
    expect(answer).toMatchObject({
      first: (today - DAILY_BARS * DAY) / MICROS_PER_SECOND,
      ticks_from: firstTickDay / MICROS_PER_SECOND,
      last_price: own.connection.database
        .prepare("SELECT price FROM latest_index_ticks WHERE index_id = 'xrp-id'")
        .pluck()
        .get(),
    });
  });

  it("keeps the hours of the first day with ticks among narrower bars", () => {
    const answer = read("xrp-id", "1h", today - 10 * DAY);
    const hours = answer?.bars.filter(([, , , , , ticks]) => ticks !== null) ?? [];
    expect(hours).toHaveLength(73);
    expect(hours[0]?.[0]).toBe((lastHour - 3 * DAY) / MICROS_PER_SECOND);
    expect(answer?.days).toEqual([
      {
        from: (today - 10 * DAY) / MICROS_PER_SECOND,
        to: startOfDay(lastHour - 3 * DAY) / MICROS_PER_SECOND,
      },
    ]);
  });

  it("consists of them alone where there are no ticks, which a search tells", () => {
    const found = readWholeHeatmap(own.connection, nowTs).series.find("", 9);
    expect(found.map(({ name, has_ticks }) => [name, has_ticks])).toEqual([
      [hostileName, true],
      ["BTC", true],
      ["ETH", true],
      ["LTC", false],
      ["XRP", true],
    ]);
    const answer = read("ltc-id", "1d", today - 30 * DAY);
    expect(answer?.bars).toHaveLength(30);
    expect(answer).toMatchObject({ ticks_from: null, days: [{ to: (today + DAY) / MICROS_PER_SECOND }] });
    expect(
      answer?.bars.every(([, , , , , ticks, , , isComplete]) => ticks === null && isComplete === 1),
    ).toBe(true);
  });
});

describe("a ticker, a contract or market caps", () => {
  it.each([
    ["Kraken:BTC/USD", "Kraken:BTC/USD", "last"],
    ["kraken-id:btc-usd-id", "Kraken:BTC/USD", "bid"],
    ["Kraken:BTCUSD-PERP", "Kraken:BTCUSD-PERP", "funding"],
    ["cap:Bitcoin", "cap:BTC", "market_cap"],
  ])("that %s names has the bars of the library, and its gaps", async (text, name, of) => {
    const { path } = openFilledWarehouse(fillSnapshots);
    const { fetchPage } = await serveDashboard(path);
    const get = async (address: string) => JSON.parse((await fetchPage(address)).body) as unknown;
    const [found] = (await get(`/api/series?name=${encodeURIComponent(text)}`)) as SeriesMatch[];
    expect(found).toMatchObject({ name, match: "exact", slug: name.replace("/", "-") });
    const pages = (await get(`/api/search?name=${encodeURIComponent(text)}`)) as SearchMatch[];
    expect(pages.map(({ href }) => href)).toContain(`/bars/${found?.slug}`);
    const from = formatTimestamp(SNAPSHOTS_FROM - HOUR);
    const to = formatTimestamp(SNAPSHOTS_FROM + 10 * MINUTE);
    const misspelt = encodeURIComponent(name.replace(/^../, "x"));
    const [near] = (await get(`/api/series?name=${misspelt}`)) as SeriesMatch[];
    expect(near).toMatchObject({ name, match: "similar" });
    const query = new URLSearchParams({
      ...{ type: found?.index_type ?? "", id: found?.index_id ?? "", width: "5m", from, to },
      ...(/last|cap/.test(of) ? {} : { of }),
    });
    const result = (await get(`/api/bars?${query}`)) as ChartBarsResult;
    using warehouse = openWarehouse(path);
    expect(result.bars).toEqual(
      warehouse
        .bars(name, { every: "5m", from, to, of })
        .map((bar) => [
          ...[bar.ts / MICROS_PER_SECOND, bar.open, bar.high, bar.low, bar.close, bar.n_ticks],
          ...[bar.expected_ticks, bar.coverage, bar.is_complete, bar.volume_24h],
        ]),
    );
    expect(result).toMatchObject({ name, first: SNAPSHOTS_FROM / MICROS_PER_SECOND });
    expect(result.last_price).toBe(result.bars.at(-1)?.[4]);
    expect(result.spans).toMatchObject([
      { state: "none", reason: "not followed", to: SNAPSHOTS_FROM / MICROS_PER_SECOND },
      { state: "lost", reason: "not observed", from: (SNAPSHOTS_FROM + 5 * MINUTE) / MICROS_PER_SECOND },
    ]);
    expect(result.spans).toHaveLength(2);
    query.set("of", "colour");
    expect(await fetchPage(`/api/bars?${query}`)).toMatchObject({
      ...{ status: 400, body: expect.stringMatching(/^of must be one of \w+, /) },
    });
  });
});

describe("/api/series", () => {
  it("finds series by a part of their name; names that start with it come first", async () => {
    const { fetchPage } = await serveDashboard(openFilledWarehouse(fillEveryState).path);
    const names = async (part: string) => {
      const { body } = await fetchPage(`/api/series?name=${encodeURIComponent(part)}`);
      return (JSON.parse(body) as { name: string }[]).map(({ name }) => name);
    };
    expect(await names("l")).toEqual([..."LTC LINK BLX ELX XRPLX SOL XLM ALGO".split(" "), hostileName]);
    expect(await names("xrp")).toEqual(["XRP", "XRPLX", "cap:XRP"]);
    expect(await names("' OR 1=1")).toEqual([]);
    expect(await names("")).toHaveLength(12);
  });
});
