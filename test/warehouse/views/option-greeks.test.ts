import { expect, it } from "vitest";
import { readPageView } from "../../../src/dashboard/page-views.ts";
import { DAYS_PER_YEAR, MICROS_PER_DAY, parseTimestamp } from "../../../src/model/time.ts";
import { withReader } from "../../../src/warehouse/reader.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

type Greek = "implied_volatility" | "delta" | "gamma" | "vega" | "theta";
type Row = Record<"contract_id" | "market_id" | "option_type" | "expiration", string> &
  Record<"ts" | "strike" | "worth" | "forward" | "open_interest" | Greek, number>;

/** The distribution function of the normal distribution, as a sum of rectangles. */
function normal(x: number): number {
  const [steps, from] = [2_000, -12];
  const width = (x - from) / steps;
  const heights = Array.from({ length: steps }, (_, i) => Math.exp(-((from + (i + 0.5) * width) ** 2) / 2));
  return (heights.reduce((sum, height) => sum + height, 0) * width) / Math.sqrt(2 * Math.PI);
}

interface PriceOptions {
  readonly isCall: boolean;
  readonly forward: number;
  readonly strike: number;
  readonly years: number;
  readonly volatility: number;
}

/** Black's formula without interest. */
function optionPrice({ isCall, forward, strike, years, volatility }: PriceOptions): number {
  const deviation = volatility * Math.sqrt(years);
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  const call = forward * normal(d1) - strike * normal(d1 - deviation);
  return isCall ? call : call - forward + strike;
}

const near = (value: number, expected: number, within: number) =>
  expect(Math.abs(value - expected)).toBeLessThan(within);

it("has the volatility that gives the price, and greeks that are the slopes of the price", async () => {
  const { path } = await fillDemoWarehouse(temporaryFolder());
  const rows = withReader(path, (reader) => reader.rows<Row>("SELECT * FROM latest_option_greeks"));
  const solved = rows.filter(({ implied_volatility }) => implied_volatility !== null);
  expect(solved.length).toBeGreaterThan(10);
  for (const row of solved) {
    const { forward, strike, implied_volatility: volatility, worth } = row;
    const years = ((parseTimestamp(row.expiration) ?? 0) - row.ts) / (DAYS_PER_YEAR * MICROS_PER_DAY);
    const price = (moved: Partial<PriceOptions>) =>
      optionPrice({ isCall: row.option_type === "CALL", forward, strike, years, volatility, ...moved });
    near(price({}), worth, 1e-6 * forward);
    const slope = (a: number, b: number, by: number) => (b - a) / (2 * by);
    const [step, point, day] = [forward / 100, 0.01, 1 / 365];
    const [below, above] = [price({ forward: forward - step }), price({ forward: forward + step })];
    near(row.delta, slope(below, above, step), 0.02);
    near(row.gamma, (above - 2 * price({}) + below) / step ** 2, 0.1 * row.gamma + 1e-7);
    const [calmer, wilder] = [
      price({ volatility: volatility - point }),
      price({ volatility: volatility + point }),
    ];
    near(row.vega, slope(calmer, wilder, 1), 0.02 * row.vega + 0.02);
    const [later, earlier] = [price({ years: years - day / 10 }), price({ years: years + day / 10 })];
    near(row.theta, slope(earlier, later, 0.1), -0.05 * row.theta + 0.05);
    // A forward that is 0.001 % off changes no volatility that is told by more than a percentage point.
    expect(Math.abs(row.delta) * forward * 1e-5).toBeLessThanOrEqual(row.vega);
  }
  const chains = Map.groupBy(rows, ({ market_id, expiration }) => `${market_id} ${expiration}`);
  for (const chain of chains.values()) {
    // The forward is that of the strike where call and put cost nearly the same.
    const parities = [...Map.groupBy(chain, ({ strike }) => strike)].flatMap(([strike, list]) => {
      const [call, put] = ["CALL", "PUT"].map(
        (type) =>
          list
            .filter(({ option_type }) => option_type === type)
            .sort((a, b) => b.open_interest - a.open_interest)[0],
      );
      return call && put ? [{ strike, difference: call.worth - put.worth }] : [];
    });
    const [nearest] = parities.sort((a, b) => Math.abs(a.difference) - Math.abs(b.difference));
    for (const { forward } of chain)
      expect(forward).toBeCloseTo((nearest?.strike ?? Number.NaN) + (nearest?.difference ?? 0), 6);
    // What is not told beside a told one of the same strike would change by more than a point.
    for (const { option_type, strike, implied_volatility } of chain) {
      const other = chain.find((one) => one.strike === strike && one.option_type !== option_type);
      if (implied_volatility !== null || other?.implied_volatility == null) continue;
      const delta = Math.abs(other.delta + (option_type === "CALL" ? 1 : -1));
      expect(delta * other.forward * 1e-5).toBeGreaterThan(other.vega * 0.99);
    }
  }
});

it("is what the page of derivatives shows of an asset", async () => {
  const { path, clock } = await fillDemoWarehouse(temporaryFolder());
  withReader(path, (reader) => {
    const [{ id } = { id: "" }] = reader.rows<{ id: string }>("SELECT id FROM assets WHERE symbol = 'BTC'");
    const key = (row: object) => JSON.stringify(Object.values(row));
    const now = clock.now() * 1000;
    const asked = { asset: id, exchange: "", at: now };
    const shown = readPageView(reader, "derivatives", asked, now).parts.options.rows;
    const columns = "exchange, option_type, strike, ts, worth, forward, implied_volatility";
    const stored = reader.rows(`SELECT ${columns} FROM latest_option_greeks WHERE pair LIKE 'BTC/%'`);
    expect(stored.length).toBeGreaterThan(10);
    const pick = ({
      exchange,
      option_type,
      strike,
      ts,
      worth,
      forward,
      implied_volatility,
    }: (typeof shown)[0]) => key({ exchange, option_type, strike, ts, worth, forward, implied_volatility });
    expect(shown.map(pick).sort()).toEqual(stored.map((row) => key(row as object)).sort());
  });
});
