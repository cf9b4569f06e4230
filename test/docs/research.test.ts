import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import type { BarRow } from "../../src/library/rows.ts";
import { MICROS_PER_DAY } from "../../src/model/time.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { parseTs } from "../support/warehouse/records.ts";
import { fillDemoWarehouse } from "./demo-warehouse.ts";
import { parseBlocks, replaceOutputs } from "./page-blocks.ts";
import { blockRunners, type ResearchPlace } from "./research-runners.ts";

const page = resolve(import.meta.dirname, "../../docs/research.md");
const text = readFileSync(page, "utf8");
const folder = temporaryFolder(afterAll);
let place: ResearchPlace;
let simulator: Simulator;
let warehouse: Warehouse;

beforeAll(async () => {
  const { path, clock } = await fillDemoWarehouse(folder);
  place = { folder, path, clock, blocks: parseBlocks(text) };
  simulator = await startSimulator({ clock, seed: 1 });
  warehouse = openWarehouse(path);
});
afterAll(async () => {
  warehouse?.close();
  await simulator?.stop();
});

describe("the research page", () => {
  // `npx vitest run test/docs/research.test.ts -u` writes the outputs into the page. Review them before you commit.
  it("shows what its blocks print", async () => {
    const printed = await replaceOutputs(text, async (block) => {
      const run = blockRunners[block.language];
      if (!run) throw new Error(`line ${block.line}: nothing runs ${block.language}`);
      return run(block, place);
    });
    await expect(printed).toMatchFileSnapshot(page);
  });

  it("has an output for every block that prints something", () => {
    const silent = parseBlocks(text).filter(
      ({ output, code }) => output === undefined && !/--(out|to) [a-z]/.test(code),
    );
    expect(silent).toEqual([]);
    const languages = new Set(parseBlocks(text).map(({ language }) => language));
    expect(languages).toEqual(new Set(["sh", "sql", "ts", "python"]));
  });
});

interface PlainTick {
  readonly ts: number;
  readonly price: string;
  readonly volume: string;
}

const served = new Map<string, PlainTick[]>();

/** What the service served, with the two defects of the demo. */
function servedTicks(name: string): PlainTick[] {
  const ticks = served.get(name) ?? computeServedTicks(name);
  served.set(name, ticks);
  return ticks;
}

function computeServedTicks(name: string): PlainTick[] {
  const { index_id = "" } = warehouse.series().find((series) => series.name === name) ?? {};
  const records = simulator.oracle.indexTicks(
    "GWA",
    index_id,
    Date.parse("2026-02-28"),
    Date.parse("2026-03-01T12:00:00Z"),
    place.clock.now(),
  );
  const ticks = records.map(({ timestamp, price, volume }) => ({ ts: parseTs(timestamp), price, volume }));
  if (name === "ETH") {
    const gap = [parseTs("2026-02-28T06:30:00Z"), parseTs("2026-02-28T08:00:00Z")] as const;
    return ticks.filter(({ ts }) => ts < gap[0] || ts >= gap[1]);
  }
  const corrected = parseTs("2026-02-28T12:00:00Z");
  return ticks.map((tick) =>
    name === "BTC" && tick.ts === corrected ? { ...tick, price: "103900.5", volume: "623317.288" } : tick,
  );
}

/** Plain notation without trailing zeros, as the contract defines exact digits. */
const plain = (digits: string) =>
  digits.includes(".") ? digits.replace(/0+$/, "").replace(/\.$/, "") : digits;

type Figures = Pick<
  BarRow,
  "ts" | "open_exact" | "high_exact" | "low_exact" | "close_exact" | "volume_24h_exact" | "n_ticks"
>;

/** Bars by the simplest means: group, sort, pick. */
function plainBars(ticks: readonly PlainTick[], startOf: (ts: number) => number): Figures[] {
  return [...Map.groupBy(ticks, ({ ts }) => startOf(ts))].map(([ts, own]) => {
    const sorted = own.toSorted((a, b) => Number(a.price) - Number(b.price));
    const [first, last] = [own[0], own.at(-1)];
    return {
      ts,
      open_exact: plain(first?.price ?? ""),
      high_exact: plain(sorted.at(-1)?.price ?? ""),
      low_exact: plain(sorted[0]?.price ?? ""),
      close_exact: plain(last?.price ?? ""),
      volume_24h_exact: plain(last?.volume ?? ""),
      n_ticks: own.length,
    };
  });
}

const figuresOf = (bar: Figures): Figures => ({
  ts: bar.ts,
  open_exact: bar.open_exact,
  high_exact: bar.high_exact,
  low_exact: bar.low_exact,
  close_exact: bar.close_exact,
  volume_24h_exact: bar.volume_24h_exact,
  n_ticks: bar.n_ticks,
});

async function readCommand<Row>(...args: string[]): Promise<Row[]> {
  const { stdout } = await runInProcess([...args, "--json"], {
    cwd: folder,
    env: { MDS_WAREHOUSE: place.path },
  });
  return JSON.parse(stdout) as Row[];
}

const MINUTE = 60_000_000;
const range = { from: "2026-02-28", to: "2026-03-01 12:00" };
const flags = ["--from", range.from, "--to", range.to];

describe("SQL, command and library equal a plain calculation from what the service served", () => {
  it.each(["BTC", "ETH", "SOL"])("ticks of %s, to the last digit", async (name) => {
    const expected = servedTicks(name).map(({ ts, price, volume }) => [ts, plain(price), plain(volume)]);
    const digits = (
      rows: readonly { ts: number; price_exact: string | null; volume_exact: string | null }[],
    ) => rows.map(({ ts, price_exact, volume_exact }) => [ts, price_exact, volume_exact]);
    expect(expected.length).toBeGreaterThan(4000);
    expect(digits(warehouse.ticks(name, range))).toEqual(expected);
    expect(digits(await readCommand("ticks", name, ...flags))).toEqual(expected);
    const sql = `SELECT ts, price_exact, volume_exact FROM index_ticks
      WHERE name = :name AND time >= '2026-02-28' AND time < '2026-03-01T12' ORDER BY ts`;
    expect(digits(warehouse.query(sql, { name }))).toEqual(expected);
    const [columns] = warehouse.ticks(name, { ...range, as: "columns" });
    expect([...(columns?.price ?? [])]).toEqual(expected.map(([, price]) => Number(price)));
    expect([...(columns?.ts ?? [])].map(Number)).toEqual(expected.map(([ts]) => ts));
  });

  it.each([
    ["5m", 5 * MINUTE],
    ["1h", 60 * MINUTE],
    ["4h", 240 * MINUTE],
    ["7m", 7 * MINUTE],
    ["10m", 10 * MINUTE],
    ["3h", 180 * MINUTE],
  ] as const)("bars of %s", async (every, length) => {
    const first = parseTs("2026-02-28T00:00:00Z");
    for (const name of ["BTC", "ETH"]) {
      // A bar belongs to the range if it begins in it: the first tick may belong to an earlier one, the last bar goes on.
      const isWhole = ({ ts }: Figures) => ts >= first && ts + length <= parseTs("2026-03-01T12:00:00Z");
      const expected = plainBars(servedTicks(name), (ts) => Math.floor(ts / length) * length).filter(isWhole);
      expect(
        warehouse
          .bars(name, { every, ...range })
          .map(figuresOf)
          .filter(isWhole),
      ).toEqual(expected);
      const written = await readCommand<BarRow>("bars", name, "--every", every, ...flags);
      expect(written.map(figuresOf).filter(isWhole)).toEqual(expected);
      if (!["5m", "1h", "4h"].includes(every)) continue;
      const sql = `SELECT * FROM bars_${every} WHERE name = :name AND time >= '2026-02-28' AND time < '2026-03-01T12' ORDER BY ts`;
      expect(warehouse.query<BarRow>(sql, { name }).map(figuresOf).filter(isWhole)).toEqual(expected);
    }
  });

  it("bars of the days of another zone", () => {
    const inBerlin = (ts: number) =>
      Math.floor((ts + 60 * MINUTE) / MICROS_PER_DAY) * MICROS_PER_DAY - 60 * MINUTE;
    const day = parseTs("2026-02-28T23:00:00Z");
    const [expected] = plainBars(
      servedTicks("BTC").filter(({ ts }) => inBerlin(ts) === day),
      inBerlin,
    );
    const [bar] = warehouse.bars("BTC", {
      every: "1d",
      tz: "Europe/Berlin",
      from: day,
      to: "2026-03-01 12:00",
      running: true,
    });
    expect(bar?.time).toBe("2026-03-01T00:00:00.000000+01:00");
    // The day goes on after the ticks above.
    expect(bar && figuresOf(bar)).toMatchObject({ ts: day, open_exact: expected?.open_exact });
  });

  it("what each was worth at a moment", async () => {
    const moment = "2026-02-28T07:12:41Z";
    const names = ["BTC", "ETH", "SOL"];
    const expected = names.map((name) => {
      const last = servedTicks(name).findLast(({ ts }) => ts <= parseTs(moment));
      return [name, last?.ts, plain(last?.price ?? "")];
    });
    const shown = (rows: readonly { name: string; ts: number | null; price_exact: string | null }[]) =>
      rows.map(({ name, ts, price_exact }) => [name, ts, price_exact]);
    expect(shown(warehouse.asOf(moment, names))).toEqual(expected);
    expect(shown(await readCommand("asof", moment, ...names))).toEqual(expected);
  });
});
