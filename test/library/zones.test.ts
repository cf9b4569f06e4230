import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { findTimeZone } from "../../src/library/reading/time-zone.ts";
import { formatTimestamp, MICROS_PER_SECOND } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const HALF_HOUR = 1_800 * MICROS_PER_SECOND;
const tz = "America/New_York";
/** A tick every half hour around both changes of the clocks; the price is the hour of UTC, and 0.5 at half past. */
const ticks = [
  ["2026-03-06T00:00:00Z", "2026-03-11T00:00:00Z"],
  ["2026-10-30T00:00:00Z", "2026-11-04T00:00:00Z"],
].flatMap(([from = "", to = ""]) =>
  Array.from({ length: (parseTs(to) - parseTs(from)) / HALF_HOUR }, (_, n) => {
    const ts = parseTs(from) + n * HALF_HOUR;
    return tick(ts, String((ts / 2 / HALF_HOUR) % 24), { indexId: "a" });
  }),
);

/** The same in Python: a series of pandas. */
const expressions = {
  spring: `w.asof(series=["a"], at="09:30", start="2026-03-06", end="2026-03-10", tz="${tz}")["a"]`,
  autumn: `w.asof(series=["a"], at="09:30", start="2026-10-31", end="2026-11-03", tz="${tz}")["a"]`,
  lordHowe: `pd.Series(range(1), mds.times.localize(pd.to_datetime(["2026-10-04 02:10"]), "Australia/Lord_Howe"))`,
  london: `pd.Series(range(1), mds.times.localize(pd.to_datetime(["2026-03-29 01:15"]), "Europe/London"))`,
  changes: `w.asof(["2026-11-01 01:30", "2026-03-08 02:30"], ["a"], tz="${tz}")["a"]`,
  ticks: `w.ticks("a", "2026-03-07", "2026-03-09 00:00", tz="${tz}").price`,
  bars: `w.bars("a", "4h", "2026-03-08", "2026-03-09 08:00", tz="${tz}").close`,
  missing: `w.missing("a", "2026-03-08", "2026-03-09", tz="${tz}").set_index("from_time").to_time.dt.hour`,
} as const;

let path: string;
let warehouse: Warehouse;
let inPython: Readonly<Record<string, readonly [time: string, value: number][]>> | undefined;
beforeAll(() => {
  path = join(temporaryFolder(afterAll), "mds.sqlite");
  const writer = openWriter(path, { clock: systemClock });
  storeTicks(writer, ticks);
  writer.close();
  warehouse = openWarehouse(path);
  inPython = askPython();
});
afterAll(() => warehouse.close());

function askPython(): typeof inPython {
  if (!hasModules("pandas", "zones in Python")) return undefined;
  const script = `import sys, json, pandas as pd, mds
w = mds.open(sys.argv[1])
show = lambda found: [[time.isoformat(timespec="microseconds"), value] for time, value in found.items()]
print(json.dumps({name: show(eval(each)) for name, each in json.loads(sys.argv[2]).items()}))`;
  return JSON.parse(runPython(script, [path, JSON.stringify(expressions)]));
}

const run = async (...args: readonly string[]) => {
  const { stdout, stderr, status } = await runInProcess([...args, "--json"], {
    env: { MDS_WAREHOUSE: path },
  });
  return status === 0 ? (JSON.parse(stdout) as Record<string, unknown>[]) : stderr;
};

describe("one moment a day, across a change of the clocks", () => {
  const days = (offsets: Readonly<Record<string, string>>, prices: readonly number[]) =>
    Object.entries(offsets).map(([day, offset], at) => [`${day}T09:30:00.000000${offset}`, prices[at]]);
  const spring = days(
    { "2026-03-06": "-05:00", "2026-03-07": "-05:00", "2026-03-08": "-04:00", "2026-03-09": "-04:00" },
    [14.5, 14.5, 13.5, 13.5],
  );
  const autumn = days(
    { "2026-10-31": "-04:00", "2026-11-01": "-05:00", "2026-11-02": "-05:00" },
    [13.5, 14.5, 14.5],
  );
  it.each([
    ["2026-03-06", "2026-03-10", spring, "spring"],
    ["2026-10-31", "2026-11-03", autumn, "autumn"],
  ])("from %s to %s, in shell, TypeScript and Python", async (from, to, expected, season) => {
    const shell = await run("asof", "a", "--at", "09:30", "--tz", tz, "--from", from, "--to", to);
    expect((shell as { at: string; price: number }[]).map(({ at, price }) => [at, price])).toEqual(expected);
    expect(warehouse.asOf({ at: "09:30", from, to }, "a", { tz })).toEqual(shell);
    if (inPython) expect(inPython[season]).toEqual(expected);
  });

  it("is the first of two times, and a skipped one counts by the offset before", () => {
    const { format, momentOf } = findTimeZone(tz);
    const shown = (text: string) => format(momentOf(parseTs(`${text}Z`)));
    expect(shown("2026-11-01T01:30:00")).toBe("2026-11-01T01:30:00.000000-04:00");
    expect(shown("2026-03-08T02:30:00")).toBe("2026-03-08T03:30:00.000000-04:00");
    expect(findTimeZone("Australia/Lord_Howe").format(parseTs("2026-10-03T15:40:00Z"))).toMatch(/T02:40:00/);
    if (inPython) expect(inPython.lordHowe?.[0]?.[0]).toMatch(/T02:40:00\.000000\+11:00$/);
    if (inPython) expect(inPython.london?.[0]?.[0]).toMatch(/T02:15:00\.000000\+01:00$/);
    if (inPython)
      expect(inPython.changes?.map(([time]) => time)).toEqual([
        "2026-11-01T01:30:00.000000-04:00",
        "2026-03-08T03:30:00.000000-04:00",
      ]);
  });
});

describe("several moments", () => {
  it("come from a file or a list, as rows in their order or side by side", async () => {
    const file = join(temporaryFolder(), "times.txt");
    const times = ["2026-03-09 12:00", "2026-03-06 12:00"];
    writeFileSync(file, `${times.join("\n")}\n\n`);
    const rows = await run("asof", "a", "--times", file, "--tz", tz);
    expect(rows).toEqual(warehouse.asOf(times, "a", { tz }));
    expect(rows).toMatchObject([{ price: 16 }, { price: 17 }]);
    const wide = await run("asof", "a", "--times", file, "--tz", tz, "--wide");
    expect(wide).toMatchObject([
      { time: "2026-03-06T12:00:00.000000-05:00", a: 17, is_complete: 0 },
      { time: "2026-03-09T12:00:00.000000-04:00", a: 16 },
    ]);
  });

  it.each([
    [["--at", "9.30", "--from", "2026-03-06"], "9.30 is not a time of day: give a time such as 09:30"],
    [["--at", "09:30", "--times", "x"], "--at cannot be combined with --times: leave out one of them"],
    [
      ["--at", "09:30", "--from", "2026-03-07", "--to", "2026-03-06"],
      "the range is empty: its start is not before its end: a range is [from, to)",
    ],
    [["--at", "09:30"], "--at needs the days: give the first with --from"],
    [["--times", "none.txt"], "--times cannot be none.txt (ENOENT): name a file with one time a line"],
    [[], "asof needs a time and a series: such as mds-sync asof now BTC"],
  ])("answers %j in one line", async (flags, line) => {
    expect(await run("asof", "a", ...flags)).toBe(`mds-sync: ${line}\n`);
  });
});

describe("a range in a zone", () => {
  it("has bounds of its clocks, in shell, TypeScript and Python", async () => {
    const [from, to] = ["2026-03-07", "2026-03-09 00:00"];
    const rows = await run("ticks", "a", "--from", from, "--to", to, "--tz", tz);
    expect(rows).toEqual(warehouse.ticks("a", { from, to, tz }));
    // The day of the change has 23 hours.
    expect(rows).toHaveLength(94);
    expect(rows[0]).toMatchObject({ time: "2026-03-07T00:00:00.000000-05:00" });
    if (inPython) expect(inPython.ticks).toHaveLength(94);
  });

  it("has its gaps, and is whole or not", async () => {
    const day = { from: "2026-03-08", to: "2026-03-09", tz };
    const flags = ["--series", "a", "--stream", "index_ticks", "--from", day.from, "--to", day.to];
    const env = { MDS_WAREHOUSE: path };
    const gaps = JSON.parse((await runInProcess(["gaps", ...flags, "--tz", tz, "--json"], { env })).stdout);
    const ends = { from_time: "2026-03-08T05:00:00.000000Z", to_time: "2026-03-09T04:00:00.000000Z" };
    expect(gaps).toMatchObject([ends]);
    expect(warehouse.gaps({ series: "a", stream: "index_ticks", ...day })).toEqual(gaps);
    expect(warehouse.isWhole("a", day)).toBe(false);
    if (inPython) expect(inPython.missing).toEqual([["2026-03-08T05:00:00.000000+00:00", 4]]);
  });

  it("has bars that count from each midnight", async () => {
    const [from, to] = ["2026-03-08", "2026-03-09 08:00"];
    const expected = ["00:00:00-05:00", "05:00:00-04:00", "09:00:00-04:00", "13:00:00-04:00"]
      .concat("17:00:00-04:00", "21:00:00-04:00")
      .map((time) => `2026-03-08T${time}`)
      .concat("2026-03-09T00:00:00-04:00", "2026-03-09T04:00:00-04:00")
      .map((time) => time.replace(/(?=-0\d:00$)/, ".000000"));
    const rows = await run("bars", "a", "--every", "4h", "--from", from, "--to", to, "--tz", tz);
    expect(rows).toEqual(warehouse.bars("a", { every: "4h", from, to, tz }));
    expect((rows as { time: string }[]).map(({ time }) => time)).toEqual(expected);
    // The last bar of the day ends with it.
    expect(rows[5]).toMatchObject({ n_ticks: 6 });
    if (inPython)
      expect(inPython.bars).toEqual(
        (rows as { time: string; close: number }[]).map(({ time, close }) => [time, close]),
      );
  });

  it("has the same quarters of an hour in every zone", () => {
    const range = { from: "2026-03-08", to: "2026-03-09" };
    const [utc, kolkata] = [undefined, "Asia/Kolkata"].map((zone) =>
      warehouse.bars("a", { every: "15m", ...range, ...(zone && { tz: zone, from: "2026-03-08 05:30" }) }),
    );
    expect(kolkata?.[0]?.ts).toBe(utc?.[0]?.ts);
    expect(formatTimestamp(utc?.[0]?.ts ?? 0)).toBe("2026-03-08T00:00:00.000000Z");
  });
});
