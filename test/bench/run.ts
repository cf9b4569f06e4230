import { benchIngest } from "./ingest.ts";
import { benchSimulator } from "./simulator.ts";
import { benchWarehouse } from "./warehouse.ts";

// Every figure is a ratio taken in this run, or says what it was measured against: machines differ, and wander.
const print = (line: string) => process.stdout.write(`${line}\n`);
const section = (title: string) => print(`\n${title}`);

section("The simulator (must never be what a benchmark measures)");
await benchSimulator(print);

section("From bytes to committed rows");
await benchIngest(print);

section("The warehouse, 10 million ticks arriving backwards");
const figures = benchWarehouse(10_000_000);
print(`bytes a row on disk: ${figures.bytesARow.toFixed(1)}`);
print(
  `page commits against a bare loop of inserts: ${figures.ratioToBareLoop.toFixed(2)} (${Math.round(figures.rowsASecond).toLocaleString("en-US")} rows/s)`,
);
print(`latest_index_ticks: ${figures.latestPerSeries.toFixed(1)} µs a series`);
print(`cross-section at one moment: ${figures.crossSectionPerSeries.toFixed(1)} µs a series`);
print(`a week of one series with exact prices: ${figures.weekOfOneSeries.toFixed(0)} ms`);
