import { parseArgs } from "node:util";
import { benchBackfill } from "./backfill.ts";
import { benchExport } from "./export.ts";
import { type Figure, formatFigures, isMissed } from "./figures.ts";
import { benchGoodput } from "./goodput.ts";
import { benchLive } from "./live.ts";
import { benchOutage } from "./outage.ts";
import { benchPages } from "./pages.ts";
import { benchServe } from "./serve.ts";
import { benchShare } from "./share.ts";
import { MAX_STOLEN_FRACTION, watchStolenTime } from "./stolen-time.ts";
import { benchToolkit } from "./toolkit.ts";
import { benchWritten } from "./written.ts";

type Print = (line: string) => void;

interface Part {
  readonly title: string;
  /** On two idle cores. */
  readonly minutes: number;
  /** Prints values without a limit, and returns those with one. */
  readonly run: (print: Print) => Promise<readonly Figure[]>;
}

// npm run bench: every part. npm run bench -- backfill live: these parts. `live --seconds 10`: a shorter run. `outage --full`: five minutes. `written --listings 45000`: as with `markets: all`.
// Most figures are ratios within one run, because machines differ and their speed varies.
const parts: Readonly<Record<string, Part>> = {
  backfill: { title: "mds-sync backfill, end to end", minutes: 1.5, run: benchBackfill },
  goodput: { title: "Pages per second on a bad network", minutes: 2, run: benchGoodput },
  toolkit: { title: "The library, the commands, and bounds on time", minutes: 0.5, run: benchToolkit },
  live: { title: "Live ticks, from the socket to the disk", minutes: 2.5, run: benchLive },
  written: {
    title: "Bytes written for live rows, four hours of polls",
    minutes: 2,
    run: (print) => benchWritten(print, listings),
  },
  outage: { title: "Back after an outage", minutes: 4, run: benchOutage },
  pages: {
    title: "The pages of the daemon, beside the first backfill of 1,500 assets",
    minutes: 2,
    run: benchPages,
  },
  share: { title: "mds-sync share, 576,000 ticks to PostgreSQL", minutes: 0.5, run: benchShare },
  serve: { title: "mds-sync serve, 576,000 ticks", minutes: 0.2, run: benchServe },
  export: { title: "mds-sync export, 10 million ticks", minutes: 1, run: benchExport },
};

const print: Print = (line) => void process.stdout.write(`${line}\n`);
const { positionals: requested, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string" }, full: { type: "boolean" }, listings: { type: "string" } },
});
const listings = values.listings === undefined ? undefined : Number(values.listings);
const unknown = requested.filter((name) => !(name in parts));
if (unknown.length > 0) {
  print(`unknown part ${unknown.join(", ")}: the parts are ${Object.keys(parts).join(", ")}`);
  process.exit(2);
}

const figures: Figure[] = [];
for (const [name, { title, minutes, run }] of Object.entries(parts)) {
  if (requested.length > 0 && !requested.includes(name)) continue;
  print(`\n${title} (about ${minutes < 1 ? `${minutes * 60} seconds` : `${minutes} minutes`})`);
  const readStolenFraction = watchStolenTime();
  figures.push(...(await run(print)));
  const stolen = readStolenFraction();
  if (stolen > MAX_STOLEN_FRACTION)
    print(
      `${Math.round(stolen * 100)} % of the CPU time went to other machines: the figures above suffer from it`,
    );
}
if (figures.length > 0) {
  print("");
  for (const line of formatFigures(figures)) print(line);
}
if (figures.some(isMissed)) process.exitCode = 1;
