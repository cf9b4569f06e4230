import { type BarRow, IncompleteFailure, openWarehouse, type Warehouse } from "mds-sync";
import { countTicks } from "./count-ticks.js";

/** The standard deviation of the logarithmic returns from bar to bar. */
function volatility(bars: readonly BarRow[]): number {
  const returns = bars.slice(1).map((bar, at) => Math.log(bar.close / (bars[at]?.close ?? Number.NaN)));
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
  return Math.sqrt(returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (returns.length - 1));
}

function report(warehouse: Warehouse, name: string): void {
  try {
    const bars = warehouse.bars(name, { every: "10m", requireComplete: true });
    console.log(`${name}: ${bars.length} bars, volatility ${volatility(bars).toFixed(6)}`);
  } catch (error) {
    if (!(error instanceof IncompleteFailure)) throw error;
    const [first] = error.gaps;
    console.log(`${name} is not complete: from ${first?.from_time} to ${first?.to_time}: ${first?.reason}`);
  }
  // Columns are typed arrays: half a million ticks take a tenth of a second.
  for (const { ts, price } of warehouse.ticks(name, { as: "columns", columns: ["price"] })) {
    const highest = price.reduce((best, value) => Math.max(best, value), Number.NEGATIVE_INFINITY);
    console.log(`${name}: ${ts.length} ticks, the highest ${highest}`);
  }
  const [now] = warehouse.asOf("now", name);
  console.log(`${name}: last price ${now?.price_exact} at ${now?.time}`);
}

const [path = "data/mds.sqlite", ...names] = process.argv.slice(2);
using warehouse = openWarehouse(path);
for (const name of names) report(warehouse, name);
console.log(`${countTicks(path)} ticks in all`);
