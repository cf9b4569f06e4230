import { type BarRow, openWarehouse } from "mds-sync";
import { countTicks } from "./count-ticks.js";

const DAY_MS = 86_400_000;
const BAR_MICROS = 15 * 60_000_000;

/** The standard deviation of the logarithmic returns from bar to bar, none of which spans a gap. */
function volatility(bars: readonly BarRow[]): number {
  const returns = bars.flatMap((bar, at) => {
    const before = bars[at - 1];
    return before && bar.ts - before.ts === BAR_MICROS ? [Math.log(bar.close / before.close)] : [];
  });
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
  return Math.sqrt(returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (returns.length - 1));
}

const isoDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

const [path = "data/mds.sqlite", name = "BTC", day = isoDay(Date.now() - DAY_MS)] = process.argv.slice(2);
const range = { from: day, to: isoDay(Date.parse(day) + DAY_MS), indexType: "GWA" };

using warehouse = openWarehouse(path);
const gaps = warehouse.gaps({ stream: "index_ticks", series: `GWA:${name}`, from: range.from, to: range.to });
const bars = warehouse.bars(name, { every: "15m", ...range }).filter(({ is_complete }) => is_complete === 1);
// Columns are typed arrays: half a million ticks take a tenth of a second.
const [ticks] = warehouse.ticks(name, { as: "columns", columns: ["price"], ...range });
const highest = ticks?.price.reduce((best, value) => Math.max(best, value), Number.NEGATIVE_INFINITY);
const [now] = warehouse.asOf("now", name, { indexType: "GWA" });
const report = {
  name,
  day,
  missing_ranges: gaps.length,
  bars: bars.length,
  volatility: Number(volatility(bars).toFixed(6)),
  ticks: countTicks(path, name, day),
  highest,
  last_price: now?.price,
  last_time: now?.time,
};
console.log(`${Object.keys(report)}\n${Object.values(report)}`);
