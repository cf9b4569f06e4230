import { benchBackfill } from "./backfill.ts";
import { benchExport } from "./export.ts";
import { type Figure, formatFigure, isMissed } from "./figures.ts";
import { benchGoodput } from "./goodput.ts";
import { benchLive } from "./live.ts";
import { benchOutage } from "./outage.ts";
import { benchPages } from "./pages.ts";
import { benchServe } from "./serve.ts";
import { MAX_STOLEN_FRACTION, watchStolenTime } from "./stolen-time.ts";
import { benchToolkit } from "./toolkit.ts";
import { benchWritten } from "./written.ts";

interface Part {
  readonly title: string;
  /** On two idle cores. */
  readonly minutes: number;
  readonly run: () => Promise<readonly Figure[]>;
}

// npm run bench: every figure of docs/speed.md. npm run bench -- backfill live: these parts.
// Most figures are ratios within one run, because machines differ and their speed varies.
const parts: Readonly<Record<string, Part>> = {
  backfill: { title: "mds-sync backfill, end to end", minutes: 1.5, run: benchBackfill },
  goodput: { title: "Pages per second on a bad network, of what is possible", minutes: 2, run: benchGoodput },
  toolkit: { title: "The library and the commands", minutes: 0.2, run: benchToolkit },
  live: { title: "Live ticks, from the socket to the disk", minutes: 1.5, run: benchLive },
  written: { title: "Bytes written for live rows, hours of polls", minutes: 2, run: benchWritten },
  outage: { title: "Back after an outage", minutes: 6, run: benchOutage },
  pages: { title: "The pages beside the first backfill of 1,500 assets", minutes: 2, run: benchPages },
  serve: { title: "mds-sync serve, 576,000 ticks", minutes: 0.2, run: benchServe },
  export: { title: "mds-sync export, 10 million ticks", minutes: 1, run: benchExport },
};

const print = (line: string) => void process.stdout.write(`${line}\n`);
const requested = process.argv.slice(2);
const unknown = requested.filter((name) => !(name in parts));
if (unknown.length > 0) {
  print(`unknown part ${unknown.join(", ")}: the parts are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}

for (const [name, { title, minutes, run }] of Object.entries(parts)) {
  if (requested.length > 0 && !requested.includes(name)) continue;
  print(`\n${title} (about ${minutes < 1 ? `${minutes * 60} seconds` : `${minutes} minutes`})`);
  const readStolenFraction = watchStolenTime();
  const figures = await run();
  for (const figure of figures) print(formatFigure(figure));
  if (figures.some(isMissed)) process.exitCode = 1;
  const stolen = Math.round(readStolenFraction() * 100);
  if (stolen > MAX_STOLEN_FRACTION * 100)
    print(`${stolen} % of the CPU time went to other machines: these figures suffer from it`);
}
