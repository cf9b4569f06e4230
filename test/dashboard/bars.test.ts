import { describe, expect, it } from "vitest";
import { TakingTurns } from "../../src/dashboard/cache.ts";
import { barsAsked, MOST_BARS } from "../../src/dashboard/query-params.ts";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import type { DrawnBars } from "../../src/warehouse/read/chart-bars.ts";
import { readBars } from "../../src/warehouse/read/chart-bars.ts";
import { fillBars, lastHour, stretches } from "../support/dashboard/bars-warehouse.ts";
import { servePages } from "../support/dashboard/dashboard-harness.ts";
import { DAY, HOUR, hostileName, openFilled, present } from "../support/dashboard/filled-warehouse.ts";
import { TurnedClock } from "../support/manual-clock.ts";
import { at } from "../support/warehouse/records.ts";

const now = at("2026-03-10T12:34:56Z");
const asked = (query: string) => barsAsked(new URLSearchParams(query), now);

describe("bars asked for", () => {
  it("are whole ones, up to the one that has begun", () => {
    expect(asked("type=GWA&id=x&width=4h&from=2026-03-09T05:00:00Z")).toEqual({
      ...{ indexType: "GWA", indexId: "x", width: "4h" },
      from: at("2026-03-09T04:00:00Z"),
      to: at("2026-03-10T16:00:00Z"),
    });
    expect(asked("type=LX&id=x&width=1d&from=2026-03-01&to=2026-03-02T00:00:01Z")).toMatchObject({
      from: at("2026-03-01T00:00:00Z"),
      to: at("2026-03-03T00:00:00Z"),
    });
    expect(asked("type=MWA&id=x")).toMatchObject({ width: "1h", to: at("2026-03-10T13:00:00Z") });
    // The future has none, however far somebody asks.
    expect(asked("type=MWA&id=x&to=2099-01-01")).toMatchObject({ to: at("2026-03-10T13:00:00Z") });
  });

  it("are refused in one line that says what is wrong", () => {
    const wrong = {
      "id=x": /^type must be one of GWA, MWA, LX$/,
      "type=NX&id=x": /^type must be one of/,
      "type=GWA": /^id must be/,
      [`type=GWA&id=${"x".repeat(500)}`]: /^id must be/,
      "type=GWA&id=x&width=2h": /^width must be one of 1m, 5m, 15m, 1h, 4h, 1d$/,
      "type=GWA&id=x&width=constructor": /^width must be one of/,
      "type=GWA&id=x&from=yesterday": /^from and to must be days/,
      "type=GWA&id=x&to=2026-13-01": /^from and to must be days/,
      "type=GWA&id=x&from=2026-03-09&to=2026-03-08": /^from must be earlier/,
      "type=GWA&id=x&from=2027-01-01": /^from must be earlier/,
      "type=GWA&id=x&width=1m&from=2026-03-01": /^at most 5,000 bars/,
    };
    for (const [query, line] of Object.entries(wrong)) expect(asked(query)).toMatch(line);
  });
});

describe("/api/bars", () => {
  const path = "/api/bars?type=GWA&id=btc-id&width=1h";

  it("gives the bars, and a reason for every stretch without them", async () => {
    const { fetchPage } = await servePages(openFilled(fillBars).path);
    const from = new Date(lastHour / 1_000 - 4 * 86_400_000).toISOString();
    const page = await fetchPage(`${path}&from=${from}`);
    expect(page).toMatchObject({ status: 200, type: "application/json; charset=utf-8" });
    const { bars, spans, ...rest } = JSON.parse(page.body) as DrawnBars;
    expect(rest).toMatchObject({ name: "BTC", width: "1h", is_cut: false });
    const seconds = ({ from, to }: { from: number; to: number }) => ({
      from: from / MICROS_PER_SECOND,
      to: to / MICROS_PER_SECOND,
    });
    expect(spans).toMatchObject([
      { state: "none", reason: "not asked for", to: (lastHour - 3 * DAY) / MICROS_PER_SECOND },
      { state: "lost", reason: "aged out", ...seconds(stretches.lost) },
      { state: "open", reason: "pending", ...seconds(stretches.open) },
      { state: "empty", reason: "the service has none", ...seconds(stretches.empty) },
      { state: "open", reason: "pending", ...seconds(stretches.sliver) },
      { state: "settling", reason: "settling" },
    ]);
    const barAt = (ts: number) => bars.find(([start]) => start === ts / MICROS_PER_SECOND);
    expect(bars).toHaveLength(64);
    expect(barAt(stretches.open.from)).toBeUndefined();
    const [, open, high, low, close, ...quality] = barAt(lastHour - 3 * DAY) ?? [];
    expect(open).toBe(61_000);
    expect(high).toBeGreaterThan(close as number);
    expect(low).toBeLessThanOrEqual(open as number);
    expect(quality).toEqual([120, 120, 1, 1]);
    expect(barAt(stretches.sliver.from - HOUR / 2)?.slice(5)).toEqual([110, 120, 11 / 12, 0]);
  });

  it("says in one line what is wrong with a question", async () => {
    const { fetchPage, asked, failures } = await servePages(openFilled(fillBars).path);
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
    expect(asked()).toBe(1);
    expect(failures).toEqual([]);
  });

  it("reads the newest first, and stops where there is no time for more", () => {
    const { connection } = openFilled(fillBars);
    const to = Math.ceil(present / HOUR) * HOUR;
    const wanted = {
      indexType: "GWA",
      indexId: "eth-id",
      width: "1h" as const,
      from: to - MOST_BARS * HOUR,
      to,
    };
    const cut = readBars(connection, wanted, present, () => false);
    expect(cut).toMatchObject({ is_cut: true, to: to / MICROS_PER_SECOND });
    expect(cut?.from).toBeGreaterThan(wanted.from / MICROS_PER_SECOND);
    expect(cut?.bars.length).toBeGreaterThan(70);
    expect(readBars(connection, wanted, present, () => true)).toMatchObject({
      is_cut: false,
      from: wanted.from / MICROS_PER_SECOND,
      bars: cut?.bars,
    });
  });
});

describe("/api/series", () => {
  it("finds series by a part of their name, those that begin with it first", async () => {
    const { fetchPage } = await servePages(openFilled().path);
    const names = async (part: string) => {
      const { body } = await fetchPage(`/api/series?name=${encodeURIComponent(part)}`);
      return (JSON.parse(body) as { name: string }[]).map(({ name }) => name);
    };
    expect(await names("l")).toEqual([
      "LTC",
      "LINK",
      "BLX",
      "ELX",
      "XRPLX",
      "SOL",
      "XLM",
      "ALGO",
      hostileName,
    ]);
    expect(await names("xrp")).toEqual(["XRP", "XRPLX"]);
    expect(await names("' OR 1=1")).toEqual([]);
    expect(await names("")).toHaveLength(12);
  });
});

describe("bars asked for in endlessly many variants (G11)", () => {
  it("rest after each reading for as long as it took, and half a second at most", async () => {
    const clock = new TurnedClock();
    const turns = new TakingTurns(clock);
    const begun: number[] = [];
    const readings = [100, 700, 10].map((ms) =>
      turns.run(async () => {
        begun.push(clock.monotonic());
        await clock.sleep(ms);
        if (ms === 700) throw new Error("unreadable");
        return ms;
      }),
    );
    const outcomes = await clock.runUntil(Promise.allSettled(readings));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(begun).toEqual([0, 200, 1_400]);
  });

  it("are read one at a time with rests between, and the rest is told to come again", async () => {
    const clock = new TurnedClock();
    const { fetchPage, asked } = await servePages(openFilled(fillBars).path, clock);
    const variants = Array.from(
      { length: 60 },
      (_, i) => `&from=${new Date(present / 1_000 - i * 3_600_000 - 7_200_000).toISOString()}`,
    );
    const pages = await clock.runUntil(
      Promise.all(variants.map((variant) => fetchPage(`/api/bars?type=GWA&id=btc-id&width=1h${variant}`))),
    );
    const told = Map.groupBy(pages, ({ status }) => status);
    expect([...told.keys()].sort()).toEqual([200, 503]);
    expect(told.get(503)?.[0]?.body).toBe('{"error":"too many ask at once; try again"}\n');
    expect(asked()).toBe(told.get(200)?.length);
    expect(asked()).toBeLessThanOrEqual(26);
  });
});
