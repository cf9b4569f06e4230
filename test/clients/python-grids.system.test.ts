import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { findTimeZone } from "../../src/library/reading/time-zone.ts";
import { fillDemoWarehouse } from "../docs/demo-warehouse.ts";
import { type PythonAnswer, runBlocks } from "../support/clients/run-python.ts";
import { python, skipWithout } from "../support/has-tool.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const hasModule = (name: string) => spawnSync(python, ["-c", `import ${name}`]).status === 0;
const hasPandas = hasModule("pandas") || skipWithout("python3 has no pandas", "grids in Python");
/** No test requires what Debian does not have. */
const hasPolars = hasPandas && hasModule("polars");
if (!hasPolars) process.stderr.write("python3 has no polars, skipped: grids in polars\n");
const zones = ["America/New_York", "Asia/Kolkata", "Europe/Berlin", "+05:30", "-0330", "europe/berlin", "z"];
const HOUR = 3_600_000_000;

const columns =
  '[["open", "close", "volume_24h", "n_ticks", "expected_ticks", "coverage", "is_complete", "quality"]]';
const blocks: Record<string, string> = {
  ...Object.fromEntries(
    zones.flatMap((tz) => [
      [`1d ${tz}`, `w.bars("BTC", "1d", tz="${tz}", running=True)${columns}`],
      [`final 1d ${tz}`, `w.bars("BTC", "1d", tz="${tz}")${columns}`],
      [
        `5h ${tz}`,
        `w.bars("ETH", "5h", "2026-02-28T00:00Z", "2026-03-01T00:00Z", tz="${tz}", align="day")${columns}`,
      ],
    ]),
  ),
  // The line of docs/dictionary.md.
  resampled: `prices = w.ticks("BTC", "2026-02-28", "2026-03-01").price
starts = prices.resample("7min", origin="epoch").last().index
starts[starts >= "2026-02-28"].equals(w.bars("BTC", "7m", "2026-02-28", "2026-03-01").index)`,
  "1w": `w.bars("BTC", "1w", running=True)${columns}`,
  "zone of the index": 'str(w.bars("BTC", "1h", tz="Asia/Tokyo").index.tz)',
  "zone of ticks": 'str(w.ticks("BTC", "2026-03-01T00:00Z", tz="Asia/Tokyo").index[0])',
  "whole grid":
    'len(w.bars("ETH", "30m", "2026-03-28T00:00Z", "2026-03-30T00:00Z", tz="Europe/Berlin", align="day", grid=True))',
  "days of a change": `[str(each) for each in w.bars("ETH", "1d", "2026-03-28T00:00Z", "2026-03-31T00:00Z", tz="Europe/Berlin", grid=True, running=True).index]`,
  "final days": '[str(day)[:10] for day in w.ohlcv("BTC", "2026-02-27").index]',
  "running day": '[str(day)[:10] for day in w.ohlcv("BTC", "2026-02-27", running=True).index]',
  pieces: `pieces = list(w.iter_ticks("BTC", columns=["price", "is_settled"], rows=1000, exact=True, tz="Asia/Tokyo"))
[pd.concat(pieces).equals(w.ticks("BTC", columns=["price", "is_settled"], exact=True, tz="Asia/Tokyo")), len(pieces), len(pieces[-1])]`,
  "no pieces": 'list(w.iter_ticks("BTC", "2001-01-01", "2001-01-02"))',
  "pieces of several": 'next(w.iter_ticks(["BTC", "ETH"]))',
  "missing until now": 'w.missing("BTC", "2026-03-01", "now").reason.tolist()',
  "missing later": 'w.missing("BTC", "2026-03-01", "2027-01-01").reason.tolist()',
  "returns of local days":
    'w.returns("BTC", "6h", "2026-02-28T00:00Z", "2026-03-01T00:00Z", tz="Asia/Kolkata", align="day")',
  "the zone UTC as an object": `import datetime
w.bars("BTC", "7m", tz=datetime.timezone.utc).index.equals(w.bars("BTC", "7m").index)`,
  "bad zone": 'w.bars("BTC", "1h", tz="Mars/Base")',
  "no zone": 'w.bars("BTC", "1h", tz=5)',
  "bad align": 'w.bars("BTC", "1h", align="week")',
  "bad length": 'w.bars("BTC", "36h", align="day")',
  polars: `p = mds.open(w._backend.path, frames="polars")
frame = p.bars(["BTC", "ETH"], "1h", "2026-02-28", "2026-03-01")
[type(frame).__module__.split(".")[0], frame.columns[:3], frame.height, sum(part.height for part in p.iter_ticks("BTC", rows=1000)) == len(w.ticks("BTC"))]`,
};

const folder = temporaryFolder(afterAll);
let path: string;
let answers: Record<string, PythonAnswer> = {};
beforeAll(async () => {
  if (!hasPandas) return;
  ({ path } = await fillDemoWarehouse(folder));
  answers = runBlocks(path, blocks);
});

const resultOf = (title: string) => answers[title]?.error ?? answers[title]?.value;
const rowsOf = (title: string) => {
  expect(answers[title]?.error).toBeUndefined();
  return answers[title]?.rows ?? [];
};
const utc = (ts: number) => new Date(ts / 1000).toISOString().replace(/Z$/, "000Z");

describe.runIf(hasPandas)("bars in Python", () => {
  it.each([...zones.map((tz) => [`1d ${tz}`, "1d", tz]), ["1w", "1w", "UTC"]])(
    "of %s are those of the library",
    (title, every, tz) => {
      using warehouse = openWarehouse(path);
      const expected = warehouse
        .bars("BTC", { every, tz, running: true })
        .map((bar) => [
          ...[utc(bar.ts), bar.open, bar.close, bar.volume_24h, bar.n_ticks],
          ...[bar.expected_ticks, bar.coverage, bar.is_complete, bar.quality],
        ]);
      expect(rowsOf(title)).toEqual(expected);
      if (every === "1d") {
        expect(rowsOf(`final ${title}`)).toEqual(expected.slice(0, -1));
        expect(expected.at(-1)?.at(-1)).toBe("in progress");
      }
    },
  );

  it.each(zones)("count from the midnights of %s", (tz) => {
    using warehouse = openWarehouse(path);
    const zone = findTimeZone(tz);
    const startOf = (ts: number) => {
      const midnight = zone.startOfDay(zone.dayOf(ts));
      return midnight + Math.floor((ts - midnight) / (5 * HOUR)) * 5 * HOUR;
    };
    const [from, to] = ["2026-02-28", "2026-03-01"].map((day) => Date.parse(day) * 1000) as [number, number];
    const groups = Map.groupBy(warehouse.ticks("ETH"), ({ ts }) => startOf(ts));
    const expected = [...groups].filter(([start]) => start >= from && start < to);
    expect(rowsOf(`5h ${tz}`).map(([time, open, close, , ticks]) => [time, open, close, ticks])).toEqual(
      expected.map(([start, own]) => [utc(start), own[0]?.price, own.at(-1)?.price, own.length]),
    );
    // The last bar of each day is four hours long.
    expect(new Set(rowsOf(`5h ${tz}`).map((row) => row[5]))).toEqual(new Set([600, 480]));
  });

  it("have an index in the zone, and follow its clocks", () => {
    expect(resultOf("zone of the index")).toBe("Asia/Tokyo");
    expect(resultOf("zone of ticks")).toBe("2026-03-01 09:00:00+09:00");
    // Clocks in Berlin skip an hour on 29 March; these bars are not over.
    expect(resultOf("whole grid")).toBe(0);
    expect(resultOf("days of a change")).toEqual([
      "2026-03-29 00:00:00+01:00",
      "2026-03-30 00:00:00+02:00",
      "2026-03-31 00:00:00+02:00",
    ]);
    expect(rowsOf("returns of local days").length).toBe(4);
  });

  it("leave out the day that is not over, unless it is asked for", () => {
    expect(resultOf("final days")).toEqual(["2026-02-27", "2026-02-28"]);
    expect(resultOf("running day")).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
  });

  it("begin where pandas begins with our origin", () => {
    expect(resultOf("resampled")).toBe(1);
  });

  it("refuse an alignment that they do not know", () => {
    expect(resultOf("the zone UTC as an object")).toBe(1);
    expect(resultOf("bad zone")).toBe(
      "ValueError: there is no time zone 'Mars/Base'; give a name such as America/New_York",
    );
    expect(resultOf("no zone")).toBe("TypeError: not a time zone: 5; give a name such as America/New_York");
    expect(resultOf("bad align")).toBe("ValueError: align must be 'day' or left out, not 'week'");
    expect(resultOf("bad length")).toBe("ValueError: align=\"day\" needs bars of at most a day, not '36h'");
  });
});

describe.runIf(hasPandas)("the Python client", () => {
  it("reads ticks piece by piece", () => {
    expect(resultOf("pieces")).toEqual([1, 6, 891]);
    expect(resultOf("no pieces")).toEqual([]);
    expect(resultOf("pieces of several")).toBe("TypeError: iter_ticks reads one series: give its name");
  });

  it("calls nothing unselected that is only young, or yet to come", () => {
    expect(resultOf("missing until now")).toEqual(["pending", "settling"]);
    expect(resultOf("missing later")).toEqual(["pending", "settling", "in the future"]);
  });

  if (hasPolars)
    it("has polars beside pandas", () => {
      expect(resultOf("polars")).toEqual(["polars", ["time", "open_BTC", "open_ETH"], 24, 1]);
    });
});
