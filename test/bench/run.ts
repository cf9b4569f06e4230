import { parseArgs } from "node:util";
import { benchBackfill, benchEndurance } from "./backfill.ts";
import { benchExport } from "./export.ts";
import { type Figure, figureTable, isMissed } from "./figures.ts";
import { benchIngest } from "./ingest.ts";
import { benchLive } from "./live.ts";
import { benchSimulator } from "./simulator.ts";
import { benchSql } from "./sql.ts";
import { benchStart } from "./start.ts";
import { benchWarehouse } from "./warehouse.ts";

type Print = (line: string) => void;

interface Part {
  readonly title: string;
  /** On two quiet cores. */
  readonly minutes: number;
  /** Prints what is only told, gives back what is judged. */
  readonly run: (print: Print) => Promise<readonly Figure[]>;
}

// npm run bench: every part. npm run bench -- backfill endurance: these (`live --seconds 10`: shorter). Every figure is a ratio taken in one run, or
// says what it was measured against: machines differ, and wander.
const parts: Readonly<Record<string, Part>> = {
  simulator: {
    title: "The simulator (must never be what a benchmark measures)",
    minutes: 0.2,
    run: told(benchSimulator),
  },
  ingest: { title: "From bytes to committed rows", minutes: 1, run: told(benchIngest) },
  backfill: { title: "mds-sync backfill, end to end", minutes: 1.5, run: benchBackfill },
  endurance: { title: "mds-sync backfill, 20 million rows", minutes: 4, run: benchEndurance },
  sql: { title: "What a quant asks of 50 million ticks", minutes: 2, run: benchSql },
  live: { title: "Live ticks, from the socket to the disk", minutes: 3.5, run: benchLive },
  start: { title: "mds-sync run, on a filled warehouse", minutes: 0.5, run: (print) => benchStart(print) },
  warehouse: {
    title: "The warehouse, 10 million ticks arriving backwards",
    minutes: 1.5,
    run: told(async (print) => {
      const figures = benchWarehouse(10_000_000);
      print(`bytes a row on disk: ${figures.bytesARow.toFixed(1)}`);
      print(
        `page commits against a bare loop of inserts: ${figures.ratioToBareLoop.toFixed(2)} (${Math.round(figures.rowsASecond).toLocaleString("en-US")} rows/s)`,
      );
      print(`latest_index_ticks: ${figures.latestPerSeries.toFixed(1)} µs a series`);
      print(`cross-section at one moment: ${figures.crossSectionPerSeries.toFixed(1)} µs a series`);
      print(`a week of one series with exact prices: ${figures.weekOfOneSeries.toFixed(0)} ms`);
    }),
  },
  export: { title: "mds-sync export, 10 million ticks", minutes: 1, run: (print) => benchExport(print) },
};

/** A part without limits of its own. */
function told(run: (print: Print) => Promise<void>): Part["run"] {
  return (print) => run(print).then(() => []);
}

const print: Print = (line) => void process.stdout.write(`${line}\n`);
const { positionals: asked } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string" } },
});
const unknown = asked.filter((name) => !(name in parts));
if (unknown.length > 0) {
  print(`no part ${unknown.join(", ")}: there are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}

const judged: Figure[] = [];
for (const [name, { title, minutes, run }] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  print(`\n${title} (about ${minutes < 1 ? `${minutes * 60} seconds` : `${minutes} minutes`})`);
  judged.push(...(await run(print)));
}
if (judged.length > 0) {
  print("");
  for (const line of figureTable(judged)) print(line);
}
if (judged.some(isMissed)) process.exitCode = 1;
