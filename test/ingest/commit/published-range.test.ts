import { describe, expect, it } from "vitest";
import {
  applyLateness,
  clampToPublished,
  recordLateRecords,
} from "../../../src/ingest/commit/published-range.ts";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readSettledRanges, settle } from "../../../src/warehouse/coverage/ledger.ts";
import {
  type Publication,
  readLateness,
  readPublication,
  recordHeadPage,
  recordLateness,
} from "../../../src/warehouse/coverage/publication.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { at, SECOND } from "../../support/ingest/pages.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { bar, tick } from "../../support/warehouse/records.ts";

const HOUR = 3600 * SECOND;
const noon = at("12:00:00");
const midnight = at("00:00:00");
type Page = Parameters<typeof clampToPublished>[3];

/** The ticks or bars of BTC, and what pages of them prove. All results are relative to `zero`. */
function openSeries(stream: HistoryStream = "index_ticks", zero = noon) {
  const warehouse = openTestWarehouse({ path: makeEmptyWarehouse() });
  const [key, other] = warehouse.transaction((t) => {
    const keyOf = (id: string) => ({ stream, series: t.dictionary.getSeriesKey("GWA", id) });
    return [keyOf("btc-id"), keyOf("eth-id")] as const;
  });
  const gap = { from: zero - 4 * MICROS_PER_DAY, to: zero };
  const usual: Page = {
    series: { stream, indexType: "GWA", indexId: "btc-id" },
    position: { gap, provenFrom: gap.to },
    cadence: stream === "ohlcv" ? MICROS_PER_DAY : 30 * SECOND,
    isHead: true,
    isSilenceConfirmed: false,
    quietMargin: HOUR,
    timestamps: [],
    asOf: zero + 60 * SECOND,
  };
  const relative = (ts: number | undefined) => (ts === undefined ? undefined : ts - zero);
  return {
    warehouse,
    key,
    /** Up to where a page with these timestamps proves the gap; undefined: nothing. */
    provenTo: (ages: readonly number[], more: Partial<Page> = {}) =>
      warehouse.transaction((t) => {
        const page = { ...usual, timestamps: ages.map((age) => zero + age), ...more };
        const result = clampToPublished(t, key, page.position.gap, page);
        if (result) expect(result.from).toBe(gap.from);
        return relative(result?.to);
      }),
    clampNothing: () => warehouse.transaction((t) => clampToPublished(t, key, undefined, usual)),
    /** What is known of the head: up to where REST has shown records, when it was asked, for what, and how quiet it is. */
    publication: () => {
      const found = readPublication(warehouse.connection, key);
      return (
        found && [
          found.publishedTo && relative(found.publishedTo),
          found.askedAt && relative(found.askedAt),
          relative(found.askedTo),
          found.quietMargin,
        ]
      );
    },
    showOther: (to: number) =>
      warehouse.transaction((t) =>
        recordHeadPage(t, other, { publishedTo: zero + to, askedAt: 0, askedTo: 0, quietMargin: 0 }),
      ),
    show: (more: Partial<Publication>) =>
      warehouse.transaction((t) =>
        recordHeadPage(t, key, { publishedTo: 0, askedAt: 0, askedTo: 0, quietMargin: 0, ...more }),
      ),
    writeTick: (age: number, source: "live" | "rest") =>
      warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(zero + age, "1")], source)),
    settle: (from: number, to: number, proof: "rows" | "empty") =>
      warehouse.transaction((t) => {
        t.markWritten(stream, key.series);
        settle(t, key, { from: zero + from, to: zero + to }, proof);
      }),
  };
}

describe("a page of the head", () => {
  it("proves less if its records are a little less than one period apart", () => {
    const { provenTo } = openSeries();
    const newest = -600 * SECOND;
    const ages = (distance: number) => [newest, newest - distance, newest - distance - 30 * SECOND];
    expect(provenTo(ages(29.993 * SECOND))).toBe(newest + 29.993 * SECOND);
    // A page in the opposite order, a missing record, and one in between.
    expect(provenTo(ages(31 * SECOND).toReversed())).toBe(newest - 31 * SECOND);
    expect(provenTo(ages(60 * SECOND))).toBe(newest + 30 * SECOND);
    expect(provenTo(ages(2 * SECOND))).toBe(newest + 30 * SECOND);
    expect(provenTo(ages(15 * SECOND))).toBe(newest + 30 * SECOND);
    expect(provenTo(ages(15 * SECOND + 1))).toBe(newest + 15 * SECOND + 1);
  });

  it("proves up to its newest record plus one period, and stores that", () => {
    const { provenTo, publication, clampNothing } = openSeries();
    expect(provenTo([-600 * SECOND, -630 * SECOND])).toBe(-570 * SECOND);
    expect(publication()).toEqual([-570 * SECOND, 60 * SECOND, 0, 0]);
    expect(provenTo([-30 * SECOND])).toBe(0);
    expect(publication()).toEqual([0, 60 * SECOND, 0, 0]);
    // A record from the future shows nothing; one period ahead is not the future.
    expect(provenTo([90 * SECOND + 1, -600 * SECOND])).toBe(-570 * SECOND);
    expect(provenTo([90 * SECOND, -600 * SECOND])).toBe(0);
    expect(provenTo([])).toBeUndefined();
    expect(publication()).toEqual([0, 60 * SECOND, 0, 0]);
    expect(clampNothing()).toBeUndefined();
    expect(provenTo([-5 * MICROS_PER_DAY])).toBeUndefined();
    expect(provenTo([-4 * MICROS_PER_DAY - 30 * SECOND])).toBeUndefined();
    // Only bars may not be final yet, however long the period of ticks is.
    expect(provenTo([-HOUR / 2], { cadence: 2 * HOUR })).toBe(0);
  });

  it("is the first of its walk: a later one shows nothing about the head", () => {
    const { provenTo, publication } = openSeries();
    const gap = { from: noon - 4 * MICROS_PER_DAY, to: noon };
    expect(provenTo([-HOUR], { position: { gap, provenFrom: noon - 1 } })).toBe(0);
    expect(publication()).toBeUndefined();
  });

  it("of a quiet series proves up to the margin, if its silence is confirmed and another series is not silent", () => {
    const { provenTo, publication, showOther, writeTick } = openSeries();
    const confirmed = { isSilenceConfirmed: true };
    const quietTo = 65 * SECOND - HOUR;
    const spoken = -2 * HOUR + 30 * SECOND;
    expect(provenTo([-2 * HOUR], confirmed)).toBe(spoken);
    showOther(quietTo - 1);
    expect(provenTo([-2 * HOUR], confirmed)).toBe(spoken);
    showOther(quietTo);
    expect(provenTo([-2 * HOUR], confirmed)).toBe(quietTo);
    expect(publication()).toEqual([spoken, 60 * SECOND, 0, HOUR]);
    expect(provenTo([], confirmed)).toBe(quietTo);
    expect(provenTo([-2 * HOUR])).toBe(spoken);
    expect(publication()).toEqual([spoken, 60 * SECOND, 0, 0]);
    // The silence must be longer than the margin.
    const due = 30 * SECOND - HOUR;
    expect([provenTo([due], confirmed), provenTo([due - 1], confirmed)]).toEqual([
      due + 30 * SECOND,
      quietTo,
    ]);
    // A live tick shows that REST lags, unless REST has shown newer records or is not asked for them.
    writeTick(-3 * HOUR, "live");
    writeTick(0, "live");
    expect(provenTo([-2 * HOUR], confirmed)).toBe(quietTo);
    writeTick(-1, "live");
    expect(provenTo([-2 * HOUR], confirmed)).toBe(spoken);
  });

  it("of a series that has shown as much as it was asked for is not quiet, however long ago that is", () => {
    const { provenTo, publication, showOther } = openSeries();
    showOther(3 * HOUR);
    const late = { isSilenceConfirmed: true, asOf: noon + 3 * HOUR };
    expect(provenTo([-30 * SECOND], late)).toBe(0);
    expect(publication()).toEqual([0, 3 * HOUR, 0, 0]);
  });

  it("proves silence without another series only after a day", () => {
    const { provenTo } = openSeries();
    const confirmed = { isSilenceConfirmed: true };
    const [DAY, quietTo] = [MICROS_PER_DAY, 65 * SECOND - HOUR];
    const due = 30 * SECOND - DAY;
    expect([provenTo([due], confirmed), provenTo([due - 1], confirmed)]).toEqual([
      due + 30 * SECOND,
      quietTo,
    ]);
    // The service may be late with the first records of a series.
    expect(provenTo([], confirmed)).toBe(65 * SECOND - DAY);
  });
});

describe("a page of bars", () => {
  it("does not prove the newest bar, if the service serves the bar of a running day", () => {
    const { provenTo, publication, warehouse } = openSeries("ohlcv", midnight);
    warehouse.connection.database.exec(
      "INSERT OR IGNORE INTO stream_states (stream, rows, missing_scopes) VALUES ('ohlcv', 0, '[]')",
    );
    const DAY = MICROS_PER_DAY;
    expect(provenTo([-DAY])).toBe(0);
    expect(publication()?.[0]).toBe(0);
    // An hour before the end of its day, clocks may differ; earlier, the day is running.
    expect(provenTo([-DAY], { asOf: midnight - HOUR })).toBe(0);
    expect(provenTo([-DAY], { asOf: midnight - HOUR - 1 })).toBe(-DAY);
    // From then on, a bar is final once a newer one is shown.
    expect(provenTo([-DAY])).toBe(-DAY);
    expect(provenTo([0, -DAY])).toBe(0);
  });

  it("proves silence from the end of the day on that has no bar", () => {
    const { provenTo, showOther, writeTick } = openSeries("ohlcv", midnight);
    const DAY = MICROS_PER_DAY;
    showOther(DAY);
    // Live ticks of the index show nothing about its bars.
    writeTick(-HOUR, "live");
    const provenAt = (asOf: number) =>
      provenTo([-3 * DAY], { isSilenceConfirmed: true, asOf: midnight + asOf });
    expect(provenAt(HOUR - DAY)).toBe(-2 * DAY);
    expect(provenAt(HOUR - DAY + 1)).toBe(-DAY);
    expect(provenAt(DAY / 2)).toBe(0);
  });
});

describe("a page below the head", () => {
  const lower = { isHead: false };

  it("proves as much as it shows, and stores it only if that is not all", () => {
    const { provenTo, publication } = openSeries();
    expect(provenTo([-30 * SECOND], lower)).toBe(0);
    expect(publication()).toBeUndefined();
    expect(provenTo([-31 * SECOND], lower)).toBe(-SECOND);
    expect(publication()).toEqual([-SECOND, 0, 0, 0]);
  });

  it("proves all if REST has shown newer records before", () => {
    const provenAfter = (prepare: (series: ReturnType<typeof openSeries>) => void) => {
      const series = openSeries();
      prepare(series);
      return series.provenTo([-HOUR / 2], lower);
    };
    const shown = 30 * SECOND - HOUR / 2;
    expect(provenAfter(() => {})).toBe(shown);
    expect(openSeries().provenTo([], lower)).toBe(65 * SECOND - MICROS_PER_DAY);
    expect(provenAfter(({ show }) => show({ publishedTo: noon }))).toBe(0);
    expect(provenAfter(({ show }) => show({ publishedTo: noon - 1 }))).toBe(-1);
    expect(provenAfter(({ writeTick }) => writeTick(-40 * SECOND, "rest"))).toBe(-10 * SECOND);
    expect(provenAfter(({ writeTick }) => writeTick(HOUR, "rest"))).toBe(0);
    expect(provenAfter(({ writeTick }) => writeTick(HOUR, "live"))).toBe(shown);
    expect(provenAfter((series) => series.settle(0, HOUR, "rows"))).toBe(0);
    expect(provenAfter((series) => series.settle(0, HOUR, "empty"))).toBe(shown);
    // A range that only touches the gap from below is not above it.
    expect(provenAfter((series) => series.settle(-SECOND, 0, "rows"))).toBe(shown);
  });

  it("proves silence in the middle of the history, which the walk itself confirms", () => {
    const { provenTo, showOther, publication } = openSeries();
    showOther(0);
    expect(provenTo([-2 * HOUR], lower)).toBe(65 * SECOND - HOUR);
    expect(publication()).toEqual([30 * SECOND - 2 * HOUR, 0, 0, 0]);
  });

  it("of bars that are not final proves none of them by what is stored", () => {
    const { provenTo, warehouse } = openSeries("ohlcv", midnight);
    const stored = bar(midnight - MICROS_PER_DAY, "1");
    warehouse.transaction((t) => writeRecords(t, "ohlcv", [stored], "rest"));
    warehouse.connection.database.exec("UPDATE stream_states SET serves_running_day = 1");
    expect(provenTo([-MICROS_PER_DAY], lower)).toBe(-MICROS_PER_DAY);
  });
});

describe("records that an earlier page of the head lacked", () => {
  /** How late the page shows records to be, in seconds; all times are ages in seconds, at `noon`. */
  function findLateness(
    ages: readonly number[],
    {
      shown = { to: 0, askedAt: 0 } as { to: number; askedAt: number } | null,
      settled = [[5000, 600]] as readonly (readonly [from: number, to: number])[],
      stored = [] as readonly number[],
      settleDelay = 600,
      stream = "index_ticks" as HistoryStream,
    } = {},
  ) {
    const { warehouse, key, show, settle, writeTick } = openSeries(stream);
    if (shown)
      show({ publishedTo: noon - shown.to * SECOND, askedAt: noon - shown.askedAt * SECOND, askedTo: noon });
    for (const [from, to] of settled) settle(-from * SECOND, -to * SECOND, "rows");
    for (const age of stored) writeTick(-age * SECOND, "rest");
    warehouse.transaction((t) =>
      recordLateRecords(t, key, {
        timestamps: ages.map((age) => noon - age * SECOND),
        asOf: noon,
        cadence: 30 * SECOND,
        settleDelay: settleDelay * SECOND,
      }),
    );
    const found = readLateness(warehouse.connection, stream);
    if (found) expect(found.lateAt).toBe(noon);
    return found && found.lateBy / SECOND;
  }

  it("are late by their age and a quarter more: the oldest counts", () => {
    expect(findLateness([700, 720, 800])).toBe(1000);
    expect(findLateness([700, 720, 800], { stored: [800] })).toBe(900);
    expect(findLateness([700, 720, 800], { stored: [700, 720, 800] })).toBeUndefined();
    expect(findLateness([])).toBeUndefined();
    // At most two hours.
    expect(findLateness([4000, 7000], { settled: [[7100, 900]], settleDelay: 3600 })).toBe(7200);
    expect(findLateness([700, 7201], { settled: [[9000, 900]], settleDelay: 3600 })).toBeUndefined();
  });

  it("were asked for: in a settled range, or above all of them", () => {
    const settled = [
      [5000, 1000],
      [800, 750],
    ] as const;
    expect(findLateness([760], { settled })).toBe(950);
    expect(findLateness([800], { settled })).toBe(1000);
    expect(findLateness([900], { settled })).toBeUndefined();
    expect(findLateness([1000], { settled })).toBeUndefined();
    expect(findLateness([750], { settled })).toBe(937.5);
    expect(findLateness([700], { settled: [] })).toBeUndefined();
  });

  it("were final by the settle delay when the service showed newer ones", () => {
    expect(findLateness([601])).toBe(751.25);
    expect(findLateness([600])).toBeUndefined();
    expect(findLateness([700], { shown: { to: 0, askedAt: 100 } })).toBeUndefined();
    expect(findLateness([701], { shown: { to: 0, askedAt: 100 } })).toBe(876.25);
    expect(findLateness([701], { shown: { to: 701, askedAt: 0 } })).toBeUndefined();
    expect(findLateness([701], { shown: null })).toBeUndefined();
    expect(findLateness([700, 720], { stream: "ohlcv" })).toBeUndefined();
  });
});

describe("a stream whose records appeared late", () => {
  it("loses the coverage that may still get late records, unless it has bars", () => {
    const applied = (stream: HistoryStream, settleDelay: number) => {
      const { warehouse, key, settle } = openSeries(stream);
      settle(-2 * HOUR, 0, "rows");
      return warehouse.transaction((t) => {
        const limits = { settleDelay: HOUR / 2, cadence: 1 };
        recordLateness(t, stream, { lateBy: HOUR, lateAt: noon }, limits);
        const delay = applyLateness(t, key, { settleDelay, asOf: noon });
        return [delay, (readSettledRanges(warehouse.connection, key)[0]?.to ?? 0) - noon];
      });
    };
    expect(applied("index_ticks", 60 * SECOND)).toEqual([HOUR, -HOUR]);
    expect(applied("index_ticks", HOUR)).toEqual([HOUR, 0]);
    expect(applied("index_ticks", 2 * HOUR)).toEqual([2 * HOUR, 0]);
    expect(applied("ohlcv", 60 * SECOND)).toEqual([HOUR, 0]);
  });
});
