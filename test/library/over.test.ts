import { describe, expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { seed } from "../support/seed.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { createWarehouse, DAY, fill, midnight, STEP } from "../support/warehouse/filled-warehouse.ts";
import { catchFailure } from "../support/warehouse/open-warehouse.ts";
import { decimal } from "../support/warehouse/records.ts";

const FROM = midnight - 2 * DAY;
const STEPS = 400;
const random = seededRandom(seed);
const draw = (first: number, share: number) =>
  Array.from({ length: STEPS - first }, (_, n) => first + n)
    .filter(() => random() < share)
    .map((n) => ({
      ts: FROM + n * STEP + Math.floor(random() * 3) * 1_000_000,
      price: random() < 0.05 ? null : decimal((1 + random() * 9).toFixed(4)),
      quality: random() < 0.05 ? "doubt" : null,
    }));
const own = draw(0, 0.9);
/** It begins later. */
const other = draw(60, 0.6);
const begun = FROM + 60 * STEP;

/** What each tick costs in the other series. */
const ratios = own.flatMap(({ ts, price }) => {
  const divisor = other.findLast((tick) => tick.ts <= ts && tick.price !== null)?.price;
  return price && divisor ? [{ ts, ratio: price.real / divisor.real }] : [];
});
const at = (n: number) => formatTimestamp(FROM + n * STEP);
const every = "10m";

const create = () =>
  createWarehouse((transaction) =>
    fill(transaction, {
      assets: { "btc-id": "BTC", "eth-id": "ETH" },
      series: [
        { indexId: "btc-id", from: FROM, rows: own, settled: [[FROM, FROM + STEPS * STEP]] },
        { indexId: "eth-id", from: begun, rows: other, settled: [[begun, FROM + 200 * STEP]] },
      ],
    }),
  );

describe("bars over another series", () => {
  it("are those of each tick over the other's newest price by then, proven where both are", () => {
    using warehouse = openWarehouse(create());
    const bars = warehouse.bars("BTC", { every, over: "ETH" });
    const groups = Map.groupBy(ratios, ({ ts }) => Math.floor(ts / 600e6) * 600e6);
    expect(
      bars.map(({ ts, open, high, low, close, n_ticks }) => [ts, open, high, low, close, n_ticks]),
    ).toEqual(
      [...groups].map(([ts, all]) => {
        const values = all.map(({ ratio }) => ratio);
        return [ts, values[0], Math.max(...values), Math.min(...values), values.at(-1), values.length];
      }),
    );
    expect(bars.length).toBeGreaterThan(10);
    const whole = bars.filter(({ is_complete }) => is_complete === 1).map(({ ts }) => ts);
    expect(whole).toEqual(
      bars.map(({ ts }) => ts).filter((ts) => ts >= FROM + 60 * STEP && ts + 600e6 <= FROM + 200 * STEP),
    );
    expect(bars[0]).toMatchObject({ name: "BTC over ETH", volume_24h: null, source: "ticks" });
    expect(warehouse.bars("BTC", { every, over: "ETH", as: "columns" })[0]?.length).toBe(bars.length);
    // From the middle, the newest price of the other series is older than the range.
    const part = { from: at(100), every, over: "ETH" };
    expect(warehouse.bars("BTC", part)).toEqual(bars.filter(({ ts }) => ts >= FROM + 100 * STEP));
  });

  it("need both series where everything must be complete, and refuse daily bars", () => {
    using warehouse = openWarehouse(create());
    const over = { every, over: "ETH", requireComplete: true } as const;
    expect(warehouse.bars("BTC", { ...over, from: at(60), to: at(200) })).toHaveLength(7);
    const failure = catchFailure(() => warehouse.bars("BTC", { ...over, from: at(60), to: at(260) }));
    expect(failure).toMatchObject({ code: "not_whole", gaps: [{ name: "ETH", from_time: at(200) }] });
    const daily = catchFailure(() => warehouse.bars("BTC", { every: "1d", over: "ETH", source: "ohlcv" }));
    expect(daily.summary).toBe("BTC over ETH has no daily bars of price: leave out --source");
    const unknown = catchFailure(() => warehouse.bars("BTC", { every, over: "ETHE" }));
    expect(unknown.summary).toContain("did you mean ETH?");
  });

  it("are the same in the command, in Python and in a citation", async () => {
    const path = create();
    using warehouse = openWarehouse(path);
    const range = { from: at(0), to: at(STEPS) };
    const closes = warehouse.bars("BTC", { every, over: "ETH", ...range }).map(({ close }) => close);
    const ends = ["--from", at(0), "--to", at(STEPS)];
    const args = ["bars", "BTC", "--over", "ETH", "--every", every, ...ends, "--cite"];
    const { stdout, stderr } = await runInProcess([...args, "--wide", "--json"], {
      env: { MDS_WAREHOUSE: path },
    });
    expect(JSON.parse(stdout).map((row: Record<string, unknown>) => row["BTC over ETH"])).toEqual(closes);
    expect(warehouse.check(stderr)).toMatchObject({ equal: true, rows: closes.length });
    if (!hasModules("pandas", "bars over another series in Python")) return;
    const script = `import sys, json, mds
w = mds.open(sys.argv[1])
asked = ("BTC", "${every}", "${at(0)}", "${at(STEPS)}")
bars = w.bars(*asked, over="ETH", exact=True)
print(json.dumps([list(bars.close), list(map(bool, bars.is_complete)), [float(x) for x in bars.high_exact], list(map(float, bars.high)),
  w.check(sys.argv[2])["equal"], w.cite("bars", *asked, over="ETH")]))`;
    const [inPython, complete, exact, high, isEqual, line] = JSON.parse(runPython(script, [path, stderr]));
    expect(inPython).toEqual(closes);
    expect(complete.filter(Boolean)).toHaveLength(7);
    expect(exact).toEqual(high);
    expect(isEqual).toBe(true);
    expect(line.match(/sha256=\w+/)[0]).toBe(stderr.match(/sha256=\w+/)?.[0]);
  });
});
